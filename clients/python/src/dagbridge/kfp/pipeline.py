"""What an author of a pipeline calls: the components, with what only a pipeline can give them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kfp import dsl

from dagbridge import workflow as workflows
from dagbridge.kfp import components
from dagbridge.kfp.shelter import sheltered

if TYPE_CHECKING:
    from kfp.dsl import PipelineTask

#: KFP resolves these where they are the whole value of an input, and nowhere else.
_IDENTITY = {
    "run": dsl.PIPELINE_JOB_ID_PLACEHOLDER,
    "step": dsl.PIPELINE_TASK_NAME_PLACEHOLDER,
    "uid": dsl.PIPELINE_TASK_ID_PLACEHOLDER,
}


def submit_task(
    task: Mapping[str, Any],
    *,
    workflow: str,
    name: str = "",
    env: Mapping[str, Any] | Any = None,
    url: str = "",
) -> PipelineTask:
    """A step that runs a task through the gateway and ends as its job does. Called in a function with ``@dsl.pipeline``.

    Its outputs are ``native_id``, ``state`` and ``outputs`` (parameters), ``metrics`` and ``job`` (artifacts). A job that fails
    gives the step its exit code, 128 + the signal that ended it, or else 1. Caching is off. A step that is ended by SIGTERM
    cancels its job; one that is killed leaves it, and the step's next try goes on with it (``set_retry``, or a retried run).

    KFP puts values of the pipeline (its parameters, outputs of steps) that stand inside of a dict or a list into its JSON as
    text: numbers and plain words arrive, a text with quotes or line breaks makes the step fail. As a whole ``env`` they arrive
    as they are. All inputs of a step together have to fit into 128 KiB, since KFP hands them over as one argument of a program.

    :param task: as in ``POST /v1/jobs``: ``command``, ``script`` or ``container``, ``cluster``, ``resources`` ... What the
        gateway wants as text may be a number. The key, the uid and the try are the step's.
    :param workflow: what the gateway calls the pipeline; KFP does not tell a step.
    :param name: what to call the task in the gateway and in the scheduler's queue; left out, KFP's name for the step.
    :param env: added to the task's environment.
    :param url: the gateway's REST address; left out, ``DAGBRIDGE_URL`` of the step's environment.

    The step's image is the one of ``DAGBRIDGE_KFP_IMAGE`` when the pipeline is compiled, or of ``set_container_image``. How a
    step finds its token and the gateway's certificate authority: ``dagbridge.kfp.gateway``.
    Raises ``ValueError`` for a task that names what the step names.
    """
    _leave_to_the_step("task", task, ("key", "uid", "tryNumber"))
    text = workflows.native({"tasks": [task]})["tasks"][0]
    inputs = {"name": name, "url": url, **({} if env is None else {"env": env})}
    return _prepared(components.submit_task(workflow=workflow, task=text, **inputs, **_IDENTITY), name)


def submit_workflow(
    definition: Mapping[str, Any],
    *,
    workflow: str,
    name: str = "",
    parameters: Mapping[str, Any] | Any = None,
    url: str = "",
) -> PipelineTask:
    """A step that runs a whole DAG through the gateway: what ``submit_task`` is for one task.

    Its output ``native_id`` is the run's id in the gateway, ``outputs`` has the outputs of each task by its name. When the run
    fails the step ends with 1; its next try starts a new run.

    :param definition: as in ``POST /v1/runs``: ``tasks``, ``airflowDag`` or ``kfpPipeline``, ``cluster`` ...
        (``dagbridge.workflow.read`` reads a file). The run is the step's.
    :param workflow: what the gateway calls the pipeline.
    :param name: the run's workflow is ``workflow:name``; left out, KFP's name for the step.
    :param parameters: added to the definition's.
    :param url: as for ``submit_task``, and so is the image.

    Raises ``ValueError`` for a definition that names what the step names.
    """
    _leave_to_the_step("definition", definition, ("run",))
    if "kfpPipeline" in definition:
        definition = {**definition, "kfpPipeline": sheltered(definition["kfpPipeline"])}
    inputs = {"name": name, "url": url, **({} if parameters is None else {"parameters": parameters})}
    step = components.submit_workflow(workflow=workflow, definition=workflows.native(definition), **inputs, **_IDENTITY)
    return _prepared(step, name)


def _leave_to_the_step(what: str, given: Mapping[str, Any], taken: tuple[str, ...]) -> None:
    if named := [field for field in taken if field in given]:
        raise ValueError(f"{what}: {' and '.join(named)} cannot be given: who the step is in KFP says it")


def _prepared(step: PipelineTask, name: str) -> PipelineTask:
    step.set_caching_options(False)
    if name and isinstance(name, str):
        step.set_display_name(name)
    if image := os.environ.get("DAGBRIDGE_KFP_IMAGE"):
        step.set_container_image(image)
    return step
