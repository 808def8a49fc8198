"""Airflow for tests, in this process: DAGs are run by ``dag.test()`` against a real gateway, with a SQLite database of their own.

The database is migrated once per version of Airflow, and kept below the user's cache. Tests that need no Airflow run without.
"""

from __future__ import annotations

import datetime
import fcntl
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway

#: Airflow reads it when it is imported, which is before any fixture.
HOME = Path(tempfile.mkdtemp(prefix="airflow-"))

AIRFLOW = importlib.util.find_spec("airflow") is not None
AIRFLOW_3 = AIRFLOW and importlib.metadata.version("apache-airflow").startswith("3.")

if AIRFLOW:
    (HOME / "dags").mkdir()
    os.environ |= {
        "AIRFLOW_HOME": str(HOME),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(HOME / "dags"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Airflow deprecates much of its own."""
    for item in items:
        item.add_marker(pytest.mark.filterwarnings("default"))


def pytest_unconfigure() -> None:
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def database() -> None:
    """A migrated database, copied from the one that is kept."""
    version = importlib.metadata.version("apache-airflow")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dagbridge" / "airflow"
    cache.mkdir(parents=True, exist_ok=True)
    kept = cache / f"{version}.db"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, stdout=subprocess.DEVNULL)
            shutil.copy(HOME / "airflow.db", kept)
    shutil.copy(kept, HOME / "airflow.db")


@pytest.fixture
def connection(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default connection leads to the gateway."""
    monkeypatch.setenv(
        "AIRFLOW_CONN_DAGBRIDGE_DEFAULT", json.dumps({"conn_type": "dagbridge", "host": "127.0.0.1", "port": gateway.port})
    )


@pytest.fixture
def dags_folder() -> Iterator[Path]:
    """Where Airflow looks for DAG files: for tests that run Airflow in another process. Empty, before and after."""
    yield HOME / "dags"
    shutil.rmtree(HOME / "dags")
    (HOME / "dags").mkdir()


class Finished:
    """A run of a DAG that is over."""

    def __init__(self, run: Any) -> None:
        self.run = run
        self._instances = {(ti.task_id, ti.map_index): ti for ti in run.get_task_instances()}

    @property
    def states(self) -> dict[str, str]:
        """By task, of mapped ones by ``task[index]``."""
        return {
            task_id + (f"[{index}]" if index >= 0 else ""): str(getattr(ti.state, "value", ti.state))
            for (task_id, index), ti in self._instances.items()
        }

    def xcom(self, task_id: str, key: str = "return_value", index: int = -1) -> Any:
        """What a task has left."""
        return self._instances[task_id, index].xcom_pull(task_ids=task_id, key=key, map_indexes=index)

    def job(self, task_id: str, index: int = -1) -> dict[str, Any]:
        """The XCom that says which job it has become."""
        found: dict[str, Any] = self.xcom(task_id, "dagbridge_job", index)
        return found


@pytest.fixture
def dag(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A DAG that is called like its test; without the waits that only a real scheduler needs."""
    from airflow.providers.common.compat.sdk import DAG

    made: Any = DAG(
        "".join(c if c.isalnum() else "_" for c in request.node.name),
        schedule=None,
        start_date=datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc),
        default_args={"resume_after": 0, "retry_delay": datetime.timedelta(0)},
    )
    made.fileloc = str(tmp_path / "dag.py")
    return made


@pytest.fixture
def run(database: None, connection: None) -> Callable[..., Finished]:
    """Runs a DAG to its end."""

    def one(dag: Any, **options: Any) -> Finished:
        if AIRFLOW_3:
            _store(dag)
        return Finished(dag.test(**options))

    return one


def _store(dag: Any) -> None:
    """As the DAG processor does; ``test()`` would parse all files instead."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(dag_folder=HOME / "dags")
    bag.dags[dag.dag_id] = dag
    sync_bag_to_db(bag, "dags-folder", None)
