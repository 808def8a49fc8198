"""Python functions as native jobs: their source and arguments go to the node, what they return is their XCom.

A function imports what it needs, and ``python=`` names the interpreter there, such as a virtual environment's on a shared
file system; ``container=`` an image.
"""

from __future__ import annotations

from airflow.providers.common.compat.sdk import DAG, task

with DAG("functions", schedule=None, tags=["dagbridge"]):

    @task.dagbridge(cpu=1, memory="64Mi")
    def seeds(count: int) -> list[int]:
        return list(range(1, count + 1))

    @task.dagbridge(cpu=1, memory="64Mi", python="python3", time_limit=300)
    def simulate(seed: int, years: int) -> float:
        import random

        random.seed(seed)
        return round(max(sum(random.random() - 0.5 for _ in range(250)) for _ in range(years)), 3)

    @task.dagbridge(cpu=1, memory="64Mi", multiple_outputs=True)
    def report(losses: list[float]) -> dict[str, float]:
        return {"worst": max(losses), "mean": sum(losses) / len(losses)}

    report(simulate.partial(years=20).expand(seed=seeds(8)))
