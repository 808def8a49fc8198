"""The operator, run by ``dag.test()`` against a real gateway."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import AIRFLOW_3
from gateway import Gateway

pytest.importorskip("airflow")

from airflow.providers.common.compat.sdk import AirflowTaskTimeout, chain, task

from dagbridge import Client
from dagbridge.airflow.operators import DagBridgeOperator

Run = Callable[..., Any]

#: Where a task waits: in its worker, there for a moment only, in the trigger.
WAYS = pytest.mark.parametrize(
    "way",
    [{"deferrable": False}, {"deferrable": True, "defer_after": 60}, {"deferrable": True, "defer_after": 0}],
    ids=["worker", "glance", "trigger"],
)


@WAYS
def test_success(dag: Any, run: Run, gateway: Gateway, way: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    with dag:
        DagBridgeOperator(
            task_id="train", script='echo "on $DAGBRIDGE_TASK"; echo \'{"auc": 0.5, "n": "1003"}\' >"$DAGBRIDGE_OUTPUT"', **way
        )
    done = run(dag)
    assert done.states == {"train": "success"}
    assert done.xcom("train") == {"auc": 0.5, "n": "1003"}
    job = done.job("train")
    assert (job["cluster"], job["state"], job["exit_code"]) == ("here", "SUCCEEDED", 0)
    assert isinstance(job["native_id"], str)
    assert done.xcom("train", "dagbridge_link") == f"{gateway.url}/v1/jobs/{job['id']}"
    printed = "".join(capfd.readouterr())
    assert "on train" in printed
    assert "train, job local-" in printed


@WAYS
def test_failure(dag: Any, run: Run, way: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    with dag:
        DagBridgeOperator(task_id="train", script='echo "no such file: data.csv" >&2; exit 4', **way)
    done = run(dag)
    assert done.states == {"train": "failed"}
    assert (done.job("train")["state"], done.job("train")["exit_code"]) == ("FAILED", 4)
    printed = "".join(capfd.readouterr())
    assert "on here failed. the program ended with exit code 4.\nThe last lines of its stderr:\nno such file: data.csv" in printed


@WAYS
def test_skipped_by_its_exit_code(dag: Any, run: Run, way: dict[str, Any]) -> None:
    with dag:
        one = DagBridgeOperator(task_id="one", script="exit 99", skip_on_exit_code=99, **way)
        two = DagBridgeOperator(task_id="two", script="exit 98", skip_on_exit_code=[97, 98], trigger_rule="all_done", **way)
        none = DagBridgeOperator(task_id="none", script="exit 99", trigger_rule="all_done", **way)
        one >> two >> none
    assert run(dag).states == {"one": "skipped", "two": "skipped", "none": "failed"}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("{}", None),
        ('{"return_value": 7}', 7),
        ('{"return_value": null, "x": 1}', None),
        ('{"return_value": [1, "2", {"a": 3.0}]}', [1, "2", {"a": 3.0}]),
        ('{"n": 9007199254740993, "id": "1003", "ok": true}', {"n": 9007199254740993, "id": "1003", "ok": True}),
    ],
)
def test_outputs_are_the_return_value(dag: Any, run: Run, written: str, read: Any) -> None:
    with dag:
        for name, deferrable in (("worker", False), ("trigger", True)):
            DagBridgeOperator(task_id=name, script=f"echo '{written}' >$DAGBRIDGE_OUTPUT", deferrable=deferrable, defer_after=0)
    done = run(dag)
    assert [done.xcom(name) for name in ("worker", "trigger")] == [read, read]


def test_a_mapped_task_is_a_job_for_each_index(dag: Any, run: Run, gateway: Gateway) -> None:
    with dag:
        DagBridgeOperator.partial(task_id="sim", script='echo "{\\"seed\\": $SEED}" >$DAGBRIDGE_OUTPUT').expand(
            env=[{"SEED": str(seed)} for seed in (7, 8, 9)]
        )
    done = run(dag)
    assert [done.xcom("sim", index=i) for i in range(3)] == [{"seed": 7}, {"seed": 8}, {"seed": 9}]
    with Client(gateway.url) as bridge:
        keys = [bridge.get(done.job("sim", i)["id"])["key"] for i in range(3)]
    assert [key["mapIndex"] for key in keys] == [[0], [1], [2]]
    assert {(key["orchestrator"], key["workflow"], key["run"], key["task"]) for key in keys} == {
        ("airflow", dag.dag_id, done.run.run_id, "sim")
    }


def test_templates_and_their_traps(dag: Any, run: Run, tmp_path: Path) -> None:
    """Jinja reads some of bash as its own; a file and a literal are never read by it."""
    from airflow.providers.common.compat.sdk import literal

    bash = 'files=(a b c)\necho "{\\"n\\": ${#files[@]}, \\"x\\": [{\\"a\\": {\\"b\\": 1}}]}" >"$DAGBRIDGE_OUTPUT" # {{"a":1}}\n'
    (tmp_path / "script.sh").write_text(bash)
    with dag:
        DagBridgeOperator(task_id="file", script_file="script.sh")
        DagBridgeOperator(task_id="literal", script=literal(bash))
        DagBridgeOperator(task_id="name", script='echo \'{"x": "{{ ds[:2] }}"}\' >$DAGBRIDGE_OUTPUT; true eval.sh')
        DagBridgeOperator(task_id="end", command=["true", "eval.sh"])
        DagBridgeOperator(task_id="trap", script=bash)
    done = run(dag)
    assert done.states == {"file": "success", "literal": "success", "name": "success", "end": "success", "trap": "failed"}
    assert done.xcom("file") == done.xcom("literal") == {"n": 3, "x": [{"a": {"b": 1}}]}
    assert done.xcom("name") == {"x": "20"}


def test_every_word_arrives_as_it_was_written(dag: Any, run: Run, gateway: Gateway) -> None:
    words = ["two  words", "$HOME", "`id`", "'", '"', "\\", "ünï", "a\nb", ""]
    show = "import json, os, sys; json.dump({'a': sys.argv[1:], 'x': os.environ['X']}, open(os.environ['DAGBRIDGE_OUTPUT'], 'w'))"
    with dag:
        DagBridgeOperator(task_id="train", command=["python3", "-c", show, *words], env={"X": "".join(words)})
    assert run(dag).xcom("train") == {"a": words, "x": "".join(words)}


def test_all_faults_are_told_at_once_and_not_tried_again(dag: Any, run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    with dag:
        DagBridgeOperator(task_id="ours", command="python train.py", script="x", nodes="many", gpus="a:b:c", retries=3)
        DagBridgeOperator(task_id="theirs", script="x", cpu="lots", working_directory="here", retries=3)
    done = run(dag)
    assert done.states == {"ours": "failed", "theirs": "failed"}
    assert {ti.try_number for ti in done.run.get_task_instances()} == {1}
    printed = "".join(capfd.readouterr())
    for said in (
        "command: is a list of words",
        "command and script: one of them",
        "nodes: 'many' is not a whole number",
        "gpus: 'a:b:c' is not",
        "task.resources.cpu: ",
        "task.workingDirectory: ",
    ):
        assert said in printed


@WAYS
def test_a_retry_is_another_job(dag: Any, run: Run, gateway: Gateway, way: dict[str, Any]) -> None:
    with dag:
        DagBridgeOperator(task_id="train", script='[ "$DAGBRIDGE_TRY" = 2 ]', retries=1, **way)
    done = run(dag)
    assert done.states == {"train": "success"}
    with Client(gateway.url) as bridge:
        jobs = list(bridge.jobs(workflow=dag.dag_id))
    assert [(job["tryNumber"], job["state"]) for job in jobs] == [(2, "SUCCEEDED"), (1, "FAILED")]


def test_a_run_that_is_made_anew_runs_anew(dag: Any, run: Run, gateway: Gateway) -> None:
    """Airflow 2 deletes a run and makes another for the same date: same DAG, run, task and try."""
    when = datetime.datetime(2026, 5, 1, tzinfo=datetime.timezone.utc)
    date = {"logical_date": when} if hasattr(dag, "_logical_date") else {}
    with dag:
        DagBridgeOperator(task_id="train", script="true")
    first, second = run(dag, **date).job("train"), run(dag, **date).job("train")
    assert first["id"] != second["id"]


@pytest.mark.parametrize("on_kill", ["cancel", "leave"])
@pytest.mark.parametrize("deferrable", [False, True], ids=["worker", "trigger"])
def test_execution_timeout(dag: Any, run: Run, gateway: Gateway, deferrable: bool, on_kill: Any) -> None:
    with dag:
        DagBridgeOperator(
            task_id="train",
            script="sleep 600",
            execution_timeout=datetime.timedelta(seconds=5),
            deferrable=deferrable,
            defer_after=0,
            on_kill=on_kill,
        )
    # Of Airflow 2 it passes through dag.test() as well.
    with contextlib.nullcontext() if AIRFLOW_3 else pytest.raises(AirflowTaskTimeout):
        assert run(dag).states == {"train": "failed"}
    with Client(gateway.url) as bridge:
        (job,) = bridge.jobs(workflow=dag.dag_id)
        assert ("cancelRequestTime" in job) == (on_kill == "cancel")
        bridge.cancel(job["id"])
        assert bridge.wait([job["id"]])[0]["state"] == "CANCELLED"


@pytest.mark.parametrize(("on_kill", "cancelled"), [("cancel", True), ("leave", False)])
def test_a_kill_in_the_middle_of_the_submission(dag: Any, run: Run, gateway: Gateway, on_kill: Any, cancelled: bool) -> None:
    """The job is there, and its answer never comes to the task."""

    class Killed(DagBridgeOperator):
        def submit(self, context: Any) -> Any:
            self.on_kill()
            super().submit(context)
            self.on_kill()
            raise RuntimeError("the worker is told to stop")

    with dag:
        Killed(task_id="train", script="sleep 600", on_kill=on_kill)
    done = run(dag)
    assert done.states == {"train": "failed"}
    with Client(gateway.url) as bridge:
        (job,) = bridge.jobs(workflow=dag.dag_id)
        assert ("cancelRequestTime" in job) == cancelled
        bridge.cancel(job["id"])


def test_what_a_mapped_task_needs_is_there(dag: Any, run: Run) -> None:
    """Outputs of a deferred task can be mapped over: Airflow is told their length by a worker only."""
    dag.default_args.clear()  # Airflow 2 hands them to mapped functions too, which do not know them
    listing = "echo '{\"return_value\": [3, 4]}' >$DAGBRIDGE_OUTPUT"
    with dag:
        listed = DagBridgeOperator(task_id="list", script=listing, deferrable=True, defer_after=0, resume_after=0)

        @task
        def twice(n: int) -> int:
            return 2 * n

        twice.expand(n=listed.output)
    done = run(dag)
    assert [done.xcom("twice", index=i) for i in range(2)] == [6, 8]


def test_reattach(dag: Any, run: Run, tmp_path: Path) -> None:
    """A worker that dies after it has submitted: the next try goes on with what there is, as it is told to."""

    class Dies(DagBridgeOperator):
        """Its first worker is lost once the job has come as far as ``until``; the job ends when the second has submitted."""

        def __init__(self, until: str, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.until = until

        def submit(self, context: Any) -> Any:
            job = super().submit(context)
            if context["ti"].try_number == 2:
                (tmp_path / f"{self.task_id}.go").touch()
                return job
            while job["state"] != self.until:
                job = self.client.get(job["id"])
            raise RuntimeError("the worker dies")

    begin = f"echo x >>{tmp_path}/$DAGBRIDGE_TASK"
    until_go = f"until [ -e {tmp_path}/$DAGBRIDGE_TASK.go ]; do sleep 0.05; done"
    with dag:
        before: Any = []
        for reattach in ("active", "never", "active_or_succeeded"):
            more: dict[str, Any] = {"reattach": reattach, "retries": 1}
            live = Dies(task_id=f"live_{reattach}", until="RUNNING", script=f"{begin}; {until_go}", **more)
            over = Dies(task_id=f"over_{reattach}", until="SUCCEEDED", script=begin, **more)
            chain(*before, live, over)  # this machine has few CPUs
            before = [over]
    done = run(dag)
    assert set(done.states.values()) == {"success"}
    assert {name: len((tmp_path / name).read_text().split()) for name in done.states} == {
        "live_active": 1,
        "live_never": 2,
        "live_active_or_succeeded": 1,
        "over_active": 2,
        "over_never": 2,
        "over_active_or_succeeded": 1,
    }
