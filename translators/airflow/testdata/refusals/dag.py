"""What cannot be translated, each with the reason; Airflow 3."""

import datetime as dt

from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.python import BranchPythonOperator, PythonOperator
from airflow.providers.standard.sensors.filesystem import FileSensor
from airflow.sdk import DAG, task, task_group
from dagbridge.airflow.operators import DagBridgeOperator, DagBridgeRunOperator


def f():
    pass


with DAG("refusals", schedule="@daily", start_date=dt.datetime(2026, 1, 1)) as dag:
    python = PythonOperator(task_id="python", python_callable=f)
    branch = BranchPythonOperator(task_id="branch", python_callable=f)
    sensor = FileSensor(task_id="sensor", filepath="/x")
    run = DagBridgeRunOperator(task_id="run", workflow={"tasks": []})

    @task.bash
    def decorated():
        return "true"

    decorated()
    first = BashOperator(task_id="first", bash_command="true")
    file = BashOperator(task_id="file", bash_command="/home/me/eval.sh")
    variable = BashOperator(task_id="variable", bash_command="echo\n{{ var.value.bucket }}")
    comment = BashOperator(task_id="comment", bash_command="echo ${#files[@]}")
    filtered = BashOperator(task_id="filtered", bash_command="echo {{ ds | title }}")
    computed = BashOperator(task_id="computed", bash_command="{% if ti.xcom_pull(task_ids='first') %}x{% endif %}")
    stranger = BashOperator(task_id="stranger", bash_command="{{ ti.xcom_pull(task_ids='file') }}")
    nobody = BashOperator(task_id="nobody", bash_command="{{ ti.xcom_pull(task_ids='nobody_there') }}")
    earlier = BashOperator(task_id="earlier", bash_command="echo {{ prev_ds }}")
    missing = BashOperator(task_id="missing", bash_command="echo {{ params.missing }}")
    path = BashOperator(task_id="path", bash_command="true", cwd="{{ ti.xcom_pull(task_ids='first') }}")
    first >> [variable, computed, path]
    kwargs = BashOperator.partial(task_id="kwargs").expand_kwargs(first.output)
    crossed = BashOperator.partial(task_id="crossed").expand(bash_command=first.output, env=[{"A": "1"}, {"A": "2"}])
    mapped = BashOperator.partial(task_id="mapped").expand(bash_command=["a", "b"])
    listed = BashOperator(task_id="listed", bash_command="{{ ti.xcom_pull(task_ids='mapped') }}")
    mapped >> listed
    passed = BashOperator.partial(task_id="passed").expand(bash_command=first.output.map(lambda x: x))
    cpus = DagBridgeOperator.partial(task_id="cpus", command=["x"]).expand(cpu=[1, 2])
    beside = DagBridgeOperator(task_id="beside", script_file="x.sh")
    wrong = DagBridgeOperator(task_id="wrong", command=["x"], retry={"maxRetriez": 2}, gpus="a100:x")

    @task_group
    def outer(x):
        @task_group
        def inner(y):
            BashOperator(task_id="deep", bash_command="true")

        inner(x)

        BashOperator(task_id="embedded", bash_command="true", env={"X": x})

    outer.expand(x=["1", "2"])
    setup = BashOperator(task_id="setup", bash_command="true").as_setup()
    work = BashOperator(task_id="work", bash_command="true")
    after = BashOperator(task_id="after", bash_command="true", trigger_rule="all_done")
    teardown = BashOperator(task_id="teardown", bash_command="true").as_teardown(setups=setup)
    setup >> work >> after >> teardown
