"""Following many jobs over one stream.

A process that waits for thousands of jobs (Airflow's triggerer) has one ``Watcher`` per gateway. It keeps one watch open; when
jobs are added it looks at these alone and opens the watch again where it was, so that nothing is missed and nothing is told
twice. While no watch can be had (the gateway is away, or a proxy keeps streams back), it asks for all jobs at once now and
then. Only the newest state of a job is kept: who comes late is told that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from dagbridge import calls
from dagbridge.calls import BATCH
from dagbridge.errors import DagBridgeError, Denied, NotFound, Unavailable
from dagbridge.types import ENDS, Job

if TYPE_CHECKING:
    from dagbridge.async_client import AsyncClient

#: Seconds before the watch is opened again for what was added: jobs come in crowds.
GATHER = 0.05
#: Seconds between two looks while no watch can be had, at first and at most.
AWAY, AWAY_MOST = 0.5, 15.0
#: After so many refusals in a row the token is taken for wrong.
DENIED_MOST = 10


class _Place:
    """Where one job's news arrives."""

    __slots__ = ("error", "job", "news")

    def __init__(self) -> None:
        self.job: Job | None = None
        self.error: DagBridgeError | None = None
        self.news: asyncio.Future[None] | None = None

    def tell(self, job: Job | None, error: DagBridgeError | None = None) -> None:
        self.job, self.error = job, error
        if self.news is not None and not self.news.done():
            self.news.set_result(None)


class Watcher:
    """Follows jobs of one gateway over one stream; belongs to one event loop."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._places: dict[str, set[_Place]] = {}
        self._added: set[str] = set()
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        #: Where the watch that is open has come to; empty before its first bookmark.
        self._token = ""

    def __len__(self) -> int:
        """How many jobs are followed."""
        return len(self._places)

    async def changes(self, job_id: str) -> AsyncIterator[Job]:
        """A job as it is, then whenever it has changed, until it has ended. Raises ``NotFound`` for one that is unknown."""
        place = _Place()
        self._add(job_id, place)
        told: Job | None = None
        try:
            while True:
                if place.error is not None:
                    raise place.error
                if place.job is not None and place.job is not told:
                    told = place.job
                    yield told
                    if told["state"] in ENDS:
                        return
                    continue
                place.news = asyncio.get_running_loop().create_future()
                await place.news
                place.news = None
        finally:
            self._remove(job_id, place)

    async def wait(self, job_id: str) -> Job:
        """A job once it has ended."""
        async for job in self.changes(job_id):
            if job["state"] in ENDS:
                return job
        raise AssertionError("changes end with an end")

    async def close(self) -> None:
        """Ends the stream; what is waited for is waited for no longer."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _add(self, job_id: str, place: _Place) -> None:
        self._places.setdefault(job_id, set()).add(place)
        self._added.add(job_id)
        self._more.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="dagbridge-watch")

    def _remove(self, job_id: str, place: _Place) -> None:
        places = self._places.get(job_id, set())
        places.discard(place)
        if not places:
            self._places.pop(job_id, None)
            self._added.discard(job_id)
        if not self._places:
            self._more.set()  # the stream is closed

    def _tell(self, job: Job) -> None:
        for place in self._places.get(job["id"], ()):
            place.tell(job)

    def _fail(self, ids: set[str], error: DagBridgeError) -> None:
        for job_id in ids:
            for place in self._places.get(job_id, ()):
                place.tell(None, error)

    async def _run(self) -> None:
        """Keeps a watch as long as somebody waits."""
        pause, denied = AWAY, 0
        while self._places:
            self._token, before = "", self._token
            try:
                await self._stream(before)
                pause, denied = AWAY, 0
            except DagBridgeError as error:
                # OUT_OF_RANGE: the change log does not reach back so far; begin anew.
                if error.code == 11 and before:
                    continue
                # A token may be renewed in its file any moment; what is wrong with the request itself stays wrong.
                denied += isinstance(error, Denied)
                if not isinstance(error, Unavailable | Denied) or denied > DENIED_MOST:
                    self._fail(set(self._places), error)
                    return
                if self._token:  # it had begun well
                    pause = AWAY
                calls.log.info("no watch of jobs for now: %s", error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, AWAY_MOST)
                await self._look(set(self._places))

    async def _stream(self, token: str) -> None:
        """One watch, from ``token`` on. Ends when there are other jobs to follow."""
        await asyncio.sleep(GATHER)
        self._more.clear()
        added, self._added = self._added, set()
        ids = list(self._places)
        if not ids:
            return
        # A new watch tells the present states first. One that goes on does not: what was added is asked for once it is open.
        unseen = added if token else set(ids)
        lines = self._client.watch(ids, resume_token=token)
        more = asyncio.ensure_future(self._more.wait())
        line = asyncio.ensure_future(anext(lines))
        try:
            while True:
                await asyncio.wait({line, more} if self._token else {line}, return_when=asyncio.FIRST_COMPLETED)
                if line.done():
                    told = await line
                    line = asyncio.ensure_future(anext(lines))
                    if job := told.get("job"):
                        unseen.discard(job["id"])
                        self._tell(job)
                    if here := told.get("resumeToken"):
                        opened, self._token = not self._token, here
                        if opened:
                            await self._look(unseen)
                elif self._token:
                    return
        except StopAsyncIteration:
            raise Unavailable("the watch ended", 14) from None
        finally:
            more.cancel()
            line.cancel()
            await asyncio.gather(line, more, return_exceptions=True)
            await lines.aclose()

    async def _look(self, ids: set[str]) -> None:
        """Asks for jobs by a batch, and tells of those that there are not."""
        try:
            known = list(ids)
            for i in range(0, len(known), BATCH):
                asked = set(known[i : i + BATCH])
                for job in await self._client.batch_get(list(asked)):
                    asked.discard(job["id"])
                    self._tell(job)
                for unknown in asked:
                    self._fail({unknown}, NotFound(f"there is no such job: {unknown}", 5))
        except Unavailable:
            return  # the next stream or look tells
