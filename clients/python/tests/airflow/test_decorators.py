"""``@task.dagbridge``: functions that run as jobs of a real gateway, in Airflow."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("airflow")

from airflow.providers.common.compat.sdk import task

Run = Callable[..., Any]

OUTSIDE = 1


def test_functions_are_jobs_and_their_values_xcoms(dag: Any, run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    with dag:

        @task.dagbridge(multiple_outputs=True, cpu=1, env={"GREETING": "hello"})
        def first(n: int, day: str, run_id: str | None = None) -> dict[str, Any]:
            """Braces are Python's: {{ not_jinja }} {# nor this #}."""
            import os

            return {"n": n + 1, "day": day, "run": run_id, "raw": "{{ ds }}", "env": os.environ["GREETING"]}

        @task.dagbridge
        def each(i: int, base: int) -> int:
            print("this is", i)
            return i * base

        @task.dagbridge
        def total(values: list[int], told: dict[str, str]) -> list[Any]:
            return [sum(values), told["raw"]]

        @task.dagbridge
        def nothing() -> None:
            raise SystemExit(99)

        one = first(41, day="{{ run_id }}")
        total(each.partial(base=one["n"]).expand(i=[1, 2, 3]), one) >> nothing()

    done = run(dag)
    assert done.states == {
        "first": "success",
        "each[0]": "success",
        "each[1]": "success",
        "each[2]": "success",
        "total": "success",
        "nothing": "skipped",
    }
    told = {"n": 42, "day": done.run.run_id, "run": done.run.run_id, "raw": "{{ ds }}", "env": "hello"}
    assert done.xcom("first") == told
    assert {key: done.xcom("first", key) for key in told} == told
    assert [done.xcom("each", index=i) for i in range(3)] == [42, 84, 126]
    assert done.xcom("total") == [252, "{{ ds }}"]
    assert done.job("first")["state"] == "SUCCEEDED"
    assert "this is 2" in "".join(capfd.readouterr())


def test_an_exception_fails_the_task_and_is_told(dag: Any, run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    with dag:

        @task.dagbridge
        def broken(x: str) -> Any:
            return {}[x]

        broken("there is no such key")

    done = run(dag)
    assert done.states == {"broken": "failed"}
    assert done.job("broken")["exit_code"] == 1
    assert "KeyError: 'there is no such key'" in "".join(capfd.readouterr())


def test_an_interpreter_that_is_not_there_is_named(dag: Any, run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    with dag:

        @task.dagbridge(python="/opt/no such/python")
        def never() -> None:
            pass

        never()

    assert run(dag).states == {"never": "failed"}
    assert "/opt/no such/python" in "".join(capfd.readouterr())


def test_what_cannot_work_there_is_refused_when_the_dag_is_parsed(dag: Any) -> None:
    with dag:
        with pytest.raises(TypeError, match="function outside uses OUTSIDE from outside of it"):

            @task.dagbridge(cpu=1)
            def outside() -> int:
                return OUTSIDE

        @task.dagbridge
        def same(x: Any) -> Any:
            return x

        with pytest.raises(TypeError, match=r"arguments of function same go to the node as JSON.*1 is a object"):
            same(object())
        with pytest.raises(TypeError, match="script: the function says what to run"):
            same.override(script="true")(1)

        @task.dagbridge
        def context(ti: Any = None) -> Any:
            return ti

        with pytest.raises(TypeError, match="function context has the parameter ti, which Airflow would fill"):
            context()


def test_the_source_stands_in_the_serialized_dag(dag: Any) -> None:
    with dag:

        @task.dagbridge(python="/opt/venv/bin/python", memory="2Gi")
        def once(x: int) -> int:
            return x

        @task.dagbridge
        def mapped(x: int) -> int:
            return x

        once(1)
        mapped.expand(x=[1, 2])

    first, second = (each["__var"] for each in serialized(dag)["dag"]["tasks"])
    assert first["source"] == "def once(x: int) -> int:\n    return x\n"
    assert (first["python"], first["memory"], first["op_args"]) == ("/opt/venv/bin/python", "2Gi", [1])
    assert second["partial_kwargs"]["source"] == "def mapped(x: int) -> int:\n    return x\n"


def serialized(dag: Any) -> Any:
    """A DAG as it is in Airflow's database."""
    from airflow.serialization import serialized_objects

    kind = getattr(serialized_objects, "DagSerialization", None) or serialized_objects.SerializedDAG
    return json.loads(json.dumps(kind.to_dict(dag)))
