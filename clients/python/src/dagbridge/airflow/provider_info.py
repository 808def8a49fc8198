"""What Airflow's provider manager wants to know; read through the entry point, so it imports nothing."""

from __future__ import annotations

from typing import Any

_NAME = "dagbridge"


def provider_info() -> dict[str, Any]:
    """Provider info in the form of Airflow's ``provider_info.schema.json``, with the connection form of Airflow 3."""
    return {
        "package-name": _NAME,
        "name": "dagbridge",
        "description": "Tasks of a DAG as native Slurm and Kubernetes jobs, through a dagbridge gateway.",
        "integrations": [
            {"integration-name": "dagbridge", "external-doc-url": "https://github.com/dagbridge/dagbridge", "tags": ["service"]}
        ],
        "operators": [
            {"integration-name": "dagbridge", "python-modules": ["dagbridge.airflow.operators", "dagbridge.airflow.run_operator"]}
        ],
        "sensors": [{"integration-name": "dagbridge", "python-modules": ["dagbridge.airflow.sensors"]}],
        "hooks": [{"integration-name": "dagbridge", "python-modules": ["dagbridge.airflow.hooks"]}],
        "triggers": [{"integration-name": "dagbridge", "python-modules": ["dagbridge.airflow.triggers"]}],
        "connection-types": [
            {
                "connection-type": "dagbridge",
                "hook-class-name": "dagbridge.airflow.hooks.DagBridgeHook",
                "hook-name": "dagbridge",
                "ui-field-behaviour": UI_FIELDS,
                "conn-fields": CONNECTION_FIELDS,
            }
        ],
        "task-decorators": [{"name": "dagbridge", "class-name": "dagbridge.airflow.decorators.dagbridge_task"}],
        "extra-links": ["dagbridge.airflow.links.DagBridgeLink"],
    }


#: How the fields that every connection has are shown.
UI_FIELDS: dict[str, Any] = {
    "hidden-fields": ["login"],
    "relabeling": {"password": "Token", "schema": "Scheme"},
    "placeholders": {"host": "gateway.example.org", "port": "7071", "schema": "http or https"},
}


def _field(label: str, kind: str, description: str, **more: Any) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": [kind, "null"], **more}}


#: What is kept in the connection's extra.
CONNECTION_FIELDS: dict[str, dict[str, Any]] = {
    "deployment": _field("Deployment", "string", "Which Airflow this is, where several share a gateway. Left out: default."),
    "token_file": _field("Token file", "string", "Holds the token; read for every call, so that it may change."),
    "ca_file": _field("CA file", "string", "The authority that signed the gateway's certificate. Left out: the system's."),
    "verify": _field("Verify", "boolean", "Whether the gateway's certificate is checked. Left out: it is."),
    "link_base": _field("Link base", "string", "What links to jobs begin with. Left out: the connection's own address."),
    "patience": _field("Patience", "number", "Seconds for which calls are sent again while the gateway is away. Left out: 60."),
}
