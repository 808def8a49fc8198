"""What a step writes: its own lines, and those of the job, as they come."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, BinaryIO

from dagbridge import DagBridgeError, Unavailable

if TYPE_CHECKING:
    from dagbridge import AsyncClient, Job

#: Seconds for the rest of a log when the job has ended, and between two attempts to reach a gateway that is away.
_REST, _PAUSE = 30.0, 1.0


def say(line: str) -> None:
    """A line of the step's own, among the job's."""
    print(f"dagbridge: {line}", file=sys.stderr, flush=True)


@asynccontextmanager
async def forwarded(bridge: AsyncClient, job: Job) -> AsyncIterator[None]:
    """Forwards a job's stdout and stderr while it is waited for. An array has none; its instances' are read in the gateway."""
    if job.get("counts"):
        yield
        return
    outs = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer}
    following = {asyncio.ensure_future(_follow(bridge, job["id"], stream, to)) for stream, to in outs.items()}
    try:
        yield
        await asyncio.wait(following, timeout=_REST)
        if any(not each.done() for each in following):
            say("The end of the job's log does not come: this is not all of it.")
    finally:
        for each in following:
            each.cancel()
        await asyncio.gather(*following, return_exceptions=True)


async def _follow(bridge: AsyncClient, job_id: str, stream: str, to: BinaryIO) -> None:
    offset = 0
    while True:
        try:
            async with aclosing(bridge.logs(job_id, stream, offset=offset, follow=True)) as pieces:
                async for piece in pieces:
                    to.write(piece)
                    to.flush()
                    offset += len(piece)
            return
        except Unavailable:
            await asyncio.sleep(_PAUSE)
        except DagBridgeError as error:
            say(f"The job's {stream} cannot be had: {error}")
            return
