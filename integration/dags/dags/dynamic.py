"""Mapped tasks whose number another task's result says: several, one, and none; and what comes after them."""

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, task

with DAG("dynamic", schedule=None, default_args={"resume_after": 0}):

    @task.dagbridge
    def found(n):
        return [f"echo 'file {i}' of {n}" for i in range(n)]

    @task.dagbridge
    def size(command, unit="bytes"):
        return {"size": len(command), "unit": unit}

    for n in (5, 1, 0):
        files = found.override(task_id=f"find_{n}")(n)
        read = BashOperator.partial(task_id=f"read_{n}").expand(bash_command=files)
        sizes = size.override(task_id=f"size_{n}").partial(unit="B").expand(command=files)
        read >> BashOperator(task_id=f"all_{n}", bash_command="true")
        [read, sizes] >> BashOperator(task_id=f"any_{n}", bash_command="true", trigger_rule="all_done")
