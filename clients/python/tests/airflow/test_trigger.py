"""The trigger against a real gateway: its one event, what is stored of it, and whom its ends reach."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from condition import until
from conftest import AIRFLOW_3
from gateway import Gateway
from proxy import Proxy

pytest.importorskip("airflow")

from airflow.triggers.base import TaskSuccessEvent

from dagbridge import Client
from dagbridge.airflow import hooks, triggers
from dagbridge.airflow.triggers import DagBridgeJobTrigger

Submit = Callable[..., str]


@pytest.fixture
def bridge(gateway: Gateway) -> Any:
    with Client(gateway.url) as client:
        yield client


@pytest.fixture
def submit(bridge: Client, request: pytest.FixtureRequest) -> Submit:
    def one(script: str, task: str = "t", **more: Any) -> str:
        key: Any = {"orchestrator": "test", "workflow": request.node.name, "run": "1", "task": task}
        return bridge.submit({"key": key, "script": {"text": script}, **more})["id"]  # type: ignore[typeddict-item]

    return one


@pytest.fixture
def trigger(connection: None) -> Callable[..., DagBridgeJobTrigger]:
    """Made as the triggerer makes it: of what is stored."""

    def make(job_ids: list[str], **options: Any) -> DagBridgeJobTrigger:
        _, stored = DagBridgeJobTrigger("dagbridge_default", job_ids, **options).serialize()
        return DagBridgeJobTrigger(**json.loads(json.dumps(stored)))

    return make


async def event(of: DagBridgeJobTrigger) -> Any:
    """The one that it yields."""
    events = [each async for each in of.run()]
    assert len(events) == 1
    return events[0]


async def test_success_ends_the_task_at_once(submit: Submit, trigger: Any) -> None:
    """Airflow fails tasks that are resumed too soon after they were deferred; this one is not resumed."""
    job = submit("echo '{\"x\": 1}' >$DAGBRIDGE_OUTPUT")
    told = await event(trigger([job], not_before=time.time() + 600, ends={"log_bytes": 1000, "return_value": True}))
    assert isinstance(told, TaskSuccessEvent)
    assert told.xcoms["return_value"] == {"x": 1}
    assert told.xcoms["dagbridge_job"]["state"] == "SUCCEEDED"


@pytest.mark.parametrize(("script", "ends"), [("exit 1", {"log_bytes": 9, "return_value": True}), ("exit 0", None)])
async def test_a_worker_is_not_asked_too_soon(submit: Submit, trigger: Any, bridge: Client, script: str, ends: Any) -> None:
    job = submit(script)
    bridge.wait([job])
    before = time.time() + 2
    told = await event(trigger([job], not_before=before, ends=ends))
    assert time.time() >= before
    assert told.payload == {"job_ids": [job], "run_id": None, "timed_out": False, "error": None}


async def test_what_is_stored_holds_no_secret_and_stands_another_version(
    submit: Submit, monkeypatch: pytest.MonkeyPatch, gateway: Gateway
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HPC", f"dagbridge://:sesame@127.0.0.1:{gateway.port}")
    of = DagBridgeJobTrigger("hpc", [submit("true")])
    path, stored = of.serialize()
    assert path == f"{DagBridgeJobTrigger.__module__}.{DagBridgeJobTrigger.__qualname__}"
    assert "sesame" not in json.dumps(stored) + repr(of)
    later = DagBridgeJobTrigger(**stored, what_a_later_version_stores=1)
    assert later.serialize() == (path, stored)
    await event(later)


async def test_a_job_that_is_unknown_is_told(trigger: Any) -> None:
    told = await event(trigger(["no-such-job"], ends={"log_bytes": 9, "return_value": True}))
    assert told.payload["error"] == "there is no such job: no-such-job"


async def test_all_triggers_of_a_process_share_one_stream(submit: Submit, trigger: Any) -> None:
    """One client for each gateway and loop, whatever the number of tasks."""
    jobs = [submit("true", task=str(number)) for number in range(5)]
    await asyncio.gather(*(event(trigger([job])) for job in jobs))
    loop = asyncio.get_running_loop()
    assert len([key for key in hooks._clients if key[0] is loop]) == 1


@pytest.mark.parametrize(("on_kill", "state"), [("cancel", "CANCELLED"), ("leave", "SUCCEEDED")])
async def test_a_kill_reaches_the_jobs(
    submit: Submit, trigger: Any, bridge: Client, tmp_path: Any, on_kill: str, state: str
) -> None:
    job = submit(f"until [ -e {tmp_path}/go ]; do sleep 0.05; done")
    await trigger([job], on_kill=on_kill).on_kill()
    if on_kill == "leave":
        assert "cancelRequestTime" not in bridge.get(job)
        (tmp_path / "go").touch()
    assert (await asyncio.to_thread(bridge.wait, [job]))[0]["state"] == state


@pytest.mark.parametrize("after", [1, 2, 5, 20])
async def test_a_kill_that_is_cancelled_goes_on(submit: Submit, trigger: Any, bridge: Client, after: int) -> None:
    """A triggerer that is busy cancels a trigger once more while it ends."""
    job = submit("sleep 600")
    killing = asyncio.ensure_future(trigger([job]).on_kill())
    for _ in range(after):
        await asyncio.sleep(0)
    killing.cancel()
    await asyncio.gather(killing, return_exceptions=True)
    assert (await asyncio.to_thread(bridge.wait, [job], 60))[0]["state"] == "CANCELLED"


async def test_time_that_is_over(submit: Submit, trigger: Any, bridge: Client) -> None:
    job = submit("sleep 600")
    told = await event(trigger([job], deadline=time.time() + 0.5))
    assert told.payload["timed_out"]
    assert (await asyncio.to_thread(bridge.wait, [job]))[0]["state"] == "CANCELLED"


async def test_a_gateway_that_is_away_is_waited_for(binary: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggers, "PAUSE", 0.1)
    with Gateway(binary, tmp_path) as gateway, Proxy(gateway.port) as proxy:
        connection = {"conn_type": "dagbridge", "host": "127.0.0.1", "port": proxy.port, "extra": {"patience": 0.1}}
        monkeypatch.setenv("AIRFLOW_CONN_DAGBRIDGE_DEFAULT", json.dumps(connection))
        with Client(gateway.url) as bridge:
            key: Any = {"orchestrator": "test", "workflow": "w", "run": "1", "task": "t"}
            job = bridge.submit({"key": key, "script": {"text": f"until [ -e {tmp_path}/go ]; do sleep 0.05; done"}})
            of = DagBridgeJobTrigger("dagbridge_default", [job["id"]], ends={"log_bytes": 9, "return_value": True})
            waiting = asyncio.ensure_future(event(of))
            gateway.kill()
            (tmp_path / "go").touch()
            await until(lambda: proxy.refused >= 5)
            assert not waiting.done()
            gateway.start()
            assert isinstance(await waiting, TaskSuccessEvent)


if not AIRFLOW_3:

    @pytest.mark.parametrize(
        ("acts", "cancelled"),
        [("the triggerer stops", False), ("marked", True), ("cleared and deferred again", True), ("deleted", True)],
    )
    async def test_what_a_person_did_is_found_out(
        dag: Any, database: None, submit: Submit, trigger: Any, bridge: Client, acts: str, cancelled: bool
    ) -> None:
        """The trigger of Airflow 2 ends in one way whatever has happened; the database says what that was."""
        from airflow.models.taskinstance import TaskInstance
        from airflow.models.trigger import Trigger
        from airflow.operators.empty import EmptyOperator
        from airflow.utils.session import create_session
        from airflow.utils.state import DagRunState, TaskInstanceState

        with dag:
            EmptyOperator(task_id="t")
        with create_session() as session:
            began = dag.start_date
            dag_run = dag.create_dagrun(
                run_id="r", state=DagRunState.RUNNING, execution_date=began, data_interval=(began, began), session=session
            )
            first, second = Trigger("p", {}), Trigger("p", {})
            session.add_all([first, second])
            session.flush()
            ti = dag_run.get_task_instance("t", session=session)
            ti.state, ti.trigger_id = TaskInstanceState.DEFERRED, first.id
            session.flush()
            of = trigger([submit("sleep 600")])
            of.task_instance, of.trigger_id = ti, first.id
            if acts == "marked":
                ti.set_state(TaskInstanceState.FAILED, session=session)
            elif acts == "cleared and deferred again":
                ti.trigger_id = second.id
            elif acts == "deleted":
                session.query(TaskInstance).filter_by(dag_id=dag.dag_id).delete()  # as with its run
        await of.cleanup()
        (job,) = of.job_ids
        assert ("cancelRequestTime" in bridge.get(job)) == cancelled
        bridge.cancel(job)
