"""A DAG file as what ``dagbridge run`` takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("airflow")

RISK = """
print("noise of the file's own")
from airflow.providers.common.compat.sdk import DAG
from airflow.providers.standard.operators.bash import BashOperator
with DAG("risk", schedule=None) as risk:
    BashOperator(task_id="count", bash_command="echo {{ ds }}") >> BashOperator(task_id="tell", bash_command="true")
"""
MORE = RISK + "with DAG('other', schedule=None):\n    BashOperator(task_id='one', bash_command='true')\n"


def export(folder: Path, text: str, *arguments: str, name: str = "some file.py") -> subprocess.CompletedProcess[str]:
    file = folder / name
    file.write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "dagbridge.airflow.export", str(file), *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("text", "arguments"), [(RISK, ["risk"]), (RISK, []), (MORE, ["risk"])])
def test_stdout_is_the_dag_alone(tmp_path: Path, text: str, arguments: list[str]) -> None:
    ended = export(tmp_path, text, *arguments)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["__version"] in (1, 2, 3)
    tasks = [each["__var"] for each in document["dag"]["tasks"]]
    assert [(task["task_id"], task["bash_command"]) for task in tasks] == [("count", "echo {{ ds }}"), ("tell", "true")]
    assert "noise" in ended.stderr


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        (RISK, ["risc"], "has no DAG 'risc'; there are: risk"),
        (MORE, [], "several DAGs or none, so that one must be named; there are: other, risk"),
        ("", [], "there are: none"),
        ("import nothing_of_this_name", ["risk"], "No module named 'nothing_of_this_name'"),
        ("this is no python", ["risk"], "invalid syntax"),
    ],
)
def test_what_cannot_be_exported_is_said_in_a_sentence(tmp_path: Path, text: str, arguments: list[str], said: str) -> None:
    ended = export(tmp_path, text, *arguments)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert ended.stdout == ""


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dagbridge.airflow.export", str(tmp_path / "risk.py"), "risk"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"there is no DAG file {tmp_path / 'risk.py'}" in ended.stderr
