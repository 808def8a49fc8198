"""The REST calls, without the sending: what ``Client`` and ``AsyncClient`` share.

A ``Call`` is one request as data; ``answer`` and ``failure`` read what came back. Nothing here does input or output.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlencode

from dagbridge.errors import DagBridgeError, Denied, Unavailable, from_status
from dagbridge.types import IfLive, Job, OnConflict, Task, TaskKey, WaitFor, Watched, Workflow

log = logging.getLogger("dagbridge")

#: How many ids go into one batch. The gateway takes more, but jobs come with outputs, and a large answer's JSON holds up a loop.
BATCH = 200
#: A stream sends a bookmark at least every 5 s; one that is silent for so many seconds is broken.
SILENCE = 20.0


class Call(NamedTuple):
    """One request.

    ``again`` is whether sending it twice is the same as once, so that a lost answer may be asked for again; ``holds`` whether the
    gateway holds the answer back until something has happened.
    """

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, Any] | None = None
    again: bool = True
    holds: bool = False

    @property
    def target(self) -> str:
        """Path and query as they are sent."""
        query = urlencode(self.query or {}, doseq=True)
        return f"{self.path}?{query}" if query else self.path

    @property
    def content(self) -> bytes | None:
        """The body as it is sent."""
        return None if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()


def submit(task: Task, wait_for: WaitFor, on_conflict: OnConflict, if_live: IfLive, reserve: float | None) -> Call:
    """The same key, tryNumber and uid are the same job."""
    body: dict[str, Any] = {"task": task, "waitFor": wait_for, "onConflict": on_conflict, "ifLive": if_live}
    if reserve is not None:
        body["reserve"] = f"{reserve:.3f}s"
    return Call("POST", "/v1/jobs", body, holds=wait_for != "ACCEPTED")


def submitted(answer: Mapping[str, Any], warn: Callable[[str], None] | None) -> Job:
    """The job in the answer to ``submit``; who is to be warned is told the warnings."""
    if warn is not None:
        for warning in answer.get("warnings", ()):
            warn(warning)
    return cast(Job, answer["job"])


def submit_workflow(workflow: Workflow) -> Call:
    """A run that is named is the same run; one that is not would be another each time."""
    named = bool(workflow.get("run", {}).get("run"))
    return Call("POST", "/v1/runs", workflow, again=named, holds=workflow.get("waitFor", "ACCEPTED") != "ACCEPTED")


def plan(workflow: Workflow) -> Call:
    """Submits nothing."""
    return Call("POST", "/v1/runs:plan", workflow)


def _segment(text: str) -> str:
    return quote(text, safe="")


def get(job_id: str) -> Call:
    """One job by id."""
    return Call("GET", f"/v1/jobs/{_segment(job_id)}")


def batch_get(ids: Iterable[str], keys: Iterable[TaskKey]) -> Call:
    """What is unknown is left out of the answer."""
    return Call("POST", "/v1/jobs:batchGet", {"ids": list(ids), "keys": list(keys), "view": "FULL"})


def list_jobs(filters: Mapping[str, str | int | Sequence[str | int]]) -> Call:
    """Names of filters are those of the query: workflow, run, task, state, cluster, nativeId, parent, label, view..."""
    return Call("GET", "/v1/jobs", query=filters)


def lookup(key: TaskKey, try_number: int) -> Call:
    """The query form: it can carry any key."""
    return Call("GET", "/v1/lookup", query={**key, "tryNumber": try_number} if try_number else key)


def cancel(job_id: str) -> Call:
    """A job that has ended stays as it is."""
    return Call("POST", f"/v1/jobs/{_segment(job_id)}:cancel", {})


def batch_cancel(ids: Iterable[str]) -> Call:
    """One result per id."""
    return Call("POST", "/v1/jobs:batchCancel", {"ids": list(ids)})


def retry(job_id: str) -> Call:
    """Sent twice it might be two attempts."""
    return Call("POST", f"/v1/jobs/{_segment(job_id)}:retry", {}, again=False)


def put_outputs(job_id: str, outputs: Mapping[str, Any]) -> Call:
    """Later values replace earlier ones."""
    return Call("POST", f"/v1/jobs/{_segment(job_id)}/outputs", {"outputs": outputs})


def logs(job_id: str, stream: str, offset: int, tail: int, follow: bool) -> Call:
    """Answers with text, not with JSON."""
    query = {"stream": stream, "offset": offset, "tail": tail, "follow": "true" if follow else "false"}
    return Call("GET", f"/v1/jobs/{_segment(job_id)}/logs", query=query)


def get_run(run_id: str) -> Call:
    """One run by id."""
    return Call("GET", f"/v1/runs/{_segment(run_id)}")


def list_runs(filters: Mapping[str, str | int | Sequence[str | int]]) -> Call:
    """Newest first."""
    return Call("GET", "/v1/runs", query=filters)


def cancel_run(run_id: str) -> Call:
    """Cancels every job of the run that has not ended, tear-downs left out."""
    return Call("POST", f"/v1/runs/{_segment(run_id)}:cancel", {})


def clusters() -> Call:
    """Where jobs can run."""
    return Call("GET", "/v1/clusters")


def watch(ids: Iterable[str], keys: Iterable[TaskKey], resume_token: str) -> Call:
    """Answers with lines, each a ``Watched``."""
    return Call("POST", "/v1/jobs:watch", {"ids": list(ids), "keys": list(keys), "resumeToken": resume_token})


def answer(status: int, content: bytes) -> Any:
    """The JSON of an answer; raises what it says otherwise."""
    if not 200 <= status < 300:
        raise failure(status, content)
    try:
        answered = json.loads(content)
    except ValueError:
        raise DagBridgeError(f"what answers there is no gateway: {_shown(status, content)}") from None
    for warning in answered.get("warnings", ()) if isinstance(answered, dict) else ():
        log.warning("%s", warning)
    return answered


def failure(status: int, content: bytes) -> DagBridgeError:
    """The exception for an answer of the gateway's, or of a proxy's before it, which has no words of ours."""
    try:
        told = json.loads(content)
        if isinstance(told["code"], int) and isinstance(told["message"], str):
            return from_status(told)
    except (ValueError, TypeError, KeyError):
        pass
    if status in (401, 403, 407):
        return Denied(f"not let in by what is before the gateway: {_shown(status, content)}", 16)
    # A proxy that has lost its gateway, or does not know it yet, says 404 as well as 503.
    if status in (404, 429) or status >= 500:
        return Unavailable(f"no gateway answers there: {_shown(status, content)}", 14)
    return DagBridgeError(f"what answers there is no gateway: {_shown(status, content)}")


def _shown(status: int, content: bytes) -> str:
    return f"HTTP {status} {content[:200].decode(errors='replace').strip()}".strip()


class Lines:
    """Takes a watch apart as it arrives. Lines end with a line feed and nothing else that Python may take for a line's end."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, piece: bytes) -> list[Watched]:
        """The lines that the piece completes; one that says why the stream ends is raised."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        return [self._told(line) for line in whole]

    @staticmethod
    def _told(line: bytes) -> Watched:
        told = json.loads(line)
        if "error" in told:
            raise from_status(told["error"])
        return cast(Watched, told)
