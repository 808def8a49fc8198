"""Ten steps in a row, into Slurm in three ways. Each leaves its times in a file of its name in the folder ``into`` of the run's conf."""

from airflow.providers.common.compat.sdk import DAG
from airflow.providers.standard.operators.bash import BashOperator

from dagbridge.airflow.operators import DagBridgeOperator

STEPS = [f"step_{i}" for i in range(10)]
FILE = "{{ dag_run.conf['into'] }}/{{ task.task_id }}"
SCRIPT = f"date +%s.%N >{FILE}; sleep 2; date +%s.%N >>{FILE}"


def in_a_row(tasks):
    """Each after the one before."""
    for before, after in zip(tasks, tasks[1:]):
        before >> after


with DAG("deferred", schedule=None):
    in_a_row([DagBridgeOperator(task_id=step, script=SCRIPT, deferrable=True) for step in STEPS])

with DAG("submitted", schedule=None):
    before = []
    for step in STEPS:
        before = [DagBridgeOperator(task_id=step, script=SCRIPT, wait="submitted", depends_on=before)]

with DAG("sbatch", schedule=None):
    in_a_row([BashOperator(task_id=step, bash_command=f"sbatch --wait --output=/dev/null --wrap '{SCRIPT}'") for step in STEPS])
