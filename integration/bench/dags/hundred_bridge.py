"""A hundred tasks, as many DAG files have them."""

from airflow.providers.common.compat.sdk import DAG

from dagbridge.airflow.operators import DagBridgeOperator

with DAG("hundred_bridge", schedule=None):
    for i in range(100):
        DagBridgeOperator(task_id=f"task_{i}", script=f"echo {i}", env={"INDEX": str(i)})
