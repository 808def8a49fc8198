"""The client that blocks, against a real gateway."""

from __future__ import annotations

from gateway import Gateway

from dagbridge import Client


def test_a_task_runs(gateway: Gateway) -> None:
    with Client(gateway.url) as bridge:
        job = bridge.submit(
            {
                "key": {"orchestrator": "test", "workflow": "w", "run": "test_a_task_runs", "task": "t"},
                "script": {"text": 'echo \'{"auc": 0.91}\' >"$DAGBRIDGE_OUTPUT"'},
            }
        )
        (ended,) = bridge.wait([job["id"]], timeout=60)
    assert (ended["state"], ended["outputs"]) == ("SUCCEEDED", {"auc": 0.91})
