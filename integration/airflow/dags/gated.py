"""Tasks whose jobs run until the test opens their gate: a file of the task's name in the folder ``gates`` of the run's conf."""

from datetime import timedelta

from airflow.providers.common.compat.sdk import DAG

from dagbridge.airflow.operators import DagBridgeOperator

SCRIPT = """until [ -e {{ dag_run.conf['gates'] }}/{{ task.task_id }} ]; do sleep 0.1; done
echo '{"try": '$DAGBRIDGE_TRY'}' >"$DAGBRIDGE_OUTPUT"
"""


def gated(task: str, **options: object) -> DagBridgeOperator:
    """A task whose job runs until its gate is open."""
    return DagBridgeOperator(task_id=task, script=SCRIPT, **options)


# Whatever dies, every task has one job. They are told apart in the accounting by their names, which no other DAG has.
with DAG("killed", schedule=None, default_args={"retries": 9, "retry_delay": timedelta(seconds=1)}):
    before = gated("killed_before")
    meanwhile = gated("killed_meanwhile")
    after = gated("killed_after")
    before >> after
    gated("killed_working", deferrable=False)
    gated("killed_submitting", defer_after=600)

# Marked by a person, a task is over and its job is gone.
with DAG("marked", schedule=None):
    gated("marked_deferred")
    gated("marked_running", deferrable=False)
    gated("marked_left", on_kill="leave")

# Marked failed as a whole while its work runs, a run still tears down what it has set up.
with DAG("torn", schedule=None):
    set_up = gated("torn_set_up").as_setup()
    set_up >> gated("torn_work") >> gated("torn_down").as_teardown(setups=set_up)

# Cleared in the middle: a second try of what is cleared and of what is after it.
with DAG("cleared", schedule=None):
    gated("cleared_first") >> gated("cleared_second") >> gated("cleared_third")

# Deleted and made again under the same name.
with DAG("again", schedule=None):
    gated("again_only")
