"""The connection: how it is read, what its form has, and what its test button says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gateway import Gateway

pytest.importorskip("airflow")

from dagbridge.airflow.hooks import DagBridgeHook
from dagbridge.airflow.provider_info import CONNECTION_FIELDS, provider_info
from dagbridge.connection import Connection


@pytest.mark.parametrize(
    ("connection", "settings"),
    [
        ({}, Connection("http://127.0.0.1:7071")),
        ({"host": "gw", "schema": "https", "password": "t"}, Connection("https://gw:7071", token="t")),
        ({"host": "https://gw.example/hpc"}, Connection("https://gw.example/hpc")),
        ({"host": "https://gw.example", "port": 8443}, Connection("https://gw.example:8443")),
        ({"extra": {"token_file": "/t", "patience": 5}}, Connection("http://127.0.0.1:7071", token_file="/t", patience=5.0)),
        ({"extra": {"ca_file": "/ca.pem", "verify": True}}, Connection("http://127.0.0.1:7071", verify="/ca.pem")),
        ({"extra": {"ca_file": "/ca.pem", "verify": False}}, Connection("http://127.0.0.1:7071", verify=False)),
        ({"extra": {"ca_file": "", "token_file": None, "verify": "false"}}, Connection("http://127.0.0.1:7071", verify=False)),
    ],
)
def test_settings(monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], settings: Connection) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_GW", json.dumps({"conn_type": "dagbridge", **connection}))
    assert DagBridgeHook("gw").settings == settings


def test_deployment_and_links(monkeypatch: pytest.MonkeyPatch) -> None:
    job: Any = {"id": "1", "state": "RUNNING", "key": {}}
    monkeypatch.setenv("AIRFLOW_CONN_GW", json.dumps({"conn_type": "dagbridge", "host": "gw"}))
    assert (DagBridgeHook("gw").deployment, DagBridgeHook("gw").link(job)) == ("default", "http://gw:7071/v1/jobs/1")
    extra = {"deployment": "prod", "link_base": "https://jobs.example/"}
    monkeypatch.setenv("AIRFLOW_CONN_GW", json.dumps({"conn_type": "dagbridge", "host": "gw", "extra": extra}))
    assert (DagBridgeHook("gw").deployment, DagBridgeHook("gw").link(job)) == ("prod", "https://jobs.example/v1/jobs/1")
    assert DagBridgeHook("gw").link({**job, "url": "https://portal/1"}) == "https://portal/1"


def test_the_button_says_what_answers(connection: None, gateway: Gateway) -> None:
    assert DagBridgeHook().test_connection() == (True, f"The gateway at {gateway.url} answers. Clusters: here (local).")


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        ({"port": 1, "extra": {"patience": 0}}, "the gateway at http://127.0.0.1:1 cannot be reached"),
        ({"schema": "ftp"}, "'ftp://127.0.0.1:7071' is no gateway's address"),
        ({"schema": "https", "extra": {"ca_file": "/nowhere/ca.pem"}}, "/nowhere/ca.pem"),
    ],
)
def test_the_button_says_why_not(monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], said: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_GW", json.dumps({"conn_type": "dagbridge", **connection}))
    works, told = DagBridgeHook("gw").test_connection()
    assert not works
    assert said in told


def test_airflow_finds_the_provider_and_its_form() -> None:
    from airflow.providers_manager import ProvidersManager

    manager = ProvidersManager()
    found = manager.providers["dagbridge"].data
    assert {name: found[name] for name in provider_info()} == provider_info()
    info = manager.hooks["dagbridge"]
    assert info is not None
    assert (info.hook_name, info.package_name, info.connection_testable) == ("dagbridge", "dagbridge", True)
    behaviour = manager.field_behaviours["dagbridge"]
    assert (behaviour["relabeling"]["password"], behaviour["hidden_fields"]) == ("Token", ["login"])
    widgets = manager.connection_form_widgets
    assert {name.removeprefix("extra__dagbridge__") for name in widgets if "dagbridge" in name} == set(CONNECTION_FIELDS)
    assert "dagbridge.airflow.links.DagBridgeLink" in manager.extra_links_class_names
