"""The jobs of other tasks of this run: what a job waits for natively, and what a sensor waits for.

Which jobs these are stands in the XCom ``dagbridge_job`` that each task has left, so a task of an earlier run under the same
name, or of an earlier try, is never meant. A task without one was never submitted, and there is nothing to wait for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from airflow.providers.common.compat.sdk import AirflowFailException

from dagbridge.airflow.xcom import JOB_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow.providers.common.compat.sdk import BaseOperator, Context

    from dagbridge import Client, Job
    from dagbridge.types import Edge, TriggerRule

#: Rules by which Airflow itself would skip a task whose upstream tasks have succeeded, as they do once they are submitted.
UNMET = frozenset({"all_failed", "one_failed", "all_skipped"})
#: Words of Airflow 2 that have become others.
_RULES = {"none_failed_or_skipped": "none_failed_min_one_success", "dummy": "always"}


def named(operator: Any, depends_on: Any) -> list[str | Edge]:
    """``depends_on`` as it is stored: ids of tasks, and edges. Sets the edges of the DAG on the way."""
    given = depends_on if isinstance(depends_on, list | tuple) else [] if depends_on is None else [depends_on]
    found: list[str | Edge] = []
    for one in given:
        if isinstance(one, dict):
            found.append(cast("Edge", one))
            continue
        if isinstance(one, str):
            if operator.has_dag():
                if not operator.dag.has_task(one):
                    raise ValueError(f"Task {operator.task_id}: depends_on names {one}, which is no task of the DAG so far.")
                operator.set_upstream(operator.dag.get_task(one))
            found.append(one)
        else:
            other: Any = getattr(one, "operator", one)  # what a decorated function returns has one
            operator.set_upstream(other)
            found.append(str(other.task_id))
    return found


def check_rule(operator: Any) -> None:
    """Refuses a trigger rule that Airflow would not meet as it is meant."""
    if (text := rule(operator.trigger_rule)) in UNMET:
        raise ValueError(
            f"Task {operator.task_id}: with wait='submitted' a task has succeeded for Airflow once it is submitted, so that"
            f" trigger_rule={text!r} would skip this one. Say job_trigger_rule={text!r} instead."
        )


def rule(word: Any) -> TriggerRule:
    """A trigger rule as the gateway knows it."""
    text = str(getattr(word, "value", word))
    return cast("TriggerRule", _RULES.get(text, text))


def jobs(context: Context, client: Client, task_ids: Iterable[str]) -> dict[str, list[Job]]:
    """The jobs that tasks of this run have become, by task; of a mapped task those of all its instances, in their order."""
    pulled: dict[str, list[str]] = {}
    for task_id in task_ids:
        told = context["ti"].xcom_pull(task_ids=[task_id], key=JOB_KEY)
        pulled[task_id] = [one["id"] for one in told or () if one]
    known = {job["id"]: job for job in client.batch_get([job_id for ids in pulled.values() for job_id in ids])}
    return {
        task_id: sorted((known[i] for i in ids if i in known), key=lambda job: job["key"].get("mapIndex", []))
        for task_id, ids in pulled.items()
    }


def edges(operator: BaseOperator, context: Context, client: Client, depends_on: Sequence[str | Edge]) -> list[Edge]:
    """An edge for each job that ``depends_on`` names; edges that are given as such are taken as they are.

    Within a mapped task group a task waits for the jobs of its own index, else for all of a mapped task's.
    """
    names = [one for one in depends_on if isinstance(one, str)]
    if unmet := sorted(set(names) - operator.get_flat_relative_ids(upstream=True)):
        raise AirflowFailException(
            f"Task {operator.task_id}: depends_on names {', '.join(unmet)}, which is not upstream of it in the DAG and might not"
            " have been submitted yet; set the edge with >> as well."
        )
    found: list[Edge] = [one for one in depends_on if not isinstance(one, str)]
    index: Any = context["ti"].map_index
    for name, each in jobs(context, client, names).items():
        together = _share_a_group(operator, name)
        found += [
            {"key": job["key"], "optional": True}
            for job in each
            if not together or job["key"].get("mapIndex", [index]) == [index]
        ]
    return found


def _share_a_group(operator: Any, other: str) -> bool:
    """Whether two tasks are instances of one mapped task group."""
    group, others = (each.get_closest_mapped_task_group() for each in (operator, operator.dag.get_task(other)))
    return group is not None and others is not None and group.group_id == others.group_id
