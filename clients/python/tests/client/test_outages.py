"""Gateways that die, answers that are lost, tokens that change, authorities of one's own."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
import trustme
from both import Connect, MakeTask
from condition import until
from gateway import Gateway
from proxy import Fate, Proxy

from dagbridge import Denied, Unavailable


async def test_waiting_over_a_kill(connect: Connect, own: Gateway, make_task: MakeTask, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with Proxy(own.port) as proxy:
        bridge = connect(proxy.url)
        jobs = [await bridge.submit(make_task(f"until [ -e {go} ]; do sleep 0.05; done; exit {i}")) for i in range(3)]
        waiting = asyncio.ensure_future(bridge.wait([job["id"] for job in jobs]))
        for watches in range(1, 4):
            await until(lambda watches=watches: sum(":watch" in head for head in proxy.heads) >= watches)
            await asyncio.to_thread(own.kill)
            await asyncio.to_thread(own.start)
        await asyncio.to_thread(own.kill)
        go.touch()
        await asyncio.to_thread(own.start)
        assert [job["exitCode"] for job in await waiting] == [0, 1, 2]


async def test_calls_wait_for_a_gateway_that_is_away(connect: Connect, own: Gateway, make_task: MakeTask) -> None:
    with Proxy(own.port) as proxy:
        bridge = connect(proxy.url)
        job = await bridge.submit(make_task())
        own.kill()
        # What breaks after it was sent, as it does at the proxy, may have been heard: then what is no submission is not sent
        # again. Nobody hears a call by a client that has no connection yet.
        direct = connect(own.url)
        calls = [direct.retry(job["id"]), bridge.get(job["id"]), bridge.submit(make_task())]
        calls = [asyncio.ensure_future(call) for call in calls]
        await until(lambda: proxy.refused >= 6)
        assert not any(call.done() for call in calls)
        await asyncio.to_thread(own.start)
        retried, got, submitted = await asyncio.gather(*calls, return_exceptions=True)
    assert got["id"] == job["id"]
    assert submitted["state"] in ("ACCEPTED", "SUBMITTED", "RUNNING", "SUCCEEDED")
    # Refused for its state, by the gateway: it was sent once it was there.
    assert type(retried).__name__ == "FailedPrecondition"


async def test_patience_ends(connect: Connect, own: Gateway) -> None:
    bridge = connect(own.url, patience=0.5)
    await bridge.clusters()
    own.kill()
    began = time.monotonic()
    with pytest.raises(Unavailable, match=f"the gateway at {own.url} cannot be reached: "):
        await bridge.clusters()
    assert time.monotonic() - began >= 0.4
    with pytest.raises(TimeoutError):
        await bridge.wait(["a"], timeout=0.5)


async def test_a_lost_answer_is_one_job(connect: Connect, gateway: Gateway, make_task: MakeTask) -> None:
    lost = 0

    def fate(head: str) -> Fate:
        nonlocal lost
        if "POST /v1/jobs " in head and lost < 3:
            lost += 1
            return "lose"
        return "pass"

    with Proxy(gateway.port, fate) as proxy:
        bridge = connect(proxy.url)
        task = make_task("exit 0", uid="u")
        job = await bridge.submit(task)
        assert lost == 3
        assert sum("POST /v1/jobs " in head for head in proxy.heads) == 4
        assert [j["id"] async for j in bridge.jobs(run=task["key"]["run"])] == [job["id"]]
        (ended,) = await bridge.wait([job["id"]])
        assert len(ended["attempts"]) == 1


async def test_what_would_be_twice_is_not_sent_again(connect: Connect, gateway: Gateway, make_task: MakeTask) -> None:
    with Proxy(gateway.port, lambda head: "lose" if ":retry" in head or "/v1/runs " in head else "pass") as proxy:
        bridge = connect(proxy.url)
        job = await bridge.submit(make_task("exit 1"))
        await bridge.wait([job["id"]])
        with pytest.raises(Unavailable):
            await bridge.retry(job["id"])
        (ended,) = await bridge.wait([job["id"]])
        assert len(ended["attempts"]) == 2
        with pytest.raises(Unavailable):
            await bridge.submit_workflow({"name": "w", "tasks": [{"key": {"task": "t"}, "command": {"argv": ["true"]}}]})
        assert sum("POST /v1/runs " in head for head in proxy.heads) == 1


async def test_streams_that_a_proxy_keeps_back(
    connect: Connect, gateway: Gateway, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dagbridge.client.SILENCE", 1.0)
    monkeypatch.setattr("dagbridge.watcher.KEPT_BACK", 0.5)
    with Proxy(gateway.port, lambda head: "keep" if ":watch" in head else "pass") as proxy:
        bridge = connect(proxy.url)
        job = await bridge.submit(make_task("sleep 2; exit 3"))
        (ended,) = await bridge.wait([job["id"]], timeout=60)
        assert ended["exitCode"] == 3
        assert any(":watch" in head for head in proxy.heads)


async def test_a_token_that_changes(connect: Connect, binary: Path, make_task: MakeTask, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("token0\n")
    with Gateway(binary, tmp_path / "gateway", tokens=["token0", "token1"]) as gateway:
        bridge = connect(gateway.url, token_file=str(file))
        job = await bridge.submit(make_task("sleep 600"))
        assert job["owner"] == "token0"
        file.write_text("wrong")
        for call in (bridge.clusters(), bridge.wait([job["id"]])):
            with pytest.raises(Denied):
                await call
        file.write_text("token1")
        assert (await bridge.submit(make_task()))["owner"] == "token1"
        await bridge.cancel(job["id"])
        assert [j["state"] for j in await bridge.wait([job["id"]])] == ["CANCELLED"]
        with pytest.raises(Denied):
            await connect(gateway.url).clusters()
        assert (await connect(gateway.url, token="token0").clusters())[0]["name"] == "here"


async def test_an_authority_of_ones_own(connect: Connect, binary: Path, make_task: MakeTask, tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    for name, pem in (("ca", authority.cert_pem), ("cert", certificate.cert_chain_pems[0]), ("key", certificate.private_key_pem)):
        pem.write_to_path(tmp_path / f"{name}.pem")
    tls = f"tls: {{cert: {tmp_path / 'cert.pem'}, key: {tmp_path / 'key.pem'}}}"
    with Gateway(binary, tmp_path / "gateway", listen=tls) as gateway:
        assert gateway.url.startswith("https://")
        bridge = connect(gateway.url, verify=str(tmp_path / "ca.pem"))
        job = await bridge.submit(make_task())
        assert [j["state"] for j in await bridge.wait([job["id"]])] == ["SUCCEEDED"]
        assert (await connect(gateway.url, verify=False).get(job["id"]))["id"] == job["id"]
        # It will not get better: patience does not help. Neither does that of a watch.
        stranger = connect(gateway.url, patience=3600.0)
        for call in (stranger.get(job["id"]), stranger.wait([job["id"]])):
            with pytest.raises(Denied, match=r"is not trusted: .*certificate"):
                await call
