"""``DagBridgeRunOperator``, run by ``dag.test()`` against a real gateway."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import AIRFLOW_3
from gateway import Gateway

pytest.importorskip("airflow")

from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from dagbridge import Client
from dagbridge.airflow import run_operator
from dagbridge.airflow.operators import DagBridgeOperator, DagBridgeRunOperator
from dagbridge.airflow.triggers import DagBridgeJobTrigger

Run = Callable[..., Any]

#: Where a task waits: in its worker, there for a moment only, in the trigger.
WAYS = pytest.mark.parametrize(
    "way",
    [{"deferrable": False}, {"deferrable": True, "defer_after": 60}, {"deferrable": True, "defer_after": 0}],
    ids=["worker", "glance", "trigger"],
)


def step(name: str, script: str = "true", *upstream: str, **more: Any) -> dict[str, Any]:
    """A native task."""
    edges = [{"task": task} for task in upstream]
    return {"key": {"task": name}, "script": {"text": script}, "upstream": edges, **more}


@WAYS
def test_a_workflow_is_one_task(
    dag: Any, run: Run, gateway: Gateway, way: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    simulate = step(
        "simulate", 'echo "x=$SEED$DATE" >"$DAGBRIDGE_OUTPUT"', array={"items": [{"env": {"SEED": i}} for i in range(3)]}
    )
    report = step(
        "report",
        '[ "$(grep -o x "$DAGBRIDGE_INPUTS" | wc -l)" = 3 ] && echo \'{"return_value": [1]}\' >"$DAGBRIDGE_OUTPUT"',
        "simulate",
    )
    with dag:
        DagBridgeRunOperator(
            task_id="risk", workflow={"tasks": [simulate, report, step("quiet")]}, env={"DATE": "{{ ds }}"}, **way
        )
    done = run(dag)
    assert done.states == {"risk": "success"}
    day = str(done.run.logical_date.date())
    assert done.xcom("risk") == {"simulate": [{"x": f"{i}{day}"} for i in range(3)], "report": [1], "quiet": None}
    told = done.xcom("risk", "dagbridge_run")
    assert (told["state"], told["counts"]) == ("SUCCEEDED", {"SUCCEEDED": 5})
    assert done.xcom("risk", "dagbridge_link") == f"{gateway.url}/v1/runs/{told['id']}"
    assert f"Run {told['id']}, tasks: 3" in "".join(capfd.readouterr())
    with Client(gateway.url) as bridge:
        found = bridge.get_run(told["id"])
    assert (found["workflow"], found["run"]) == (f"{dag.dag_id}:risk", done.run.run_id)
    assert found["parent"] | {"mapIndex": []} == {
        "deployment": "default",
        "orchestrator": "airflow",
        "workflow": dag.dag_id,
        "run": done.run.run_id,
        "task": "risk",
        "mapIndex": [],
    }


@WAYS
def test_a_retry_runs_what_has_failed(dag: Any, run: Run, tmp_path: Path, way: dict[str, Any]) -> None:
    flaky = (
        f'echo >>"{tmp_path}/$DAGBRIDGE_TASK$DAGBRIDGE_MAP_INDEX"; [ "$DAGBRIDGE_MAP_INDEX" != 1 ] || [ -e {tmp_path}/mended ]'
    )
    tasks = [
        step("before", flaky),
        step(
            "simulate",
            f"{flaky} || {{ touch {tmp_path}/mended; exit 4; }}; echo n=$DAGBRIDGE_MAP_INDEX >$DAGBRIDGE_OUTPUT",
            "before",
            array={"items": [{}, {}, {}]},
        ),
        step("after", flaky, "simulate"),
    ]
    with dag:
        DagBridgeRunOperator(task_id="risk", workflow={"tasks": tasks}, retries=1, **way)
    done = run(dag)
    assert done.states == {"risk": "success"}
    assert done.xcom("risk")["simulate"] == [{"n": "0"}, {"n": "1"}, {"n": "2"}]
    runs = {file.name: len(file.read_text().splitlines()) for file in tmp_path.iterdir() if file.name != "mended"}
    assert runs == {"before": 1, "simulate0": 1, "simulate1": 2, "simulate2": 1, "after": 1}


def test_a_retry_runs_everything_where_that_is_asked_for(dag: Any, run: Run, tmp_path: Path) -> None:
    mark = f"echo >>{tmp_path}/$DAGBRIDGE_TASK"
    tasks = [step("one", mark), step("two", f"{mark}; [ $(wc -l <{tmp_path}/two) = 2 ]", "one")]
    with dag:
        DagBridgeRunOperator(task_id="risk", workflow={"tasks": tasks}, mode="all", retries=1)
    assert run(dag).states == {"risk": "success"}
    assert [(tmp_path / name).read_text() for name in ("one", "two")] == ["\n\n", "\n\n"]


@WAYS
def test_a_failure_names_every_task_that_failed(
    dag: Any, run: Run, way: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    tasks = [
        step("load", 'echo "no such file: data.csv" >&2; exit 4'),
        step("fit", 'echo "diverged: $DAGBRIDGE_MAP_INDEX" >&2; exit 5', array={"items": [{}, {}, {}, {}, {}]}),
        step("report", "true", "load", "fit"),
    ]
    with dag:
        DagBridgeRunOperator(task_id="risk", workflow={"tasks": tasks}, **way)
    done = run(dag)
    assert done.states == {"risk": "failed"}
    assert done.xcom("risk", "dagbridge_run")["counts"] == {"FAILED": 6, "UPSTREAM_FAILED": 1}
    printed = "".join(capfd.readouterr())
    assert "has failed (6 FAILED, 1 UPSTREAM_FAILED): http" in printed
    assert "the program ended with exit code 4.\nThe last lines of its stderr:\nno such file: data.csv\nIts log: /" in printed
    assert "fit[0]: job" in printed
    assert "diverged: 2" in printed
    assert "... and 2 more instances of fit." in printed
    assert "report" not in printed.split("has failed (6")[1].split("Its log")[0]


def test_two_operators_and_a_task_of_the_same_names_do_not_meet(dag: Any, run: Run) -> None:
    def tasks(value: int) -> dict[str, Any]:
        return {"tasks": [step("same", f"echo v={value} >$DAGBRIDGE_OUTPUT")]}

    with dag:
        DagBridgeOperator(task_id="same", script="echo v=0 >$DAGBRIDGE_OUTPUT")
        DagBridgeRunOperator(task_id="a", workflow=tasks(1))
        DagBridgeRunOperator(task_id="b", workflow=tasks(2))
        DagBridgeRunOperator.partial(task_id="c").expand(workflow=[tasks(3), tasks(4)])
    done = run(dag)
    assert done.xcom("same") == {"v": "0"}
    assert [done.xcom(task) for task in ("a", "b")] == [{"same": {"v": "1"}}, {"same": {"v": "2"}}]
    assert [done.xcom("c", index=i) for i in range(2)] == [{"same": {"v": "3"}}, {"same": {"v": "4"}}]


def test_a_file_is_read_beside_the_dag_and_never_templated(dag: Any, run: Run, tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(
        """
