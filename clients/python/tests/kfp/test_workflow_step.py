"""``submit_workflow`` as a step of a pod."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from launcher import Step, written

from dagbridge import Client

MakeStep = Callable[..., Step]


def tasks(*scripts: str) -> dict[str, Any]:
    """A chain of tasks called 0, 1, 2 ..."""
    chain = [{"key": {"task": str(i)}, "script": {"text": text}} for i, text in enumerate(scripts)]
    for before, task in pairwise(chain):
        task["upstream"] = [{"task": before["key"]["task"]}]
    return {"tasks": chain}


def test_the_successor_of_a_killed_step_goes_on_with_the_same_run(make_step: MakeStep, bridge: Client, tmp_path: Path) -> None:
    wait = f"echo run >>{tmp_path / 'ledger'}; until [ -e {tmp_path / 'go'} ]; do sleep 0.05; done"
    step = make_step(definition=tasks(wait, 'echo "rows=3" >$DAGBRIDGE_OUTPUT'), name="dag")
    first = step.start()
    written(first, step, "RUNNING")
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    second = step.start()
    written(second, step, "An earlier try of this step has submitted run")
    (tmp_path / "go").touch()
    assert second.wait(timeout=90) == 0, step.log
    assert (tmp_path / "ledger").read_text() == "run\n"
    (run,) = bridge.runs(workflow="risk:dag", run=f"{step.inputs['run']}/submit-task/17")
    assert step.outputs["native_id"] == run["id"]
    assert step.outputs["outputs"] == {"0": {}, "1": {"rows": "3"}}
    assert step.outputs["metrics"] == {"SUCCEEDED": 2}
    assert "| 1 | SUCCEEDED | here |" in step.outputs["job"]


def test_a_run_that_fails_may_be_tried_again(make_step: MakeStep, tmp_path: Path) -> None:
    step = make_step(definition=tasks(f"[ -e {tmp_path}/mended ] || exit 3", "true"))
    assert step.run() == 1
    assert "has failed (1 FAILED, 1 UPSTREAM_FAILED)" in step.log
    assert "0: job local-" in step.log
    (tmp_path / "mended").touch()
    assert step.run() == 0, step.log


def test_sigterm_cancels_the_run(make_step: MakeStep, bridge: Client) -> None:
    step = make_step(definition=tasks("exec sleep 600"), name="dag")
    process = step.start()
    written(process, step, "RUNNING")
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=90) != 0
    (run,) = bridge.runs(workflow="risk:dag", run=f"{step.inputs['run']}/submit-task/17")
    (job,) = bridge.jobs(run=run["run"])
    assert bridge.wait([job["id"]], timeout=60)[0]["state"] == "CANCELLED"


def test_quantities_are_what_kubernetes_takes(make_step: MakeStep) -> None:
    definition = tasks(*["true"] * 6)
    for task, memory in zip(definition["tasks"], ("0.1Gi", "1e8", "100K", "1000mi", "Gi", "-1Gi"), strict=True):
        task["resources"] = {"memory": memory}
    step = make_step(definition=definition)
    assert step.run() == 2
    assert [f"tasks[{i}].resources.memory: " in step.log for i in range(6)] == [False] * 2 + [True] * 4, step.log
    assert "100k" in step.log, "what was meant is told"
    assert "Traceback" not in step.log


def test_what_is_no_dag_is_refused_with_all_that_is_wrong(make_step: MakeStep, bridge: Client) -> None:
    """A cycle, an upstream that is not there, and a name that is there twice."""
    definition = tasks("true", "true", "true", "true")
    definition["tasks"][0]["upstream"] = [{"task": "1"}]
    definition["tasks"][2]["upstream"] = [{"task": "nobody"}]
    definition["tasks"][3]["key"]["task"] = "2"
    step = make_step(definition=definition)
    assert step.run() == 2
    for word in ("0 -> 1 -> 0", "there is no such task", "tasks[3].key.task: "):
        assert word in step.log, step.log
    assert list(bridge.jobs(run=f"{step.inputs['run']}/submit-task/17")) == []
