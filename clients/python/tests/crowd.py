"""Many jobs that cost nothing: they wait for a gate that never opens, and end when they are cancelled."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from dagbridge import Client, Task


class Crowd:
    """Jobs of one run at a gateway."""

    def __init__(self, url: str) -> None:
        self.bridge = Client(url)
        self.run = str(uuid.uuid4())
        self._made = 0
        self._gate = self._submit([self._task("gate", argv=["sleep", "86400"])])[0]

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        self.bridge.batch_cancel([self._gate])
        self.bridge.close()

    def make(self, count: int) -> list[str]:
        """The ids of so many more jobs, which are ``ACCEPTED``."""
        first, self._made = self._made, self._made + count
        return self._submit([self._task(f"t{i}", upstream=[{"task": "gate"}]) for i in range(first, self._made)])

    def end(self, ids: Sequence[str]) -> None:
        """Ends some: they are ``CANCELLED``."""
        self.bridge.batch_cancel(ids)

    def _task(self, task: str, argv: Sequence[str] = ("true",), **more: object) -> Task:
        return {"key": {"task": task}, "command": {"argv": list(argv)}, **more}  # type: ignore[typeddict-item]

    def _submit(self, tasks: list[Task]) -> list[str]:
        run = {"orchestrator": "test", "workflow": "crowd", "run": self.run}
        return [job["id"] for job in self.bridge.submit_workflow({"run": run, "tasks": tasks})["jobs"]]  # type: ignore[typeddict-item]
