"""A whole native workflow as one Airflow task.

The gateway has the DAG inside the task: it goes in at once, its edges are the scheduler's as far as that can keep them, and
Airflow waits for one run. A retry, or a clear, hands the workflow in again under the same name, and the gateway takes what
has not succeeded.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, AirflowTaskTimeout

from dagbridge import job as jobs_
from dagbridge import workflow as workflows
from dagbridge.airflow import xcom
from dagbridge.airflow.base_operator import BaseDagBridgeOperator
from dagbridge.airflow.links import LINK_KEY

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from dagbridge import Job, Run, Workflow
    from dagbridge.types import RunKey, Submitted

#: The XCom that says which run a task has become: ``{"id", "state", "counts"}``.
RUN_KEY = "dagbridge_run"
#: Bytes of JSON of the return value: an XCom is a row in Airflow's database.
RESULT_MOST = 256 << 10
#: Of how many failed jobs, and instances of one array, the message of a failure tells, and lines and bytes of each one's stderr.
_TOLD_JOBS, _TOLD_INSTANCES, _TOLD_LINES, _TOLD_BYTES = 10, 3, 5, 4 << 10


class DagBridgeRunOperator(BaseDagBridgeOperator):
    """Runs a workflow: what ``dagbridge run -f`` takes.

    To the gateway it is the run ``run_id`` of the workflow ``dag_id:task_id`` (of a mapped task ``run_id[map_index]``): no two
    tasks of a DAG meet, nor does a task of the DAG itself.

    The return value is the outputs by task, of an array a list by index; None stands for none. ``dagbridge_run`` is the run.

    :param workflow: a dict, or the path of a YAML or JSON file, or of a compiled KFP pipeline; a relative path begins at the DAG
        file. A dict is templated, a path is, and a file is never.
    :param parameters: of a pipeline.
    :param env: added to the environment of every native task, over what the workflow says.
    :param cluster: where tasks run that name none.
    :param tasks_selected: only these tasks of the workflow.
    :param mode: what a later try runs. ``"failed"``: what has not succeeded, and what comes after it. ``"all"``: everything.
    """

    template_fields: Sequence[str] = ("workflow", "parameters", "env", "cluster", "tasks_selected")
    template_ext: Sequence[str] = ()
    template_fields_renderers: ClassVar[dict[str, str]] = {"workflow": "json", "parameters": "json", "env": "json"}

    def __init__(
        self,
        *,
        workflow: str | os.PathLike[str] | Mapping[str, Any],
        parameters: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        cluster: str | None = None,
        tasks_selected: Sequence[str] | None = None,
        mode: Literal["failed", "all"] = "failed",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if mode not in ("failed", "all"):
            raise ValueError(f"mode: {mode!r} is none of failed, all")
        self.workflow = os.fspath(workflow) if isinstance(workflow, os.PathLike) else workflow
        self.parameters = parameters
        self.env = env
        self.cluster = cluster
        self.tasks_selected = tasks_selected
        self.mode = mode
        self.native_run: str | None = None
        #: Who the run is, from the moment on at which there may be one.
        self._handed_in: Mapping[str, Any] | None = None

    def run_key(self, context: Context) -> RunKey:
        """Who this run is to the gateway."""
        identity = self.identity(context)
        key = identity["key"]
        return {
            "deployment": key["deployment"],
            "orchestrator": key["orchestrator"],
            "workflow": f"{key['workflow']}:{key['task']}",
            "run": key["run"] + "".join(f"[{i}]" for i in key.get("mapIndex", ())),
            "tryNumber": identity["tryNumber"],
            "uid": identity["uid"],
            "mode": "ONLY_FAILED" if self.mode == "failed" and identity["tryNumber"] > 1 else "ALL",
            "parent": key,
        }

    def workflow_spec(self, context: Context) -> Workflow:
        """What to run, of rendered fields."""
        if isinstance(self.workflow, Mapping):
            body = workflows.native(self.workflow)
        else:
            body = workflows.read(Path(os.path.dirname(context["dag"].fileloc or ""), self.workflow))
        self._handed_in = body["run"] = self.run_key(context)
        body["onConflict"] = "ATTACH"
        body["ifLive"] = self.if_live
        if self.parameters:
            body["parameters"] = {**body.get("parameters", {}), **self.parameters}
        if self.cluster:
            body["cluster"] = self.cluster
        if self.tasks_selected is not None:
            body["tasksSelected"] = list(self.tasks_selected)
        if self.env:
            if "tasks" not in body:
                raise ValueError("env: only native tasks have it; for a pipeline use parameters=")
            added = workflows.native({"tasks": [{"env": self.env}]})["tasks"][0]["env"]
            body["tasks"] = [{**task, "env": {**task.get("env", {}), **added}} for task in body["tasks"]]
        return body

    def execute(self, context: Context) -> Any:
        """Submits, and waits or defers."""
        started = time.time()
        submitted = self._submit_run(context)
        self.native_run = submitted["run"]["id"]
        ids = [job["id"] for job in submitted["jobs"]]
        self.log.info("Run %s, tasks: %d, %s", self.native_run, len(ids), self._link())
        run = self._glance_at_run(context, submitted["run"])
        if run["state"] != "RUNNING":
            return self._finish_run(context, run, ids)
        if self.wait == "submitted":
            return None
        if not self.deferrable:
            self.client.wait(ids, tell=jobs_.teller(self.log.info, len(ids)))
            return self._finish_run(context, self.client.get_run(self.native_run), ids)
        self._defer(started, ids, run_id=self.native_run)

    def execute_complete(self, context: Context, event: Any = None) -> Any:
        """Goes on when the trigger has seen the end."""
        if event.get("error"):
            raise AirflowException(event["error"])
        self.native_run = event["run_id"]
        run = self.client.get_run(event["run_id"])
        if event.get("timed_out") and run["state"] != "SUCCEEDED":
            what = "it is cancelled" if self.kill == "cancel" else "it is left to run"
            raise AirflowTaskTimeout(f"Run {run['id']} was over the task's execution_timeout; {what}.")
        return self._finish_run(context, run, event["job_ids"])

    def on_kill(self) -> None:
        """Cancels what has not ended, tear-downs left out; stopped in the middle of the submission, it looks for the run."""
        if self.kill != "cancel" or self._handed_in is None:
            return
        key = self._handed_in
        with self.hook.new_client() as client:
            for run in client.runs(**{name: key[name] for name in ("deployment", "orchestrator", "workflow", "run")}):
                if run["id"] == self.native_run or run.get("uid") == key["uid"]:
                    self.log.info("Cancelling run %s.", run["id"])
                    client.cancel_run(run["id"])

    def _submit_run(self, context: Context) -> Submitted:
        from dagbridge import InvalidArgument

        try:
            return self.client.submit_workflow(self.workflow_spec(context))
        except ValueError as error:
            raise AirflowFailException(f"Task {self.task_id}: {error}") from None
        except InvalidArgument as error:
            raise AirflowFailException(f"The gateway does not take the workflow:\n{error}") from None

    def _glance_at_run(self, context: Context, run: Run) -> Run:
        """A run that is over soon is finished in this worker."""
        self._show_run(context, run)
        deadline = time.monotonic() + (self.defer_after if self.wait == "done" else 0)
        while run["state"] == "RUNNING" and time.monotonic() < deadline:
            time.sleep(0.25)
            run = self.client.get_run(run["id"])
        return run

    def _link(self) -> str:
        return self.hook.run_link(self.native_run or "")

    def _show_run(self, context: Context, run: Run) -> None:
        """Makes the run and its link visible, also while the task waits."""
        self.job_link = self._link()
        context["ti"].xcom_push(key=RUN_KEY, value={"id": run["id"], "state": run["state"], "counts": run.get("counts", {})})
        context["ti"].xcom_push(key=LINK_KEY, value=self.job_link)

    def _finish_run(self, context: Context, run: Run, ids: Sequence[str]) -> Any:
        """The end: the XComs, the result or the exception."""
        self._show_run(context, run)
        jobs = self.client.batch_get(ids)
        # A task that an earlier try had and the workflow has no more counts for the run, not for this task.
        if run["state"] != "SUCCEEDED" and any(job["state"] not in ("SUCCEEDED", "SKIPPED") for job in jobs):
            self._fail_run(run, jobs)
        return self._bounded({job["key"]["task"]: self._value(job) for job in jobs})

    def _value(self, job: Job) -> Any:
        if "counts" not in job or not job["counts"]:
            return xcom.outputs(job)
        return [xcom.outputs(instance) for instance in self._instances(job)]

    def _instances(self, job: Job, *states: str) -> list[Job]:
        """An array's instances in these states, or all, by index."""
        found = self.client.jobs(parent=job["id"], state=states, view="FULL", pageSize=1000)
        return sorted(found, key=lambda instance: instance["key"]["mapIndex"])

    def _bounded(self, values: dict[str, Any]) -> dict[str, Any]:
        """What fits into an XCom, small values first; what does not is named in the log."""
        sizes = {task: len(json.dumps(value)) for task, value in values.items()}
        room = RESULT_MOST
        for task in sorted(sizes, key=lambda task: sizes[task]):
            room -= sizes[task]
            if room < 0:
                self.log.warning(
                    "The outputs of %s (%d bytes as JSON) are not in the XCom, which is kept below %d; the gateway has them: "
                    "dagbridge output JOB, or Client.jobs(parent=..., view='FULL').",
                    task,
                    sizes[task],
                    RESULT_MOST,
                )
                del values[task]
        return values

    def _fail_run(self, run: Run, jobs: list[Job]) -> NoReturn:
        """Tells what has failed first, and what did not run only by its number."""
        failed = [job for job in jobs if job["state"] in ("FAILED", "CANCELLED", "LOST")]
        told = [f"Run {run['id']} has failed ({jobs_.counts(run.get('counts', {}))}): {self._link()}"]
        for job in failed[:_TOLD_JOBS]:
            instances = self._instances(job, "FAILED", "CANCELLED", "LOST") if job.get("counts") else [job]
            told += [self._told(instance) for instance in instances[:_TOLD_INSTANCES]]
            if len(instances) > _TOLD_INSTANCES:
                told.append(f"... and {len(instances) - _TOLD_INSTANCES} more instances of {jobs_.label(job)}.")
        if len(failed) > _TOLD_JOBS:
            more = failed[_TOLD_JOBS:]
            told.append(f"... and {len(more)} more tasks: {', '.join(jobs_.label(job) for job in more[:50])}")
        raise AirflowException("\n".join(told))

    def _told(self, job: Job) -> str:
        lines = self._output(job, "stderr", _TOLD_BYTES).decode(errors="replace").splitlines()[-_TOLD_LINES:]
        where = job.get("logs", {}).get("stderr")
        return jobs_.failure(job, "\n".join(lines)) + (f"\nIts log: {where}" if where else "")
