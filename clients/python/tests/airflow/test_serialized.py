"""What Airflow keeps of a task, and what a DAG file costs."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("airflow")

from airflow.serialization import serialized_objects

from dagbridge.airflow import spec
from dagbridge.airflow.operators import DagBridgeOperator
from dagbridge.airflow.sensors import DagBridgeJobSensor

#: A value for every field that says what to run.
VALUES: dict[str, Any] = {
    "command": ["python", "train.py", "{{ ds }}"],
    "script": "#!/bin/bash\necho {{ ds }}",
    "script_file": "train.sh",
    "container": {"image": "python:3.12", "args": ["x"]},
    "env": {"EPOCHS": "3"},
    "cluster": "hpc",
    "fallbacks": ["k8s"],
    "cpu": 4,
    "memory": "16Gi",
    "gpus": "a100:2",
    "nodes": 2,
    "tasks_per_node": 4,
    "time_limit": datetime.timedelta(hours=1),
    "launch": "PER_TASK",
    "partition": "gpu",
    "account": "lab",
    "qos": "high",
    "slurm": {"options": {"constraint": "ib"}},
    "kubernetes": {"namespace": "ml"},
    "prologue": "module load cuda",
    "working_directory": "/shared/x",
    "retry": {"maxRetries": 2, "backoff": "30s"},
    "at_most_once": False,
    "array": [{"env": {"SEED": "1"}}],
    "labels": {"team": "x"},
    "skip_on_exit_code": [99],
}
#: As it is stored, where that is another text.
STORED = {"time_limit": "3600s"}


def serialized(dag: Any) -> dict[str, Any]:
    """The DAG as it is in the database, by task."""
    form = getattr(serialized_objects, "DagSerialization", None) or serialized_objects.SerializedDAG
    tasks = json.loads(json.dumps(form.to_dict(dag)))["dag"]["tasks"]
    return {each["__var"]["task_id"]: each["__var"] for each in tasks}


def plain(value: Any) -> Any:
    """Without the serializer's own marks."""
    if isinstance(value, dict):
        return plain(value["__var"]) if "__var" in value else {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def test_the_serialized_task_has_every_field(dag: Any) -> None:
    assert set(VALUES) == set(spec.FIELDS)
    with dag:
        first = DagBridgeOperator(task_id="first", script="true")
        DagBridgeOperator(task_id="all", depends_on=[first, {"native": {"id": "7"}}], job_trigger_rule="all_done", **VALUES)
        DagBridgeJobSensor(task_id="sensor", task_ids=["all"], job_ids=["x"])
    tasks = serialized(dag)
    stored = {name: plain(tasks["all"][name]) for name in VALUES}
    assert stored == {**VALUES, **STORED}
    assert plain(tasks["all"]["depends_on"]) == ["first", {"native": {"id": "7"}}]
    assert tasks["all"]["job_trigger_rule"] == "all_done"
    assert (tasks["sensor"]["task_ids"], tasks["sensor"]["job_ids"]) == (["all"], ["x"])
    links = tasks["all"]["_operator_extra_links"]
    assert "dagbridge" in json.dumps(links)


def test_a_serialized_dag_can_be_read_again(dag: Any) -> None:
    with dag:
        DagBridgeOperator(task_id="all", **VALUES)
        DagBridgeOperator.partial(task_id="mapped", **{name: each for name, each in VALUES.items() if name != "env"}).expand(
            env=[{"A": "1"}, {"A": "2"}]
        )
    form = getattr(serialized_objects, "DagSerialization", None) or serialized_objects.SerializedDAG
    again = form.from_dict(json.loads(json.dumps(form.to_dict(dag))))
    assert set(again.task_dict) == {"all", "mapped"}
    assert again.task_dict["all"].script == VALUES["script"]


def test_the_fields_of_a_task_are_the_wires(dag: Any) -> None:
    fields = {**VALUES, "script": None, "script_file": None}
    assert spec.task(fields) == {
        "command": {"argv": ["python", "train.py", "{{ ds }}"]},
        "container": {"image": "python:3.12", "args": ["x"]},
        "env": {"EPOCHS": "3"},
        "cluster": "hpc",
        "fallbacks": ["k8s"],
        "resources": {
            "cpu": "4",
            "memory": "16Gi",
            "gpus": [{"type": "a100", "count": 2}],
            "nodes": 2,
            "tasksPerNode": 4,
            "timeLimit": "3600s",
        },
        "launch": "PER_TASK",
        "slurm": {"partition": "gpu", "account": "lab", "qos": "high", "options": {"constraint": "ib"}},
        "kubernetes": {"namespace": "ml"},
        "prologue": "module load cuda",
        "workingDirectory": "/shared/x",
        "retry": {"maxRetries": 2, "backoff": "30s"},
        "atMostOnce": False,
        "array": {"items": [{"env": {"SEED": "1"}}]},
        "labels": {"team": "x"},
        "skipExitCodes": [99],
    }


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (2, [{"count": 2}]),
        ("2", [{"count": 2}]),
        ("a100", [{"type": "a100", "count": 1}]),
        ("a100:2", [{"type": "a100", "count": 2}]),
        ("a100_3g.20gb:4, v100", [{"type": "a100_3g.20gb", "count": 4}, {"type": "v100", "count": 1}]),
        ([{"type": "a100"}], [{"type": "a100"}]),
    ],
)
def test_gpus(given: Any, asked: Any) -> None:
    assert spec.task({"script": "x", "gpus": given})["resources"]["gpus"] == asked


@pytest.mark.parametrize(
    ("given", "asked"),
    [(90, "90s"), (1.5, "1.5s"), (datetime.timedelta(minutes=2), "120s"), ("90s", "90s"), ("90", "90s"), (1e-9, "0.000000001s")],
)
def test_time_limits(given: Any, asked: str) -> None:
    assert spec.task({"script": "x", "time_limit": given})["resources"]["timeLimit"] == asked


def test_a_dag_file_imports_nothing_that_takes_time() -> None:
    """Beyond what Airflow's own operators import."""
    code = """
import sys
from airflow.providers.common.compat.sdk import BaseOperator, BaseSensorOperator, BaseHook, BaseOperatorLink, XCom
from airflow.triggers.base import BaseTrigger
before = set(sys.modules)
import dagbridge.airflow.operators, dagbridge.airflow.sensors
print(sorted(name for name in {m.partition('.')[0] for m in set(sys.modules) - before} if name in sys.argv[1:]))
"""
    heavy = ["httpx", "httpcore", "tenacity", "openlineage", "yaml", "ssl", "asyncio"]
    done = subprocess.run([sys.executable, "-c", code, *heavy], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
