"""A hundred tasks, as many DAG files have them."""

from airflow.providers.common.compat.sdk import DAG
from airflow.providers.standard.operators.bash import BashOperator

with DAG("hundred_bash", schedule=None):
    for i in range(100):
        BashOperator(task_id=f"task_{i}", bash_command=f"echo {i}", env={"INDEX": str(i)})
