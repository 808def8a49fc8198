"""Logs: from an offset, the end of them, and as they are written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from both import Connect, MakeTask
from gateway import Gateway

from dagbridge import Unavailable


async def text(bridge: Any, job_id: str, stream: str = "stdout", **options: Any) -> bytes:
    return b"".join([piece async for piece in bridge.logs(job_id, stream, **options)])


async def test_a_log_and_parts_of_it(bridge: Any, make_task: MakeTask) -> None:
    job = await bridge.submit(make_task("printf 'one\\ntwö\\xff\\n'; echo oh >&2; seq 100000 >&2"), wait_for="TERMINAL")
    await bridge.wait([job["id"]])
    assert await text(bridge, job["id"]) == "one\ntwö".encode() + b"\xff\n"
    assert await text(bridge, job["id"], offset=4) == "twö".encode() + b"\xff\n"
    assert await text(bridge, job["id"], tail=2) == b"\xff\n"
    assert await text(bridge, job["id"], offset=1000) == b""
    errors = await text(bridge, job["id"], "stderr", follow=True)
    assert errors == b"oh\n" + b"".join(b"%d\n" % i for i in range(1, 100001))


async def test_following_a_program_that_is_silent_for_long(
    connect: Connect, gateway: Gateway, make_task: MakeTask, tmp_path: Path
) -> None:
    """Longer than an answer may take; and nothing is kept back."""
    bridge = connect(gateway.url, timeout=0.5, patience=5.0)
    go = tmp_path / "go"
    job = await bridge.submit(make_task(f"echo one; until [ -e {go} ]; do sleep 0.05; done; echo two"))
    pieces = bridge.logs(job["id"], follow=True)
    assert await anext(pieces) == b"one\n"
    rest = asyncio.ensure_future(anext(pieces))
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(asyncio.shield(rest), 1.5)
    go.touch()
    assert await rest == b"two\n"
    assert [piece async for piece in pieces] == []


async def test_a_log_that_breaks_off_is_not_complete(connect: Connect, binary: Path, make_task: MakeTask, tmp_path: Path) -> None:
    with Gateway(binary, tmp_path / "gateway") as gateway:
        bridge = connect(gateway.url)
        job = await bridge.submit(make_task("echo one; exec sleep 600"))
        pieces = bridge.logs(job["id"], follow=True)
        assert await anext(pieces) == b"one\n"
        gateway.kill()
        with pytest.raises(Unavailable):
            await anext(pieces)
        gateway.start()
        await bridge.cancel(job["id"])
        await bridge.wait([job["id"]])
