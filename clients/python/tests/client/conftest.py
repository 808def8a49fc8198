"""The client's own tests."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A warning is a fault here: a coroutine that nobody awaits, a connection that nobody closes. (Airflow has its own.)"""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("error"))
