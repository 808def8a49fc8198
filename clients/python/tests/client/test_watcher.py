"""Following many jobs over one stream: whoever waits is told, whatever happens in between."""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from both import MakeTask
from condition import until
from crowd import Crowd
from gateway import Gateway
from proxy import Fate, Proxy

from dagbridge import AsyncClient, DagBridgeError, Denied, Job, NotFound


@pytest.fixture
def crowd(own: Gateway) -> Iterator[Crowd]:
    with Crowd(own.url) as crowd:
        yield crowd


@pytest.fixture
def proxy(own: Gateway) -> Iterator[Proxy]:
    with Proxy(own.port) as proxy:
        yield proxy


@pytest.fixture
async def bridge(proxy: Proxy) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(proxy.url) as client:
        yield client


def streams(gateway: Gateway) -> int:
    """How many watches the gateway has open."""
    with urllib.request.urlopen(f"{gateway.url}/metrics") as answer:
        found = re.search(r'dagbridge_streams_open\{method="WatchJobs"\} (\d+)', answer.read().decode())
    return int(found[1]) if found else 0


def watches(proxy: Proxy) -> int:
    """How many watches have been asked for so far."""
    return sum(":watch" in head for head in proxy.heads)


def follow(bridge: AsyncClient, ids: list[str]) -> list[asyncio.Task[Job]]:
    return [asyncio.create_task(bridge.watcher.wait(i)) for i in ids]


async def test_hundreds_over_one_stream(bridge: AsyncClient, own: Gateway, crowd: Crowd) -> None:
    ids = crowd.make(300)
    waits = follow(bridge, ids)
    told: list[list[Job]] = [[] for _ in ids]

    async def listen(job_id: str, states: list[Job]) -> None:
        async for job in bridge.watcher.changes(job_id):
            states.append(job)

    listeners = [asyncio.create_task(listen(i, states)) for i, states in zip(ids, told, strict=True)]
    await until(lambda: all(told))
    assert len(bridge.watcher) == 300
    assert streams(own) == 1
    await asyncio.to_thread(crowd.end, ids)
    assert [job["id"] for job in await asyncio.gather(*waits)] == ids
    await asyncio.gather(*listeners)
    for states in told:
        assert (states[0]["state"], states[-1]["state"]) == ("ACCEPTED", "CANCELLED")
    assert len(bridge.watcher) == 0
    await until(lambda: streams(own) == 0)


async def test_every_state_is_told_in_order(bridge: AsyncClient, make_task: MakeTask, tmp_path: Path) -> None:
    go = tmp_path / "go"
    job = await bridge.submit(make_task(f"until [ -e {go} ]; do sleep 0.05; done; exit 3"))
    states = []
    async for change in bridge.watcher.changes(job["id"]):
        states.append(change["state"])
        if change["state"] == "RUNNING":
            go.touch()
    order = ["ACCEPTED", "SUBMITTED", "RUNNING", "FAILED"]
    assert states[-2:] == ["RUNNING", "FAILED"]
    assert sorted(states, key=order.index) == states
    assert change == await bridge.get(job["id"])


async def test_jobs_that_are_added_and_left_while_it_is_open(bridge: AsyncClient, own: Gateway, crowd: Crowd) -> None:
    first = crowd.make(6)
    opened = follow(bridge, first)
    await until(lambda: streams(own) == 1)
    for beacon, seen in zip(first[1:], opened[1:], strict=True):
        ids = crowd.make(20)
        # The first of them have ended before anybody asks: since then the watch has come further, and will not tell of it.
        crowd.end(ids[:5])
        crowd.end([beacon])
        await seen
        waits = follow(bridge, ids)
        await asyncio.sleep(0)
        crowd.end(ids[5:10])
        for left in waits[10:15]:
            left.cancel()
        crowd.end(ids[10:])
        ended = await asyncio.gather(*waits[:10], *waits[15:])
        assert {job["state"] for job in ended} == {"CANCELLED"}
        assert all(wait.cancelled() for wait in waits[10:15])
    assert len(bridge.watcher) == 1
    crowd.end(first)
    await opened[0]


