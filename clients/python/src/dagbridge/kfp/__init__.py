"""Steps of a Kubeflow pipeline that hand work over to a gateway: ``submit_task`` and ``submit_workflow``.

A step submits, waits, forwards the log and ends as its job does, with what the job has left as its outputs. ``pipeline`` is
what an author calls, ``components`` what the SDK compiles, ``step`` what runs in the step's pod; ``submit_task.component.yaml``
and ``submit_workflow.component.yaml`` are the same components for those who load files.
(The other way, a whole pipeline as native jobs without a KFP backend, is ``dagbridge run -f pipeline.yaml``.)

Who a step is: KFP gives a step the id of its run and of the DAG that it is in, an iteration of a loop being a DAG of its own,
and its name in there. All three are resolved once by KFP's driver, before the step's first try, so they are the same for each
try of the step and for a run that is retried, and nothing else tells tries apart (backend/src/v2/driver/resolve.go and
compiler/argocompiler/container.go of kubeflow/pipelines 2.17, and driver/resolver/parameters.go after it:
``pipeline_task_uuid`` is the enclosing DAG's id, not the task's). So the key has all three, and a step looks before it submits:
a live job is gone on with, one that has succeeded is not run again, one that has failed or was cancelled gets another try.

Nothing here decides whether a step runs again: KFP does, or a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagbridge.kfp.pipeline import submit_task, submit_workflow

__all__ = ["submit_task", "submit_workflow"]


def __getattr__(name: str) -> Any:
    """A step's pod needs ``step`` alone, and compiling with the SDK takes long to import."""
    if name in __all__:
        from importlib import import_module

        return getattr(import_module("dagbridge.kfp.pipeline"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
