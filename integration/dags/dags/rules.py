"""Every trigger rule after every mixture of up to three tasks that succeed, fail or are skipped.

A task is named by its rule and by what it comes after: ``all_done.success-failed`` by one task that succeeds and one that fails.
``EVERY`` in the environment: in every order, and after tasks that have not run for want of an upstream, too.
"""

import itertools
import os

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
from airflow.task.trigger_rule import TriggerRule

ENDS = {"success": "true", "failed": "exit 3", "skipped": "exit 99"}

with DAG("rules", schedule=None):
    sources = {end: [BashOperator(task_id=f"{end}_{n}", bash_command=command) for n in range(3)] for end, command in ENDS.items()}
    mixtures, before = itertools.combinations_with_replacement, sources["failed"]
    if os.environ.get("EVERY"):
        mixtures = lambda ends, n: itertools.product(ends, repeat=n)  # noqa: E731
        starved = [BashOperator(task_id=f"upstream_failed_{n}", bash_command="true") for n in range(3)]
        sources["failed"][0] >> starved
        sources["upstream_failed"] = before = starved
    # all_success takes the first failure or skip that it sees for the end: failures come first.
    for skipped in sources["skipped"]:
        skipped.trigger_rule = TriggerRule.ALL_DONE
        before >> skipped
    for rule in TriggerRule:
        for n in (1, 2, 3):
            for mixture in mixtures(sources, n):
                target = BashOperator(task_id=f"{rule}.{'-'.join(mixture)}", bash_command="true", trigger_rule=rule)
                [sources[end][i] for i, end in enumerate(mixture)] >> target
