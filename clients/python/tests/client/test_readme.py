"""The README's examples run; its pipeline is compiled in ``tests/kfp``."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from gateway import Gateway

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_examples_run(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, _ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, object] = {}
    # A machine for tests is smaller, and has no train.py.
    for here, there in (
        ("http://127.0.0.1:7071", gateway.url),
        ('"python", "train.py"', '"true"'),
        ('"4"', '"1"'),
        ("16Gi", "64Mi"),
    ):
        assert here in first
        first, second = first.replace(here, there), second.replace(here, there)
    exec(first, names)
    assert capsys.readouterr().out.endswith("SUCCEEDED {}\n")
    exec(second, names)
    asyncio.run(names["main"]([names["job"]["id"]]))  # type: ignore[operator, index]
    assert capsys.readouterr().out == "SUCCEEDED \ntrain SUCCEEDED\n"
