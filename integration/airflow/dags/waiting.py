"""A chain of four steps into Slurm; Airflow decides each step.

The first step waits for the file ``gate`` of the run's conf, so that a test can look at what waits.
"""

from datetime import timedelta

from airflow.providers.common.compat.sdk import DAG

from dagbridge.airflow.operators import DagBridgeOperator

PREPROCESS = """until [ -e {{ dag_run.conf['gate'] }} ]; do sleep 0.1; done
echo '{"rows": 9007199254740993, "ratio": 3.0}' >"$DAGBRIDGE_OUTPUT"
"""
with DAG("waiting", schedule=None, default_args={"retries": 0}):
    preprocess = DagBridgeOperator(task_id="preprocess", script=PREPROCESS, cpu=1, memory="100Mi")
    train = DagBridgeOperator(task_id="train", script="""echo auc=0.91 >"$DAGBRIDGE_OUTPUT" """)
    evaluate = DagBridgeOperator(
        task_id="evaluate", command=["sh", "-c", "echo evaluating $ROWS"], env={"ROWS": "{{ ti.xcom_pull('preprocess')['rows'] }}"}
    )
    deploy = DagBridgeOperator(task_id="deploy", command=["echo", "deployed"], time_limit=timedelta(minutes=5))
    preprocess >> train >> evaluate >> deploy
