"""The same chain, handed in at once: the scheduler starts each step the moment the one before has ended.

A task has succeeded once the gateway has its job for good; ``depends_on`` is the edge in the DAG, and becomes the scheduler's own
dependency. The sensor waits for all of them, and fails with the sentence of whatever has failed. Steps hand on values by
$DAGBRIDGE_INPUTS, since no XCom is there yet when the next one is submitted.
"""

from __future__ import annotations

from airflow.providers.common.compat.sdk import DAG

from dagbridge.airflow.operators import DagBridgeOperator
from dagbridge.airflow.sensors import DagBridgeJobSensor

with DAG(
    "chain_submitted",
    schedule=None,
    tags=["dagbridge"],
    default_args={"cpu": 1, "memory": "64Mi", "time_limit": 300},
):
    preprocess = DagBridgeOperator(
        task_id="preprocess",
        wait="submitted",
        script='sleep 1; echo rows=2000 > "$DAGBRIDGE_OUTPUT"',
    )
    train = DagBridgeOperator(
        task_id="train",
        wait="submitted",
        depends_on=preprocess,
        script='cat "$DAGBRIDGE_INPUTS"; sleep 2; echo auc=0.932 > "$DAGBRIDGE_OUTPUT"',
    )
    evaluate = DagBridgeOperator(
        task_id="evaluate",
        wait="submitted",
        depends_on=train,
        script='grep -q "0.9" "$DAGBRIDGE_INPUTS" && echo verdict=good > "$DAGBRIDGE_OUTPUT"',
    )
    deploy = DagBridgeOperator(
        task_id="deploy",
        wait="submitted",
        depends_on=evaluate,
        script='echo url=https://models.example.org/risk/1 > "$DAGBRIDGE_OUTPUT"',
    )
    [preprocess, train, evaluate, deploy] >> DagBridgeJobSensor(task_id="done", deferrable=True)
