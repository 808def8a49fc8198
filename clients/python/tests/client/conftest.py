"""The client's own tests."""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway

from dagbridge import AsyncClient, Client, Task

MakeTask = Callable[..., Task]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A warning is a fault here: a coroutine that nobody awaits, a connection that nobody closes. (Airflow has its own.)"""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("error"))


@pytest.fixture
def make_task() -> MakeTask:
    """Makes tasks of one run that is the test's own: ``make_task("exit 3", task="train")``."""
    run = str(uuid.uuid4())

    def make(text: str = "exit 0", *, task: str | None = None, **more: Any) -> Task:
        key = {"orchestrator": "test", "workflow": "w", "run": run, "task": task or str(uuid.uuid4())}
        return {"key": key, "script": {"text": text}, **more}  # type: ignore[typeddict-item]

    return make


class Threaded:
    """The blocking client with the methods of the other one, so that a test is written once for both."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        if inspect.isgeneratorfunction(method):
            return partial(self._each, method)
        return partial(asyncio.to_thread, method)

    async def _each(self, method: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        pieces = method(*args, **options)
        end = object()
        while (piece := await asyncio.to_thread(next, pieces, end)) is not end:
            yield piece


@pytest.fixture(params=[Client, AsyncClient])
def kind(request: pytest.FixtureRequest) -> type[Client] | type[AsyncClient]:
    """Both clients."""
    return request.param


@pytest.fixture
async def connect(kind: type[Client] | type[AsyncClient]) -> AsyncIterator[Callable[..., Any]]:
    """Makes clients of either kind, with the methods of ``AsyncClient``."""
    made: list[Any] = []

    def connect(url: str, **options: Any) -> Any:
        made.append(kind(url, **options))
        return Threaded(made[-1]) if isinstance(made[-1], Client) else made[-1]

    yield connect
    for client in made:
        if isinstance(client, Client):
            client.close()
        else:
            await client.close()


@pytest.fixture
def bridge(connect: Callable[..., Any], gateway: Gateway) -> Any:
    """Either client, before the common gateway."""
    return connect(gateway.url)
