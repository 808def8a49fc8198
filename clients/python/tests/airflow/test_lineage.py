"""OpenLineage: what Airflow's own listener says of a task, and what the job is told of its parent; written to a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("airflow")

from dagbridge.airflow import lineage

# In a process of its own: Airflow reads the listener's configuration once.
DAG_FILE = '''
from airflow.providers.common.compat.sdk import DAG, Asset
from dagbridge.airflow.operators import DagBridgeOperator

with DAG("lineage", schedule=None) as dag:
    DagBridgeOperator(
        task_id="train",
        script="""env | sed -n 's/^OPENLINEAGE_//p' >$DAGBRIDGE_OUTPUT""",
        inlets=[Asset("file://nas/rows.csv")],
        outlets=[Asset("file://nas/model.bin")],
        resume_after=0,
        defer_after={defer_after},
    )

if __name__ == "__main__":
    import json

    run = dag.test()
    (ti,) = run.get_task_instances()
    told = {key: ti.xcom_pull(task_ids="train", key=key) for key in ("return_value", "dagbridge_job")}
    print("TOLD", json.dumps(told | {"state": str(run.state)}))
'''


@pytest.mark.parametrize("defer_after", [60, 0], ids=["worker", "trigger"])
def test_a_task_and_its_job_are_told_of_each_other(
    database: None, connection: None, dags_folder: Path, tmp_path: Path, defer_after: int
) -> None:
    events = tmp_path / "events"
    file = dags_folder / "lineage.py"
    file.write_text(DAG_FILE.replace("{defer_after}", str(defer_after)))
    transport = {"type": "file", "log_file_path": str(events), "append": True}
    env = {**os.environ, "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport), "AIRFLOW__OPENLINEAGE__NAMESPACE": "bank"}
    ran = subprocess.run([sys.executable, file], env=env, capture_output=True, text=True, check=False)
    told = next((line for line in ran.stdout.splitlines() if line.startswith("TOLD ")), None)
    assert told is not None, ran.stdout + ran.stderr
    xcoms = json.loads(told.removeprefix("TOLD "))
    assert xcoms["state"].endswith("success"), ran.stdout + ran.stderr

    complete = [e for line in events.read_text().splitlines() if (e := json.loads(line))["job"]["name"] == "lineage.train"]
    event: dict[str, Any] = next(e for e in complete if e["eventType"] == "COMPLETE")
    assert event["run"]["facets"]["externalQuery"]["externalQueryId"] == xcoms["dagbridge_job"]["native_id"]
    assert event["run"]["facets"]["externalQuery"]["source"] == "here"
    assert [dataset["name"] for dataset in event["inputs"]] == ["/rows.csv"]
    assert [dataset["name"] for dataset in event["outputs"]] == ["/model.bin"]
    assert xcoms["return_value"]["PARENT_ID"] == f"bank/lineage.train/{event['run']['runId']}"
    assert xcoms["return_value"]["ROOT_PARENT_ID"].startswith("bank/lineage/")


def test_nothing_is_told_where_nobody_listens() -> None:
    assert find_spec("airflow.providers.openlineage") is not None
    assert lineage.parent({"task": None, "ti": None}) == {}  # type: ignore[typeddict-item]


def test_nothing_is_imported_where_the_provider_is_absent() -> None:
    code = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.startswith("airflow.providers.openlineage") else found(name, *rest)
from dagbridge.airflow import lineage, operators
assert lineage.parent({}) == {}
assert not [name for name in sys.modules if name.startswith("openlineage")]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
