"""Waiting for what is to come true, and not for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        await asyncio.sleep(0.01)
