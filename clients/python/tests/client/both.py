"""What the tests of the clients share; above all what lets a test be written once for both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from dagbridge import Client, Task

MakeTask = Callable[..., Task]
Connect = Callable[..., Any]


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
