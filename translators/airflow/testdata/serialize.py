"""Writes FOLDER/in.VERSION.json: the DAG of FOLDER/dag.py, as this environment's Airflow serializes it."""

import json
import sys
from pathlib import Path

try:
    from airflow.serialization.serialized_objects import DagSerialization
except ImportError:  # before Airflow 3.2
    from airflow.serialization.serialized_objects import SerializedDAG as DagSerialization
try:
    from airflow.dag_processing.dagbag import DagBag
except ImportError:  # Airflow 2
    from airflow.models.dagbag import DagBag

folder, version = Path(sys.argv[1]), sys.argv[2]
bag = DagBag(dag_folder=str(folder / "dag.py"))
if bag.import_errors:
    sys.exit("\n".join(bag.import_errors.values()))
(dag,) = (dag for dag in bag.dags.values() if dag.fileloc.endswith(str(folder / "dag.py")))
document = DagSerialization.to_dict(dag)
for name in ("fileloc", "relative_fileloc", "_processor_dags_folder"):
    if name in document["dag"]:
        document["dag"][name] = "dag.py"
for task in document["dag"]["tasks"]:
    for name in ("ui_color", "ui_fgcolor", "template_fields_renderers"):
        task["__var"].pop(name, None)
(folder / f"in.{version}.json").write_text(json.dumps(document, indent=1, default=str) + "\n")
