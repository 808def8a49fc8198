"""A chain of four steps that Slurm goes on with by itself: Airflow's tasks end once the gateway has the jobs for good.

The first step waits for the file ``gate`` of the run's conf, so that a test can look at the queue.
"""

from airflow.providers.common.compat.sdk import DAG

from dagbridge.airflow.operators import DagBridgeOperator
from dagbridge.airflow.sensors import DagBridgeJobSensor

PREPROCESS = """until [ -e {{ dag_run.conf['gate'] }} ]; do sleep 0.1; done
echo '{"rows": 2000}' >"$DAGBRIDGE_OUTPUT"
"""

with DAG("chained", schedule=None, default_args={"retries": 0, "wait": "submitted"}):
    preprocess = DagBridgeOperator(task_id="preprocess", script=PREPROCESS)
    train = DagBridgeOperator(task_id="train", script="""echo auc=0.91 >"$DAGBRIDGE_OUTPUT" """, depends_on=[preprocess])
    evaluate = DagBridgeOperator(task_id="evaluate", command=["echo", "evaluating"], depends_on=[train])
    deploy = DagBridgeOperator(task_id="deploy", command=["echo", "deployed"], depends_on=[evaluate])
    ended = DagBridgeJobSensor(task_id="ended", task_ids=["preprocess", "train", "evaluate", "deploy"])
    deploy >> ended
