"""What is refused, and what is no gateway's answer: one exception per kind, with a sentence."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from both import MakeTask

from dagbridge import (
    AlreadyExists,
    AsyncClient,
    Client,
    DagBridgeError,
    Denied,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unavailable,
)
from dagbridge.connection import Connection


async def test_every_fault_is_told_at_once(bridge: Any, make_task: MakeTask) -> None:
    with pytest.raises(InvalidArgument) as refused:
        await bridge.submit(make_task(maxTries=-1, triggerRule="sometimes", env={"A=B": "c"}))
    fields = [field for field, _ in refused.value.violations]
    assert {"task.maxTries", "task.triggerRule"} <= set(fields)
    assert len(fields) >= 3
    assert all(sentence in refused.value.message for _, sentence in refused.value.violations)
    assert str(refused.value) == refused.value.message


async def test_kinds(bridge: Any, make_task: MakeTask) -> None:
    task = make_task("sleep 600", tryNumber=2)
    job = await bridge.submit(task)
    with pytest.raises(AlreadyExists) as refused:
        await bridge.submit({**task, "script": {"text": "exit 1"}})
    assert "script" in refused.value.message
    assert (await bridge.submit({**task, "script": {"text": "exit 1"}}, on_conflict="ATTACH"))["id"] == job["id"]
    with pytest.raises(FailedPrecondition):
        await bridge.submit({**task, "tryNumber": 1})
    with pytest.raises(FailedPrecondition):
        await bridge.retry(job["id"])
    with pytest.raises(NotFound):
        await bridge.cancel("0196")
    with pytest.raises(NotFound):
        async for _ in bridge.logs("0196"):
            pass
    await bridge.cancel(job["id"])
    await bridge.wait([job["id"]])


class Stranger:
    """What answers where a gateway should be: a proxy, a log-in page, another service."""

    def __init__(self) -> None:
        self.status, self.content, self.asked = 200, b"", 0
        stranger = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                stranger.asked += 1
                self.rfile.read(int(self.headers.get("content-length", 0)))
                self.send_response(stranger.status)
                self.send_header("content-length", str(len(stranger.content)))
                self.send_header("location", "https://elsewhere.example/")
                self.end_headers()
                self.wfile.write(stranger.content)

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    stranger = Stranger()
    thread = threading.Thread(target=stranger.server.serve_forever, args=(0.01,))
    thread.start()
    yield stranger
    stranger.server.shutdown()
    stranger.server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        (200, b"<html>Please log in</html>", DagBridgeError),
        (302, b"", DagBridgeError),
        (400, b"Bad Request", DagBridgeError),
        (401, b"Unauthorized", Denied),
        (403, b'{"message": "Forbidden"}', Denied),
        (404, b"default backend - 404", Unavailable),
        (429, b"", Unavailable),
        (500, b"[]", Unavailable),
        (502, b"<html>Bad Gateway</html>", Unavailable),
        (503, b'{"message": "no healthy upstream"}', Unavailable),
        (503, b'"away"', Unavailable),
        (504, b'{"code": "late", "message": "upstream"}', Unavailable),
        (404, b'{"code": 5, "message": "no such job", "details": []}', NotFound),
    ],
)
async def test_what_is_no_gateway(
    connect: Any, stranger: Stranger, make_task: MakeTask, status: int, content: bytes, error: type[DagBridgeError]
) -> None:
    stranger.status, stranger.content = status, content
    bridge = connect(stranger.url, patience=0.0)
    for call in (bridge.submit(make_task()), bridge.get("a"), bridge.clusters()):
        with pytest.raises(DagBridgeError) as refused:
            await call
        assert type(refused.value) is error
        assert refused.value.message == "no such job" or str(status) in refused.value.message


async def test_a_log_that_is_refused(connect: Any, stranger: Stranger) -> None:
    stranger.status, stranger.content = 503, b"away"
    with pytest.raises(Unavailable, match="HTTP 503 away"):
        async for _ in connect(stranger.url).logs("a"):
            pass


@pytest.mark.parametrize("url", ["", "gateway:7071", "127.0.0.1:7071", "ftp://gateway", "http://", "https:///v1"])
def test_what_is_no_address(url: str) -> None:
    for kind in (Client, AsyncClient, Connection):
        with pytest.raises(ValueError, match="is no gateway's address: it should be like"):
            kind(url)


async def test_a_token_file_that_is_not_there(connect: Any, tmp_path: Path) -> None:
    bridge = connect("http://127.0.0.1:1", token_file=str(tmp_path / "token"))
    for call in (bridge.clusters(), bridge.wait(["a"])):
        with pytest.raises(Denied, match=r"the token's file .*/token cannot be read: .*No such file"):
            await call


def test_an_authority_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    for name in ("absent.pem", "empty.pem"):
        with pytest.raises(ValueError, match=f"{name} is no certificate authority's file: "):
            Client("https://127.0.0.1:1", verify=str(tmp_path / name))


def test_no_secret_is_shown() -> None:
    assert "secret" not in repr(Connection("http://127.0.0.1:1", token="secret"))
