"""Look-ahead: jobs of later tasks of the run, handed in before Airflow's turn for them has come.

They wait in the scheduler for the jobs before them, and start the moment these end: Airflow's own round trip is no gap between
steps any more. Such a job is *reserved*: the operator claims it when Airflow reaches the task. So it may have run, in part or
whole, by then; what a person does in Airflow meanwhile (mark, clear, pause, delete) comes after it. One that nobody claims is
cancelled by the gateway, some time after the jobs before it have ended.

Only what will surely be the same later is handed in: ``_reasons`` says what keeps a task from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from airflow.providers.common.compat.sdk import BaseOperator

from dagbridge.airflow import upstream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow.providers.common.compat.sdk import Context

    from dagbridge import Task
    from dagbridge.airflow.operators import DagBridgeOperator
    from dagbridge.types import Edge

#: Ends the uid of reserved jobs, which are of no try.
SUFFIX = "/ahead"
#: What is the same for all tasks of a run.
RUN_LEVEL = frozenset(
    {"conf", "dag", "dag_run", "data_interval_end", "data_interval_start", "ds", "ds_nodash", "execution_date", "logical_date"}
    | {"macros", "params", "run_id", "ts", "ts_nodash", "ts_nodash_with_tz"}
)
#: Rules that a scheduler keeps by itself: of the first whatever the tasks before do, of the others if these have one try.
_ALWAYS_NATIVE, _NATIVE = frozenset({"all_success"}), frozenset({"all_success", "all_done"})


def tasks(first: DagBridgeOperator, context: Context, identity: Task) -> tuple[list[Task], dict[str, str]]:
    """The tasks to reserve, in the order of the DAG, and why each other one below ``first`` is not among them.

    :param identity: of ``first``: its run is theirs, and its uid, with a suffix, too.
    """
    handed, left = {first.task_id}, {}
    found: list[Task] = []
    dag: Any = first.dag
    below = first.get_flat_relative_ids(upstream=False)
    for operator in dag.topological_sort():
        if operator.task_id not in below:
            continue
        if why := next(_reasons(operator, first, handed), None):
            left[operator.task_id] = why
            continue
        try:
            found.append(_task(operator, context, identity))
        except Exception as error:  # it will be told by the task itself, when its turn has come
            left[operator.task_id] = f"it cannot be rendered: {error}"
            continue
        handed.add(operator.task_id)
    return found, left


def _task(operator: Any, context: Context, identity: Task) -> Task:
    copy = operator.prepare_for_execution()
    # What belongs to the first task alone must not be found by mistake: Jinja takes what is missing for empty.
    told = cast("Context", {name: value for name, value in context.items() if name in RUN_LEVEL} | {"task": copy})
    copy.render_template_fields(told)
    key = {name: value for name, value in identity["key"].items() if name != "mapIndex"} | {"task": operator.task_id}
    edges: list[Edge] = [{"task": name} for name in sorted(operator.upstream_task_ids)]
    task: dict[str, Any] = {
        **copy.task_spec(told),
        "key": key,
        "uid": identity["uid"] + SUFFIX,
        "upstream": edges,
        "triggerRule": upstream.rule(operator.trigger_rule),
    }
    return cast("Task", task)


def _reasons(operator: Any, first: DagBridgeOperator, handed: set[str]) -> Iterator[str]:
    """What speaks against handing a task in."""
    from dagbridge.airflow.operators import DagBridgeOperator

    if not isinstance(operator, BaseOperator) or operator.get_closest_mapped_task_group() is not None:
        yield "it is mapped"
    if not isinstance(operator, DagBridgeOperator):
        yield f"it is a {operator.task_type}, which Airflow runs itself"
        return
    if others := sorted(operator.upstream_task_ids - handed):
        yield f"it waits for {', '.join(others)}, which {'is' if len(others) == 1 else 'are'} not handed in"
    if operator.dagbridge_conn_id != first.dagbridge_conn_id:
        yield f"it goes to another gateway, {operator.dagbridge_conn_id}"
    if operator.is_setup or operator.is_teardown:
        yield "it is a set-up or a tear-down"
    if operator.wait == "submitted" or operator.depends_on:
        yield "its job waits for others by depends_on"
    if operator.array is not None:
        yield "it is an array"
    rule = upstream.rule(operator.trigger_rule)
    retried = sorted(name for name in operator.upstream_task_ids if operator.dag.get_task(name).retries)
    if rule not in _NATIVE:
        yield f"a scheduler does not keep its trigger rule {rule} by itself"
    elif rule not in _ALWAYS_NATIVE and retried:
        yield f"its trigger rule {rule} waits for the last try of {', '.join(retried)}"
    if operator.pool != "default_pool" or operator.max_active_tis_per_dag or operator.max_active_tis_per_dagrun:
        yield "its pool, or how many of it may be active, is for Airflow to keep"
    if operator.depends_on_past or operator.wait_for_downstream:
        yield "it waits for earlier runs"
    if operator._pre_execute_hook is not None:
        yield "it has a pre_execute"
    yield from _varying(operator, first)


def _varying(operator: Any, first: Any) -> Iterator[str]:
    """Templates that need more than the run."""
    from jinja2 import TemplateSyntaxError, meta

    environment = operator.get_template_env()
    for field in operator.template_fields:
        if field == "source":
            continue  # is never rendered
        for text in _texts(getattr(operator, field, None)):
            if text is None:
                yield f"its {field} takes another task's result"
                return
            try:
                names = meta.find_undeclared_variables(environment.parse(text)) - set(environment.globals)
            except TemplateSyntaxError as error:
                yield f"its {field} is no template: {error}"
                return
            if others := sorted(names - RUN_LEVEL):
                yield f"its {field} uses {', '.join(others)}, which only its own turn gives"
            if "params" in names and operator.params.dump() != first.params.dump():
                yield f"its {field} uses params, and its own are not those of {first.task_id}"
    filled = getattr(operator, "_left_to_airflow", None)
    if filled is not None and (others := sorted(filled() - RUN_LEVEL)):
        yield f"its function is given {', '.join(others)}, which only its own turn gives"


def _texts(value: Any) -> Iterable[str | None]:
    """The texts in a templated value; None stands for what is resolved from another task."""
    if isinstance(value, str):
        yield value
    elif hasattr(value, "iter_references"):
        yield None
    elif isinstance(value, dict):
        for one in (*value.keys(), *value.values()):
            yield from _texts(one)
    elif isinstance(value, list | tuple | set):
        for one in value:
            yield from _texts(one)
