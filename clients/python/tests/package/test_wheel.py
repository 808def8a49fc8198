"""The wheel: what is in it, and that it installs where there is nothing of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
UV = Path(sysconfig.get_path("scripts")) / "uv"


def run(*command: str | Path, **more: str) -> str:
    """Outside of the sources, and without what a developer's shell may say of Python and Airflow."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "AIRFLOW"))}
    told = subprocess.run(command, cwd="/", env={**environment, **more}, capture_output=True, text=True)
    assert told.returncode == 0, f"{command}: {told.stdout}{told.stderr}"
    return told.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by way of the source distribution, so that this is complete, too."""
    out = tmp_path_factory.mktemp("dist")
    run(UV, "build", "--no-build-isolation", "--python", sys.executable, "--out-dir", out, PROJECT)
    assert len(list(out.glob("*.tar.gz"))) == 1
    (built,) = out.glob("*.whl")
    return built


def install(folder: Path, *what: str | Path) -> Path:
    """A new virtual environment."""
    run(UV, "venv", "--python", sys.executable, folder)
    run(UV, "pip", "install", "--python", folder, *what)
    return folder / "bin"


def test_what_is_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (info,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        entries = archive.read(f"{info}/entry_points.txt").decode()
    sources = {
        str(path.relative_to(PROJECT / "src"))
        for path in (PROJECT / "src").rglob("*")
        if path.suffix in (".py", ".typed", ".yaml")
    }
    assert {name for name in names if not name.startswith(info)} == sources
    assert "dagbridge/py.typed" in sources
    assert "provider_info = dagbridge.airflow.provider_info:provider_info" in entries
    assert metadata["Name"] == "dagbridge"
    assert metadata.get_all("Provides-Extra") == ["airflow", "kfp"]
    assert "dagbridge/kfp/submit_task.component.yaml" in sources
    for needed in ("apache-airflow>=2.11", "kfp>=2.7"):
        assert any(line.startswith(needed) for line in metadata.get_all("Requires-Dist"))
    assert "pip install dagbridge" in metadata.get_payload()


def test_it_installs_where_there_is_nothing(wheel: Path, tmp_path: Path) -> None:
    scripts = install(tmp_path / "bare", "--constraint", PROJECT / "requirements/dev.txt", wheel)
    told = run(scripts / "python", "-c", "import dagbridge; dagbridge.Client(); print(dagbridge.__version__, dagbridge.__file__)")
    version, _, file = told.strip().partition(" ")
    assert f"dagbridge-{version}-" in wheel.name
    assert file.startswith(str(tmp_path))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("airflow", ["airflow-3.3", "airflow-2.11"] if os.environ.get("DAGBRIDGE_LONG") else ["airflow-3.3"])
def test_an_airflow_finds_the_provider(wheel: Path, tmp_path: Path, airflow: str) -> None:
    scripts = install(tmp_path / "airflow", "--requirement", PROJECT / f"requirements/{airflow}.txt", wheel)
    told = run(scripts / "airflow", "providers", "get", "dagbridge", "-o", "json", AIRFLOW_HOME=str(tmp_path / "home"))
    (provider,) = json.loads(told)
    assert provider["Provider"] == "dagbridge"
    assert f"dagbridge-{provider['Version']}-" in wheel.name
    told = run(scripts / "airflow", "providers", "hooks", "-o", "json", AIRFLOW_HOME=str(tmp_path / "home"))
    (hook,) = [hook for hook in json.loads(told) if hook["connection_type"] == "dagbridge"]
    assert hook["class"] == "dagbridge.airflow.hooks.DagBridgeHook"
