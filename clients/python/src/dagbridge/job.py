"""A job as people meet it in the log of whoever waits for it: a line, numbers, the sentence of a failure."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from dagbridge.types import ENDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dagbridge import Job

#: More jobs than these are not told one by one; seconds between two lines that tell only numbers.
_MANY, _PAUSE = 20, 10.0


def name(job: Job) -> str:
    """``job 1234 on hpc``, or what there is of it."""
    return f"job {job.get('nativeId') or job['id']}" + (f" on {job['cluster']}" if job.get("cluster") else "")


def label(job: Job) -> str:
    """The task's name with its map index."""
    key = job["key"]
    return str(key.get("task", "")) + "".join(f"[{i}]" for i in key.get("mapIndex", ()))


def line(job: Job) -> str:
    """One line for the log."""
    state = job["state"]
    why = ": ".join(word for word in (job.get("reason"), job.get("message")) if word)
    if not why.startswith(state):  # a scheduler's own words mostly begin with the state
        why = f"{state} ({why})" if why else state
    return f"{label(job)}, {name(job)}: {why}"


def counts(states: Mapping[str, int]) -> str:
    """``3 RUNNING, 297 SUCCEEDED``."""
    return ", ".join(f"{n} {state}" for state, n in sorted(states.items()))


def teller(tell: Callable[[str], None], jobs: int = 1) -> Callable[[Job], None]:
    """Tells a line for each change of a job that a reader can see; now and then, of an array and of many jobs, only numbers."""
    states: dict[str, str] = {}
    told: dict[str, tuple[str, str, float]] = {}

    def on_change(job: Job) -> None:
        states[job["id"]] = job["state"]
        if jobs > _MANY:
            ended = len(states) == jobs and ENDS.issuperset(states.values())
            topic, news, numbers = "", "all have ended" if ended else f"{jobs} tasks", counts(Counter(states.values()))
        else:
            topic, news, numbers = job["id"], line(job), counts(job.get("counts", {}))
        last_news, last_numbers, when = told.get(topic, ("", "", 0.0))
        if news != last_news or (numbers != last_numbers and time.monotonic() - when >= _PAUSE):
            told[topic] = (news, numbers, time.monotonic())
            tell(f"{news}: {numbers}" if numbers and numbers not in news else news)

    return on_change


_WHAT = {
    "FAILED": "failed",
    "CANCELLED": "was cancelled",
    "LOST": "is lost: it had started, and is gone without a word about its end",
    "UPSTREAM_FAILED": "did not run",
    "SKIPPED": "was skipped",
}


def failure(job: Job, stderr: str = "") -> str:
    """Why a job did not succeed: the scheduler's reason, the exit code and the last lines of stderr."""
    said = [f"{label(job)}: {name(job)} {_WHAT.get(job['state'], job['state'])}"]
    said += [word for word in (job.get("reason"), job.get("message")) if word]
    if job.get("exitCode") and f"exit code {job['exitCode']}" not in said[-1]:
        said.append(f"exit code {job['exitCode']}")
    text = ". ".join(word.rstrip(".") for word in said) + "."
    return text + (f"\nThe last lines of its stderr:\n{stderr}" if stderr else "")
