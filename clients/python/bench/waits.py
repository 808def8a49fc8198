"""What waiting costs: ten thousand waits on one stream of a real gateway, and what importing the package takes.

It prints, and asserts nothing.

PYTHONPATH=tests python bench/waits.py [WAITS]
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
import urllib.request
from datetime import datetime
from pathlib import Path

from crowd import Crowd
from gateway import Gateway, build

from dagbridge import AsyncClient

#: Ends of the trickle, and seconds between two.
ENDS, BETWEEN = 200, 0.05


def resident() -> int:
    """Bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def streams(url: str) -> str:
    """How many watches the gateway has open."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        found = re.search(r'dagbridge_streams_open\{method="WatchJobs"\} (\d+)', answer.read().decode())
    return found[1] if found else "0"


async def seen(bridge: AsyncClient, job_id: str) -> None:
    """Returns once the watch tells of a job: it has told of all whose waits were made before."""
    await asyncio.sleep(0)  # they begin
    async for _ in bridge.watcher.changes(job_id):
        return


async def memory(url: str, ids: list[str], traced: bool) -> None:
    """Prints what each wait adds to the process; a wait is a task of its own, as in Airflow's triggerer."""
    async with AsyncClient(url) as bridge:
        probe = asyncio.create_task(bridge.watcher.wait(ids[0]))
        await seen(bridge, ids[0])
        gc.collect()
        if traced:
            tracemalloc.start()
        before = resident()
        began = time.perf_counter()
        waits = [asyncio.create_task(bridge.watcher.wait(job_id)) for job_id in ids[1:]]
        await seen(bridge, ids[-1])
        took = time.perf_counter() - began
        gc.collect()
        if traced:
            print(f"  {tracemalloc.get_traced_memory()[0] / len(waits):6.0f} bytes each, by tracemalloc")
        else:
            print(f"  {(resident() - before) / len(waits):6.0f} bytes each, by resident memory")
            print(f"  {took:6.2f} s from the first wait until the present state of all is known; {streams(url)} stream")
        for wait in (probe, *waits):
            wait.cancel()
        await asyncio.gather(probe, *waits, return_exceptions=True)


async def delays(url: str, ids: list[str], end: list[str]) -> None:
    """Prints how long after the gateway's record of an end its waiter goes on, while all the others wait."""
    late: list[float] = []

    async def wait(bridge: AsyncClient, job_id: str) -> None:
        job = await bridge.watcher.wait(job_id)
        late.append(time.time() - datetime.fromisoformat(re.sub(r"(\.\d{6})\d*Z|Z", r"\1+00:00", job["endTime"])).timestamp())

    async with AsyncClient(url) as bridge, AsyncClient(url) as other:
        ending, staying = set(end), [asyncio.create_task(bridge.watcher.wait(i)) for i in ids if i not in set(end)]
        waits = [asyncio.create_task(wait(bridge, job_id)) for job_id in ending]
        await seen(bridge, ids[-1])
        for job_id in end:
            await other.cancel(job_id)
            await asyncio.sleep(BETWEEN)
        await asyncio.gather(*waits)
        for task in staying:
            task.cancel()
        await asyncio.gather(*staying, return_exceptions=True)
    cuts = statistics.quantiles(late, n=100)
    print(f"  {cuts[49] * 1e3:6.1f} ms from the record of an end to its waiter at the median, {cuts[98] * 1e3:.1f} ms at p99")


def alone(measure: object, *arguments: object) -> None:
    """Measures in a new process."""
    process = multiprocessing.get_context("spawn").Process(target=run, args=(measure, *arguments))
    process.start()
    process.join()


def run(measure: object, *arguments: object) -> None:
    """In the new process."""
    asyncio.run(measure(*arguments))  # type: ignore[operator]


def importing(statement: str) -> float:
    """Seconds that a statement adds to a new interpreter, at best of some."""

    def best(code: str) -> float:
        taken = []
        for _ in range(10):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            taken.append(time.perf_counter() - began)
        return min(taken)

    return best(statement) - best("pass")


def main() -> None:
    """All of it."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for statement in ("import dagbridge", "from dagbridge import Client", "import httpx"):
        print(f"{statement}: {importing(statement) * 1e3:.0f} ms")
    with (
        tempfile.TemporaryDirectory() as folder,
        Gateway(build(Path(folder)), Path(folder) / "gateway") as gateway,
        Crowd(gateway.url) as crowd,
    ):
        ids = crowd.make(count)
        print(f"{count} waits on one stream:", flush=True)
        alone(memory, gateway.url, ids, True)
        alone(memory, gateway.url, ids, False)
        alone(delays, gateway.url, ids, ids[:: max(count // ENDS, 1)][:ENDS])


if __name__ == "__main__":
    main()
