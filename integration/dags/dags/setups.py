"""Set-ups and tear-downs, whatever becomes of what lies between them.

What is asked of a task whose id has a dot in it is only whether it runs. A task group is one situation, named by what it is
about and by how its tasks end.
"""

import itertools

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, TaskGroup
from airflow.task.trigger_rule import TriggerRule

ENDS = {"success": "true", "failed": "exit 3", "skipped": "exit 99"}


def task(task_id, rule="all_success"):
    return BashOperator(task_id=task_id, bash_command="true", trigger_rule=rule)


with DAG("setups", schedule=None):
    # Tasks that end in a way are tasks of their own; one that is to be in a situation is one of these, by its number.
    def ends(number, end):
        return BashOperator(task_id=f"{end}_{number}", bash_command=ENDS[end])

    numbers = itertools.count()

    def setup(end):
        return ends(next(numbers), end).as_setup()

    def work(end):
        return ends(next(numbers), end)

    for made, done in itertools.product(ENDS, repeat=2):
        with TaskGroup(f"scope-{made}-{done}"):
            # The tear-down waits for all of the scope, and after does not run without the set-up, though its rule would have it.
            make, remove = setup(made), task("remove")
            middle = work(done)
            after, beside = task("after", "all_done"), task("beside", "one_failed")
            make >> middle >> after >> remove.as_teardown(setups=make)
            middle >> beside
            middle >> remove
        with TaskGroup(f"two-{made}-{done}"):
            one, other, remove = setup(made), setup(done), task("remove")
            one >> task("first") >> task("middle", "none_failed") >> remove
            other >> task("second") >> task("more", "all_done") >> remove
            remove.as_teardown(setups=[one, other])
        with TaskGroup(f"nested-{made}-{done}"):
            outer, inner = setup(made), setup(done)
            last = task("inner", "all_done")
            (
                outer
                >> inner
                >> task("middle")
                >> last
                >> task("remove_inner").as_teardown(setups=inner)
                >> task("remove_outer").as_teardown(setups=outer)
            )
        with TaskGroup(f"mixed-{made}-{done}"):
            # Another task comes before, too, which has nothing to do with the set-up: that counts first.
            make = setup(made)
            joined = task("joined")
            make >> work("success") >> joined
            work(done) >> joined
            joined >> task("remove").as_teardown(setups=make)
        with TaskGroup(f"endless-{made}-{done}"):
            setup(made) >> work(done) >> task("after", "none_skipped") >> task("later", "always")
        for rule in TriggerRule:
            with TaskGroup(f"indirect-{made}-{done}-{rule}"):
                make = setup(made)
                make >> task("first") >> (after := task("after", rule)) >> task("remove").as_teardown(setups=make)
                work(done) >> after
