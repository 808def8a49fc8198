"""preprocess -> train -> evaluate -> deploy: each task is a native job, and ends as its job does.

While a job is queued or runs, its task waits in the triggerer and takes no worker. What a program writes to the file
$DAGBRIDGE_OUTPUT is its task's XCom.
"""

from __future__ import annotations

from airflow.providers.common.compat.sdk import DAG

from dagbridge.airflow.operators import DagBridgeOperator

with DAG(
    "chain",
    schedule=None,
    tags=["dagbridge"],
    # Where the site says so for all, by [operators] default_deferrable, a task need not.
    default_args={"deferrable": True, "cpu": 1, "memory": "64Mi", "time_limit": 300},
):
    preprocess = DagBridgeOperator(
        task_id="preprocess",
        script="""\
#!/bin/sh
awk 'BEGIN { srand(7); for (i = 0; i < 2000; i++) n += (rand() > rand()); print n }' > positive
echo "2000 rows, $(cat positive) of them positive"
printf '{"rows": 2000, "positive": %d}\\n' "$(cat positive)" > "$DAGBRIDGE_OUTPUT"
""",
    )
    train = DagBridgeOperator(
        task_id="train",
        env={"ROWS": "{{ ti.xcom_pull(task_ids='preprocess')['rows'] }}", "EPOCHS": "4"},
        memory="128Mi",
        retries=2,
        script="""\
#!/bin/sh
echo "training on $ROWS rows for $EPOCHS epochs"
epoch=0
while [ "$epoch" -lt "$EPOCHS" ]; do
  epoch=$((epoch + 1))
  awk -v e="$epoch" 'BEGIN { printf "epoch %d: loss %.3f\\n", e, exp(-e / 2) }'
  sleep 0.5 # so that there is something to watch
done
awk -v e="$EPOCHS" 'BEGIN { printf "{\\"auc\\": %.3f}\\n", 1 - exp(-e / 2) / 2 }' > "$DAGBRIDGE_OUTPUT"
""",
    )
    evaluate = DagBridgeOperator(
        task_id="evaluate",
        command=[
            "awk",
            "-v",
            "auc={{ ti.xcom_pull(task_ids='train')['auc'] }}",
            'BEGIN { print "auc", auc; exit !(auc >= 0.8) }',
        ],
    )
    deploy = DagBridgeOperator(
        task_id="deploy",
        script='echo url=https://models.example.org/risk/{{ run_id | replace(":", "") }} > "$DAGBRIDGE_OUTPUT"',
    )
    preprocess >> train >> evaluate >> deploy
