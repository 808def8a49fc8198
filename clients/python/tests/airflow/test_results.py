"""Results that are large, empty or no JSON: whole, or refused by a sentence; never cut and never repaired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("airflow")

from dagbridge.airflow.operators import DagBridgeOperator

Run = Callable[..., Any]

WAYS = pytest.mark.parametrize("deferrable", [False, True], ids=["worker", "trigger"])

#: The whole file of outputs may have 48 KiB.
LIMIT = 48 << 10


def python(text: str) -> list[str]:
    """A command that writes its outputs in Python."""
    return ["python3", "-c", f"import os; open(os.environ['DAGBRIDGE_OUTPUT'], 'wb').write({text})"]


@WAYS
def test_what_is_large_arrives_whole(dag: Any, run: Run, deferrable: bool) -> None:
    with dag:
        DagBridgeOperator(
            task_id="large",
            command=python(f"b'{{\"x\": \"' + b'v' * ({LIMIT} - 9) + b'\"}}'"),
            deferrable=deferrable,
            defer_after=0,
        )
    assert run(dag).xcom("large") == {"x": "v" * (LIMIT - 9)}


@WAYS
@pytest.mark.parametrize("written", ["b''", "b'  \\n'"], ids=["empty", "blank"])
def test_what_is_empty_is_no_result(dag: Any, run: Run, deferrable: bool, written: str) -> None:
    with dag:
        DagBridgeOperator(task_id="empty", command=python(written), deferrable=deferrable, defer_after=0)
    done = run(dag)
    assert done.states == {"empty": "success"}
    assert done.xcom("empty") is None


@WAYS
@pytest.mark.parametrize(
    ("written", "said"),
    [
        (f"b'{{\"x\": \"' + b'v' * ({LIMIT} - 8) + b'\"}}'", ["49153", "49152"]),
        ("b'v' * (2 << 20)", ["49152"]),
        ("b'{a:1'", ["JSON"]),
        ("bytes([255, 254, 0])", ["JSON"]),
        ("b'[1, 2]'", ["JSON object"]),
    ],
    ids=["a byte too much", "2 MiB", "no JSON", "bytes", "no object"],
)
def test_what_is_no_result_fails_the_task(
    dag: Any, run: Run, deferrable: bool, written: str, said: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    with dag:
        DagBridgeOperator(task_id="bad", command=python(written), deferrable=deferrable, defer_after=0)
    done = run(dag)
    assert done.states == {"bad": "failed"}
    printed = "".join(capfd.readouterr())
    for words in said:
        assert words in printed
