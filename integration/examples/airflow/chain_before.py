"""A pipeline on Slurm as it is done by hand: each sbatch prints an id, XCom carries it into the next one's --dependency.

Airflow is done when the last sbatch has answered, long before the jobs are: a training that fails leaves a green run, and
what waits for it in the queue. A task that is retried submits its job a second time. chain.py is the same, without that.
"""

from __future__ import annotations

from airflow.providers.common.compat.sdk import DAG
from airflow.providers.standard.operators.bash import BashOperator


def sbatch(name: str, after: str = "") -> BashOperator:
    """A job that waits for another one, whose id is what that one's sbatch has printed."""
    dependency = f"--dependency=afterok:{{{{ ti.xcom_pull(task_ids='{after}') }}}} " if after else ""
    return BashOperator(
        task_id=name,
        bash_command=f"sbatch --parsable --job-name={name} --output=/dev/null {dependency}--wrap 'sleep 3; echo {name}'",
    )


with DAG("chain_before", schedule=None, tags=["dagbridge"]):
    sbatch("preprocess") >> sbatch("train", "preprocess") >> sbatch("evaluate", "train") >> sbatch("deploy", "evaluate")
