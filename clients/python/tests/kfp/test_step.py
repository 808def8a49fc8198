"""``submit_task`` as a step of a pod: what it leaves, how it ends, and what its next try does."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from condition import until
from gateway import Gateway
from launcher import Step, written
from proxy import Fate, Proxy

from dagbridge import Client

MakeStep = Callable[..., Step]


def test_what_a_step_leaves(make_step: MakeStep, bridge: Client, gateway: Gateway) -> None:
    step = make_step(
        'echo training; echo careful >&2; printf \'{"auc": 0.91, "model": "a|b", "epochs": 3}\' >"$DAGBRIDGE_OUTPUT"',
        name="train",
        env={"EPOCHS": 3, "RATE": 0.5, "DEBUG": True},
    )
    assert step.run() == 0, step.log
    job = bridge.lookup(step.key)
    assert job["uid"] == "17"
    assert job["key"]["task"] == "train/submit-task/17"
    outputs = step.outputs
    assert (outputs["native_id"], outputs["state"]) == (job["nativeId"], "SUCCEEDED")
    assert outputs["outputs"] == {"auc": 0.91, "model": "a|b", "epochs": 3}
    assert outputs["metrics"] == {"auc": 0.91, "epochs": 3}
    link = f"{gateway.url}/v1/jobs/{job['id']}"
    assert outputs["job"].startswith(f"[{link}]({link})")
    assert f"| train/submit-task/17 | SUCCEEDED | here | {job['nativeId']} |" in outputs["job"]
    assert "training\n" in step.log
    assert "careful\n" in step.log
    assert link in step.log


def test_the_environment_is_text_as_people_write_it(make_step: MakeStep) -> None:
    step = make_step(
        'echo "$A $B $C $D"',
        task={"script": {"text": 'echo "<$A $B $C $D>"'}, "env": {"A": 1, "D": "x y"}},
        env={"A": 3, "B": 0.5, "C": True},
    )
    assert step.run() == 0, step.log
    assert "<3 0.5 true x y>" in step.log


@pytest.mark.parametrize(("text", "code"), [("exit 7", 7), ("kill -KILL $$", 137), ("exit 0", 0)])
def test_the_exit_code_is_the_jobs(make_step: MakeStep, text: str, code: int) -> None:
    step = make_step(f"echo said; {text}")
    assert step.run() == code, step.log
    assert "said\n" in step.log
    assert (f"exit code {code}" in step.log) == (code > 0)


def test_a_skipped_job_is_no_failure(make_step: MakeStep) -> None:
    step = make_step(task={"script": {"text": "exit 99"}, "skipExitCodes": [99]})
    assert step.run() == 0, step.log
    assert (step.outputs["state"], step.outputs["outputs"]) == ("SKIPPED", {})


def test_an_array(make_step: MakeStep) -> None:
    items = [{"env": {"SEED": seed}} for seed in (1, 2, 3)]
    step = make_step(task={"script": {"text": 'echo "seed=$SEED" >"$DAGBRIDGE_OUTPUT"'}, "array": {"items": items}})
    assert step.run() == 0, step.log
    assert step.outputs["outputs"] == {"instances": [{"seed": "1"}, {"seed": "2"}, {"seed": "3"}]}


def waiting(ledger: Path, go: Path) -> str:
    """A script that counts its runs and waits to be let go."""
    wait = f"until [ -e {go} ]; do sleep 0.05; done"
    return f'echo run >>{ledger}; echo begun; {wait}; echo "n=$(wc -l <{ledger})" >"$DAGBRIDGE_OUTPUT"'


def test_the_successor_of_a_killed_step_goes_on_with_the_same_job(make_step: MakeStep, bridge: Client, tmp_path: Path) -> None:
    step = make_step(waiting(tmp_path / "ledger", tmp_path / "go"))
    first = step.start()
    written(first, step, "\nbegun\n")
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    job = bridge.lookup(step.key)
    assert job["state"] == "RUNNING"
    second = step.start()
    written(second, step, "An earlier try of this step has submitted")
    (tmp_path / "go").touch()
    assert second.wait(timeout=90) == 0, step.log
    assert bridge.lookup(step.key)["id"] == job["id"]
    assert step.outputs["outputs"] == {"n": "1"}
    assert step.outputs["native_id"] == job["nativeId"]
    assert step.run() == 0, "one more try of what has succeeded runs nothing"
    assert (tmp_path / "ledger").read_text() == "run\n"


def test_what_was_killed_in_the_middle_of_its_submission_is_submitted_once(
    make_step: MakeStep, tmp_path: Path, bridge: Client
) -> None:
    """Whatever the moment of the kill: the first tries are killed one after another, a little later each."""
    step = make_step(f"echo run >>{tmp_path / 'ledger'}")
    for word in ("KFP Executor", "Looking for component", "Loading", "submit-task/17"):
        process = step.start()
        asyncio.run(until(lambda process=process, word=word: word in step.log or process.poll() is not None, 90))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert step.run() == 0, step.log
    assert (tmp_path / "ledger").read_text() == "run\n"
    assert len(list(bridge.jobs(run=step.inputs["run"]))) == 1


def test_sigterm_cancels_and_the_next_try_begins_anew(make_step: MakeStep, bridge: Client, tmp_path: Path) -> None:
    step = make_step(waiting(tmp_path / "ledger", tmp_path / "go"))
    process = step.start()
    written(process, step, "\nbegun\n")
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=90) != 0
    job = bridge.lookup(step.key)
    assert bridge.wait([job["id"]], timeout=60)[0]["state"] == "CANCELLED"
    (tmp_path / "go").touch()
    assert step.run() == 0, step.log
    again = bridge.lookup(step.key)
    assert (again["tryNumber"], again["state"]) == (2, "SUCCEEDED")
    assert again["id"] != job["id"]


def test_a_step_that_fails_may_be_tried_again(make_step: MakeStep, bridge: Client, tmp_path: Path) -> None:
    step = make_step(f"[ -e {tmp_path}/mended ] || exit 3")
    assert step.run() == 3, step.log
    assert step.run() == 3, step.log
    (tmp_path / "mended").touch()
    assert step.run() == 0, step.log
    assert [job["tryNumber"] for job in bridge.jobs(run=step.inputs["run"])] == [3, 2, 1]


def test_steps_of_one_name_are_different_in_other_dags_and_runs(make_step: MakeStep, bridge: Client) -> None:
    """An iteration of a loop is a DAG of its own to KFP."""
    run = make_step().inputs["run"]
    steps = [make_step(f"echo x={i} >$DAGBRIDGE_OUTPUT", run=run, uid=str(i)) for i in range(3)]
    processes = [step.start() for step in steps]
    assert [process.wait(timeout=90) for process in processes] == [0, 0, 0]
    assert [step.outputs["outputs"] for step in steps] == [{"x": "0"}, {"x": "1"}, {"x": "2"}]
    assert len(list(bridge.jobs(run=run))) == 3


@pytest.mark.parametrize(
    ("inputs", "code", "said"),
    [
        ({"url": "", "environment": {"DAGBRIDGE_URL": ""}}, 2, "which gateway? Give url="),
        ({"url": "gateway:7071"}, 2, "is no gateway's address"),
        ({"environment": {"DAGBRIDGE_CA_FILE": "/nowhere"}}, 2, "/nowhere is no certificate authority's file"),
        ({"environment": {"DAGBRIDGE_TOKEN_FILE": "/nowhere"}}, 125, "the token's file /nowhere cannot be read"),
        ({"uid": "{{$.pipeline_task_uuid}}"}, 2, "uid=dsl.PIPELINE_TASK_ID_PLACEHOLDER"),
        ({"run": "", "step": ""}, 2, "run=dsl.PIPELINE_JOB_ID_PLACEHOLDER, step=dsl.PIPELINE_TASK_NAME_PLACEHOLDER"),
        ({"task": {"script": {"text": "true"}, "cpu": 4}}, 2, "cpu"),
        ({"task": {"script": {"text": "true"}, "resources": {"memory": "1000mi", "cpu": "x"}}}, 2, "memory"),
        ({"task": {}}, 2, "command"),
    ],
)
def test_what_is_wrong_is_a_sentence(
    make_step: MakeStep, bridge: Client, inputs: dict[str, object], code: int, said: str
) -> None:
    step = make_step(**inputs)
    assert step.run() == code, step.log
    assert said in step.log
    assert "Traceback" not in step.log
    assert list(bridge.jobs(workflow="risk", run=step.inputs["run"] or "none")) == []


def test_arguments_arrive_as_they_are(make_step: MakeStep) -> None:
    """Quotes, line breaks, pictures, dashes, templates, nothing and a blank."""
    odd = ['{"a":"b"}', "line1\nline2", "\u2728", "--x", "{{item}}", "", " ", "%F0%9F"]
    tell = "import json, os, sys; json.dump({'argv': sys.argv[1:]}, open(os.environ['DAGBRIDGE_OUTPUT'], 'w'))"
    step = make_step(task={"command": {"argv": ["python3", "-c", tell, *odd]}})
    assert step.run() == 0, step.log
    assert step.outputs["outputs"] == {"argv": odd}


def test_all_faults_are_told_at_once(make_step: MakeStep) -> None:
    step = make_step(task={"script": {"text": "true"}, "cluster": "nowhere", "resources": {"memory": "-1Gi", "cpu": "x"}})
    assert step.run() == 2
    for field in ("memory", "cpu", "cluster"):
        assert f"\ntask.{'resources.' if field != 'cluster' else ''}{field}: " in step.log, step.log


def test_sigterm_in_the_middle_of_the_submission(make_step: MakeStep, binary: Path, tmp_path: Path) -> None:
    """The gateway has been asked and has not answered yet: what it accepts afterwards is cancelled."""
    with Gateway(binary, tmp_path / "gateway") as own, Proxy(own.port) as proxy, Client(own.url) as bridge:
        step = make_step("exec sleep 600", url=proxy.url)
        proxy.fate = lambda head: "pass" if "GET /v1/lookup" in head else suspend(own)
        process = step.start()
        asyncio.run(until(lambda: any("POST /v1/jobs " in head for head in proxy.heads), 60))
        os.killpg(process.pid, signal.SIGTERM)
        proxy.fate = lambda head: "pass"
        os.kill(own.pid, signal.SIGCONT)
        process.wait(timeout=90)
        asyncio.run(until(lambda: any(":cancel" in head for head in proxy.heads), 60))
        job = bridge.lookup(step.key)
        assert bridge.wait([job["id"]], timeout=60)[0]["state"] == "CANCELLED", step.log


def suspend(gateway: Gateway) -> Fate:
    """Stops the gateway's process, before a request is passed on to it."""
    os.kill(gateway.pid, signal.SIGSTOP)
    return "pass"


