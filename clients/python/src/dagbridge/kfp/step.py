"""What runs in a step's pod: submit, wait, forward the log, and end as the job does.

The step ends by ``SystemExit``: with the job's exit code, 128 + its signal, or 1; with the command line's codes where there is no
job: 2 for bad input, 125 for a gateway that cannot be reached or does not let the step in; with 143 by SIGTERM.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from dagbridge import DagBridgeError, InvalidArgument, NotFound
from dagbridge import job as jobs_
from dagbridge import workflow as workflows
from dagbridge.kfp import gateway
from dagbridge.kfp.logs import forwarded, say
from dagbridge.kfp.result import Result, of_run, of_task
from dagbridge.kfp.shelter import restored
from dagbridge.types import ENDS

if TYPE_CHECKING:
    from dagbridge import AsyncClient, Job, Task, TaskKey, Workflow
    from dagbridge.types import RunKey

T = TypeVar("T")

_BAD_INPUT, _NO_GATEWAY = 2, 125
_GOOD_ENDS = ("SUCCEEDED", "SKIPPED")


@dataclass(frozen=True)
class Who:
    """Who a step is, by its inputs: see the package."""

    workflow: str
    run: str
    step: str
    uid: str
    name: str = ""

    @property
    def key(self) -> TaskKey:
        """The task's name in the gateway. ``ValueError`` when KFP has not filled in what says who this is."""
        inputs = {"run": "JOB_ID", "step": "TASK_NAME", "uid": "TASK_ID"}
        if wrong := [name for name in inputs if not getattr(self, name) or "{{$" in getattr(self, name)]:
            given = ", ".join(f"{name}=dsl.PIPELINE_{inputs[name]}_PLACEHOLDER" for name in wrong)
            raise ValueError(f"KFP has not said who this step is: give the component {given}")
        task = "/".join(filter(None, (self.name, self.step, self.uid)))
        return {"deployment": "default", "orchestrator": "kfp", "workflow": self.workflow, "run": self.run, "task": task}


def submit_task(who: Who, task: dict[str, Any], env: dict[str, Any], url: str) -> Result:
    """Runs a task to its end."""
    return _run(url, lambda bridge: _task(bridge, who, task, env))


def submit_workflow(who: Who, definition: dict[str, Any], parameters: dict[str, Any], url: str) -> Result:
    """Runs a workflow to its end."""
    return _run(url, lambda bridge: _workflow(bridge, who, definition, parameters))


def _run(url: str, work: Callable[[AsyncClient], Awaitable[T]]) -> T:
    """Does the work until it is done, or SIGTERM ends it; what is wrong is said in a sentence, without a stack."""
    logging.getLogger("httpx").setLevel(logging.WARNING)  # KFP's executor shows a line for each request
    try:
        return asyncio.run(_until_terminated(gateway.address(url), work))
    except asyncio.CancelledError:
        raise SystemExit(128 + signal.SIGTERM) from None
    except ValueError as error:
        _fail(str(error), _BAD_INPUT)
    except InvalidArgument as error:
        _fail(f"The gateway does not take it:\n{error}", _BAD_INPUT)
    except DagBridgeError as error:
        _fail(str(error), _NO_GATEWAY)


def _fail(sentence: str, code: int) -> NoReturn:
    say(sentence)
    raise SystemExit(code)


async def _until_terminated(url: str, work: Callable[[AsyncClient], Awaitable[T]]) -> T:
    task, loop = asyncio.ensure_future(_connected(url, work)), asyncio.get_running_loop()

    def terminate() -> None:
        """Once: what is to be cancelled is being cancelled, and who sends the signal to a whole group sends it twice."""
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, terminate)
    return await task


async def _connected(url: str, work: Callable[[AsyncClient], Awaitable[T]]) -> T:
    async with gateway.connect(url) as bridge:
        return await work(bridge)


@asynccontextmanager
async def _cancelled_with_us(submission: Awaitable[T], cancel: Callable[[T], Awaitable[Any]]) -> AsyncIterator[T]:
    """What is submitted; cancelled when SIGTERM ends the step meanwhile, also in the middle of the submission."""
    submitting = asyncio.ensure_future(submission)
    try:
        yield await asyncio.shield(submitting)
    except asyncio.CancelledError:
        say("Terminated: cancelling what was submitted.")
        await cancel(await submitting)
        raise


