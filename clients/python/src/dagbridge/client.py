"""The client that blocks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, cast

import httpx
import tenacity

from dagbridge import calls
from dagbridge.calls import BATCH, SILENCE, Call
from dagbridge.connection import Connection
from dagbridge.errors import NotFound, Unavailable
from dagbridge.types import (
    ENDS,
    Cluster,
    IfLive,
    Job,
    OnConflict,
    Run,
    Submitted,
    Task,
    TaskKey,
    WaitFor,
    Workflow,
)


class Client:
    """A connection to one gateway; made once, used from one thread at a time, closed at the end (``with Client() as bridge:``).

    The parameters are those of ``Connection``. Methods raise ``DagBridgeError``, by kind. A call whose answer is lost is sent
    again for ``patience`` seconds where that cannot do anything twice; submissions are among these.
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
        self._http = httpx.Client(**self.connection.client_options())

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        self._http.close()

    def submit(
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
        return calls.submitted(self._call(calls.submit(task, wait_for, on_conflict, if_live, reserve)), warn)

    def submit_workflow(self, workflow: Workflow) -> Submitted:
        """Hands in a whole DAG, all of it or, when anything is wrong with it, nothing."""
        return cast(Submitted, self._call(calls.submit_workflow(workflow)))

    def plan(self, workflow: Workflow) -> dict[str, Any]:
        """What ``submit_workflow`` would do."""
        return cast("dict[str, Any]", self._call(calls.plan(workflow))["plan"])

    def get(self, job_id: str) -> Job:
        """A job by its id."""
        return cast(Job, self._call(calls.get(job_id))["job"])

    def batch_get(self, ids: Sequence[str] = (), keys: Sequence[TaskKey] = ()) -> list[Job]:
        """Many jobs at once, outputs and all; what is unknown is left out."""
        return [
            job
            for i in range(0, max(len(ids), len(keys)), BATCH)
            for job in self._call(calls.batch_get(ids[i : i + BATCH], keys[i : i + BATCH]))["jobs"]
        ]

    def jobs(self, **filters: str | int | Sequence[str | int]) -> Iterator[Job]:
        """Jobs, newest first, page by page: ``workflow run task state cluster nativeId parent label view deployment``."""
        yield from self._pages(calls.list_jobs, "jobs", filters)

    def lookup(self, key: TaskKey, try_number: int = 0) -> Job:
        """The newest job of a task, or that of one of its tries."""
        return cast(Job, self._call(calls.lookup(key, try_number))["job"])

    def cancel(self, job_id: str) -> Job:
        """Asks for the end of a job."""
        return cast(Job, self._call(calls.cancel(job_id))["job"])

    def batch_cancel(self, ids: Iterable[str]) -> list[dict[str, Any]]:
        """``{"id", "status": "OK" | "NOT_FOUND", "job"}`` for each."""
        return cast("list[dict[str, Any]]", self._call(calls.batch_cancel(ids))["results"])

    def retry(self, job_id: str) -> Job:
        """Another attempt of a job that failed, was cancelled or was lost."""
        return cast(Job, self._call(calls.retry(job_id))["job"])

    def put_outputs(self, job_id: str, outputs: Mapping[str, Any]) -> Job:
        """Stages outputs of a running job."""
        return cast(Job, self._call(calls.put_outputs(job_id, outputs))["job"])

    def get_run(self, run_id: str) -> Run:
        """A run by its id."""
        return cast(Run, self._call(calls.get_run(run_id))["run"])

    def runs(self, **filters: str | int | Sequence[str | int]) -> Iterator[Run]:
        """Runs, newest first, page by page: ``deployment orchestrator workflow run state``."""
        yield from self._pages(calls.list_runs, "runs", filters)

    def cancel_run(self, run_id: str) -> Run:
        """Cancels every job of a run that has not ended, tear-downs left out."""
        return cast(Run, self._call(calls.cancel_run(run_id))["run"])

    def clusters(self) -> list[Cluster]:
        """Where jobs can run, and whether it answers."""
        return cast("list[Cluster]", self._call(calls.clusters())["clusters"])

    def logs(
        self, job_id: str, stream: str = "stdout", *, offset: int = 0, tail: int = 0, follow: bool = False
    ) -> Iterator[bytes]:
        """What the program wrote, in pieces: from ``offset``, or the last ``tail`` bytes; ``follow`` until the job has ended."""
        # A program may be silent for as long as it likes.
        with self._stream(
            calls.logs(job_id, stream, offset, tail, follow), None if follow else self.connection.timeout
        ) as response:
            yield from response.iter_bytes()

    def wait(self, ids: Sequence[str], timeout: float | None = None, tell: Callable[[Job], None] | None = None) -> list[Job]:
        """Waits until jobs have ended, and answers with them in the order of their ids.

        ``tell`` is called with each job as it is, and whenever it may have changed. A gateway that is away is waited for.
        ``TimeoutError`` after ``timeout`` seconds, or up to 5 s later.
        """
        deadline = time.monotonic() + (math.inf if timeout is None else timeout)
        ended: dict[str, Job] = {}
        while open_ := [i for i in dict.fromkeys(ids) if i not in ended]:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{len(set(ids))} jobs have not all ended within {timeout:g} s")
            try:
                self._look(open_, ended, deadline, tell)
                self._follow([i for i in open_ if i not in ended], ended, deadline, tell)
            except Unavailable as error:
                calls.log.info("waiting for jobs: %s", error)
                time.sleep(max(0.0, min(1.0, deadline - time.monotonic())))
        return [ended[i] for i in ids]

    def _look(self, ids: list[str], ended: dict[str, Job], deadline: float, tell: Callable[[Job], None] | None) -> None:
        """Asks for jobs by batches: what a proxy lets through that keeps streams back."""
        for i in range(0, len(ids), BATCH):
            asked = ids[i : i + BATCH]
            jobs = self._call(calls.batch_get(asked, ()), deadline)["jobs"]
            if unknown := set(asked) - {job["id"] for job in jobs}:
                raise NotFound("there is no such job: " + ", ".join(sorted(unknown)), 5)
            for job in jobs:
                if tell:
                    tell(job)
                if job["state"] in ENDS:
                    ended[job["id"]] = job

    def _follow(self, ids: list[str], ended: dict[str, Job], deadline: float, tell: Callable[[Job], None] | None) -> None:
        """Watches until all have ended or the time is over."""
        open_, lines = set(ids), calls.Lines()
        if not open_:
            return
        with self._stream(calls.watch(ids, (), ""), _left(deadline, SILENCE)) as response:
            for piece in response.iter_bytes():
                for told in lines.take(piece):
                    if not (job := told.get("job")):
                        continue
                    if tell:
                        tell(job)
                    if job["state"] in ENDS:
                        ended[job["id"]] = job
                        open_.discard(job["id"])
                if not open_ or time.monotonic() >= deadline:
                    return

    def _pages(self, call: Any, name: str, filters: dict[str, Any]) -> Iterator[Any]:
        while True:
            page = self._call(call(filters))
            yield from page[name]
            if not page.get("nextPageToken"):
                return
            filters = {**filters, "pageToken": page["nextPageToken"]}

    @contextmanager
    def _stream(self, call: Call, silence: float | None) -> Iterator[httpx.Response]:
        """A stream that has begun well; ``silence`` is for how many seconds it may say nothing."""
        try:
            with self._http.stream(
                call.method,
                call.target,
                content=call.content,
                headers=self.connection.headers(call),
                timeout=httpx.Timeout(self.connection.timeout, read=silence),
            ) as response:
                if response.status_code != 200:
                    raise calls.failure(response.status_code, response.read())
                yield response
        except httpx.TransportError as error:
            raise self.connection.away(error) from error

    def _call(self, call: Call, deadline: float = math.inf) -> Any:
        retrying = tenacity.Retrying(**self.connection.retrying(call.again, _left(deadline, self.connection.patience)))
        try:
            return retrying(self._once, call, deadline)
        except httpx.TransportError as error:
            raise self.connection.away(error) from error

    def _once(self, call: Call, deadline: float) -> Any:
        response = self._http.request(
            call.method,
            call.target,
            content=call.content,
            headers=self.connection.headers(call),
            timeout=_left(deadline, self.connection.timeout),
        )
        return calls.answer(response.status_code, response.content)


def _left(deadline: float, most: float) -> float:
    """Seconds until the deadline; a little more than none, which would be no limit to some."""
    return max(0.01, min(most, deadline - time.monotonic()))
