"""Jobs that are handed in before Airflow's turn for them: which ones, and what becomes of them."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway

pytest.importorskip("airflow")

from airflow.providers.common.compat.sdk import task
from airflow.providers.standard.operators.empty import EmptyOperator

from dagbridge import Client, Job
from dagbridge.airflow import look_ahead
from dagbridge.airflow.operators import DagBridgeOperator

Run = Callable[..., Any]


def gated(folder: Path, name: str) -> str:
    """A script that runs until its gate is open."""
    return f"until [ -e {folder}/{name} ]; do sleep 0.05; done"


@contextmanager
def meanwhile(gateway: Gateway, dag: Any, do: Callable[[Client, dict[str, list[Job]]], bool]) -> Iterator[None]:
    """Beside what the block does, looks at the jobs of the DAG, by task and oldest first, until there is nothing more to do."""
    failed: list[BaseException] = []
    over = threading.Event()

    def look() -> None:
        try:
            with Client(gateway.url) as client:
                while not over.wait(0.05):
                    by_task: dict[str, list[Job]] = {}
                    for job in client.jobs(workflow=dag.dag_id):
                        by_task.setdefault(job["key"]["task"], []).insert(0, job)
                    if do(client, by_task):
                        return
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert not failed, failed


def jobs(gateway: Gateway, dag: Any, name: str) -> list[Job]:
    """All jobs of a task, oldest first."""
    with Client(gateway.url) as client:
        return list(client.jobs(workflow=dag.dag_id, task=name))[::-1]


def test_what_follows_is_in_before_the_first_ends_and_is_claimed(dag: Any, run: Run, gateway: Gateway, tmp_path: Path) -> None:
    with dag:
        first = DagBridgeOperator(task_id="first", script=gated(tmp_path, "go"), look_ahead=True)
        second = DagBridgeOperator(task_id="second", script="echo day={{ ds }} >$DAGBRIDGE_OUTPUT")

        @task.dagbridge
        def third(day: str) -> dict[str, str]:
            return {"is": day}

        third_ = third("{{ ds }}")
        first >> second >> third_
    seen: dict[str, bool] = {}

    def do(client: Client, by_task: dict[str, list[Job]]) -> bool:
        if not {"second", "third"} <= by_task.keys():
            return False
        seen.update({name: "reserved" in by_task[name][0] for name in ("second", "third")})
        (tmp_path / "go").touch()
        return True

    with meanwhile(gateway, dag, do):
        done = run(dag)
    assert set(done.states.values()) == {"success"}
    assert seen == {"second": True, "third": True}
    for name in ("first", "second", "third"):
        one, *more = jobs(gateway, dag, name)
        assert not more
        assert "reserved" not in one
        assert one["id"] == done.job(name)["id"]
    assert done.xcom("second")["day"] == done.xcom("third")["is"]


def test_a_changed_program_takes_the_place_of_what_was_reserved(
    dag: Any, run: Run, gateway: Gateway, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The file is another when the task's turn comes."""
    program = tmp_path / "second.sh"
    program.write_text("sleep 600")
    with dag:
        first = DagBridgeOperator(task_id="first", script=gated(tmp_path, "go"), look_ahead=True)
        first >> DagBridgeOperator(task_id="second", script_file=str(program))

    def do(client: Client, by_task: dict[str, list[Job]]) -> bool:
        if "second" not in by_task:
            return False
        program.write_text("echo it=new >$DAGBRIDGE_OUTPUT")
        (tmp_path / "go").touch()
        return True

    with meanwhile(gateway, dag, do):
        done = run(dag)
    assert set(done.states.values()) == {"success"}
    assert done.xcom("second") == {"it": "new"}
    old, new = jobs(gateway, dag, "second")
    assert (old["state"], new["state"]) == ("CANCELLED", "SUCCEEDED")
    said = "".join(capfd.readouterr())
    assert f"task second was reserved as job {old['id']}, and is now asked for with another content: script.text" in said


