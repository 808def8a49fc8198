"""What a step leaves of its job: parameters, metrics, and a page with the link."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagbridge import job as jobs_

if TYPE_CHECKING:
    from kfp.dsl import Markdown, Metrics

    from dagbridge import Job, Run


@dataclass(frozen=True)
class Result:
    """The outputs of either component. KFP keeps numbers as doubles: above 2**53 they are not exact, and 1 is 1.0."""

    native_id: str
    state: str
    outputs: dict[str, Any]
    metrics: dict[str, int | float]
    page: str

    def write(self, native_id: str, state: str, outputs: str, metrics: Metrics, job: Markdown) -> None:
        """Writes them where KFP takes them from: the first three are paths."""
        texts = {native_id: self.native_id, state: self.state, outputs: json.dumps(self.outputs), job.path: self.page}
        for path, text in ((Path(file), text) for file, text in texts.items()):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name, value in self.metrics.items():
            metrics.log_metric(name, value)


def of_task(job: Job, outputs: dict[str, Any], link: str) -> Result:
    """Of a job that has ended well."""
    metrics = {name: value for name, value in outputs.items() if isinstance(value, int | float) and not isinstance(value, bool)}
    return Result(job.get("nativeId", ""), job["state"], outputs, metrics, _page(link, [job]))


def of_run(run: Run, jobs: Sequence[tuple[Job, dict[str, Any]]], link: str) -> Result:
    """Of a run that has ended well: its jobs, each with its outputs."""
    states = Counter[str](job["state"] for job, _ in jobs)
    outputs = {jobs_.label(job): values for job, values in jobs}
    return Result(run["id"], run["state"], outputs, dict(states), _page(link, [job for job, _ in jobs]))


def _page(link: str, jobs: Sequence[Job]) -> str:
    columns = ("state", "cluster", "nativeId", "startTime", "endTime")
    rows = [(jobs_.label(job), *(str(job.get(column, "")) for column in columns)) for job in jobs]
    table = [("task", "state", "cluster", "native job", "started", "ended"), ("---",) * 6, *rows]
    return f"[{link}]({link})\n\n" + "".join("| " + " | ".join(map(_cell, row)) + " |\n" for row in table)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
