"""The REST calls, without the sending: what ``Client`` and ``AsyncClient`` share.

A ``Call`` is one request as data; ``answer`` and ``failure`` read what came back. Nothing here does input or output.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from dagbridge.errors import DagBridgeError, Denied, NotFound, Unavailable, from_status
from dagbridge.types import IfLive, OnConflict, Task, TaskKey, WaitFor, Workflow

log = logging.getLogger("dagbridge")

#: How many ids go into one batch; the gateway takes ten times as many, but their outputs make a large answer.
BATCH = 1_000
#: A stream sends a bookmark at least every 5 s; one that is silent for so many seconds is broken.
SILENCE = 20.0


class Call(NamedTuple):
    """One request. ``again`` is whether sending it twice is the same as once, so that a lost answer may be asked for again."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str | Sequence[str]] | None = None
    again: bool = True

    @property
    def content(self) -> bytes | None:
        """The body as it is sent."""
        return None if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()


def submit(task: Task, wait_for: WaitFor, on_conflict: OnConflict, if_live: IfLive) -> Call:
    """The same key, tryNumber and uid are the same job."""
    return Call("POST", "/v1/jobs", {"task": task, "waitFor": wait_for, "onConflict": on_conflict, "ifLive": if_live})


def submit_workflow(workflow: Workflow) -> Call:
    """A run that is named is the same run; one that is not would be another each time."""
    return Call("POST", "/v1/runs", workflow, again="run" in workflow)


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


def list_jobs(filters: Mapping[str, str | int | Sequence[str]]) -> Call:
    """Names of filters are those of the query: workflow, run, task, state, cluster, nativeId, parent, label, view..."""
    return Call("GET", "/v1/jobs", query={k: v if not isinstance(v, int) else str(v) for k, v in filters.items()})


def lookup(key: TaskKey, try_number: int) -> Call:
    """The query form: it can carry any key."""
    query: dict[str, str | Sequence[str]] = {k: str(v) for k, v in key.items() if k != "mapIndex" and v}
    query["mapIndex"] = [str(i) for i in key.get("mapIndex", ())]
    if try_number:
        query["tryNumber"] = str(try_number)
    return Call("GET", "/v1/lookup", query=query)


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
    query = {
        "stream": stream,
        "offset": str(offset) if offset else "",
        "tail": str(tail) if tail else "",
        "follow": "true" if follow else "",
    }
    return Call("GET", f"/v1/jobs/{_segment(job_id)}/logs", query={k: v for k, v in query.items() if v})


def get_run(run_id: str) -> Call:
    """One run by id."""
    return Call("GET", f"/v1/runs/{_segment(run_id)}")


def list_runs(filters: Mapping[str, str | int | Sequence[str]]) -> Call:
    """Newest first."""
    return Call("GET", "/v1/runs", query={k: v if not isinstance(v, int) else str(v) for k, v in filters.items()})


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
    if status >= 400:
        raise failure(status, content)
    answered = json.loads(content)
    for warning in answered.get("warnings", ()) if isinstance(answered, dict) else ():
        log.warning("%s", warning)
    return answered


def failure(status: int, content: bytes) -> DagBridgeError:
    """The exception for an answer of the gateway's, or of a proxy's before it, which has no words of ours."""
    try:
        return from_status(json.loads(content))
    except (ValueError, TypeError, AttributeError):
        said = f"HTTP {status}: {content[:200].decode(errors='replace').strip() or 'no reason given'}"
        if status in (502, 503, 504):
            return Unavailable(f"the gateway is away ({said})", 14)
        if status in (401, 403):
            return Denied(f"not let in ({said})", 16)
        if status == 404:
            return NotFound(f"no gateway answers there ({said})", 5)
        return DagBridgeError(said)


def line(text: str | bytes) -> Any:
    """One line of a watch; a line that says why the stream ends is raised."""
    told = json.loads(text)
    if "error" in told:
        raise from_status(told["error"])
    return told
