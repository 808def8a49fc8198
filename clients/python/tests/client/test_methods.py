"""Every method of both clients, against a real gateway."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import pytest
from both import MakeTask

from dagbridge import AsyncClient, Client, FailedPrecondition, Job, NotFound


def methods(kind: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(method).replace(return_annotation=inspect.Signature.empty)
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def test_both_clients_have_the_same_methods() -> None:
    asynchronous = methods(AsyncClient)
    del asynchronous["watch"]
    assert methods(Client) == asynchronous
    assert inspect.signature(Client) == inspect.signature(AsyncClient)


async def test_a_job_from_its_submission_to_its_end(bridge: Any, make_task: MakeTask) -> None:
    task = make_task('echo \'{"auc": 0.91}\' >"$DAGBRIDGE_OUTPUT"', uid="u1", labels={"team": "x"})
    job = await bridge.submit(task)
    assert await bridge.submit(task, wait_for="TERMINAL") != job
    (ended,) = await bridge.wait([job["id"]])
    assert (ended["state"], ended["outputs"], ended["exitCode"], ended["labels"]) == (
        "SUCCEEDED",
        {"auc": 0.91},
        0,
        {"team": "x"},
    )
    assert await bridge.get(job["id"]) == ended
    assert await bridge.lookup(task["key"]) == ended
    assert await bridge.lookup(task["key"], 1) == ended
    assert await bridge.batch_get([job["id"], "unknown"]) == [ended]
    assert await bridge.batch_get(keys=[task["key"]]) == [ended]
    with pytest.raises(NotFound):
        await bridge.get("unknown")
    with pytest.raises(NotFound):
        await bridge.lookup(task["key"], 2)
    with pytest.raises(NotFound, match="unknown"):
        await bridge.wait([job["id"], "unknown"])


async def test_a_failure(bridge: Any, make_task: MakeTask) -> None:
    job = await bridge.submit(make_task("exit 3"), wait_for="TERMINAL")
    (ended,) = await bridge.wait([job["id"]])
    assert (ended["state"], ended["exitCode"]) == ("FAILED", 3)
    again = await bridge.retry(job["id"])
    assert again["state"] not in ("FAILED", "SUCCEEDED")
    (ended,) = await bridge.wait([job["id"]])
    assert [attempt["exitCode"] for attempt in ended["attempts"]] == [3, 3]


async def test_lists_go_page_by_page(bridge: Any, make_task: MakeTask) -> None:
    run = make_task()["key"]["run"]
    tasks = [make_task(task=f"t{i}") for i in range(7)]
    told = await bridge.submit_workflow({"run": {"orchestrator": "test", "workflow": "w", "run": run}, "tasks": tasks})
    ids = {job["id"] for job in told["jobs"]}
    listed = [job async for job in bridge.jobs(run=run, pageSize=3)]
    assert len(listed) == len(ids) == 7
    assert {job["id"] for job in listed} == ids
    assert [
        job["key"]["task"]
        async for job in bridge.jobs(run=run, task="t3", state=["SUCCEEDED", "ACCEPTED", "SUBMITTED", "RUNNING"])
    ] == ["t3"]
    ended = await bridge.wait(sorted(ids))
    assert {job["state"] for job in ended} == {"SUCCEEDED"}


async def test_a_run(bridge: Any, make_task: MakeTask) -> None:
    run = make_task()["key"]["run"]
    sleeper = {"key": {"task": "sleeper"}, "command": {"argv": ["sleep", "600"]}}
    after = {"key": {"task": "after"}, "command": {"argv": ["true"]}, "upstream": [{"task": "sleeper"}]}
    workflow = {"run": {"orchestrator": "test", "workflow": "w", "run": run}, "tasks": [sleeper, after]}
    plan = await bridge.plan(workflow)
    assert [(edge["from"], edge["to"]) for edge in plan["edges"]] == [("sleeper", "after")]
    assert [r async for r in bridge.runs(run=run)] == []
    told = await bridge.submit_workflow(workflow)
    assert (await bridge.submit_workflow(workflow))["run"]["id"] == told["run"]["id"]
    assert [r["id"] async for r in bridge.runs(run=run)] == [told["run"]["id"]]
    assert (await bridge.get_run(told["run"]["id"]))["state"] == "RUNNING"
    await bridge.cancel_run(told["run"]["id"])
    jobs = await bridge.wait([job["id"] for job in told["jobs"]])
    assert jobs[0]["state"] == "CANCELLED"
    assert (await bridge.get_run(told["run"]["id"]))["state"] == "FAILED"


async def test_cancelling(bridge: Any, make_task: MakeTask) -> None:
    jobs = [await bridge.submit(make_task("sleep 600")) for _ in range(3)]
    first, *others = [job["id"] for job in jobs]
    assert (await bridge.cancel(first))["cancelRequestTime"]
    assert [r["status"] for r in await bridge.batch_cancel([*others, "unknown"])] == ["OK", "OK", "NOT_FOUND"]
    assert [job["state"] for job in await bridge.wait([first, *others])] == ["CANCELLED"] * 3


async def test_outputs_from_outside(bridge: Any, make_task: MakeTask) -> None:
    job = await bridge.submit(make_task("sleep 600"))
    await bridge.put_outputs(job["id"], {"seen": True})
    await bridge.cancel(job["id"])
    (ended,) = await bridge.wait([job["id"]])
    with pytest.raises(FailedPrecondition):
        await bridge.put_outputs(ended["id"], {"late": True})


async def test_values_are_what_they_were(bridge: Any, make_task: MakeTask) -> None:
    """JSON may hold what Python takes for the end of a line: a next line (U+0085), a line separator (U+2028)."""
    raw = '{"big": 9223372036854775807, "three": 3.0, "text": "ä\u0085\u2028\u2029\U0001f40d", "list": [1,\r\n 2]}'
    job = await bridge.submit(make_task(f"cat >\"$DAGBRIDGE_OUTPUT\" <<'E'\n{raw}\nE\n"))
    (ended,) = await bridge.wait([job["id"]])
    outputs = ended["outputs"]
    assert outputs == {"big": 2**63 - 1, "three": 3.0, "text": "ä\u0085\u2028\u2029\U0001f40d", "list": [1, 2]}
    assert isinstance(outputs["three"], float)
    assert (await bridge.get(job["id"]))["outputs"] == outputs


@pytest.mark.parametrize(
    "part", ["a/b", "a:b", "100%", "%2F", "Größe", "a b+c&d=e", "..", "x\u2028y", "manual__2026-01-01T00:00:00+00:00"]
)
async def test_any_key_is_found(bridge: Any, make_task: MakeTask, part: str) -> None:
    task = make_task()
    key = {
        **task["key"],
        "deployment": part,
        "workflow": part,
        "run": task["key"]["run"] + part,
        "task": part,
        "mapIndex": [0, 7],
    }
    job = await bridge.submit({**task, "key": key})
    assert job["key"] == key
    assert (await bridge.lookup(key))["id"] == job["id"]
    assert [j["id"] for j in await bridge.batch_get(keys=[key])] == [job["id"]]
    assert [j["id"] async for j in bridge.jobs(run=key["run"])] == [job["id"]]
    assert [j["id"] for j in await bridge.wait([job["id"]])] == [job["id"]]


async def test_the_clusters(bridge: Any) -> None:
    (cluster,) = await bridge.clusters()
    assert (cluster["name"], cluster["kind"], cluster["reachable"]) == ("here", "local", True)


async def test_a_wait_has_its_time(bridge: Any, make_task: MakeTask) -> None:
    job = await bridge.submit(make_task("sleep 600"))
    with pytest.raises(TimeoutError, match=r"jobs have not all ended within 0\.5 s"):
        await bridge.wait([job["id"]], timeout=0.5)
    await bridge.cancel(job["id"])
    assert [j["state"] for j in await bridge.wait([job["id"], job["id"]], timeout=math.inf)] == ["CANCELLED"] * 2
    assert await bridge.wait([]) == []


async def test_who_waits_hears_of_what_comes_before_the_end(bridge: Any, make_task: MakeTask, tmp_path: Path) -> None:
    heard: list[str] = []

    def tell(job: Job) -> None:
        if job["state"] == "RUNNING":
            (tmp_path / "go").touch()
        heard.append(job["state"])

    job = await bridge.submit(make_task(f"until [ -e {tmp_path}/go ]; do sleep 0.05; done"))
    await bridge.wait([job["id"]], tell=tell)
    assert "RUNNING" in heard
    assert heard[-1] == "SUCCEEDED"


async def test_a_held_answer_comes_in_time(connect: Any, gateway: Any, make_task: MakeTask) -> None:
    bridge = connect(gateway.url, timeout=2.0, patience=0.0)
    job = await bridge.submit(make_task("sleep 600"), wait_for="TERMINAL")
    assert job["state"] in ("ACCEPTED", "SUBMITTED", "RUNNING")
    await bridge.cancel(job["id"])