async def test_two_who_follow_the_same_job(bridge: AsyncClient, own: Gateway, crowd: Crowd) -> None:
    (job_id,) = crowd.make(1)
    first, second = follow(bridge, [job_id, job_id])
    await until(lambda: streams(own) == 1)
    async with aclosing(bridge.watcher.changes(job_id)) as late:
        assert (await anext(late))["state"] == "ACCEPTED"  # who comes late is told the present state
        first.cancel()
        await asyncio.wait([first])
        crowd.end([job_id])
        assert (await second)["state"] == (await anext(late))["state"] == "CANCELLED"


@pytest.mark.parametrize("unknown", ["", "0196", "ä" * 40, "x" * 65, "x" * 64, "a/b%"])
async def test_an_unknown_job_harms_nobody_else(bridge: AsyncClient, own: Gateway, crowd: Crowd, unknown: str) -> None:
    ids = crowd.make(2)
    before = follow(bridge, [ids[0], unknown])
    with pytest.raises(NotFound, match="there is no such job"):
        await before[1]
    await until(lambda: streams(own) == 1)
    after = follow(bridge, [unknown, ids[1]])
    with pytest.raises(NotFound, match="there is no such job"):
        await after[0]
    with pytest.raises(NotFound):
        await bridge.wait([*ids, unknown])
    crowd.end(ids)
    assert [job["state"] for job in await asyncio.gather(before[0], after[1])] == ["CANCELLED"] * 2


async def test_nothing_is_told_twice_over_breaks(bridge: AsyncClient, own: Gateway, crowd: Crowd, proxy: Proxy) -> None:
    (job_id,) = crowd.make(1)
    told: list[Job] = []

    async def listen() -> None:
        async for job in bridge.watcher.changes(job_id):
            told.append(job)

    listener = asyncio.create_task(listen())
    for opened in range(1, 4):
        await until(lambda opened=opened: watches(proxy) >= opened and streams(own) == 1)
        proxy.cut()
        await until(lambda: streams(own) == 0)
    crowd.end([job_id])
    await listener
    assert [job["state"] for job in told if not job.get("cancelRequestTime")] == ["ACCEPTED"]
    assert told[-1]["state"] == "CANCELLED"
    assert all(job != before for before, job in pairwise(told))


async def test_a_look_that_fails_is_made_up_for(own: Gateway, crowd: Crowd, proxy: Proxy) -> None:
    """What is added to an open watch is asked for by a batch. When that fails, the watch itself would never tell of it."""
    failed = 0

    def fate(head: str) -> Fate:
        nonlocal failed
        if ":batchGet" in head and failed < 3:
            failed += 1
            return "lose"
        return "pass"

    async with AsyncClient(proxy.url, patience=0.0) as bridge:
        first, second = crowd.make(2)
        opened = follow(bridge, [first])
        await until(lambda: streams(own) == 1)
        proxy.fate = fate
        crowd.end([second])
        ended, unknown = follow(bridge, [second, "0196"])
        assert (await ended)["state"] == "CANCELLED"
        with pytest.raises(NotFound):
            await unknown
        assert failed == 3
        crowd.end([first])
        await asyncio.gather(*opened)


