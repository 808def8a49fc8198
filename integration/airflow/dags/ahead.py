"""Chains whose later tasks are handed in ahead of Airflow's turn: their jobs run until the test opens their gates."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import DAG

from dagbridge.airflow.operators import DagBridgeOperator


def gated(name: str, **options: object) -> DagBridgeOperator:
    """A task whose job runs until its gate is open; its template needs no more than the run."""
    return DagBridgeOperator(
        task_id=name, script=f"until [ -e {{{{ dag_run.conf['gates'] }}}}/{name} ]; do sleep 0.1; done", **options
    )


def chain(dag: str, lease: float = 600.0, first: dict[str, object] | None = None, second: dict[str, object] | None = None) -> None:
    """Two tasks, of which the second is handed in with the first."""
    with DAG(dag, schedule=None):
        gated(f"{dag}_first", look_ahead=True, look_ahead_lease=lease, **(first or {})) >> gated(f"{dag}_second", **(second or {}))


#: What is another each time it is rendered.
CHANGES: dict[str, object] = {"env": {"AT": "{{ macros.datetime.now() }}"}}

with DAG("ahead", schedule=None):
    gated("ahead_first", look_ahead=True) >> gated("ahead_second") >> gated("ahead_third")
chain("ahead_succeeded")
chain("ahead_failed")
chain("ahead_cleared")
chain("ahead_paused", lease=5)
chain("ahead_deleted", lease=5)
# Its job is left to run when it is marked, so that what waits for it is pending when Airflow's turn comes.
chain("ahead_pending", first={"on_kill": "leave"}, second=CHANGES)
chain("ahead_started", second=CHANGES)
