"""Prints a DAG as Airflow serializes it, which is what ``dagbridge run`` and ``dagbridge plan`` take:

    python -m dagbridge.airflow.export dags/risk.py risk > risk.json
    dagbridge plan -f risk.json

Airflow has no command for it. The file is read as Airflow's DAG processor reads it, in this environment and with its
configuration; nothing runs, and no database is needed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import Any


def serialized(file: str | Path, dag_id: str | None = None) -> dict[str, Any]:
    """The DAG of a file in its serialized form; without an id, the only one that is there. ``ValueError`` with a sentence."""
    if not Path(file).is_file():
        raise ValueError(f"there is no DAG file {file}")
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:  # Airflow 2
        from airflow.models.dagbag import DagBag  # type: ignore[no-redef, attr-defined, unused-ignore]
    from airflow.serialization import serialized_objects

    forms: Any = serialized_objects
    form = getattr(forms, "DagSerialization", None) or forms.SerializedDAG  # before Airflow 3.2
    bag: Any = DagBag(dag_folder=str(Path(file).parent), collect_dags=False)
    # safe_mode looks for the words "airflow" and "dag" first; whoever names the file knows what is in it.
    bag.process_file(str(file), only_if_updated=False, safe_mode=False)
    if bag.import_errors:
        raise ValueError("\n".join(f"{path} cannot be imported: {error.strip()}" for path, error in bag.import_errors.items()))
    known = ", ".join(sorted(bag.dags)) or "none"
    if dag_id is None and len(bag.dags) == 1:
        (dag_id,) = bag.dags
    if dag_id is None:
        raise ValueError(f"{file} has several DAGs or none, so that one must be named; there are: {known}")
    if dag_id not in bag.dags:
        raise ValueError(f"{file} has no DAG {dag_id!r}; there are: {known}")
    document: dict[str, Any] = form.to_dict(bag.dags[dag_id])
    return document


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser("python -m dagbridge.airflow.export", description="Print a DAG as Airflow serializes it.")
    parser.add_argument("file", metavar="FILE", help="a DAG file")
    parser.add_argument("dag_id", metavar="DAG_ID", nargs="?", help="left out: the only one of the file")
    arguments = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr):  # where Airflow, and the file, may write what is no DAG
        try:
            document = serialized(arguments.file, arguments.dag_id)
        except ValueError as error:
            sys.exit(f"dagbridge.airflow.export: {error}")
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
