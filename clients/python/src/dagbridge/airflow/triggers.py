"""What waits for jobs in the triggerer.

All triggers of a process share one client and one stream for each gateway. A trigger may be run again anywhere at any time:
it submits nothing, and it cancels only when a person has acted on the task, or the task's time is over. Its keyword arguments
are stored in Airflow's database, so they hold a connection's id and never a token, and those that another version of this
package stored are taken.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import XCom
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS
from airflow.triggers.base import BaseTrigger, TaskSuccessEvent, TriggerEvent

from dagbridge import job as jobs_
from dagbridge.airflow import xcom
from dagbridge.airflow.hooks import DagBridgeHook

if TYPE_CHECKING:
    from dagbridge import AsyncClient, Job

#: Seconds before a gateway that was away is asked again.
PAUSE = 5.0

#: What triggers do at their end, until it is done.
_endings: set[asyncio.Task[None]] = set()


class DagBridgeJobTrigger(BaseTrigger):
    """Waits until jobs have ended, and tells their changes in the task's log.

    The event is ``{"job_ids": [...], "run_id": str | None, "timed_out": bool, "error": str | None}``: who resumes asks the
    gateway for the rest.

    :param dagbridge_conn_id: the connection.
    :param job_ids: the jobs.
    :param run_id: the run that the jobs are all of: it is cancelled in their place, which leaves its tear-downs.
    :param on_kill: ``"cancel"`` or ``"leave"``: what becomes of the jobs when a person marks or clears the deferred task.
    :param deadline: Unix time at which the task's time is over; the jobs are then cancelled, unless they are to be left.
    :param not_before: Unix time before which no event may resume the task on a worker, see ``BaseDagBridgeOperator``.
    :param ends: the task may end here when its one job has succeeded: ``{"log_bytes": int, "return_value": bool}``.
    """

    def __init__(
        self,
        dagbridge_conn_id: str,
        job_ids: list[str],
        run_id: str | None = None,
        on_kill: str = "cancel",
        deadline: float | None = None,
        not_before: float = 0.0,
        ends: dict[str, Any] | None = None,
        **later: Any,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.dagbridge_conn_id = dagbridge_conn_id
        self.job_ids = job_ids
        self.run_id = run_id
        self.kill = on_kill
        self.deadline = deadline
        self.not_before = not_before
        self.ends = ends
        self._fired = False

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What Airflow stores."""
        return "dagbridge.airflow.triggers.DagBridgeJobTrigger", {
            "dagbridge_conn_id": self.dagbridge_conn_id,
            "job_ids": self.job_ids,
            "run_id": self.run_id,
            "on_kill": self.kill,
            "deadline": self.deadline,
            "not_before": self.not_before,
            "ends": self.ends,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event. A gateway that is away is waited for."""
        from dagbridge import DagBridgeError, Unavailable

        event = None
        while event is None:
            try:
                event = await self._end(await DagBridgeHook(self.dagbridge_conn_id).get_async_client())
            except Unavailable as away:
                self.log.info("Waiting for the gateway: %s", away)
                await asyncio.sleep(PAUSE)
            except DagBridgeError as refused:
                event = self._resume(error=str(refused))
        if not isinstance(event, TaskSuccessEvent):
            await asyncio.sleep(max(0.0, self.not_before - time.time()))
        self._fired = True
        yield event

    async def _end(self, client: AsyncClient) -> TriggerEvent:
        left = None if self.deadline is None else max(0.0, self.deadline - time.time())
        try:
            ended = await client.wait(self.job_ids, left, jobs_.teller(self.log.info, len(self.job_ids)))
        except TimeoutError:
            await self._cancel(client)
            return self._resume(timed_out=True)
        if self.ends is not None and len(ended) == 1 and ended[0]["state"] == "SUCCEEDED":
            return await self._success(client, ended[0])
        return self._resume()

    def _resume(self, *, timed_out: bool = False, error: str | None = None) -> TriggerEvent:
        """Goes on in a worker."""
        return TriggerEvent(  # type: ignore[no-untyped-call]
            {"job_ids": self.job_ids, "run_id": self.run_id, "timed_out": timed_out, "error": error}
        )

    async def _success(self, client: AsyncClient, job: Job) -> TriggerEvent:
        """Ends the task without a worker: its log and its XComs are what a worker would have left."""
        assert self.ends is not None
        job = await client.get(job["id"])
        await self._copy_log(client, job, self.ends["log_bytes"])
        xcoms: dict[str, Any] = {xcom.JOB_KEY: xcom.of(job)}
        if self.ends["return_value"] and (value := xcom.outputs(job)) is not None:
            xcoms["return_value"] = value
        return TaskSuccessEvent(xcoms=await self._push(xcoms))

    async def _copy_log(self, client: AsyncClient, job: Job, limit: int) -> None:
        """As the operator does; output that cannot be had makes no failure of a success."""
        from dagbridge import DagBridgeError

        try:
            text = b"".join([piece async for piece in client.logs(job["id"], tail=limit)]) if limit else b""
        except DagBridgeError as error:
            self.log.warning("The output of %s cannot be had: %s", jobs_.name(job), error)
            return
        if len(text) >= limit > 0:
            self.log.info("The last %d bytes of the output:", limit)
        for number, line in enumerate(text.decode(errors="replace").splitlines()):
            self.log.info("%s", line)
            if number % 100 == 99:
                await asyncio.sleep(0)  # others run in this loop as well

    async def _push(self, xcoms: dict[str, Any]) -> dict[str, Any] | None:
        """Pushes as a task does, or leaves it to the event, as in Airflow 2 and where there is no triggerer (``dag.test()``).

        Airflow 3 stores what an event carries as the text of its JSON, which is what tasks then get.
        """
        ti: Any = self.task_instance
        if ti is None or not AIRFLOW_V_3_0_PLUS:
            return xcoms
        for key, value in xcoms.items():
            await asyncio.to_thread(
                XCom.set, key, value, dag_id=ti.dag_id, task_id=ti.task_id, run_id=ti.run_id, map_index=ti.map_index
            )
        return None

    async def _cancel(self, client: AsyncClient) -> None:
        if self.kill == "cancel" and self.run_id is not None:
            await client.cancel_run(self.run_id)
        elif self.kill == "cancel":
            await client.batch_cancel(self.job_ids)

    async def on_kill(self) -> None:
        """Airflow 3.3 and later: a person has marked or cleared the task."""
        await _uncancelled(self._killed())

    async def _killed(self) -> None:
        client = await DagBridgeHook(self.dagbridge_conn_id).get_async_client()
        # After a clear the next try may have come first, and have gone on with the run.
        if self.run_id is not None and self.task_instance is not None:
            run = await client.get_run(self.run_id)
            if run["tryNumber"] > self.task_instance.try_number:
                return
        await self._cancel(client)

    async def cleanup(self) -> None:
        """Called whenever the trigger ends, also when the triggerer is stopped.

        Airflow 2 says in no other way that a person has acted on the task: then it waits for this trigger no longer. Airflow 3.0
        to 3.2 neither call ``on_kill`` nor let a trigger look, so that there the job goes on.
        """
        if not (self._fired or AIRFLOW_V_3_0_PLUS or self.task_instance is None):
            await _uncancelled(self._look_who_ended_it())

    async def _look_who_ended_it(self) -> None:
        if await asyncio.to_thread(_now, self.task_instance) != ("deferred", self.trigger_id):
            self.log.info("The task no longer waits.")
            await self._killed()


async def _uncancelled(ending: Coroutine[Any, Any, None]) -> None:
    """Runs it to its end: a triggerer cancels a trigger that has to go once a second, be it in the middle of its ending."""
    task = asyncio.create_task(ending)
    _endings.add(task)
    task.add_done_callback(_endings.discard)
    await asyncio.shield(task)


def _now(ti: Any) -> tuple[Any, ...]:
    """State and trigger of a task instance of Airflow 2, as the database has them; empty when it is gone."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(TaskInstance.state, TaskInstance.trigger_id).filter_by(
            dag_id=ti.dag_id, run_id=ti.run_id, task_id=ti.task_id, map_index=ti.map_index
        )
        return tuple(found.one_or_none() or ())
