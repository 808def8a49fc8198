"""The two components as the KFP SDK compiles them; their bodies run in the step's pod, by KFP's own executor.

``python -m dagbridge.kfp.components`` writes them as files beside this module, anew. The annotations are read by the SDK, which
takes no strings: this module has no ``from __future__ import annotations``.
"""

# mypy: disable-error-code="type-arg, untyped-decorator, valid-type"

from pathlib import Path
from typing import Optional

from kfp import compiler, dsl

from dagbridge import __version__

#: What ``docker build -f clients/python/Containerfile`` makes; where it is pushed to is each site's own.
IMAGE = f"dagbridge-kfp:{__version__}"


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def submit_task(
    workflow: str,
    task: dict,
    run: str,
    step: str,
    uid: str,
    native_id: dsl.OutputPath(str),
    state: dsl.OutputPath(str),
    outputs: dsl.OutputPath(dict),
    metrics: dsl.Output[dsl.Metrics],
    job: dsl.Output[dsl.Markdown],
    name: str = "",
    env: Optional[dict] = None,
    url: str = "",
) -> None:
    """Runs a task on Slurm, Kubernetes or the gateway's machine, by a dagbridge gateway.

    Args:
        workflow: What the gateway calls the pipeline.
        task: The task, as in POST /v1/jobs of the gateway, without key, uid and tryNumber.
        run: Must be dsl.PIPELINE_JOB_ID_PLACEHOLDER.
        step: Must be dsl.PIPELINE_TASK_NAME_PLACEHOLDER.
        uid: Must be dsl.PIPELINE_TASK_ID_PLACEHOLDER.
        native_id: The job's id in its scheduler, as text.
        state: SUCCEEDED or SKIPPED; any other end fails the step, with the job's exit code.
        outputs: The job's outputs; of an array {"instances": [outputs of each]}.
        metrics: Those outputs that are numbers.
        job: What became of the job, and a link to it.
        name: What to call the task; left out, KFP's name for the step.
        env: Added to the task's environment.
        url: REST address of the gateway; left out, DAGBRIDGE_URL of the step's environment.

    """
    from dagbridge.kfp import step as steps

    who = steps.Who(workflow=workflow, run=run, step=step, uid=uid, name=name)
    steps.submit_task(who, task, env or {}, url).write(native_id, state, outputs, metrics, job)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def submit_workflow(
    workflow: str,
    definition: dict,
    run: str,
    step: str,
    uid: str,
    native_id: dsl.OutputPath(str),
    state: dsl.OutputPath(str),
    outputs: dsl.OutputPath(dict),
    metrics: dsl.Output[dsl.Metrics],
    job: dsl.Output[dsl.Markdown],
    name: str = "",
    parameters: Optional[dict] = None,
    url: str = "",
) -> None:
    """Runs a whole DAG on Slurm, Kubernetes or the gateway's machine, by a dagbridge gateway.

    Args:
        workflow: What the gateway calls the pipeline.
        definition: The DAG, as in POST /v1/runs of the gateway: tasks, airflowDag or kfpPipeline; without run.
        run: Must be dsl.PIPELINE_JOB_ID_PLACEHOLDER.
        step: Must be dsl.PIPELINE_TASK_NAME_PLACEHOLDER.
        uid: Must be dsl.PIPELINE_TASK_ID_PLACEHOLDER.
        native_id: The run's id in the gateway.
        state: SUCCEEDED; any other end fails the step.
        outputs: The outputs of each task by its name; of an array {"instances": [outputs of each]}.
        metrics: How many jobs have come to which end.
        job: What became of each task, and links.
        name: What to call the run's workflow; left out, KFP's name for the step.
        parameters: Added to the definition's parameters.
        url: REST address of the gateway; left out, DAGBRIDGE_URL of the step's environment.

    """
    from dagbridge.kfp import step as steps

    who = steps.Who(workflow=workflow, run=run, step=step, uid=uid, name=name)
    steps.submit_workflow(who, definition, parameters or {}, url).write(native_id, state, outputs, metrics, job)


def write(folder: Path) -> None:
    """Writes ``submit_task.component.yaml`` and ``submit_workflow.component.yaml`` into a folder."""
    for component in (submit_task, submit_workflow):
        name = component.name.replace("-", "_")
        compiler.Compiler().compile(component, str(folder / f"{name}.component.yaml"))


if __name__ == "__main__":
    write(Path(__file__).parent)
