"""Client of a dagbridge gateway.

A task is handed in and becomes a job; the job is what became of it. Both are the JSON of the gateway's REST interface, typed
(``Task``, ``Job``, ``Run``): there is no second spelling to learn, and a field that a newer gateway adds is there at once.

``Client`` blocks, ``AsyncClient`` does not, and they have the same methods. ``AsyncClient.watcher`` follows any number of jobs
over one stream. This package never imports Airflow or Kubeflow; ``dagbridge.airflow`` is the provider, ``dagbridge.kfp`` steps
for KFP. Importing it costs nothing: what it needs is imported when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dagbridge.errors import (
    AlreadyExists,
    DagBridgeError,
    Denied,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unavailable,
)
from dagbridge.types import ENDS, Job, JobState, Run, Task, TaskKey, Workflow

if TYPE_CHECKING:
    from dagbridge.async_client import AsyncClient
    from dagbridge.client import Client
    from dagbridge.watcher import Watcher

__version__ = "0.1.0"

__all__ = [
    "ENDS",
    "AlreadyExists",
    "AsyncClient",
    "Client",
    "DagBridgeError",
    "Denied",
    "FailedPrecondition",
    "InvalidArgument",
    "Job",
    "JobState",
    "NotFound",
    "Run",
    "Task",
    "TaskKey",
    "Unavailable",
    "Watcher",
    "Workflow",
]

_LAZY = {"Client": "dagbridge.client", "AsyncClient": "dagbridge.async_client", "Watcher": "dagbridge.watcher"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
