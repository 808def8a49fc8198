"""OpenLineage, where Airflow's provider for it is installed and told where to send events; else nothing here does anything.

A job learns whose child it is by two environment variables, which OpenLineage's integrations read (``dbt-ol``, and what follows
it). A task's event says which native job ran it; its inputs and outputs are the ``inlets`` and ``outlets`` that it declares.
Lineage never fails a task.
"""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage

    from dagbridge import Job

log = logging.getLogger(__name__)


def parent(context: Context) -> dict[str, str]:
    """The environment by which a job's own events name this task, and the DAG run, as parents: ``namespace/name/run id``."""
    if find_spec("airflow.providers.openlineage") is None:
        return {}
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.macros import lineage_parent_id, lineage_root_parent_id
    from airflow.providers.openlineage.utils.utils import is_selective_lineage_enabled

    try:
        if conf.is_disabled() or not is_selective_lineage_enabled(context["task"]):
            return {}
        ti: Any = context["ti"]
        return {"OPENLINEAGE_PARENT_ID": lineage_parent_id(ti), "OPENLINEAGE_ROOT_PARENT_ID": lineage_root_parent_id(ti)}
    except Exception:
        log.warning("The job is not told its OpenLineage parent.", exc_info=True)
        return {}


def facets(job: Job | None) -> OperatorLineage[Any, Any]:
    """What a task's event says of its job. Without inputs and outputs, for which Airflow takes the inlets and outlets."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.facet_v2 import external_query_run

    if job is None or not job.get("nativeId"):
        return OperatorLineage()
    ran = external_query_run.ExternalQueryRunFacet(externalQueryId=job["nativeId"], source=job["cluster"])
    return OperatorLineage(run_facets={"externalQuery": ran})
