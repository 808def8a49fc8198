"""Who follows jobs, as the watcher sees them: news is put in, without waiting, and fetched by one coroutine.

There are thousands, so they keep little: of a job no more than what has not been fetched yet.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Protocol

from dagbridge.errors import DagBridgeError
from dagbridge.types import ENDS, Job


class Follower(Protocol):
    """Whom a job's news is told."""

    def tell(self, job: Job) -> None:
        """A state; the last one is that in which the job is."""

    def fail(self, error: DagBridgeError) -> None:
        """There will be no more."""


class News:
    """What has become of one job since it was last asked: its newest state only."""

    __slots__ = ("_digest", "_error", "_job", "_waiter")

    def __init__(self) -> None:
        self._job: Job | None = None
        self._error: DagBridgeError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._digest: int | None = None

    def tell(self, job: Job) -> None:
        """Replaces what has not been fetched, unless that is an end."""
        if self._job is None or self._job["state"] not in ENDS:
            self._job = job
            self._wake()

    def fail(self, error: DagBridgeError) -> None:
        """Raised once all news is fetched."""
        self._error = error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self) -> Job:
        """The job, once it is another than the last time: a watch that begins anew tells all states again."""
        while True:
            job, self._job = self._job, None
            if job is not None:
                digest = hash(json.dumps(job, sort_keys=True))
                if digest != self._digest:
                    self._digest = digest
                    return job
            elif self._error is not None:
                raise self._error
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter


class Ends:
    """The ends of some jobs, for one who waits for all of them, and may want to hear of what comes before."""

    __slots__ = ("_done", "_ended", "_hear", "_open")

    def __init__(self, ids: Iterable[str], hear: Callable[[Job], None] | None) -> None:
        self._open = set(ids)
        self._hear = hear
        self._ended: dict[str, Job] = {}
        self._done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        if not self._open:
            self._done.set_result(None)

    def tell(self, job: Job) -> None:
        """Counts ends."""
        if self._hear is not None and not self._done.done():
            try:
                self._hear(job)
            except Exception as error:  # it is the listener's own, and must not end the watch of all others
                self._done.set_result(error)
        if job["state"] in ENDS and job["id"] in self._open:
            self._open.discard(job["id"])
            self._ended[job["id"]] = job
            if not self._open and not self._done.done():
                self._done.set_result(None)

    def fail(self, error: Exception) -> None:
        """One that will not end is enough."""
        if not self._done.done():
            self._done.set_result(error)

    async def all(self) -> dict[str, Job]:
        """All of them by id, or the first failure."""
        error = await self._done
        if error is not None:
            raise error
        return self._ended
