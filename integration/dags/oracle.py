"""What Airflow itself makes of DAGs: oracle.py FOLDER FILE...

Runs each DAG of the files to its end by ``dag.test()``, in this process, and writes into FOLDER, of each DAG, its serialized
form, ``DAG_ID.json``, and ``DAG_ID.ended.json``: the run's state, and of each task instance, ``task`` or ``task[index]``, its
state and its XCom. AIRFLOW_HOME is a folder of its own. The database is SQLite's, migrated once per version of Airflow and kept
below the user's cache. Tasks that MARK matches succeed without running: what is asked of them is only whether they may.
"""

import fcntl
import importlib.metadata
import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path(os.environ["AIRFLOW_HOME"])
(HOME / "dags").mkdir(exist_ok=True)
os.environ |= {
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
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
    from airflow.serialization.serialized_objects import DagSerialization

    logging.disable(logging.ERROR)
    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(dag_folder=HOME / "dags")
    for file in files:
        bag.process_file(file, only_if_updated=False, safe_mode=False)
    if bag.import_errors:
        sys.exit("\n".join(bag.import_errors.values()))
    sync_bag_to_db(bag, "dags-folder", None)
    for dag in list(bag.dags.values()):
        (folder / f"{dag.dag_id}.json").write_text(json.dumps(DagSerialization.to_dict(dag)))
        run = dag.test(mark_success_pattern=os.environ.get("MARK"))
        instances = {}
        for ti in run.get_task_instances():
            name = ti.task_id + (f"[{ti.map_index}]" if ti.map_index >= 0 else "")
            xcom = ti.xcom_pull(task_ids=ti.task_id, map_indexes=ti.map_index) if ti.state == "success" else None
            instances[name] = {"state": str(getattr(ti.state, "value", ti.state)), "xcom": xcom}
        ended = {"run_id": run.run_id, "state": str(getattr(run.state, "value", run.state)), "instances": instances}
        (folder / f"{dag.dag_id}.ended.json").write_text(json.dumps(ended, default=str))


main()
