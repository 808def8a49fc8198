"""Trigger rules, set-up and tear-down between tasks whose work is elsewhere: Airflow decides by their states as by others'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("airflow")

from dagbridge.airflow.operators import DagBridgeOperator

Run = Callable[..., Any]

ENDS = {"success": "true", "skipped": "exit 99", "failed": "exit 1"}


def step(name: str, end: str = "success", **options: Any) -> DagBridgeOperator:
    """A task that ends as it is told to."""
    return DagBridgeOperator(task_id=name, script=ENDS[end], skip_on_exit_code=99, **options)


@pytest.mark.parametrize(
    ("first", "joins"),
    [
        (
            "success",
            {
                "all_success": "skipped",
                "none_failed": "success",
                "none_failed_min_one_success": "success",
                "all_done": "success",
                "one_success": "success",
            },
        ),
        (
            "skipped",
            {
                "all_success": "skipped",
                "none_failed": "success",
                "none_failed_min_one_success": "skipped",
                "all_done": "success",
                "one_success": "skipped",
            },
        ),
    ],
    ids=["one branch ran", "none ran"],
)
def test_a_join_after_a_branch(dag: Any, run: Run, first: str, joins: dict[str, str]) -> None:
    with dag:
        branches = [step("x", first), step("y", "skipped")]
        step("b") >> branches
        for rule in joins:
            branches >> step(rule, trigger_rule=rule)
    assert run(dag).states == {"b": "success", "x": first, "y": "skipped", **joins}


@pytest.mark.parametrize(
    ("ends", "states"),
    [
        (("success", "failed"), ("success", "failed", "upstream_failed", "success")),
        (("failed", "success"), ("failed", "upstream_failed", "upstream_failed", "upstream_failed")),
        (("skipped", "success"), ("skipped", "skipped", "skipped", "skipped")),
        (("success", "success"), ("success", "success", "success", "success")),
    ],
    ids=["work fails", "set-up fails", "set-up is skipped", "all is well"],
)
def test_set_up_and_tear_down(dag: Any, run: Run, ends: tuple[str, str], states: tuple[str, ...]) -> None:
    with dag:
        set_up, work = step("set_up", ends[0]).as_setup(), step("work", ends[1])
        set_up >> work >> step("more") >> step("tear_down").as_teardown(setups=set_up)
    done = run(dag)
    assert done.states == dict(zip(("set_up", "work", "more", "tear_down"), states, strict=True))
    assert done.run.state == ("success" if set(states) <= {"success", "skipped"} else "failed")
