"""Many tasks at once."""

from airflow.providers.common.compat.sdk import DAG, task

from dagbridge.airflow.operators import DagBridgeOperator

# All wait at once until they are marked.
with DAG("crowd", schedule=None, params={"tasks": 100}):

    @task
    def count(params: dict[str, int]) -> list[dict[str, str]]:
        """The environment of each: as many as the run's conf says."""
        return [{"INDEX": str(i)} for i in range(params["tasks"])]

    DagBridgeOperator.partial(task_id="crowd", command=["sleep", "3600"], cpu="0.01", defer_after=0).expand(env=count())

# Each is over as soon as it is deferred: what succeeds ends in the trigger, what does not is resumed by a worker.
with DAG("hasty", schedule=None):
    INDICES = [{"INDEX": str(i)} for i in range(20)]
    DagBridgeOperator.partial(task_id="hasty", command=["true"], defer_after=0).expand(env=INDICES)
    DagBridgeOperator.partial(task_id="resumed", script="exit 99", skip_on_exit_code=99, defer_after=0).expand(env=INDICES)