async def _task(bridge: AsyncClient, who: Who, task: dict[str, Any], env: dict[str, Any]) -> Result:
    body: Task = workflows.native({"tasks": [_whole({**task, "env": {**task.get("env", {}), **env}})]})["tasks"][0]
    body |= {"key": who.key, "uid": who.uid, "tryNumber": await _try(bridge, who)}
    async with _cancelled_with_us(bridge.submit(body, on_conflict="ATTACH"), lambda job: bridge.cancel(job["id"])) as job:
        say(f"{jobs_.label(job)}, {_link(bridge, job)}")
        async with forwarded(bridge, job):
            (job,) = await bridge.wait([job["id"]], tell=jobs_.teller(say))
    if job["state"] not in _GOOD_ENDS:
        _fail(jobs_.failure(job), _code(job))
    return of_task(job, await _outputs(bridge, job), _link(bridge, job))


async def _workflow(bridge: AsyncClient, who: Who, definition: dict[str, Any], parameters: dict[str, Any]) -> Result:
    body: Workflow = workflows.native(_whole({**definition, "parameters": {**definition.get("parameters", {}), **parameters}}))
    if "kfpPipeline" in body:
        body["kfpPipeline"] = restored(body["kfpPipeline"])
    key = who.key
    body["run"] = {
        "deployment": key["deployment"],
        "orchestrator": key["orchestrator"],
        "workflow": f"{who.workflow}:{who.name or who.step}",
        "run": "/".join((who.run, who.step, who.uid)),
        "uid": who.uid,
        "parent": key,
    }
    body["run"]["tryNumber"] = await _run_try(bridge, body["run"])
    body["onConflict"] = "ATTACH"
    submission = bridge.submit_workflow(body)
    async with _cancelled_with_us(submission, lambda submitted: bridge.cancel_run(submitted["run"]["id"])) as submitted:
        run, ids = submitted["run"], [job["id"] for job in submitted["jobs"]]
        link = f"{bridge.connection.url}/v1/runs/{run['id']}"
        say(f"Run {run['id']}, tasks: {len(ids)}, {link}")
        await bridge.wait(ids, tell=jobs_.teller(say, len(ids)))
    run, jobs = await bridge.get_run(run["id"]), await bridge.batch_get(ids)
    if run["state"] != "SUCCEEDED":
        failed = [jobs_.failure(job) for job in jobs if job["state"] in ("FAILED", "CANCELLED", "LOST")]
        _fail("\n".join([f"Run {run['id']} has failed ({jobs_.counts(run.get('counts', {}))}): {link}", *failed]), 1)
    return of_run(run, [(job, await _outputs(bridge, job)) for job in jobs], link)


async def _try(bridge: AsyncClient, who: Who) -> int:
    """The number of this try: the job's there is, or the next one when that has come to a bad end."""
    try:
        job = await bridge.lookup(who.key)
    except NotFound:
        return 1
    say(f"An earlier try of this step has submitted {jobs_.line(job)}")
    over = job["state"] in ENDS or "cancelRequestTime" in job
    return job.get("tryNumber", 1) + (over and job["state"] not in _GOOD_ENDS)


async def _run_try(bridge: AsyncClient, key: RunKey) -> int:
    """The same for a run."""
    named = {name: value for name, value in key.items() if name in ("deployment", "orchestrator", "workflow", "run")}
    async for run in bridge.runs(**named):  # type: ignore[arg-type]
        say(f"An earlier try of this step has submitted run {run['id']}: {run['state']}")
        return run.get("tryNumber", 1) + (run["state"] == "FAILED")
    return 1


async def _outputs(bridge: AsyncClient, job: Job) -> dict[str, Any]:
    """A job's outputs; of an array those of its instances, by index."""
    if not job.get("counts"):
        return job.get("outputs") or {}
    instances = [each async for each in bridge.jobs(parent=job["id"], view="FULL", pageSize=1000)]
    instances.sort(key=lambda each: each["key"]["mapIndex"])
    return {"instances": [each.get("outputs") or {} for each in instances]}


def _link(bridge: AsyncClient, job: Job) -> str:
    return job.get("url") or f"{bridge.connection.url}/v1/jobs/{job['id']}"


def _code(job: Job) -> int:
    """The job's exit code, as the command line's --wait passes it on."""
    if job.get("signal"):
        return 128 + job["signal"]
    return (job.get("exitCode") or 0) & 0xFF or 1


def _whole(value: Any) -> Any:
    """JSON without the fractions that KFP gives to whole numbers."""
    if isinstance(value, dict):
        return {name: _whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
