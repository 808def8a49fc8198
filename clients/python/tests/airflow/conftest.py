"""What the provider's tests share: an Airflow of their own, in this process, and DAGs that run in it against a real gateway.

Its database is a copy of one that is migrated once for each version of Airflow and kept in the user's cache; the DAG folder
holds the DAG under test alone, since Airflow reads all of it for each run.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway

# Airflow reads its configuration when it is imported.
HOME = Path(tempfile.mkdtemp(prefix="airflow-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ |= {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(HOME / "dags"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
}
(HOME / "dags").mkdir()


def pytest_configure(config: pytest.Config) -> None:
    """Airflow warns of many things; what this package does wrong is still an error."""
    config.addinivalue_line("filterwarnings", "default")
    config.addinivalue_line("filterwarnings", r"error:::dagbridge\..*")


class Ran:
    """A DAG run that has ended."""

    def __init__(self, run: Any, log: str) -> None:
        self.dag_id, self.run_id, self.state, self.log = run.dag_id, run.run_id, str(run.state), log
        #: By task, of a mapped one by task and index.
        self.states: dict[Any, str] = {
            ti.task_id if ti.map_index < 0 else (ti.task_id, ti.map_index): str(ti.state) for ti in run.get_task_instances()
        }

    def xcom(self, task_id: str, map_index: int = -1, key: str = "return_value") -> Any:
        """An XCom as it is in the database; None when there is none."""
        with sqlite3.connect(HOME / "airflow.db") as database:
            row = database.execute(
                "SELECT value FROM xcom WHERE dag_id = ? AND run_id = ? AND task_id = ? AND map_index = ? AND key = ?",
                (self.dag_id, self.run_id, task_id, map_index, key),
            ).fetchone()
        # SQLite makes numbers of what looks like one.
        return None if row is None else json.loads(row[0]) if isinstance(row[0], str | bytes) else row[0]


@pytest.fixture(scope="session")
def airflow_database() -> Path:
    """This Airflow's, migrated."""
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dagbridge" / "airflow"
    kept.mkdir(parents=True, exist_ok=True)
    template = kept / f"{version('apache-airflow')}.db"
    with template.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            subprocess.run([Path(sys.executable).parent / "airflow", "db", "migrate"], check=True)
            shutil.move(HOME / "airflow.db", template)
    shutil.copy(template, HOME / "airflow.db")
    return HOME / "airflow.db"


@pytest.fixture(scope="session")
def connected(gateway: Gateway) -> Gateway:
    """The gateway that ``dagbridge_default`` leads to."""
    os.environ["AIRFLOW_CONN_DAGBRIDGE_DEFAULT"] = json.dumps(
        {"conn_type": "dagbridge", "host": "127.0.0.1", "port": gateway.port}
    )
    return gateway


@pytest.fixture
def dag_file(request: pytest.FixtureRequest, airflow_database: Path) -> Iterator[Callable[..., Any]]:
    """``dag_file(text_or_path, *beside)`` puts a DAG file, and what it needs beside it, into the DAG folder and reads its DAG."""
    from airflow.providers.common.compat.sdk import DAG

    folder = HOME / "dags"

    def read(content: str | Path, *beside: Path) -> Any:
        file = folder / (
            content.name if isinstance(content, Path) else f"{request.node.name.replace('[', '_').replace(']', '')}.py"
        )
        for other in beside:
            shutil.copy(other, folder)
        file.write_text(content.read_text() if isinstance(content, Path) else content)
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
        (dag,) = [found for found in gc.get_objects() if type(found) is DAG and found.fileloc == str(file)]
        return dag

    yield read
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.fixture
def run_dag(dag_file: Callable[..., Any], connected: Gateway, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs a DAG file from end to end, triggers and all: ``run_dag(text_or_path, *beside)``."""

    def run(content: str | Path, *beside: Path, **options: Any) -> Ran:
        dag = dag_file(content, *beside)
        capfd.readouterr()
        ran = dag.test(**options)
        out, err = capfd.readouterr()
        return Ran(ran, out + err)

    return run
