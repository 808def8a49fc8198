"""Following many jobs over one stream.

A process that waits for thousands of jobs (Airflow's triggerer) has one ``Watcher`` per gateway. It keeps one watch open. When
jobs are added it opens the watch again where it was, and asks for the present state of these alone: nothing is missed, and
what is known is not sent again. While no watch can be had (the gateway is away, or a proxy keeps streams back) it asks for
all jobs now and then. Everything arrives through one coroutine, in the gateway's order, so that the last told state is the last.

Whoever waits is told an end, or an error; also when the watcher is closed, or fails by a fault of its own.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from contextvars import copy_context
from typing import TYPE_CHECKING

from dagbridge import calls
from dagbridge.calls import BATCH
from dagbridge.errors import DagBridgeError, Denied, InvalidArgument, NotFound, Unavailable
from dagbridge.followers import Ends, Follower, News
from dagbridge.types import ENDS, Job

if TYPE_CHECKING:
    from dagbridge.async_client import AsyncClient

#: Seconds before the watch is opened again for what was added: jobs come in crowds. Opening names all jobs, so with many it is
#: done more seldom.
GATHER, GATHER_PER_JOB = 0.05, 1e-4
#: Seconds after which an opened watch that has told nothing is taken for kept back, and all jobs are asked for.
KEPT_BACK = 5.0
#: Seconds between two attempts while no watch can be had, at first and at most.
AWAY, AWAY_MOST = 0.5, 5.0
#: For so many seconds a gateway may refuse what it should not, or not let in whom it has let in before: tokens are renewed.
REFUSED_MOST = 300.0
#: What the gateway takes in one watch.
JOBS_MOST, ID_MOST = 100_000, 64


class Watcher:
    """Follows jobs of one gateway over one stream; belongs to one event loop."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._followers: dict[str, list[Follower]] = {}
        #: Followed jobs of which no state has been told since they were added.
        self._unseen: set[str] = set()
        #: Set when there are other jobs to follow than the open watch names.
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        #: Up to where all followed jobs but the unseen ones have been told; empty: from the beginning.
        self._token = ""
        #: Whether the gateway has ever let us in.
        self._welcome = False

    def __len__(self) -> int:
        """How many jobs are followed."""
        return len(self._followers)

    async def changes(self, job_id: str) -> AsyncGenerator[Job, None]:
        """A job as it is, then whenever it has changed, until it has ended. Of states in quick succession the last is told.

        Raises ``NotFound`` for a job that is unknown. Who leaves early should use ``contextlib.aclosing``: until it is closed the
        job is followed.
        """
        news = News()
        self._add((job_id,), news)
        try:
            while True:
                job = await news.next()
                yield job
                if job["state"] in ENDS:
                    return
        finally:
            self._remove((job_id,), news)

    async def wait(self, job_id: str) -> Job:
        """A job once it has ended."""
        return (await self.wait_all((job_id,)))[0]

    async def wait_all(self, ids: Sequence[str], tell: Callable[[Job], None] | None = None) -> list[Job]:
        """Jobs once all have ended, in the order of their ids. Raises ``NotFound`` as soon as one is unknown.

        ``tell`` is called with each job as it is, and whenever it may have changed, in the context of who waits: what it logs is
        the waiter's, not that of whoever opened the stream.
        """
        each = tuple(dict.fromkeys(ids))
        if tell is not None:
            tell = _here(tell)
        ends = Ends(each, tell)
        self._add(each, ends)
        try:
            ended = await ends.all()
        finally:
            self._remove(each, ends)
        return [ended[job_id] for job_id in ids]

    async def close(self) -> None:
        """Ends the stream. Whoever waits is told that it is closed."""
        self._closed = True
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _add(self, ids: Sequence[str], follower: Follower) -> None:
        if self._closed:
            raise DagBridgeError("the client is closed", 1)
        # One id that the gateway refuses would end the watch of all.
        if unknown := [i for i in ids if not (i.isascii() and 0 < len(i) <= ID_MOST)]:
            raise NotFound("there is no such job: " + ", ".join(map(repr, unknown)), 5)
        if len(self._followers) + len(ids) > JOBS_MOST:
            raise DagBridgeError(f"{len(self._followers)} jobs are followed already: a watch takes {JOBS_MOST} at most", 8)
        for job_id in ids:
            self._followers.setdefault(job_id, []).append(follower)
        self._unseen.update(ids)
        self._changed.set()
        if self._followers and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="dagbridge-watch")

    def _remove(self, ids: Sequence[str], follower: Follower) -> None:
        for job_id in ids:
            followers = self._followers[job_id]
            followers.remove(follower)
            if not followers:
                del self._followers[job_id]
                self._unseen.discard(job_id)
        if not self._followers:
            self._changed.set()  # the stream is closed

    def _tell(self, job: Job) -> None:
        self._unseen.discard(job["id"])
        for follower in self._followers.get(job["id"], ()):
            follower.tell(job)

    def _fail(self, ids: Iterable[str], error: DagBridgeError) -> None:
        for job_id in ids:
            self._unseen.discard(job_id)
            for follower in self._followers.get(job_id, ()):
                follower.fail(copy.copy(error))  # each raises its own

    def _unknown(self, ids: Iterable[str]) -> None:
        for job_id in ids:
            self._fail((job_id,), NotFound(f"there is no such job: {job_id}", 5))

    async def _run(self) -> None:
        """Keeps a watch as long as somebody waits; when it ends, nobody waits any more."""
        end = DagBridgeError("the client was closed while this job was waited for", 1)
        try:
            await self._keep()
        except DagBridgeError as error:
            end = error
        except Exception as error:
            calls.log.exception("the watch of jobs has failed")
            end = DagBridgeError(f"the watch of jobs has failed, by a fault of this client: {error!r}", 13)
        finally:
            self._task, self._token = None, ""  # the next to come begins anew
            self._fail(list(self._followers), end)

    async def _keep(self) -> None:
        """Opens one watch after the other; raises what will not pass."""
        pause, refused = AWAY, 0.0
        await self._crowd()
        while self._followers:
            told = self._token
            try:
                await self._watch()
                pause, refused = AWAY, 0.0
            except DagBridgeError as error:
                if error.code == 11 and told:  # OUT_OF_RANGE: the change log does not reach back so far; begin anew
                    self._token = ""
                    continue
                if self._token != told:  # it had begun well
                    pause, refused = AWAY, 0.0
                if not isinstance(error, Unavailable):
                    now = asyncio.get_running_loop().time()
                    refused = refused or now
                    wrong = isinstance(error, InvalidArgument) or (isinstance(error, Denied) and not self._welcome)
                    if wrong or now - refused > REFUSED_MOST:
                        raise
                calls.log.info("no watch of jobs for now: %s", error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, AWAY_MOST)
                await self._look_if_possible()

    async def _watch(self) -> None:
        """One watch, from the token on. Ends when there are other jobs to follow."""
        self._changed.clear()
        ids = list(self._followers)
        # A fresh watch tells all present states before its first bookmark: what has got none by then is unknown.
        fresh, opened, unknown = not self._token, False, set(ids)
        async with aclosing(self._client._watched(ids, self._token)) as pieces:
            piece = asyncio.ensure_future(anext(pieces))
            others = asyncio.ensure_future(self._crowd())
            try:
                while True:
                    await asyncio.wait(
                        {piece, others} if opened else {piece},
                        timeout=None if opened else KEPT_BACK,
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                    if piece.done():
                        for told in piece.result():
                            if job := told.get("job"):
                                unknown.discard(job["id"])
                                self._tell(job)
                            if here := told.get("resumeToken"):
                                self._token = here
                                if not opened:
                                    opened = self._welcome = True
                                    # One that goes on tells changes alone; what was added is asked for now that none is missed.
                                    self._unknown(unknown) if fresh else await self._look(self._unseen.intersection(ids))
                        piece = asyncio.ensure_future(anext(pieces))
                    elif not opened:
                        await self._look(list(self._followers))
                    if opened and others.done():
                        return
            except StopAsyncIteration:
                raise Unavailable("the watch ended", 14) from None
            finally:
                others.cancel()
                piece.cancel()
                await asyncio.gather(piece, others, return_exceptions=True)

    async def _crowd(self) -> None:
        """Returns when there are other jobs to follow, with those that come at the same time."""
        await self._changed.wait()
        await asyncio.sleep(max(GATHER, GATHER_PER_JOB * len(self._followers)))

    async def _look(self, ids: Iterable[str]) -> None:
        """Asks for jobs by batches, and tells of those that there are not."""
        wanted = list(ids)
        for i in range(0, len(wanted), BATCH):
            asked = wanted[i : i + BATCH]
            jobs = await self._client.batch_get(asked)
            for job in jobs:
                self._tell(job)
            self._unknown(set(asked) - {job["id"] for job in jobs})
        self._welcome = True

    async def _look_if_possible(self) -> None:
        try:
            await self._look(list(self._followers))
        except DagBridgeError as error:
            calls.log.debug("no look at jobs either: %s", error)


def _here(tell: Callable[[Job], None]) -> Callable[[Job], None]:
    """``tell`` in the present context, whoever calls it."""
    context = copy_context()

    def told(job: Job) -> None:
        context.run(tell, job)

    return told
