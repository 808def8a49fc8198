"""What Airflow itself makes of DAGs: oracle.py FOLDER FILE...

Runs each DAG of the files to its end, for LOGICAL_DATE, by ``dag.test()``, in this process, and writes into FOLDER, of each
DAG, its serialized form, ``DAG_ID.json``, and ``DAG_ID.ended.json``: the run's state, and of each task instance, ``task`` or
``task[index]``, its state and its XCom. AIRFLOW_HOME is a folder of its own. The database is SQLite's, migrated once per version
of Airflow and kept below the user's cache.

Tasks that MARK matches succeed without running: what is asked of them is only whether they may. With KINDS, "A,B", only DAGs are
run that have no other operators, and of the others there is the serialized form alone.
"""

import datetime
import fcntl
import importlib.metadata
import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

LOGICAL_DATE = datetime.datetime(2026, 3, 9, 6, 5, 4, tzinfo=datetime.timezone.utc)
HOME = Path(os.environ["AIRFLOW_HOME"])
(HOME / "dags").mkdir(exist_ok=True)
os.environ |= {
    "AIRFLOW__CORE__LOAD_EXAMPLES": "True",  # with the plugins that they need
    "AIRFLOW__CORE__DAGS_FOLDER": str(HOME / "dags"),
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
}


def database() -> None:
    """Makes AIRFLOW_HOME/airflow.db."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dagbridge" / "airflow"
    cache.mkdir(parents=True, exist_ok=True)
    kept = cache / f"{importlib.metadata.version('apache-airflow')}.db"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, stdout=subprocess.DEVNULL)
            shutil.copy(HOME / "airflow.db", kept)
    shutil.copy(kept, HOME / "airflow.db")


def main() -> None:
    """Runs the DAGs."""
    folder, files = Path(sys.argv[1]), sys.argv[2:]
    database()

    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models.xcom import XComModel
    from airflow.serialization.serialized_objects import DagSerialization
    from airflow.utils.session import create_session
    from sqlalchemy import select

    logging.disable(logging.ERROR)
    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(dag_folder=HOME / "dags")
    for file in files:
        bag.process_file(file, only_if_updated=False, safe_mode=False)
    if bag.import_errors:
        sys.exit("\n".join(bag.import_errors.values()))
    kinds = os.environ.get("KINDS")
    for dag in list(bag.dags.values()):
        (folder / f"{dag.dag_id}.json").write_text(json.dumps(DagSerialization.to_dict(dag)))
        if kinds and not {task.task_type for task in dag.tasks} <= set(kinds.split(",")):
            del bag.dags[dag.dag_id]
    sync_bag_to_db(bag, "dags-folder", None)
    for dag in list(bag.dags.values()):
        run = dag.test(logical_date=LOGICAL_DATE, mark_success_pattern=os.environ.get("MARK"))
        with create_session() as session:  # as they are stored: xcom_pull makes the number 3 of the text "3"
            stored = select(XComModel.task_id, XComModel.map_index, XComModel.value)
            stored = stored.where(XComModel.dag_id == dag.dag_id, XComModel.run_id == run.run_id, XComModel.key == "return_value")
            xcoms = {(task, index): value for task, index, value in session.execute(stored)}
        instances = {}
        for ti in run.get_task_instances():
            name = ti.task_id + (f"[{ti.map_index}]" if ti.map_index >= 0 else "")
            state = str(getattr(ti.state, "value", ti.state))
            instances[name] = {"state": state, "xcom": xcoms.get((ti.task_id, ti.map_index))}
        ended = {"run_id": run.run_id, "state": str(getattr(run.state, "value", run.state)), "instances": instances}
        (folder / f"{dag.dag_id}.ended.json").write_text(json.dumps(ended, default=str))


main()
