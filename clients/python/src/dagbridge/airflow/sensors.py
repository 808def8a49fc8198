"""A sensor for jobs that tasks of this run have submitted without waiting for them.

It waits for all of them over one stream and submits nothing, so it may be run again at any time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowSensorTimeout,
    AirflowSkipException,
    BaseSensorOperator,
    conf,
)

from dagbridge import job as jobs_
from dagbridge.airflow import upstream, xcom
from dagbridge.airflow.hooks import DagBridgeHook
from dagbridge.airflow.links import LINK_KEY, DagBridgeLink
from dagbridge.types import ENDS

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from dagbridge import Job


class DagBridgeJobSensor(BaseSensorOperator):
    """Waits for jobs; fails with the sentence of every job that has not succeeded. One that was skipped is no failure.

    Its return value is the outputs by task id, of a mapped task a list by map index; with ``job_ids`` alone, by job id.

    :param task_ids: tasks of this run whose jobs are waited for, all instances of mapped ones; left out, those directly upstream.
    :param job_ids: jobs of the gateway, instead of tasks.
    :param dagbridge_conn_id: the connection to the gateway.
    :param deferrable: wait in the triggerer instead of the worker; by default what ``[operators] default_deferrable`` says.
    :param on_kill: ``"leave"`` or ``"cancel"``: what becomes of the jobs when a person marks or clears the sensor while it waits.
    :param resume_after: see ``BaseDagBridgeOperator``.

    ``timeout`` is for how long it waits, ``soft_fail`` makes a failure a skip, as in every sensor. ``poke_interval`` and ``mode``
    mean nothing here: the gateway tells.
    """

    operator_extra_links = (DagBridgeLink(),)
    template_fields: Sequence[str] = ("task_ids", "job_ids")
    ui_color = "#e3edf7"

    def __init__(
        self,
        *,
        task_ids: str | Sequence[str] | None = None,
        job_ids: str | Sequence[str] | None = None,
        dagbridge_conn_id: str = DagBridgeHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=True),
        on_kill: Literal["leave", "cancel"] = "leave",
        resume_after: float = 15.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.task_ids = task_ids
        self.job_ids = job_ids
        self.dagbridge_conn_id = dagbridge_conn_id
        self.deferrable = deferrable
        self.kill = on_kill
        self.resume_after = resume_after
        self.waited: list[str] = []

    @cached_property
    def hook(self) -> DagBridgeHook:
        """The gateway."""
        return DagBridgeHook(self.dagbridge_conn_id)

    def execute(self, context: Context) -> Any:
        """Finds the jobs, and waits for them or defers."""
        limit: timedelta | None = self.execution_timeout
        deadline = time.time() + min(self.timeout, limit.total_seconds() if limit else self.timeout)
        jobs = self._jobs(context)
        self.waited = [job["id"] for each in jobs.values() for job in each]
        self._show(context)
        if not self.waited:
            self.log.info("None of %s has submitted a job in this run: there is nothing to wait for.", ", ".join(jobs) or "them")
            return {}
        if all(job["state"] in ENDS for each in jobs.values() for job in each):
            return self._finish(jobs)
        if self.deferrable:
            from dagbridge.airflow.triggers import DagBridgeJobTrigger

            self.defer(
                trigger=DagBridgeJobTrigger(
                    dagbridge_conn_id=self.dagbridge_conn_id,
                    job_ids=self.waited,
                    on_kill=self.kill,
                    deadline=deadline,
                    not_before=time.time() + self.resume_after,
                ),
                method_name="execute_complete",
            )
        try:
            self.hook.get_conn().wait(self.waited, deadline - time.time(), jobs_.teller(self.log.info))
        except TimeoutError:
            self._late(self._jobs(context))
        return self._finish(self._jobs(context))

    def execute_complete(self, context: Context, event: Any = None) -> Any:
        """Goes on when the trigger has seen the ends."""
        if event.get("error"):
            raise AirflowException(event["error"])
        jobs = self._jobs(context)
        self._show(context)
        if event.get("timed_out"):
            self._late(jobs)
        return self._finish(jobs)

    def on_kill(self) -> None:
        """The worker must stop."""
        if self.kill == "cancel" and self.waited:
            with self.hook.new_client() as client:
                client.batch_cancel(self.waited)

    def _jobs(self, context: Context) -> dict[str, list[Job]]:
        client = self.hook.get_conn()
        if self.job_ids is not None:
            ids = [self.job_ids] if isinstance(self.job_ids, str) else list(self.job_ids)
            known = {job["id"]: job for job in client.batch_get(ids)}
            if unknown := [job_id for job_id in ids if job_id not in known]:
                raise AirflowException(f"The gateway knows no such job: {', '.join(unknown)}.")
            return {job_id: [known[job_id]] for job_id in ids}
        task_ids = [self.task_ids] if isinstance(self.task_ids, str) else self.task_ids
        return upstream.jobs(context, client, sorted(self.upstream_task_ids) if task_ids is None else task_ids)

    def _show(self, context: Context) -> None:
        """The link: to the job where there is one, to the run's jobs else."""
        ti = context["ti"]
        base = self.hook.link_base
        if len(self.waited) == 1:
            self.job_link = f"{base}/v1/jobs/{self.waited[0]}"
        else:
            self.job_link = f"{base}/v1/jobs?" + urlencode({"workflow": ti.dag_id, "run": ti.run_id})
        ti.xcom_push(key=LINK_KEY, value=self.job_link)

    def _late(self, jobs: dict[str, list[Job]]) -> None:
        late = [jobs_.line(job) for each in jobs.values() for job in each if job["state"] not in ENDS]
        if not late:
            return
        text = "Not ended in time:\n" + "\n".join(late)
        raise AirflowSkipException(text) if self.soft_fail else AirflowSensorTimeout(text)

    def _finish(self, jobs: dict[str, list[Job]]) -> dict[str, Any]:
        failed = [jobs_.failure(job) for each in jobs.values() for job in each if job["state"] not in ("SUCCEEDED", "SKIPPED")]
        if failed:
            text = "\n".join(failed)
            raise AirflowSkipException(text) if self.soft_fail else AirflowException(text)
        return {
            name: [xcom.outputs(job) for job in each] if each[0]["key"].get("mapIndex") else xcom.outputs(each[0])
            for name, each in jobs.items()
            if each
        }
