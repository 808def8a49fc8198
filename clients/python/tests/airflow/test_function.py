"""Functions as programs: what goes to the node runs there, by a Python that knows nothing of this process."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections import UserDict, UserList
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagbridge.airflow import function

OUTSIDE = 7


class task:
    """Stands for Airflow's: only the words matter."""

    @staticmethod
    def dagbridge(*args: Any, **kwargs: Any) -> Any:
        return (lambda f: f) if kwargs else args[0]

    @staticmethod
    def skip_if(condition: Any) -> Any:
        return lambda f: f


def run(f: Callable[..., Any], folder: Path, *args: Any, **kwargs: Any) -> tuple[int, Any, str]:
    """Exit code, return value and stderr of a function that runs as a program of its own."""
    source = function.source_of(f, "dagbridge")
    script, output = folder / "script", folder / "output"
    script.write_text(function.program(f.__name__, source, sys.executable, args, kwargs))
    ended = subprocess.run(
        [sys.executable, "-I", script], env={"DAGBRIDGE_OUTPUT": str(output)}, capture_output=True, text=True, check=False
    )
    return ended.returncode, json.loads(output.read_text())["return_value"] if output.exists() else None, ended.stderr


def test_a_function_runs_by_its_source_and_returns_json(tmp_path: Path) -> None:
    @task.skip_if(OUTSIDE)
    @task.dagbridge(
        python="python3",
        pool=OUTSIDE,
    )
    def simulate(seed: int, *more: "unknown", scale: float = 1.5, **rest: Any) -> dict[str, Any]:  # noqa: F821, UP037
        import math

        text = """
        indented as it was written
    less
"""

        def inner(n: int) -> int:
            return n if n < 2 else inner(n - 1) + inner(n - 2)

        total: float = sum(inner(i) for i in range(seed))
        return {
            "total": total,
            "text": text,
            "f": f"""
  {seed}""",
            "more": more,
            "scale": scale,
            "rest": rest,
            "floor": math.floor(scale),
            "code": __name__,
        }

    code, value, stderr = run(simulate, tmp_path, 5, "a", "ü\u2028'\"\\\n", scale=2.5, x=[None, {"k": 2**70}])
    assert (code, stderr) == (0, "")
    assert value == {
        "total": 7,
        "text": "\n        indented as it was written\n    less\n",
        "f": "\n  5",
        "more": ["a", "ü\u2028'\"\\\n"],
        "scale": 2.5,
        "rest": {"x": [None, {"k": 2**70}]},
        "floor": 2,
        "code": "__main__",
    }


def test_what_returns_none_leaves_its_own_outputs(tmp_path: Path) -> None:
    def quiet() -> None:
        pass

    assert run(quiet, tmp_path) == (0, None, "")


def test_an_exception_is_the_last_line_of_stderr(tmp_path: Path) -> None:
    def broken(x: int) -> float:
        return 1 / x

    code, value, stderr = run(broken, tmp_path, 0)
    assert (code, value) == (1, None)
    assert "return 1 / x" in stderr
    assert stderr.strip().splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_an_exit_code_is_the_functions_own(tmp_path: Path) -> None:
    def skips() -> None:
        raise SystemExit(99)

    assert run(skips, tmp_path)[0] == 99


def test_what_returns_no_json_says_so(tmp_path: Path) -> None:
    def returns_a_set() -> Any:
        return {1}

    def returns_nan() -> Any:
        return float("nan")

    for f in (returns_a_set, returns_nan):
        code, value, stderr = run(f, tmp_path)
        assert (code, value) == (1, None)
        assert f"what {f.__name__} returned cannot be written as JSON" in stderr


def uses_a_global() -> int:
    return OUTSIDE


def uses_an_import() -> str:
    return json.dumps(1)


def uses_a_default(x: Path = Path()) -> None:
    pass


@functools.cache
def has_a_decorator() -> None:
    pass


def uses_it_deep_inside() -> Any:
    class A:
        def f(self) -> Any:
            return [OUTSIDE + i for i in range(2)]

    return A().f


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (uses_a_global, "OUTSIDE"),
        (uses_an_import, "json"),
        (uses_a_default, "Path"),
        (has_a_decorator, "functools"),
        (uses_it_deep_inside, "OUTSIDE"),
    ],
)
def test_what_will_not_be_there_is_named(f: Callable[..., Any], name: str) -> None:
    with pytest.raises(TypeError, match=rf"function {f.__name__} uses {name} from outside of it"):
        function.source_of(f, "dagbridge")


def test_a_closure_is_refused() -> None:
    n = 3

    def closed() -> int:
        return n

    with pytest.raises(TypeError, match="function closed uses n from outside"):
        function.source_of(closed, "dagbridge")


def test_a_global_that_the_function_makes_itself_is_its_own(tmp_path: Path) -> None:
    def makes() -> int:
        global made, json
        import json

        made = len(json.dumps("x"))
        return made

    assert run(makes, tmp_path) == (0, 3, "")


async def waits() -> None:
    pass


def yields() -> Any:
    yield 1


@pytest.mark.parametrize("f", [waits, yields, lambda: 1, len, functools.partial(waits), eval("lambda: 2")])
def test_what_is_no_plain_function_is_refused(f: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"must be written with def"):
        function.source_of(f, "dagbridge")


def test_what_is_a_list_or_a_dict_but_for_its_class_is_one(tmp_path: Path) -> None:
    def same(x: Any, y: Any) -> Any:
        return [x, y]

    assert run(same, tmp_path, UserList([1, UserDict(a=(2,))]), y=range(2)) == (0, [[1, {"a": [2]}], [0, 1]], "")


def test_arguments_that_are_no_json_are_all_named() -> None:
    with pytest.raises(TypeError) as caught:
        function.program("f", "", "python3", [1, {1}, b""], {"x": {"a": [0, Path("/")]}, "y": {2: 3}, "z": float("inf")})
    assert str(caught.value) == (
        "arguments of function f go to the node as JSON: 2 is a set; 3 is a bytes; x['a'][1] is a PosixPath; "
        "y has the key 2, which is no text; z is inf"
    )


def test_arguments_have_a_limit() -> None:
    with pytest.raises(ValueError, match=r"the arguments of function f are [\d,]+ bytes as JSON, more than 1,048,576"):
        function.program("f", "", "python3", ["x" * function.ARGUMENTS_MOST], {})
