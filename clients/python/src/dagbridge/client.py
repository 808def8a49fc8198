"""The client that blocks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

    def __init__(self, url: str = Connection.url, **options: Any) -> None:
        self.connection = Connection(url, **options)
        self._http = httpx.Client(**self.connection.client_options())

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        self._http.close()

    def submit(
        self, task: Task, *, wait_for: WaitFor = "ACCEPTED", on_conflict: OnConflict = "REFUSE", if_live: IfLive = "ATTACH"
    ) -> Job:
        """Hands in a task; when this returns the gateway has it for good. Sent again it is the same job."""
        return cast(Job, self._call(calls.submit(task, wait_for, on_conflict, if_live))["job"])

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

    def jobs(self, **filters: str | int | Sequence[str]) -> Iterator[Job]:
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

    def runs(self, **filters: str | int | Sequence[str]) -> Iterator[Run]:
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
        call = calls.logs(job_id, stream, offset, tail, follow)
        try:
            with self._http.stream(call.method, call.path, params=call.query, headers=self.connection.headers) as response:
                if response.status_code >= 400:
                    raise calls.failure(response.status_code, response.read())
                yield from response.iter_bytes()
        except httpx.TransportError as error:
            raise self.connection.away(error) from error

    def wait(self, ids: Sequence[str], timeout: float | None = None) -> list[Job]:
        """Waits until jobs have ended, and answers with them in the order of their ids.

        A gateway that is away is waited for. ``TimeoutError`` after ``timeout`` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        ended: dict[str, Job] = {}
        while open_ := [i for i in dict.fromkeys(ids) if i not in ended]:
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"{len(open_)} of {len(set(ids))} jobs have not ended within {timeout:g} s")
            try:
                jobs = {job["id"]: job for job in self.batch_get(open_)}
                if unknown := [i for i in open_ if i not in jobs]:
                    raise NotFound("there is no such job: " + ", ".join(unknown), 5)
                ended |= {i: job for i, job in jobs.items() if job["state"] in ENDS}
                self._follow([i for i in open_ if i not in ended], deadline)
            except (httpx.TransportError, Unavailable) as error:
                calls.log.info("waiting for the gateway: %s", error)
                time.sleep(1)
        return [ended[i] for i in ids]

    def _follow(self, ids: list[str], deadline: float | None) -> None:
        """Watches until all have ended or the time is over."""
        open_ = set(ids)
        if not open_:
            return
        call = calls.watch(ids, (), "")
        with self._http.stream(
            call.method, call.path, content=call.content, headers=self.connection.headers, timeout=SILENCE
        ) as response:
            if response.status_code >= 400:
                raise calls.failure(response.status_code, response.read())
            for text in response.iter_lines():
                job = calls.line(text).get("job")
                if job and job["state"] in ENDS:
                    open_.discard(job["id"])
                if not open_ or (deadline is not None and time.monotonic() > deadline):
                    return

    def _pages(self, call: Any, name: str, filters: dict[str, Any]) -> Iterator[Any]:
        while True:
            page = self._call(call(filters))
            yield from page[name]
            if not page.get("nextPageToken"):
                return
            filters = {**filters, "pageToken": page["nextPageToken"]}

    def _call(self, call: Call) -> Any:
        try:
            return tenacity.Retrying(**self.connection.retrying(call.again))(self._once, call)
        except httpx.TransportError as error:
            raise self.connection.away(error) from error

    def _once(self, call: Call) -> Any:
        response = self._http.request(
            call.method, call.path, content=call.content, params=call.query, headers=self.connection.headers
        )
        return calls.answer(response.status_code, response.content)
