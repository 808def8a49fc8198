"""What all operators share: the task's identity, waiting in a trigger or in the worker, cancelling, XComs and the log.

What an operator knows is lost between submission and resumption, and again when a worker dies; only the identity is not. So
whatever runs again submits again, and the gateway answers with the job there is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    AirflowTaskTimeout,
    BaseOperator,
    conf,
    get_listener_manager,
)

from dagbridge import job as jobs_
from dagbridge.airflow import lineage, look_ahead, xcom
from dagbridge.airflow.hooks import DagBridgeHook
from dagbridge.airflow.links import LINK_KEY, DagBridgeLink
from dagbridge.types import ENDS

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage

    from dagbridge import Client, Job, Task, TaskKey

#: How much of stderr a failure's message carries, in lines and bytes.
_STDERR_LINES, _STDERR_BYTES = 20, 8 << 10


class BaseDagBridgeOperator(BaseOperator):
    """One task, one job. Subclasses say in ``submit`` what is handed in.

    :param dagbridge_conn_id: the connection to the gateway.
    :param deferrable: wait in the triggerer instead of the worker; by default what ``[operators] default_deferrable`` says.
    :param wait: ``"done"``: the task ends as its job does. ``"submitted"``: it ends once the gateway has the job for good.
    :param reattach: what a retry does. ``"active"``: a job of an earlier try that is live is gone on with.
        ``"active_or_succeeded"``: one that has succeeded since the run began, too. ``"never"``: it is cancelled, and when it is
        dead a new one is submitted.
    :param on_kill: ``"cancel"`` or ``"leave"``: what becomes of the job when the task is marked, cleared or killed, or its
        ``execution_timeout`` is over.
    :param defer_after: for how many seconds the worker looks at the job before it defers; a job that has ended by then is
        finished in the worker, and its native id is usually known by then.
    :param resume_after: Airflow up to 3.3.2 fails a task that is resumed before its scheduler has seen the worker's process end
        (apache/airflow#66374); no event resumes the task earlier than so many seconds after it was deferred.
    :param end_from_trigger: let a job's success end the task in the triggerer. What needs a worker (outlets, a mapped
        downstream task, a custom XCom backend, a listener such as OpenLineage's, a ``post_execute``) has one in any case.
    :param log_bytes: how much of the end of stdout is copied into the task's log when the job has ended.
    """

    operator_extra_links = (DagBridgeLink(),)
    ui_color = "#e3edf7"

    def __init__(
        self,
        *,
        dagbridge_conn_id: str = DagBridgeHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=True),
        wait: Literal["done", "submitted"] = "done",
        reattach: Literal["active", "active_or_succeeded", "never"] = "active",
        on_kill: Literal["cancel", "leave"] = "cancel",
        defer_after: float = 3.0,
        resume_after: float = 15.0,
        end_from_trigger: bool = True,
        log_bytes: int = 1 << 20,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dagbridge_conn_id = dagbridge_conn_id
        self.deferrable = deferrable
        self.wait = _one_of("wait", wait, "done", "submitted")
        self.reattach = _one_of("reattach", reattach, "active", "active_or_succeeded", "never")
        self.kill = _one_of("on_kill", on_kill, "cancel", "leave")
        self.defer_after = defer_after
        self.resume_after = resume_after
        # Not under the parameter's name: where a listener is installed, Airflow refuses a DAG that has it, and here it is a wish.
        self.may_end_in_trigger = end_from_trigger
        self.log_bytes = log_bytes
        self.job_id: str | None = None
        self.job: Job | None = None
        self._anew = False
        #: Who this task is, from the moment on at which it may have a job.
        self._identity: Task | None = None

    @cached_property
    def hook(self) -> DagBridgeHook:
        """The gateway."""
        return DagBridgeHook(self.dagbridge_conn_id)

    @property
    def client(self) -> Client:
        """The hook's client."""
        return self.hook.get_conn()

    def submit(self, context: Context) -> Job:
        """Hands the task in, and may be called any number of times; ``identity`` names it."""
        raise NotImplementedError

    def identity(self, context: Context) -> Task:
        """``key``, ``tryNumber`` and ``uid``: who this task is to the gateway."""
        ti = context["ti"]
        key: TaskKey = {
            "deployment": self.hook.deployment,
            "orchestrator": "airflow",
            "workflow": ti.dag_id,
            "run": ti.run_id,
            "task": ti.task_id,
        }
        if ti.map_index is not None and ti.map_index >= 0:
            key["mapIndex"] = [ti.map_index]
        # Airflow 2 has no id of a try; its run has a new one when it was deleted and made again under the same name.
        run: Any = context["dag_run"]
        uid = str(ti.id) if hasattr(ti, "id") else f"{run.id}.{ti.try_number}"
        return {"key": key, "tryNumber": ti.try_number, "uid": f"{uid}/anew" if self._anew else uid}

    @property
    def if_live(self) -> Literal["ATTACH", "REPLACE"]:
        """How the submission meets a live job of an earlier try."""
        return "REPLACE" if self.reattach == "never" else "ATTACH"

    def execute(self, context: Context) -> Any:
        """Submits, and waits or defers."""
        started, see = time.time(), self._seer(context)
        job = self._earlier(context) or self._submit(context)
        self.job_id = job["id"]
        see(job)
        if self.wait == "done" and not self.deferrable:
            return self._finish(context, self.client.wait([job["id"]], tell=see)[0])
        job = self._glance(job, see)
        if self.wait == "submitted":
            return None  # whatever its state is by now: what becomes of it is told by who waits for it
        if job["state"] in ENDS:
            return self._finish(context, job)
        ends = {"log_bytes": self.log_bytes, "return_value": self.do_xcom_push} if self._may_end_in_trigger() else None
        self._defer(started, [job["id"]], ends=ends)

    def _defer(self, started: float, job_ids: list[str], **more: Any) -> NoReturn:
        """Waits in the triggerer for jobs, until the task's time is over."""
        # Airflow's triggers take longer to import than all of this package, and who reads a DAG file needs none.
        from dagbridge.airflow.triggers import DagBridgeJobTrigger

        limit: timedelta | None = self.execution_timeout
        self.defer(
            trigger=DagBridgeJobTrigger(
                dagbridge_conn_id=self.dagbridge_conn_id,
                job_ids=job_ids,
                on_kill=self.kill,
                deadline=None if limit is None else started + limit.total_seconds(),
                not_before=time.time() + self.resume_after,
                **more,
            ),
            method_name="execute_complete",
        )

    def execute_complete(self, context: Context, event: Any = None) -> Any:
        """Goes on when the trigger has seen the end. A trigger run inline (``dag.test()``) may have told its end alone."""
        told: dict[str, Any] = event if isinstance(event, dict) else {}
        if told.get("error"):
            raise AirflowException(told["error"])
        identity = self.identity(context)
        job = self.client.get(told["job_ids"][0]) if told else self.client.lookup(identity["key"], identity["tryNumber"])
        self.job_id = job["id"]
        self._show(context, job)
        if told.get("timed_out") and job["state"] != "SUCCEEDED":
            what = "it is cancelled" if self.kill == "cancel" else "it is left to run"
            raise AirflowTaskTimeout(f"{jobs_.label(job)}: {jobs_.name(job)} was over its execution_timeout; {what}.")
        return self._finish(context, job)

    def on_kill(self) -> None:
        """The worker must stop: a person has marked or cleared the task, it is over its time, or the worker is shut down.

        It may have been stopped in the middle of the submission: then the job is looked for by its name.
        """
        from dagbridge import NotFound

        if self.kill != "cancel" or self._identity is None:
            return
        with self.hook.new_client() as client:
            try:
                job = client.lookup(self._identity["key"], self._identity["tryNumber"])
            except NotFound:
                return
            uid = job.get("uid", "")
            if job["id"] == self.job_id or uid == self._identity["uid"] or uid.endswith(look_ahead.SUFFIX):
                self.log.info("Cancelling %s.", jobs_.name(job))
                client.cancel(job["id"])

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """Asked by Airflow's OpenLineage provider, also after a failure."""
        return lineage.facets(self.job)

    def result(self, job: Job) -> Any:
        """The task's return value."""
        return xcom.outputs(job)

    def _earlier(self, context: Context) -> Job | None:
        """A job of an earlier try that has succeeded since the run began, where such a one is wanted."""
        from dagbridge import NotFound

        ti = context["ti"]
        if self.reattach != "active_or_succeeded" or ti.try_number < 2:
            return None
        try:
            job = self.client.lookup(self.identity(context)["key"])
        except NotFound:
            return None
        began = context["dag_run"].start_date
        if (
            job["state"] != "SUCCEEDED"
            or "cancelRequestTime" in job
            or (began is not None and job["createTime"] < began.strftime("%Y-%m-%dT%H:%M:%S"))
        ):
            return None
        self.log.info("An earlier try has succeeded: %s.", jobs_.line(job))
        return job

    def _submit(self, context: Context) -> Job:
        from dagbridge import InvalidArgument

        self._identity = self.identity(context)
        try:
            job = self.submit(context)
            if self._withdrawn(context, job):
                self._anew = True
                self._identity = self.identity(context)
                job = self.submit(context)
            return job
        except InvalidArgument as error:
            raise AirflowFailException(f"The gateway does not take the task:\n{error}") from error

    def _withdrawn(self, context: Context, job: Job) -> bool:
        """Whether this try is attached to a job that was cancelled with the try before, and so has to have one of its own.

        A task that is cleared while it is deferred runs again at once, and the triggerer, which cancels, may come later.
        """
        return "cancelRequestTime" in job and job.get("uid") != self.identity(context)["uid"]

    def _seer(self, context: Context) -> Callable[[Job], None]:
        """Logs what changes of a job, and shows it once it has a native id, and when it has another."""
        tell = jobs_.teller(self.log.info)
        shown: set[str] = set()

        def see(job: Job) -> None:
            tell(job)
            if (native := job.get("nativeId", "")) not in shown:
                self._show(context, job)
                shown.add(native)

        return see

    def _glance(self, job: Job, see: Callable[[Job], None]) -> Job:
        """Looks at the job until it has ended, or the time to defer has come.

        One that is only handed in is seen enough when it has a native id, or waits in the gateway and says for what.
        """
        deadline, pause = time.monotonic() + self.defer_after, 0.05
        while job["state"] not in ENDS and time.monotonic() < deadline:
            if self.wait == "submitted" and (job.get("nativeId") or job.get("reason")):
                break
            time.sleep(pause)
            pause = min(pause * 1.5, 0.5)
            job = self.client.get(job["id"])
            see(job)
        return job

    def _show(self, context: Context, job: Job) -> None:
        """Makes the job and its link visible, also while the task waits."""
        self.job = job
        self.job_link = self.hook.link(job)
        context["ti"].xcom_push(key=xcom.JOB_KEY, value=xcom.of(job))
        context["ti"].xcom_push(key=LINK_KEY, value=self.job_link)

    def _finish(self, context: Context, job: Job) -> Any:
        """The end: the log, the XComs, the result or the exception."""
        if self._withdrawn(context, job):
            self.log.info("%s was cancelled with the try before; this try has a new one.", jobs_.name(job))
            return self.execute(context)
        if "outputs" not in job:
            job = self.client.get(job["id"])
        self._show(context, job)
        self._copy_log(job)
        if job["state"] == "SUCCEEDED":
            return self.result(job)
        self._fail(job)

    def _fail(self, job: Job) -> NoReturn:
        if job["state"] == "SKIPPED":
            raise AirflowSkipException(jobs_.failure(job))
        stderr = b""
        if job["state"] in ("FAILED", "LOST", "CANCELLED"):
            stderr = self._output(job, "stderr", _STDERR_BYTES)
        lines = stderr.decode(errors="replace").splitlines()[-_STDERR_LINES:]
        raise AirflowException(jobs_.failure(job, "\n".join(lines)))

    def _copy_log(self, job: Job) -> None:
        text = self._output(job, "stdout", self.log_bytes)
        if len(text) >= self.log_bytes:
            self.log.info("The last %d bytes of the output; all of it: %s/logs", self.log_bytes, self.job_link)
        for line in text.decode(errors="replace").splitlines():
            self.log.info("%s", line)

    def _output(self, job: Job, stream: str, limit: int) -> bytes:
        """The end of what the program wrote; nothing where that cannot be had, since the job's end counts all the same."""
        from dagbridge import DagBridgeError

        try:
            return b"".join(self.client.logs(job["id"], stream, tail=limit)) if limit else b""
        except DagBridgeError as error:
            self.log.warning("The %s of %s cannot be had: %s", stream, jobs_.name(job), error)
            return b""

    def _may_end_in_trigger(self) -> bool:
        """Whether nothing is lost when the triggerer ends the task without a worker."""
        return (
            self.may_end_in_trigger
            and not self.outlets
            and not getattr(self, "multiple_outputs", False)
            and self._post_execute_hook is None
            and type(self).result is BaseDagBridgeOperator.result
            and next(iter(self.iter_mapped_dependants()), None) is None
            and conf.get("core", "xcom_backend", fallback="BaseXCom").endswith("BaseXCom")
            and not get_listener_manager().has_listeners
        )


def _one_of(name: str, value: str, *words: str) -> str:
    if value not in words:
        raise ValueError(f"{name}: {value!r} is none of {', '.join(words)}")
    return value
