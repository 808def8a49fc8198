"""The button on a task that leads to its job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseOperatorLink, XCom

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import BaseOperator, TaskInstanceKey

#: The XCom that holds the link, from the submission on.
LINK_KEY = "dagbridge_link"


class DagBridgeLink(BaseOperatorLink):
    """Airflow 3 reads the XCom; Airflow 2 asks ``get_link`` in its web server, and 3 in the task when it ends or is deferred."""

    name = "dagbridge job"

    @property
    def xcom_key(self) -> str:
        """Where Airflow 3 finds it."""
        return LINK_KEY

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """What the task has pushed; in the task itself what it knows, since this replaces what was pushed."""
        known: str | None = getattr(operator, "job_link", None)
        if known is not None:
            return known
        told: Any = XCom.get_value(key=LINK_KEY, ti_key=ti_key)
        return str(told or "")