name: nightly
tasks:
  - key: {task: a}
    env: {N: 4}
    script: {text: 'files=(x y); echo "v=${#files[@]} {{ ds }} $N" >"$DAGBRIDGE_OUTPUT"'}
  - key: {task: b}
    script: {text: "exit 1"}
"""
    )
    with dag:
        DagBridgeRunOperator(task_id="flow", workflow="{{ 'flow' }}.yaml", tasks_selected=["a"], env={"N": "5"})
    done = run(dag)
    assert done.xcom("flow") == {"a": {"v": "2 {{ ds }} 5"}}


@pytest.mark.parametrize(
    ("workflow", "said"),
    [
        ("nowhere.yaml", "Task bad: the workflow file .*/nowhere.yaml cannot be read"),
        (
            {"tasks": [step("a", "true", "b"), {"key": {"task": "c"}, "command": {"argv": ["true"]}, "cluster": "hcp"}]},
            '(?s)does not take the workflow.*b.*there is no cluster "hcp"',
        ),
    ],
    ids=["no file", "faults"],
)
def test_what_is_wrong_is_said_at_once_and_not_tried_again(
    dag: Any, run: Run, workflow: Any, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with dag:
        DagBridgeRunOperator(task_id="bad", workflow=workflow, retries=3)
    assert run(dag).states == {"bad": "failed"}
    printed = "".join(capfd.readouterr())
    assert re.search(said, printed)
    assert "up_for_retry" not in printed.lower()


def test_handing_in_is_enough_where_that_is_asked_for(dag: Any, run: Run, gateway: Gateway, tmp_path: Path) -> None:
    with dag:
        DagBridgeRunOperator(
            task_id="risk",
            workflow={"tasks": [step("slow", f"until [ -e {tmp_path}/go ]; do sleep 0.1; done")]},
            wait="submitted",
        )
    done = run(dag)
    assert done.states == {"risk": "success"}
    told = done.xcom("risk", "dagbridge_run")
    assert told["state"] == "RUNNING"
    (tmp_path / "go").touch()
    with Client(gateway.url) as bridge:
        bridge.wait([job["id"] for job in bridge.jobs(workflow=f"{dag.dag_id}:risk")], timeout=60)
        assert bridge.get_run(told["id"])["state"] == "SUCCEEDED"


@pytest.mark.parametrize(("on_kill", "end"), [("cancel", "CANCELLED"), ("leave", "SUCCEEDED")])
def test_a_task_that_is_killed_in_its_worker_cancels_the_run_or_leaves_it(
    dag: Any, run: Run, gateway: Gateway, tmp_path: Path, on_kill: Any, end: str
) -> None:
    with dag:
        operator = DagBridgeRunOperator(
            task_id="risk",
            workflow={"tasks": [step("slow", f"until [ -e {tmp_path}/go ]; do sleep 0.1; done")]},
            on_kill=on_kill,
            deferrable=False,
        )

    def kill() -> None:
        with Client(gateway.url) as bridge:
            deadline = time.monotonic() + 60
            while not (jobs := list(bridge.jobs(workflow=f"{dag.dag_id}:risk", state="RUNNING"))):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            executing = DagBridgeRunOperator(task_id="killed", workflow="", on_kill=on_kill)
            found = bridge.get_run(jobs[0]["runId"])
            executing._handed_in = found  # as if it were stopped before it has the answer
            executing.on_kill()
            (tmp_path / "go").touch()

    killer = threading.Thread(target=kill)
    killer.start()
    done = run(dag)
    killer.join()
    assert operator.kill == on_kill
    assert done.xcom("risk", "dagbridge_run")["counts"] == {end: 1}


def test_a_result_is_bounded_and_what_is_left_out_is_named(
    dag: Any, run: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_operator, "RESULT_MOST", 1000)
    big = """printf '{"text": "%0900d"}' 0 >$DAGBRIDGE_OUTPUT"""
    with dag:
        DagBridgeRunOperator(
            task_id="risk",
            workflow={
                "tasks": [
                    step("big", big),
                    step("huge", big, array={"items": [{}, {}]}),
                    step("small", "echo n=1 >$DAGBRIDGE_OUTPUT"),
                ]
            },
        )
    done = run(dag)
    assert json.dumps(done.xcom("risk")).count("0" * 900) == 1
    assert done.xcom("risk").keys() == {"big", "small"}
    assert "The outputs of huge (" in "".join(capfd.readouterr())


def test_a_mode_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="mode: 'some' is none of failed, all"):
        DagBridgeRunOperator(task_id="risk", workflow={}, mode="some")  # type: ignore[arg-type]


@pytest.mark.parametrize(("try_number", "end"), [(1, "CANCELLED"), (2, "SUCCEEDED")], ids=["killed", "taken over"])
def test_a_kill_while_it_is_deferred_cancels_the_run_unless_the_next_try_has_it(
    database: None, connection: None, gateway: Gateway, tmp_path: Path, try_number: int, end: str
) -> None:
    name = f"killed{try_number}"
    tasks = [step("slow", f"until [ -e {tmp_path}/go ]; do sleep 0.1; done")]
    with Client(gateway.url) as bridge:
        for number in range(1, try_number + 1):
            key = {"orchestrator": "airflow", "workflow": name, "run": "monday", "tryNumber": number, "uid": str(number)}
            submitted = bridge.submit_workflow({"run": key, "tasks": tasks})  # type: ignore[typeddict-item]
        job_id, run_id = submitted["jobs"][0]["id"], submitted["run"]["id"]
        trigger = DagBridgeJobTrigger("dagbridge_default", [job_id], run_id=run_id)
        trigger.task_instance = SimpleNamespace(dag_id=name, run_id="monday", task_id="risk", map_index=-1, try_number=1)
        asyncio.run(trigger.on_kill())
        assert ("cancelRequestTime" in bridge.get(job_id)) == (end == "CANCELLED")
        (tmp_path / "go").touch()
        assert bridge.wait([job_id], timeout=60)[0]["state"] == end


def test_a_run_that_is_over_the_tasks_time_is_cancelled(
    dag: Any, run: Run, gateway: Gateway, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with dag:
        DagBridgeRunOperator(
            task_id="risk",
            workflow={"tasks": [step("slow", f"until [ -e {tmp_path}/go ]; do sleep 0.1; done")]},
            execution_timeout=timedelta(seconds=5),
            deferrable=True,
            defer_after=0,
        )
    # Airflow 2 lets it out of dag.test().
    with contextlib.nullcontext() if AIRFLOW_3 else pytest.raises(AirflowTaskTimeout):
        assert run(dag).states == {"risk": "failed"}
    assert "was over the task's execution_timeout; it is cancelled." in "".join(capfd.readouterr())
    with Client(gateway.url) as bridge:
        (job,) = bridge.jobs(workflow=f"{dag.dag_id}:risk")
        assert bridge.wait([job["id"]], timeout=60)[0]["state"] == "CANCELLED"
