"""The tests of ``dagbridge.kfp``: with the SDK, before a real gateway."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway
from launcher import Step

from dagbridge import Client


@pytest.fixture
def make_step(gateway: Gateway, tmp_path: Path) -> Callable[..., Step]:
    """Makes steps of the test's own: ``make_step("exit 3")``, or with the inputs of the component."""
    made: list[Step] = []

    def make(text: str = "exit 0", *, url: str = gateway.url, environment: dict[str, str] | None = None, **inputs: Any) -> Step:
        folder = tmp_path / f"step-{len(made)}"
        folder.mkdir()
        component = "submit_workflow" if "definition" in inputs else "submit_task"
        inputs = inputs if "definition" in inputs else {"task": {"script": {"text": text}}, **inputs}
        made.append(Step(folder, component, {"DAGBRIDGE_URL": url, **(environment or {})}, **inputs))
        return made[-1]

    return make


@pytest.fixture
def bridge(gateway: Gateway) -> Client:
    """A client of the common gateway."""
    with Client(gateway.url) as client:
        yield client