def test_a_token_that_changes_while_the_step_waits(make_step: MakeStep, binary: Path, tmp_path: Path) -> None:
    """A Secret's file is replaced in the pod; the gateway knows the new token alone from its restart on."""
    token = tmp_path / "token"
    token.write_text("old\n")
    go = tmp_path / "go"
    with Gateway(binary, tmp_path / "gateway", tokens=["old"]) as old:
        step = make_step(f"echo begun; until [ -e {go} ]; do sleep 0.05; done; echo ended", url=old.url)
        step.environment["DAGBRIDGE_TOKEN_FILE"] = str(token)
        process = step.start()
        written(process, step, "\nbegun\n")
        old.kill()
        token.write_text("new\n")
        old.tokens = ["new"]
        old.start()
        go.touch()
        assert process.wait(timeout=90) == 0, step.log
        assert "\nended\n" in step.log
        token.write_text("old\n")
        assert step.run() == 125
        assert "the gateway does not know this token" in step.log


def test_a_gateway_that_is_away_is_waited_for(make_step: MakeStep, binary: Path, tmp_path: Path) -> None:
    """Killed while the step waits, and started again after the job has ended: no line of the log is lost or doubled."""
    go = tmp_path / "go"
    with Gateway(binary, tmp_path / "gateway") as own:
        step = make_step(f"echo begun; until [ -e {go} ]; do sleep 0.05; done; seq 5000; exit 4", url=own.url)
        process = step.start()
        written(process, step, "\nbegun\n")
        own.kill()
        go.touch()
        own.start()
        assert process.wait(timeout=90) == 4, step.log
        lines = [line for line in step.log.splitlines() if line.isdigit()]
        assert lines == [str(i) for i in range(1, 5001)]
