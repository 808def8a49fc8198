"""What all tests share: the program, and one gateway for those that do not harm it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway import Gateway, build


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program."""
    return build(tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="session")
def gateway(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One for all tests that neither stop it nor count what it has."""
    with Gateway(binary, tmp_path_factory.mktemp("gateway")) as started:
        yield started
