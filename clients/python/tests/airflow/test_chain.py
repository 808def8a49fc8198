"""Chains that are handed in at once, and the sensor that waits for them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from gateway import Gateway

pytest.importorskip("airflow")

from airflow.providers.common.compat.sdk import TaskGroup, task, task_group

from dagbridge import Client
from dagbridge.airflow.operators import DagBridgeOperator
from dagbridge.airflow.sensors import DagBridgeJobSensor

Run = Callable[..., Any]
SUBMITTED: Any = {"wait": "submitted"}


@pytest.mark.parametrize("deferrable", [False, True], ids=["worker", "trigger"])
def test_a_chain_is_in_before_its_first_job_ends(dag: Any, run: Run, gateway: Gateway, deferrable: bool, tmp_path: Any) -> None:
    """The first job ends when the last is there: a task that waited would wait for ever."""
    go = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done"
    with dag:
        load = DagBridgeOperator(task_id="load", script=f"{go}; echo '{{\"n\": 1}}' >$DAGBRIDGE_OUTPUT", **SUBMITTED)
        sim = DagBridgeOperator.partial(task_id="sim", depends_on="load", **SUBMITTED).expand(
            command=[["sh", "-c", f"echo '{{\"x\": {i}}}' >$DAGBRIDGE_OUTPUT"] for i in range(2)]
        )
        load >> sim
        report = DagBridgeOperator(
            task_id="report", script="cp $DAGBRIDGE_INPUTS $DAGBRIDGE_OUTPUT", depends_on=[sim, load], **SUBMITTED
        )

        @task
        def release() -> None:
            (tmp_path / "go").touch()

        sensor = DagBridgeJobSensor(task_id="sensor", task_ids=["load", "sim", "report"], deferrable=deferrable)
        report >> release() >> sensor
    assert report.upstream_task_ids == {"load", "sim"}
    done = run(dag)
    assert set(done.states.values()) == {"success"}
    assert [done.job(name)["state"] in ("ACCEPTED", "SUBMITTED", "RUNNING") for name in ("load", "report")] == [True, True]
    assert done.xcom("load") is None
    result = done.xcom("sensor")
    assert (result["load"], result["sim"]) == ({"n": 1}, [{"x": 0}, {"x": 1}])
    with Client(gateway.url) as bridge:
        starts = {label: bridge.get(done.job(*label)["id"]) for label in (("load", -1), ("sim", 0), ("sim", 1), ("report", -1))}
    assert starts["load", -1]["endTime"] <= min(starts["sim", i]["startTime"] for i in range(2))
    assert max(starts["sim", i]["endTime"] for i in range(2)) <= starts["report", -1]["startTime"]


def test_an_upstream_failure_is_told_and_never_waited_for(dag: Any, run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    with dag:
        extract = DagBridgeOperator(task_id="extract", script="exit 1", **SUBMITTED)
        train = DagBridgeOperator(task_id="train", script="true", depends_on=extract, **SUBMITTED)
        clean = DagBridgeOperator(task_id="clean", script="true", depends_on=extract, trigger_rule="all_done", **SUBMITTED)
        alert = DagBridgeOperator(task_id="alert", script="true", depends_on=extract, job_trigger_rule="one_failed", **SUBMITTED)
        sensor = DagBridgeJobSensor(task_id="sensor")
        soft = DagBridgeJobSensor(task_id="soft", task_ids="train", soft_fail=True)
        good = DagBridgeJobSensor(task_id="good", task_ids=["clean", "alert"])
        [extract, train] >> sensor
        [train, clean, alert] >> soft
        [clean, alert] >> good
    done = run(dag)
    assert {name: state for name, state in done.states.items() if state != "success"} == {"sensor": "failed", "soft": "skipped"}
    printed = "".join(capfd.readouterr())
    assert "extract: job local-" in printed
    assert "on here failed. the program ended with exit code 1." in printed
    assert "train: job " in printed
    assert "did not run. UPSTREAM. upstream extract is FAILED." in printed


def test_within_a_mapped_group_each_index_waits_for_its_own(dag: Any, run: Run, gateway: Gateway) -> None:
    with dag:

        @task_group
        def each(code: Any) -> None:
            one = DagBridgeOperator(task_id="one", script="exit $CODE", env={"CODE": code}, **SUBMITTED)
            DagBridgeOperator(task_id="two", script="true", depends_on=one, **SUBMITTED)

        each.expand(code=["0", "1"])
    done = run(dag)
    with Client(gateway.url) as bridge:
        ended = bridge.wait([done.job("each.two", i)["id"] for i in range(2)])
    assert [job["state"] for job in ended] == ["SUCCEEDED", "UPSTREAM_FAILED"]


def test_tasks_that_were_never_submitted_are_not_waited_for(dag: Any, run: Run) -> None:
    with dag:

        @task.branch
        def choose() -> str:
            return "right"

        left = DagBridgeOperator(task_id="left", script="true", **SUBMITTED)
        right = DagBridgeOperator(task_id="right", script="true", **SUBMITTED)
        join = DagBridgeOperator(
            task_id="join", script="true", depends_on=[left, right], trigger_rule="none_failed_min_one_success", **SUBMITTED
        )
        choose() >> [left, right]
        join >> DagBridgeJobSensor(task_id="sensor", task_ids=["left", "right", "join"])
    done = run(dag)
    assert (done.states["left"], done.states["join"], done.states["sensor"]) == ("skipped", "success", "success")
    assert set(done.xcom("sensor")) == {"right", "join"}


def test_depends_on_is_checked(dag: Any, run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    with dag:
        with pytest.raises(ValueError, match="names nothing_yet, which is no task of the DAG so far"):
            DagBridgeOperator(task_id="early", script="true", depends_on="nothing_yet")
        with pytest.raises(ValueError, match="Say job_trigger_rule='one_failed' instead"):
            DagBridgeOperator(task_id="rule", script="true", depends_on="early", trigger_rule="one_failed", **SUBMITTED)
        with pytest.raises(ValueError, match="wait: 'sometimes' is none of done, submitted"):
            DagBridgeOperator(task_id="wait", script="true", wait="sometimes")  # type: ignore[arg-type]
        DagBridgeOperator(task_id="first", script="true")
        DagBridgeOperator.partial(task_id="mapped", depends_on=["first"]).expand(script=["true"])
    done = run(dag)
    assert done.states["mapped[0]"] == "failed"
    assert "depends_on names first, which is not upstream of it in the DAG" in "".join(capfd.readouterr())


def test_a_group_prefixes_the_names_of_its_tasks(dag: Any) -> None:
    with dag, TaskGroup("g"):
        first = DagBridgeOperator(task_id="first", script="true")
        second = DagBridgeOperator(task_id="second", script="true", depends_on=[first])
    assert (second.depends_on, second.upstream_task_ids) == (["g.first"], {"g.first"})


@pytest.mark.parametrize("deferrable", [False, True], ids=["worker", "trigger"])
@pytest.mark.parametrize("soft_fail", [False, True])
def test_a_sensor_has_its_time(dag: Any, run: Run, gateway: Gateway, deferrable: bool, soft_fail: bool) -> None:
    with dag:
        DagBridgeOperator(task_id="long", script="sleep 600", **SUBMITTED) >> DagBridgeJobSensor(
            task_id="sensor", timeout=datetime.timedelta(seconds=1).total_seconds(), soft_fail=soft_fail, deferrable=deferrable
        )
    done = run(dag)
    assert done.states["sensor"] == ("skipped" if soft_fail else "failed")
    with Client(gateway.url) as bridge:
        assert "cancelRequestTime" not in bridge.get(done.job("long")["id"])
        bridge.cancel(done.job("long")["id"])


def test_a_sensor_of_jobs_by_their_ids(dag: Any, run: Run, gateway: Gateway, capfd: pytest.CaptureFixture[str]) -> None:
    key = {"orchestrator": "cli", "workflow": dag.dag_id, "run": "1", "task": "t"}
    with Client(gateway.url) as bridge:
        job = bridge.submit({"key": key, "script": {"text": "echo '{\"x\": 1}' >$DAGBRIDGE_OUTPUT"}})  # type: ignore[typeddict-item]
    with dag:
        DagBridgeJobSensor(task_id="sensor", job_ids=[job["id"]])
        DagBridgeJobSensor(task_id="unknown", job_ids="no-such-job")
    done = run(dag)
    assert done.states == {"sensor": "success", "unknown": "failed"}
    assert done.xcom("sensor") == {job["id"]: {"x": 1}}
    assert "The gateway knows no such job: no-such-job." in "".join(capfd.readouterr())
