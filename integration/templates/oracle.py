"""Renders templates as Airflow does. Reads a JSON list of templates, writes a JSON list of {"text"} or {"error"}.

The variables are those of the test beside this file.
"""

import json
import sys
from datetime import datetime, timedelta, timezone

import pendulum
from airflow.sdk.definitions._internal.templater import create_template_env
from airflow.sdk.execution_time.macros import ds_add, ds_format


class Macros:
    ds_add = staticmethod(ds_add)
    ds_format = staticmethod(ds_format)
    timedelta = timedelta


class DagRun:
    conf = {"who": "world", "n": 3, "items": ["a", "b"], "none": None}
    run_id = "manual__1"
    dag_id = "risk"
    logical_date = datetime(2026, 3, 9, 6, 5, 4, tzinfo=timezone.utc)


moment = pendulum.datetime(2026, 3, 9, 6, 5, 4)
variables = {
    "ds": "2026-03-09",
    "ds_nodash": "20260309",
    "ts": moment.isoformat(),
    "logical_date": moment,
    "run_id": "manual__1",
    "params": {"lr": 0.001, "epochs": 10, "name": "Süß 'q'", "flag": True, "list": [1, 2.5, "x"], "nested": {"b": 1, "a": [None]}},
    "dag_run": DagRun,
    "macros": Macros,
}
environment = create_template_env()
results = []
for template in json.load(sys.stdin):
    try:
        results.append({"text": environment.from_string(template).render(variables)})
    except Exception as error:  # whatever it is, the template has no text
        results.append({"error": f"{type(error).__name__}: {error}"})
json.dump(results, sys.stdout)