async def test_a_gateway_that_is_away_for_long(own: Gateway, crowd: Crowd, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagbridge.watcher.AWAY_MOST", 0.5)
    ids = crowd.make(4)
    async with AsyncClient(proxy.url, patience=0.2) as bridge:
        waits = follow(bridge, ids[:2])
        await until(lambda: streams(own) == 1)
        crowd.end(ids[2:3])
        own.kill()
        began = time.monotonic()
        waits += follow(bridge, ids[2:])
        await until(lambda: proxy.refused >= 10)
        assert not any(wait.done() for wait in waits)
        # Many times as long as it is patient, and asked ever less often.
        assert time.monotonic() - began > 10 * 0.2
        await asyncio.to_thread(own.start)
        crowd.end(ids)
        assert [job["state"] for job in await asyncio.gather(*waits)] == ["CANCELLED"] * 4


async def test_a_store_that_was_restored_from_a_backup(bridge: AsyncClient, own: Gateway, crowd: Crowd, tmp_path: Path) -> None:
    """Its change log does not reach to where the watch was, and of jobs since the backup it knows nothing."""
    (old,) = crowd.make(1)
    own.backup(tmp_path / "saved.db")
    (new,) = crowd.make(1)
    waits = follow(bridge, [old, new])
    await until(lambda: streams(own) == 1)
    own.kill()
    shutil.copy(tmp_path / "saved.db", own.data / "dagbridge.db")
    await asyncio.to_thread(own.start)
    with pytest.raises(NotFound):
        await waits[1]
    await until(lambda: streams(own) == 1)
    assert not waits[0].done()
    crowd.end([old])
    assert (await waits[0])["state"] == "CANCELLED"


async def test_another_store_in_its_place(bridge: AsyncClient, own: Gateway, crowd: Crowd, tmp_path: Path) -> None:
    waits = follow(bridge, crowd.make(2))
    await until(lambda: streams(own) == 1)
    own.kill()
    aside = own.data.rename(tmp_path / "aside")
    await asyncio.to_thread(own.start)
    for wait in waits:
        with pytest.raises(NotFound):
            await wait
    own.kill()
    shutil.rmtree(own.data)
    aside.rename(own.data)
    await asyncio.to_thread(own.start)


async def test_a_refusal_passes_where_it_was_welcome_before(
    binary: Path, make_task: MakeTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("right")
    with Gateway(binary, tmp_path / "gateway", tokens=["right"]) as gateway, Proxy(gateway.port) as proxy:
        async with AsyncClient(proxy.url, token_file=str(file)) as bridge:
            job = await bridge.submit(make_task("sleep 600"))
            (waiting,) = follow(bridge, [job["id"]])
            async with aclosing(bridge.watcher.changes(job["id"])) as changes:
                await anext(changes)
            file.write_text("wrong")
            asked = watches(proxy)
            proxy.cut()
            await until(lambda: watches(proxy) >= asked + 2)
            assert not waiting.done()
            file.write_text("right")
            await bridge.cancel(job["id"])
            assert (await waiting)["state"] == "CANCELLED"
            # It does not wait for ever.
            file.write_text("wrong")
            monkeypatch.setattr("dagbridge.watcher.REFUSED_MOST", 0.1)
            with pytest.raises(Denied):
                await bridge.wait([job["id"]])


async def test_a_fault_of_the_watcher_is_told(bridge: AsyncClient, crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = crowd.make(2)

    def broken(*_: Any) -> Any:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(bridge, "_watched", broken)
        waits = follow(bridge, ids)
        for wait in waits:
            with pytest.raises(DagBridgeError, match=r"by a fault of this client: RuntimeError\('a bug'\)"):
                await wait
        with pytest.raises(DagBridgeError, match="a bug"):
            await anext(bridge.watcher.changes(ids[0]))
    # It is not stuck.
    crowd.end(ids)
    assert [job["state"] for job in await bridge.wait(ids)] == ["CANCELLED"] * 2


async def test_a_listener_that_fails_harms_nobody_else(bridge: AsyncClient, crowd: Crowd) -> None:
    ids = crowd.make(2)
    (other,) = follow(bridge, ids[:1])
    told: list[Job] = []

    def listener(job: Job) -> None:
        told.append(job)
        if job["state"] != "ACCEPTED":
            raise ZeroDivisionError

    waiting = asyncio.create_task(bridge.wait(ids, tell=listener))
    await until(lambda: len(told) == 2)
    crowd.end(ids)
    with pytest.raises(ZeroDivisionError):
        await waiting
    assert (await other)["state"] == "CANCELLED"


async def test_a_listener_is_called_in_the_context_of_who_waits(bridge: AsyncClient, crowd: Crowd) -> None:
    """What a waiter logs goes where its context says; all are told by one task, which the first of them has started."""
    who: ContextVar[str] = ContextVar("who")
    told: dict[str, set[str]] = {}

    def listener(job: Job) -> None:
        told.setdefault(who.get(), set()).add(job["id"])

    async def wait(job_id: str) -> None:
        who.set(job_id)
        await bridge.wait([job_id], tell=listener)

    ids = crowd.make(3)
    waiting = asyncio.gather(*(wait(job_id) for job_id in ids))
    await until(lambda: len(told) == 3)
    crowd.end(ids)
    await waiting
    assert told == {job_id: {job_id} for job_id in ids}


async def test_closing_is_told(own: Gateway, crowd: Crowd) -> None:
    ids = crowd.make(2)
    bridge = AsyncClient(own.url)
    waits = follow(bridge, ids)
    await until(lambda: streams(own) == 1)
    await bridge.close()
    for wait in waits:
        with pytest.raises(DagBridgeError, match="was closed"):
            await wait
    with pytest.raises(DagBridgeError, match="is closed"):
        await bridge.wait(ids)
    await bridge.close()
    await until(lambda: streams(own) == 0)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(40 if os.environ.get("DAGBRIDGE_LONG") else 2))
async def test_whatever_happens_all_are_told(own: Gateway, crowd: Crowd, proxy: Proxy, seed: int) -> None:
    """Jobs come, are followed, left and end, connections break and the gateway is killed, in any order."""
    chance = random.Random(seed)
    waits: dict[asyncio.Task[Job], str] = {}
    last: dict[asyncio.Task[None], list[Job]] = {}
    live: set[str] = set()
    async with AsyncClient(proxy.url, patience=chance.choice([0.0, 5.0])) as bridge:

        async def listen(job_id: str, told: list[Job]) -> None:
            async for job in bridge.watcher.changes(job_id):
                told.append(job)

        for _ in range(60):
            match chance.choice(["make", "follow", "follow", "listen", "leave", "end", "end", "cut", "rest", "rest", "kill"]):
                case "make":
                    live |= set(crowd.make(1 + chance.randrange(20)))
                case "follow":
                    for job_id in chance.sample(sorted(live), min(len(live), chance.randrange(10))):
                        waits[asyncio.create_task(bridge.watcher.wait(job_id))] = job_id
                case "listen":
                    for job_id in chance.sample(sorted(live), min(len(live), chance.randrange(10))):
                        told: list[Job] = []
                        last[asyncio.create_task(listen(job_id, told))] = told
                case "leave":
                    for wait in chance.sample(list(waits), min(len(waits), 3)):
                        del waits[wait]
                        wait.cancel()
                case "end":
                    ended = chance.sample(sorted(live), min(len(live), chance.randrange(10)))
                    live -= set(ended)
                    crowd.end(ended)
                case "cut":
                    proxy.cut()
                case "kill" if chance.random() < 0.3:
                    own.kill()
                    await asyncio.sleep(chance.random())
                    await asyncio.to_thread(own.start)
                case _:
                    await asyncio.sleep(chance.random() * 0.2)
        crowd.end(sorted(live))
        assert {job["state"] for job in await asyncio.wait_for(asyncio.gather(*waits), 60)} <= {"CANCELLED"}
        await asyncio.wait_for(asyncio.gather(*last), 60)
        for told in last.values():
            assert told[-1]["state"] == "CANCELLED"
            assert all(job != before for before, job in pairwise(told))
        assert len(bridge.watcher) == 0
