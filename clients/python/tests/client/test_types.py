"""The typed JSON is that of the protocol: every message that a user writes or reads has its fields, of the same kind."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from gateway import REPOSITORY

from dagbridge import types

MESSAGES = json.loads((REPOSITORY / "proto/gen/openapi/dagbridge.swagger.json").read_text())["definitions"]
SCALARS = {"string": str, "integer": int, "number": float, "boolean": bool}


def differences(hint: Any, schema: dict[str, Any], where: str) -> list[str]:
    """How a type hint says something else than the protocol."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/definitions/")
        if name == "v1Json":  # any JSON
            return []
        schema = MESSAGES[name]
    if "enum" in schema:
        words = {word for word in schema["enum"] if not word.endswith("_UNSPECIFIED")}
        return [] if set(get_args(hint)) == words else [f"{where}: {hint} has not the words {sorted(words)}"]
    if "properties" in schema:
        if not is_typeddict(hint):
            return [f"{where}: {hint} is not a TypedDict"]
        # What only the gateway says of a run is not in what one says to it.
        hints, fields = get_type_hints(types.Run if hint is types.RunKey else hint), schema["properties"]
        return [
            *(f"{where}.{name} is in one of the two only" for name in sorted(hints.keys() ^ fields.keys())),
            *(
                d
                for name in sorted(hints.keys() & fields.keys())
                for d in differences(hints[name], fields[name], f"{where}.{name}")
            ),
        ]
    if schema["type"] == "array":
        if get_origin(hint) is not list:
            return [f"{where}: {hint} is not a list"]
        return differences(get_args(hint)[0], schema["items"], where + "[]")
    if schema["type"] == "object":
        if get_origin(hint) is not dict or get_args(hint)[0] is not str:
            return [f"{where}: {hint} is not a dict"]
        return differences(get_args(hint)[1], schema["additionalProperties"], where + "{}")
    # A string of the protocol may be one of some words only.
    kind = {type(word) for word in get_args(hint)} if get_origin(hint) is Literal else {hint}
    return [] if kind == {SCALARS[schema["type"]]} else [f"{where}: {hint} is not a {schema['type']}"]


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        (types.Cluster, "v1Cluster"),
        (types.Job, "v1Job"),
        (types.Run, "v1Run"),
        (types.Submitted, "v1SubmitWorkflowResponse"),
        (types.Task, "v1Task"),
        (types.Workflow, "v1Workflow"),
    ],
)
def test_the_fields_are_those_of_the_protocol(hint: Any, message: str) -> None:
    assert differences(hint, {"$ref": f"#/definitions/{message}"}, hint.__name__) == []


def test_the_ends_are_states() -> None:
    assert set(get_args(types.JobState)) - {"ACCEPTED", "SUBMITTED", "RUNNING"} == types.ENDS
