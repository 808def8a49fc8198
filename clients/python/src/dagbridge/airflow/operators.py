"""Operators: a task of a DAG becomes a native job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow.providers.common.compat.sdk import AirflowFailException

from dagbridge.airflow import lineage, look_ahead, spec, upstream
from dagbridge.airflow.base_operator import BaseDagBridgeOperator
from dagbridge.airflow.run_operator import DagBridgeRunOperator
from dagbridge.types import ENDS

if TYPE_CHECKING:
    from datetime import timedelta

    from airflow.providers.common.compat.sdk import Context

    from dagbridge import Job, Task

__all__ = ["BaseDagBridgeOperator", "DagBridgeOperator", "DagBridgeRunOperator"]


class DagBridgeOperator(BaseDagBridgeOperator):
    """Runs a program as a native job. One of ``command``, ``script``, ``script_file`` and ``container`` says what.

    All fields are templated. Jinja reads bash's ``${#files[@]}`` as a comment and ``{{"a":1}}`` as an expression: keep such a
    script in a ``script_file``, which is never templated, or wrap it in ``airflow.sdk.literal`` (before Airflow 3,
    ``airflow.utils.template.literal``).

    :param command: a program and its arguments, as a list; no shell reads them.
    :param script: a program's text; its first line ``#!`` names the interpreter, else it is bash's.
    :param script_file: a file with such a text, read when the task runs; a relative path begins at the DAG file.
    :param container: an image, or ``{"image", "command", "args"}``; beside a command or script it gives these their file system.
    :param env: the program's environment; nothing is inherited but PATH.
    :param cluster: where to run; left out, the gateway's first. ``fallbacks``: where else, in this order.
    :param cpu: CPUs per task (``4``, ``"500m"``). ``memory``: per node (``"16Gi"``). ``gpus``: per node (``2``, ``"a100:2"``).
    :param nodes: how many. ``tasks_per_node``: how many. ``launch``: ``"ONCE"`` or ``"PER_TASK"``.
    :param time_limit: wall time, a timedelta or seconds; the scheduler keeps it.
    :param partition: Slurm's, as ``account`` and ``qos``. ``slurm``: the rest, as on the wire
        (``{"options": {"constraint": "ib"}}``).
    :param kubernetes: what only Kubernetes understands, as on the wire.
    :param prologue: shell lines before the program (``"module load cuda"``). ``working_directory``: absolute.
    :param retry: the gateway's own attempts within one try, as on the wire. ``at_most_once``: False allows a second run of a
        lost job.
    :param array: a list of items, ``{"env": {...}, "argv": [...]}`` each, as one native array; or as on the wire.
    :param labels: kept with the job.
    :param skip_on_exit_code: exit codes that mean skipped.
    :param depends_on: tasks, or their ids, whose jobs this job waits for in the scheduler; it sets the edge in the DAG as well,
        but not in a mapped operator's ``partial``. Edges to other jobs are given as on the wire (``{"native": {"id": "7"}}``).
        With ``wait="submitted"`` in all, Airflow hands in a whole chain at once; a ``DagBridgeJobSensor`` waits at its end.
    :param job_trigger_rule: how the ends of these jobs decide, where it is not the task's ``trigger_rule``, which decides by what
        Airflow knows: a task that waits only for its submission has succeeded.
    :param look_ahead: on the first such task of a DAG: with its own job hand in those of later tasks whose every upstream task
        is handed in as well, so that each starts the moment the ones before it have ended. They are reserved: a task claims its
        job when Airflow reaches it. By then that may have started, or ended, so that a mark, a clear or a pause meanwhile comes
        too late to keep it from running. Where the task is another by then (its program has changed, what was before it has run
        again), another job takes the place of the reserved one, and the log says so. Which tasks are not handed in, and why, is
        logged.
    :param look_ahead_lease: for how many seconds a reserved job is kept for its task after the last one before it has ended;
        then the gateway cancels it.
    """

    template_fields: Sequence[str] = (*spec.FIELDS, "depends_on", "job_trigger_rule")
    template_ext: Sequence[str] = ()
    template_fields_renderers: ClassVar[dict[str, str]] = {"script": "bash", "prologue": "bash", "command": "json", "env": "json"}

    def __init__(
        self,
        *,
        command: Sequence[str] | None = None,
        script: str | None = None,
        script_file: str | None = None,
        container: str | dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
        cluster: str | None = None,
        fallbacks: Sequence[str] | None = None,
        cpu: str | float | None = None,
        memory: str | None = None,
        gpus: int | str | list[dict[str, Any]] | None = None,
        nodes: int | None = None,
        tasks_per_node: int | None = None,
        time_limit: timedelta | float | str | None = None,
        launch: Literal["ONCE", "PER_TASK"] | None = None,
        partition: str | None = None,
        account: str | None = None,
        qos: str | None = None,
        slurm: dict[str, Any] | None = None,
        kubernetes: dict[str, Any] | None = None,
        prologue: str | None = None,
        working_directory: str | None = None,
        retry: dict[str, Any] | None = None,
        at_most_once: bool | None = None,
        array: list[dict[str, Any]] | dict[str, Any] | None = None,
        labels: dict[str, str] | None = None,
        skip_on_exit_code: int | Sequence[int] | None = None,
        depends_on: Any = None,
        job_trigger_rule: str | None = None,
        look_ahead: bool = False,
        look_ahead_lease: float = 600.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.command = command
        self.script = script
        self.script_file = script_file
        self.container = container
        self.env = env
        self.cluster = cluster
        self.fallbacks = fallbacks
        self.cpu = cpu
        self.memory = memory
        self.gpus = gpus
        self.nodes = nodes
        self.tasks_per_node = tasks_per_node
        self.time_limit = spec.seconds(time_limit)
        self.launch = launch
        self.partition = partition
        self.account = account
        self.qos = qos
        self.slurm = slurm
        self.kubernetes = kubernetes
        self.prologue = prologue
        self.working_directory = working_directory
        self.retry = retry
        self.at_most_once = at_most_once
        self.array = array
        self.labels = labels
        self.skip_on_exit_code = skip_on_exit_code
        self.depends_on = upstream.named(self, depends_on)
        self.job_trigger_rule = job_trigger_rule
        self.look_ahead = look_ahead
        self.look_ahead_lease = look_ahead_lease
        if self.wait == "submitted" and self.depends_on and job_trigger_rule is None:
            upstream.check_rule(self)

    def task_spec(self, context: Context) -> Task:
        """What to run, of rendered fields."""
        folder = os.path.dirname(context["dag"].fileloc or "") or None
        try:
            return spec.task({name: getattr(self, name) for name in spec.FIELDS}, folder)
        except ValueError as error:
            raise AirflowFailException(f"Task {self.task_id}:\n{error}") from error

    def submit(self, context: Context) -> Job:
        """One task, and with ``look_ahead`` those that follow."""
        task: Task = {**self.task_spec(context), **self.identity(context)}
        if parent := lineage.parent(context):
            task["env"] = {**parent, **task.get("env", {})}
        if edges := upstream.edges(self, context, self.client, self.depends_on):
            task |= {"upstream": edges, "triggerRule": upstream.rule(self.job_trigger_rule or self.trigger_rule)}
        job = self.client.submit(task, on_conflict="ATTACH", if_live=self.if_live, warn=self.log.warning)
        if self.look_ahead and job["state"] not in ENDS:
            self._look_ahead(context)
        return job

    def _look_ahead(self, context: Context) -> None:
        """Reserves the jobs of later tasks; that they are not is no failure, since each is handed in by its own task then."""
        from dagbridge import DagBridgeError

        if lineage.parent(context):
            self.log.info("look_ahead: no job is handed in, since OpenLineage gives each task its own parent at its turn.")
            return
        tasks, left = look_ahead.tasks(self, context, self.identity(context))
        for task in tasks:
            name = task["key"]["task"]
            try:
                job = self.client.submit(task, on_conflict="ATTACH", reserve=self.look_ahead_lease, warn=self.log.warning)
                self.log.info("look_ahead: %s is handed in as job %s.", name, job["id"])
            except DagBridgeError as error:
                left[name] = f"the gateway does not take it: {error}"
        for name, why in left.items():
            self.log.info("look_ahead: %s is not handed in: %s.", name, why)
