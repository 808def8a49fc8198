"""A bank's risk: 300 simulations and their report as one task, which is one run of a native workflow.

The workflow is a file that ``dagbridge run`` takes as well. It goes in at once, the simulations as one array and the report
with a dependency on all of it, so the scheduler starts the report by itself. A retry, or a clear, runs the simulations that
have failed, and the report.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.common.compat.sdk import DAG, task

from dagbridge.airflow.operators import DagBridgeRunOperator

with DAG("risk", schedule=None, tags=["dagbridge"]):
    simulations = DagBridgeRunOperator(
        task_id="simulations",
        workflow="risk.yaml",
        deferrable=True,
        retries=1,
        retry_delay=timedelta(seconds=10),
    )

    @task
    def publish(results: dict) -> str:
        """Runs in Airflow: results are XComs like any others."""
        report = results["report"]
        return f"{report['simulations']} simulations, the worst loss is {report['worst']}"

    publish(simulations.output)