def test_what_is_not_handed_in_is_told_with_its_reason(dag: Any) -> None:
    class Own(DagBridgeOperator):
        """A bridge task all the same."""

    with dag:
        first = DagBridgeOperator(task_id="first", command=["true"], look_ahead=True, retries=1)
        once = DagBridgeOperator(task_id="once", command=["true"])
        elsewhere = EmptyOperator(task_id="elsewhere")
        plain = {
            "fine": DagBridgeOperator(task_id="fine", command=["echo", "{{ ds }}", "{{ dag_run.conf['x'] }}"]),
            "own": Own(task_id="own", command=["true"]),
            "tries": DagBridgeOperator(task_id="tries", command=["echo", "{{ ti.try_number }}"]),
            "pulls": DagBridgeOperator(task_id="pulls", command=["echo", "{{ ti.xcom_pull('first') }}"]),
            "result": DagBridgeOperator(task_id="result", command=["echo"], env={"X": first.output["x"]}),
            "variable": DagBridgeOperator(task_id="variable", command=["echo", "{{ var.value.x }}"]),
            "broken": DagBridgeOperator(task_id="broken", command=["echo", "{{ }"]),
            "params": DagBridgeOperator(task_id="params", command=["echo", "{{ params.x }}"], params={"x": 1}),
            "array": DagBridgeOperator(task_id="array", command=["echo"], array=[{"argv": ["1"]}]),
            "pooled": DagBridgeOperator(task_id="pooled", command=["echo"], pool="licences"),
            "past": DagBridgeOperator(task_id="past", command=["echo"], depends_on_past=True),
            "failed": DagBridgeOperator(task_id="failed", command=["echo"], trigger_rule="one_failed"),
            "after_all": DagBridgeOperator(task_id="after_all", command=["echo"], trigger_rule="all_done"),
            "submits": DagBridgeOperator(task_id="submits", command=["echo"], wait="submitted"),
            "hook": DagBridgeOperator(task_id="hook", command=["echo"], pre_execute=lambda _: None),
            "sets_up": DagBridgeOperator(task_id="sets_up", command=["echo"]).as_setup(),
            "mapped": DagBridgeOperator.partial(task_id="mapped").expand(command=[["echo"], ["echo"]]),
        }
        first >> list(plain.values())
        first >> once >> DagBridgeOperator(task_id="done_once", command=["true"], trigger_rule="all_done")
        first >> elsewhere >> DagBridgeOperator(task_id="below", command=["true"])
        [plain["mapped"], first] >> DagBridgeOperator(task_id="below_mapped", command=["true"])
        DagBridgeOperator(task_id="beside", command=["true"])
    when = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
    context: Any = {"ds": "2026-01-02", "logical_date": when, "run_id": "r", "dag": dag, "params": {}, "ti": object()}
    context["dag_run"] = type("Run", (), {"conf": {"x": "of the run"}})()
    key: Any = {"deployment": "d", "orchestrator": "airflow", "workflow": dag.dag_id, "run": "r", "task": "first"}
    found, left = look_ahead.tasks(first, context, {"key": key, "tryNumber": 2, "uid": "u"})
    assert {one["key"]["task"] for one in found} == {"fine", "own", "once", "done_once"}
    fine = next(one for one in found if one["key"]["task"] == "fine")
    assert fine == {
        "key": {**key, "task": "fine"},
        "uid": "u/ahead",
        "command": {"argv": ["echo", "2026-01-02", "of the run"]},
        "upstream": [{"task": "first"}],
        "triggerRule": "all_success",
    }
    assert {name: why for name, why in left.items() if name != "broken"} == {
        "elsewhere": "it is a EmptyOperator, which Airflow runs itself",
        "below": "it waits for elsewhere, which is not handed in",
        "below_mapped": "it waits for mapped, which is not handed in",
        "mapped": "it is mapped",
        "tries": "its command uses ti, which only its own turn gives",
        "pulls": "its command uses ti, which only its own turn gives",
        "result": "its env takes another task's result",
        "variable": "its command uses var, which only its own turn gives",
        "params": "its command uses params, and its own are not those of first",
        "array": "it is an array",
        "pooled": "its pool, or how many of it may be active, is for Airflow to keep",
        "past": "it waits for earlier runs",
        "failed": "a scheduler does not keep its trigger rule one_failed by itself",
        "after_all": "its trigger rule all_done waits for the last try of first",
        "submits": "its job waits for others by depends_on",
        "hook": "it has a pre_execute",
        "sets_up": "it is a set-up or a tear-down",
    }
    assert left["broken"].startswith("its command is no template: ")
