"""An operator's fields as a task of the gateway's: what to run, and what it needs.

Pure: called at run time with rendered fields, and tells all faults at once. The identity and the edges are the operator's.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dagbridge import Task
    from dagbridge.types import Gpu

#: Fields that are the same word for word in an operator and in a task, but for the spelling.
_PLAIN = {
    "cluster": "cluster",
    "fallbacks": "fallbacks",
    "prologue": "prologue",
    "working_directory": "workingDirectory",
    "launch": "launch",
    "retry": "retry",
    "at_most_once": "atMostOnce",
    "kubernetes": "kubernetes",
}
#: What says what to run and what it needs; all of it is templated, and stands in the serialized DAG.
FIELDS = (
    "command",
    "script",
    "script_file",
    "container",
    "env",
    "cluster",
    "fallbacks",
    "cpu",
    "memory",
    "gpus",
    "nodes",
    "tasks_per_node",
    "time_limit",
    "launch",
    "partition",
    "account",
    "qos",
    "slurm",
    "kubernetes",
    "prologue",
    "working_directory",
    "retry",
    "at_most_once",
    "array",
    "labels",
    "skip_on_exit_code",
)
_GPUS = re.compile(r"(?:(?P<type>[A-Za-z0-9._-]*[A-Za-z_][A-Za-z0-9._-]*)(?::|$))?(?P<count>[0-9]+)?")


def seconds(value: Any) -> Any:
    """A duration as the gateway writes it (``"90s"``), of a timedelta or seconds; anything else as it is."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return f"{value:.9f}".rstrip("0").rstrip(".") + "s"


def _gpus(value: Any, faults: list[str]) -> list[Gpu]:
    """``2``, ``"2"``, ``"a100"``, ``"a100:2"``, several with commas, or as on the wire."""
    if isinstance(value, list):
        return value
    found: list[Gpu] = []
    for part in str(value).split(","):
        matched = _GPUS.fullmatch(part.strip())
        if not part.strip() or matched is None:
            faults.append(f"gpus: {value!r} is not a count, a type, or type:count")
            continue
        gpu: Gpu = {"count": int(matched["count"] or 1)}
        if matched["type"]:
            gpu["type"] = matched["type"]
        if gpu["count"]:
            found.append(gpu)
    return found


def _int(name: str, value: Any, faults: list[str]) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        faults.append(f"{name}: {value!r} is not a whole number")
        return 0


def _resources(fields: Mapping[str, Any], faults: list[str]) -> dict[str, Any]:
    resources: dict[str, Any] = {name: str(fields[name]) for name in ("cpu", "memory") if fields.get(name) not in (None, "")}
    for name, wire in (("nodes", "nodes"), ("tasks_per_node", "tasksPerNode")):
        if fields.get(name) not in (None, ""):
            resources[wire] = _int(name, fields[name], faults)
    if fields.get("gpus") not in (None, "") and (gpus := _gpus(fields["gpus"], faults)):
        resources["gpus"] = gpus
    if fields.get("time_limit") not in (None, ""):
        limit = seconds(fields["time_limit"])
        # A template renders to text: "3600" is seconds as well.
        resources["timeLimit"] = f"{limit}s" if re.fullmatch(r"[0-9.]+", str(limit)) else str(limit)
    return resources


def _program(fields: Mapping[str, Any], folder: str | None, faults: list[str]) -> dict[str, Any]:
    program: dict[str, Any] = {}
    if fields.get("command") is not None:
        command = fields["command"]
        if isinstance(command, str) or not hasattr(command, "__iter__"):
            faults.append("command: is a list of words, a program and its arguments; for a line of shell use script=")
        else:
            program["command"] = {"argv": [str(word) for word in command]}
    if fields.get("script") is not None:
        program["script"] = {"text": str(fields["script"])}
    if fields.get("script_file") is not None:
        path = Path(str(fields["script_file"]))
        path = path if path.is_absolute() or folder is None else Path(folder) / path
        try:
            program["script"] = {"text": path.read_text(encoding="utf-8")}
        except (OSError, UnicodeDecodeError) as error:
            faults.append(f"script_file: {path} cannot be read: {error}")
    if fields.get("container") is not None:
        container = fields["container"]
        program["container"] = {"image": container} if isinstance(container, str) else container
    programs = [name for name in ("command", "script", "script_file") if fields.get(name) is not None]
    if len(programs) > 1:
        faults.append(f"{' and '.join(programs)}: one of them says what to run, not several")
    if not programs and fields.get("container") is None:
        faults.append("there is nothing to run: give command=, script=, script_file= or container=")
    return program


def task(fields: Mapping[str, Any], folder: str | None = None) -> Task:
    """The task, without its identity. ``folder`` is where a relative ``script_file`` is looked for.

    Raises ``ValueError`` with every fault.
    """
    faults: list[str] = []
    spec = _program(fields, folder, faults)
    spec |= {wire: fields[name] for name, wire in _PLAIN.items() if fields.get(name) is not None}
    for name in ("env", "labels"):
        if fields.get(name) is not None:
            spec[name] = {str(key): _text(value) for key, value in fields[name].items()}
    if resources := _resources(fields, faults):
        spec["resources"] = resources
    slurm = dict(fields.get("slurm") or {})
    slurm |= {name: str(fields[name]) for name in ("partition", "account", "qos") if fields.get(name) not in (None, "")}
    if slurm:
        spec["slurm"] = slurm
    if fields.get("array") is not None:
        array = fields["array"]
        spec["array"] = array if isinstance(array, dict) else {"items": list(array)}
    if (codes := fields.get("skip_on_exit_code")) is not None:
        codes = codes if isinstance(codes, list | tuple | set) else [codes]
        spec["skipExitCodes"] = [_int("skip_on_exit_code", code, faults) for code in codes]
    if faults:
        raise ValueError("\n".join(faults))
    return spec  # type: ignore[return-value]


def _text(value: Any) -> str:
    """What an environment holds: text as it is, True and False as the shell's people write them."""
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
