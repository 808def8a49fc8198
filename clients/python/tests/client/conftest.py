"""The client's own tests."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from both import Connect, MakeTask, Threaded
from gateway import Gateway

from dagbridge import AsyncClient, Client, Task


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


@pytest.fixture(scope="session")
def mortal(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The one behind ``own``."""
    with Gateway(binary, tmp_path_factory.mktemp("mortal")) as gateway:
        yield gateway


@pytest.fixture
def own(mortal: Gateway) -> Gateway:
    """A gateway that nobody else uses meanwhile: it may be killed."""
    if not mortal.runs:
        mortal.start()
    return mortal


@pytest.fixture(params=[Client, AsyncClient])
def kind(request: pytest.FixtureRequest) -> type[Client] | type[AsyncClient]:
    """Both clients."""
    return request.param


@pytest.fixture
async def connect(kind: type[Client] | type[AsyncClient]) -> AsyncIterator[Connect]:
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
def bridge(connect: Connect, gateway: Gateway) -> Any:
    """Either client, before the common gateway."""
    return connect(gateway.url)
