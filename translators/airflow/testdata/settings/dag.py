"""What tasks can say beside their programs; in Airflow 2 and 3 alike."""

import datetime as dt

try:
    from airflow.sdk import DAG
    from airflow.providers.standard.operators.bash import BashOperator
except ImportError:
    from airflow import DAG
    from airflow.operators.bash import BashOperator
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from dagbridge.airflow.operators import DagBridgeOperator
from kubernetes.client import models as k8s


def callback(context):
    pass


with DAG("settings", schedule=None, start_date=dt.datetime(2026, 1, 1), params={"lr": 0.1}, dagrun_timeout=dt.timedelta(hours=1)) as dag:
    pod = KubernetesPodOperator(
        task_id="pod", image="busybox:1", cmds=["sh", "-c"], arguments=["echo {{ ds }}"], namespace="ml", env_vars={"A": "{{ params.lr }}"},
        container_resources=k8s.V1ResourceRequirements(requests={"cpu": "2", "memory": "1Gi"}, limits={"nvidia.com/gpu": "1", "memory": "2Gi"}),
        node_selector={"disk": "ssd"}, labels={"team": "risk"}, on_failure_callback=callback,
    )
    bridge = DagBridgeOperator(
        task_id="bridge", command=["train", "--day", "{{ ds }}"], env={"X": "1", "DEBUG": True}, cpu=2, memory="1Gi", gpus="a100:2,1", nodes="2",
        time_limit=dt.timedelta(hours=1), partition="gpu", slurm={"options": {"constraint": "ib"}}, labels={"n": 1}, prologue="module load cuda",
        retry={"maxInfrastructureRetries": 2}, retries=2, retry_delay=dt.timedelta(minutes=1), skip_on_exit_code=[3], pool="p1", pool_slots=2, priority_weight=5,
        execution_timeout=dt.timedelta(minutes=30),
    )
    script = DagBridgeOperator(task_id="script", script="#!/usr/bin/env python3\nprint('{{ ti.xcom_pull(task_ids='bridge')['auc'] }}')\n", container="python:3")
    argv = DagBridgeOperator.partial(task_id="argv", cpu=1).expand(command=[["echo", "{{ ds }}"], ["echo", "{{ ti.xcom_pull(task_ids='bridge', key='a') }}", "x y"]])
    cross = BashOperator.partial(
        task_id="cross", append_env=True, retries=2, retry_exponential_backoff=True, execution_timeout=dt.timedelta(minutes=2), max_active_tis_per_dagrun=3,
        trigger_rule="all_done", skip_on_exit_code=[7, 8],
    ).expand(env=[{"A": "1"}, {"A": "2"}], bash_command=["echo $A", "echo b $A", "echo c"])
    over = BashOperator.partial(task_id="over").expand(bash_command=bridge.output)
    pull = BashOperator(
        task_id="pull", bash_command="qsub x; echo {{ ti.xcom_pull(task_ids='bridge') }} $AIRFLOW_HOME", depends_on_past=True, retries=3, retry_exponential_backoff=True,
        max_retry_delay=dt.timedelta(minutes=10), cwd="/shared/{{ ds }}", on_success_callback=callback, trigger_rule="none_failed", weight_rule="upstream", queue="hpc",
    )
    pod >> bridge >> [script, argv] >> cross >> pull
