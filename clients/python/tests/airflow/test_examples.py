"""The example DAGs, each run to its end against a gateway of this machine; chain_before needs an sbatch and is only read here."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from gateway import REPOSITORY

pytest.importorskip("airflow")

try:
    from airflow.dag_processing.dagbag import DagBag
except ImportError:  # Airflow 2
    from airflow.models.dagbag import DagBag

Run = Callable[..., Any]
EXAMPLES = REPOSITORY / "integration" / "examples" / "airflow"


def load(name: str) -> Any:
    """The DAG of an example, as Airflow finds it."""
    bag = DagBag(dag_folder=EXAMPLES / f"{name}.py")
    assert bag.import_errors == {}
    (dag,) = bag.dags.values()
    return dag


def test_a_chain_of_deferrable_tasks(run: Run) -> None:
    done = run(load("chain"))
    assert done.states == dict.fromkeys(("preprocess", "train", "evaluate", "deploy"), "success")
    assert done.xcom("preprocess")["rows"] == 2000
    assert done.xcom("train") == {"auc": 0.932}
    assert done.xcom("deploy")["url"].startswith("https://models.example.org/risk/manual__")


def test_a_chain_that_is_handed_in_at_once(run: Run) -> None:
    done = run(load("chain_submitted"))
    assert done.states == dict.fromkeys(("preprocess", "train", "evaluate", "deploy", "done"), "success")
    assert done.xcom("done") == {
        "preprocess": {"rows": "2000"},
        "train": {"auc": "0.932"},
        "evaluate": {"verdict": "good"},
        "deploy": {"url": "https://models.example.org/risk/1"},
    }


def test_the_risk_of_300_simulations(run: Run) -> None:
    done = run(load("risk"))
    assert done.states == {"simulations": "success", "publish": "success"}
    result = done.xcom("simulations")
    losses = [simulation["loss"] for simulation in result["simulate"]]
    assert len(losses) == result["report"]["simulations"] == 300
    assert result["report"]["worst"] == max(losses)
    assert done.xcom("simulations", "dagbridge_run")["counts"] == {"SUCCEEDED": 301}
    assert done.xcom("publish") == f"300 simulations, the worst loss is {max(losses)}"


def test_functions(run: Run) -> None:
    done = run(load("functions"))
    assert set(done.states.values()) == {"success"}
    losses = [done.xcom("simulate", index=i) for i in range(8)]
    assert done.xcom("report") == {"worst": max(losses), "mean": sum(losses) / 8}
    assert done.xcom("report", "worst") == max(losses)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, str]]]:
    """What a chat service was told."""
    messages: list[dict[str, str]] = []

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Chat) as server:
        monkeypatch.setenv("RISK_WEBHOOK", f"http://127.0.0.1:{server.server_port}/")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield messages
        server.shutdown()
        thread.join()


def test_a_failure_is_notified_by_airflows_own_callback(run: Run, told: list[dict[str, str]]) -> None:
    done = run(load("notify"))
    assert done.states == {"train": "failed"}
    (message,) = told
    assert message["text"].startswith(f"notify.train failed: job {done.job('train')['native_id']} on here\n")
    assert "exit code 3" in message["text"]
    assert message["text"].endswith("CUDA error: out of memory")


def test_the_chain_by_hand_is_read() -> None:
    pytest.importorskip("airflow.providers.standard")
    assert load("chain_before").task_ids == ["preprocess", "train", "evaluate", "deploy"]
