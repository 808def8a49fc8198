"""The client for asyncio: the methods of ``Client``, and a ``Watcher``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import cached_property
from types import TracebackType
from typing import Any, cast

import httpx
import tenacity

from dagbridge import calls
from dagbridge.calls import BATCH, SILENCE, Call
from dagbridge.connection import Connection
from dagbridge.types import (
    Cluster,
    IfLive,
    Job,
    OnConflict,
    Run,
    Submitted,
    Task,
    TaskKey,
    WaitFor,
    Watched,
    Workflow,
)
from dagbridge.watcher import Watcher


class AsyncClient:
    """A connection to one gateway; made once per event loop, used concurrently, closed at the end (``async with``).

    The parameters are those of ``Connection``; what is said of ``Client``'s methods holds for these.
    """

    def __init__(
        self,
        url: str = Connection.url,
        *,
        token: str | None = None,
        token_file: str | None = None,
        verify: bool | str = True,
        patience: float = Connection.patience,
        timeout: float = Connection.timeout,
    ) -> None:
        self.connection = Connection(url, token, token_file, verify, patience, timeout)
        self._http = httpx.AsyncClient(**self.connection.client_options())

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection, and what watches over it."""
        if "watcher" in self.__dict__:
            await self.watcher.close()
        await self._http.aclose()

    @cached_property
    def watcher(self) -> Watcher:
        """The one that follows jobs for everybody who has this client."""
        return Watcher(self)

    async def submit(
        self,
        task: Task,
        *,
        wait_for: WaitFor = "ACCEPTED",
        on_conflict: OnConflict = "REFUSE",
        if_live: IfLive = "ATTACH",
        reserve: float | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> Job:
        """Hands in a task; when this returns the gateway has it for good. Sent again it is the same job.

        Another ``wait_for`` than ``ACCEPTED`` holds the answer back until the job is there, or for four fifths of ``timeout``.
        With ``reserve`` the task is handed in ahead of its turn: the next submission of its key claims the job, which is
        cancelled when nobody has so many seconds after its last upstream task has ended. ``warn`` is told the gateway's warnings.
        """
        return calls.submitted(await self._call(calls.submit(task, wait_for, on_conflict, if_live, reserve)), warn)

    async def submit_workflow(self, workflow: Workflow) -> Submitted:
        """Hands in a whole DAG, all of it or, when anything is wrong with it, nothing."""
        return cast(Submitted, await self._call(calls.submit_workflow(workflow)))

    async def plan(self, workflow: Workflow) -> dict[str, Any]:
        """What ``submit_workflow`` would do."""
        return cast("dict[str, Any]", (await self._call(calls.plan(workflow)))["plan"])

    async def get(self, job_id: str) -> Job:
        """A job by its id."""
        return cast(Job, (await self._call(calls.get(job_id)))["job"])

    async def batch_get(self, ids: Sequence[str] = (), keys: Sequence[TaskKey] = ()) -> list[Job]:
        """Many jobs at once, outputs and all; what is unknown is left out."""
        return [
            job
            for i in range(0, max(len(ids), len(keys)), BATCH)
            for job in (await self._call(calls.batch_get(ids[i : i + BATCH], keys[i : i + BATCH])))["jobs"]
        ]

    async def jobs(self, **filters: str | int | Sequence[str | int]) -> AsyncIterator[Job]:
        """Jobs, newest first, page by page: ``workflow run task state cluster nativeId parent label view deployment``."""
        async for job in self._pages(calls.list_jobs, "jobs", filters):
            yield job

    async def lookup(self, key: TaskKey, try_number: int = 0) -> Job:
        """The newest job of a task, or that of one of its tries."""
        return cast(Job, (await self._call(calls.lookup(key, try_number)))["job"])

    async def cancel(self, job_id: str) -> Job:
        """Asks for the end of a job."""
        return cast(Job, (await self._call(calls.cancel(job_id)))["job"])

    async def batch_cancel(self, ids: Iterable[str]) -> list[dict[str, Any]]:
        """``{"id", "status": "OK" | "NOT_FOUND", "job"}`` for each."""
        return cast("list[dict[str, Any]]", (await self._call(calls.batch_cancel(ids)))["results"])

    async def retry(self, job_id: str) -> Job:
        """Another attempt of a job that failed, was cancelled or was lost."""
        return cast(Job, (await self._call(calls.retry(job_id)))["job"])

    async def put_outputs(self, job_id: str, outputs: Mapping[str, Any]) -> Job:
        """Stages outputs of a running job."""
        return cast(Job, (await self._call(calls.put_outputs(job_id, outputs)))["job"])

    async def get_run(self, run_id: str) -> Run:
        """A run by its id."""
        return cast(Run, (await self._call(calls.get_run(run_id)))["run"])

    async def runs(self, **filters: str | int | Sequence[str | int]) -> AsyncIterator[Run]:
        """Runs, newest first, page by page: ``deployment orchestrator workflow run state``."""
        async for run in self._pages(calls.list_runs, "runs", filters):
            yield run

    async def cancel_run(self, run_id: str) -> Run:
        """Cancels every job of a run that has not ended, tear-downs left out."""
        return cast(Run, (await self._call(calls.cancel_run(run_id)))["run"])

    async def clusters(self) -> list[Cluster]:
        """Where jobs can run, and whether it answers."""
        return cast("list[Cluster]", (await self._call(calls.clusters()))["clusters"])

    async def logs(
        self, job_id: str, stream: str = "stdout", *, offset: int = 0, tail: int = 0, follow: bool = False
    ) -> AsyncGenerator[bytes, None]:
        """What the program wrote, in pieces: from ``offset``, or the last ``tail`` bytes; ``follow`` until the job has ended."""
        async with self._stream(calls.logs(job_id, stream, offset, tail, follow)) as response:
            async for piece in response.aiter_bytes():
                yield piece

    async def watch(
        self, ids: Sequence[str] = (), keys: Sequence[TaskKey] = (), *, resume_token: str = ""
    ) -> AsyncGenerator[Watched, None]:
        """One watch, as the gateway sends it: present states (unless it goes on from a token), a bookmark, changes, bookmarks.

        Ends with ``Unavailable`` when the stream breaks. ``watcher`` is what goes on by itself.
        """
        async with aclosing(self._watched(ids, resume_token, keys)) as pieces:
            async for piece in pieces:
                for told in piece:
                    yield told

    async def _watched(
        self, ids: Sequence[str], resume_token: str, keys: Sequence[TaskKey] = ()
    ) -> AsyncGenerator[list[Watched], None]:
        """A watch, by what arrives together."""
        lines = calls.Lines()
        async with self._stream(calls.watch(ids, keys, resume_token), SILENCE) as response:
            async for piece in response.aiter_bytes():
                if told := lines.take(piece):
                    yield told

    async def wait(
        self, ids: Sequence[str], timeout: float | None = None, tell: Callable[[Job], None] | None = None
    ) -> list[Job]:
        """Waits until jobs have ended, and answers with them in the order of their ids.

        ``tell`` is called with each job as it is, and whenever it may have changed. A gateway that is away is waited for.
        ``TimeoutError`` after ``timeout`` seconds.
        """
        try:
            return await asyncio.wait_for(self.watcher.wait_all(ids, tell), timeout)
        except asyncio.TimeoutError:  # before Python 3.11 it is not TimeoutError
            raise TimeoutError(f"{len(set(ids))} jobs have not all ended within {timeout:g} s") from None

    async def _pages(self, call: Any, name: str, filters: dict[str, Any]) -> AsyncIterator[Any]:
        while True:
            page = await self._call(call(filters))
            for each in page[name]:
                yield each
            if not page.get("nextPageToken"):
                return
            filters = {**filters, "pageToken": page["nextPageToken"]}

    @asynccontextmanager
    async def _stream(self, call: Call, silence: float | None = None) -> AsyncIterator[httpx.Response]:
        """A stream that has begun well; ``silence`` is for how many seconds it may say nothing."""
        try:
            async with self._http.stream(
                call.method,
                call.target,
                content=call.content,
                headers=self.connection.headers(call),
                timeout=httpx.Timeout(self.connection.timeout, read=silence),
            ) as response:
                if response.status_code != 200:
                    raise calls.failure(response.status_code, await response.aread())
                yield response
        except httpx.TransportError as error:
            raise self.connection.away(error) from error

    async def _call(self, call: Call) -> Any:
        try:
            return await tenacity.AsyncRetrying(**self.connection.retrying(call.again, self.connection.patience))(
                self._once, call
            )
        except httpx.TransportError as error:
            raise self.connection.away(error) from error

    async def _once(self, call: Call) -> Any:
        response = await self._http.request(call.method, call.target, content=call.content, headers=self.connection.headers(call))
        return calls.answer(response.status_code, response.content)
