"""Importing the package costs nothing: a DAG file that names it is parsed again and again."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dagbridge


def imported(statement: str) -> set[str]:
    """The modules that a new interpreter has after a statement, but not those it has anyway."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


def test_nothing_heavy_comes_with_the_package() -> None:
    modules = {name.partition(".")[0] for name in imported("import dagbridge, dagbridge.connection, dagbridge.calls")}
    assert "dagbridge" in modules
    assert modules.isdisjoint({"httpx", "tenacity", "asyncio", "ssl", "airflow"})


@pytest.mark.parametrize("name", dagbridge.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(dagbridge, name)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Gateway'"):
        dagbridge.Gateway  # noqa: B018
