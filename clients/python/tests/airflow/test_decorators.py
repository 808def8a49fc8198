"""``@task.dagbridge``: functions that run as jobs of a real gateway, in Airflow."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

HEAD = """
from airflow.providers.common.compat.sdk import DAG, task
from datetime import timedelta
"""


def test_functions_are_jobs_and_their_values_xcoms(run_dag: Callable[..., Any]) -> None:
    ran = run_dag(
        HEAD
        + '''
with DAG("functions_and_values", schedule=None):

    @task.dagbridge(multiple_outputs=True, cpu=1, env={"GREETING": "hello"})
    def first(n: int, day: str, run_id=None) -> dict:
        """Braces are Python's: {{ not_jinja }} {# nor this #}."""
        import os

        return {"n": n + 1, "day": day, "run": run_id, "raw": "{{ ds }}", "env": os.environ["GREETING"]}

    @task.dagbridge
    def each(i: int, base: int) -> int:
        print("this is", i)
        return i * base

    @task.dagbridge
    def total(values: list[int], told: dict) -> list:
        return [sum(values), told["raw"]]

    @task.dagbridge
    def nothing() -> None:
        raise SystemExit(99)

    one = first(41, day="{{ run_id }}")
    total(each.partial(base=one["n"]).expand(i=[1, 2, 3]), one) >> nothing()
'''
    )
    assert ran.states == {
        "first": "success",
        ("each", 0): "success",
        ("each", 1): "success",
        ("each", 2): "success",
        "total": "success",
        "nothing": "skipped",
    }
    told = {"n": 42, "day": ran.run_id, "run": ran.run_id, "raw": "{{ ds }}", "env": "hello"}
    assert ran.xcom("first") == told
    assert {key: ran.xcom("first", key=key) for key in told} == told
    assert [ran.xcom("each", i) for i in range(3)] == [42, 84, 126]
    assert ran.xcom("total") == [252, "{{ ds }}"]
    assert ran.xcom("first", key="dagbridge_job")["state"] == "SUCCEEDED"
    assert "this is 2" in ran.log


def test_an_exception_fails_the_task_and_is_told(run_dag: Callable[..., Any]) -> None:
    ran = run_dag(
        HEAD
        + """
with DAG("an_exception", schedule=None):

    @task.dagbridge
    def broken(x):
        return {}[x]

    broken("there is no such key")
"""
    )
    assert ran.states == {"broken": "failed"}
    assert "KeyError: 'there is no such key'" in ran.log
    assert ran.xcom("broken", key="dagbridge_job")["exit_code"] == 1


def test_an_interpreter_that_is_not_there_is_named(run_dag: Callable[..., Any]) -> None:
    ran = run_dag(
        HEAD
        + """
with DAG("an_interpreter", schedule=None):

    @task.dagbridge(python="/opt/no such/python")
    def never():
        pass

    never()
"""
    )
    assert ran.states == {"never": "failed"}
    assert "/opt/no such/python" in ran.log


REFUSED = {
    "a global": ("N = 1\n", "", "return N", "f()", "function f uses N from outside of it"),
    "an object": ("", "x", "return x", "f(object())", "arguments of function f go to the node as JSON.*1 is a object"),
    "the context": ("", "ti", "return 1", "f()", "function f has the parameter ti, which Airflow would fill"),
    "a program": ("", "", "return 1", "f.override(script='true')()", "@task.dagbridge: script: the function says what to run"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_work_there_is_refused_when_the_dag_is_parsed(what: str, dag_file: Callable[..., Any]) -> None:
    before, parameters, body, call, said = REFUSED[what]
    function = f"    @task.dagbridge\n    def f({parameters}):\n        {body}\n"
    with pytest.raises(TypeError, match=said):
        dag_file(f"{HEAD}{before}\nwith DAG('refused', schedule=None):\n{function}    {call}\n")


def serialized(dag: Any) -> Any:
    """A DAG as it is in Airflow's database."""
    from airflow.serialization import serialized_objects

    kind = getattr(serialized_objects, "DagSerialization", None) or serialized_objects.SerializedDAG
    return json.loads(json.dumps(kind.to_dict(dag)))


def test_the_source_stands_in_the_serialized_dag(dag_file: Callable[..., Any]) -> None:
    dag = dag_file(
        HEAD
        + """
with DAG("serialized_function", schedule=None):

    @task.dagbridge(python="/opt/venv/bin/python", memory="2Gi")
    def once(x):
        return x

    @task.dagbridge
    def mapped(x):
        return x

    once(1)
    mapped.expand(x=[1, 2])
"""
    )
    once, mapped = (task["__var"] for task in serialized(dag)["dag"]["tasks"])
    assert once["source"] == "def once(x):\n    return x\n"
    assert (once["python"], once["memory"], once["op_args"]) == ("/opt/venv/bin/python", "2Gi", [1])
    assert mapped["partial_kwargs"]["source"] == "def mapped(x):\n    return x\n"
