"""A workflow file as the body of a request: what ``dagbridge run -f`` reads, read here.

Like the command line, it takes numbers and booleans where text is wanted as they are written (``cpu: 4``, ``VERSION: 1.10``),
since nobody quotes them, and leaves the rest to the gateway, which says all that is wrong. Nothing in a file is templated.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args, get_origin, get_type_hints, is_typeddict

from dagbridge.types import Workflow

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Keys by which a compiled KFP pipeline is known, and a serialized Airflow DAG.
_PIPELINE = {"pipelineSpec", "pipeline_spec", "pipelineInfo", "deploymentSpec"}
_DAG = {"__version", "dag"}


class _Number(str):
    """A number or a boolean, as it is written."""


def read(path: Path) -> Workflow:
    """The workflow in a file: native tasks in YAML or JSON, or a compiled KFP pipeline. ``ValueError`` with a sentence."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the workflow file {path} cannot be read: {error}") from None
    content = _parse(path, text)
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no mapping: a workflow has tasks, a compiled pipeline has its pipelineInfo")
    if content.keys() & _PIPELINE:
        return {"kfpPipeline": text}
    if content.keys() & _DAG:
        return {"airflowDag": _fitted(content, Any)}
    return native(content)


def native(content: Mapping[str, Any]) -> Workflow:
    """A workflow that was written by hand, with text where the gateway wants text."""
    fitted: Workflow = _fitted(content, Workflow)
    return fitted


def _parse(path: Path, text: str) -> Any:
    try:
        return json.loads(text, parse_int=_Number, parse_float=_Number)
    except ValueError as error:
        if path.suffix == ".json":
            raise ValueError(f"{path} is not JSON: {error}") from None
    import yaml  # type: ignore[import-untyped]

    try:
        return yaml.load(text, _loader())
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {error}") from None


def _fitted(value: Any, hint: Any) -> Any:
    """A value as its place in the request wants it: plain JSON, text where the type is text."""
    if isinstance(value, dict):
        hints = get_type_hints(hint) if is_typeddict(hint) else {}
        each = get_args(hint)[1] if get_origin(hint) is dict else Any
        return {str(key): _fitted(member, hints.get(key, each)) for key, member in value.items()}
    if isinstance(value, list | tuple):
        each = get_args(hint)[0] if get_origin(hint) is list else Any
        return [_fitted(member, each) for member in value]
    if isinstance(value, _Number):
        return str(value) if hint is str else json.loads(value)
    if hint is str and isinstance(value, bool):
        return str(value).lower()
    if hint is str and isinstance(value, int | float):
        return str(value)
    return value


def _loader() -> type[Any]:
    """YAML as the gateway reads it: what looks like JSON is JSON, the rest is text; no ``on``, dates or sexagesimals."""
    import re

    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

        def compose_mapping_node(self, anchor: dict[Any, Any]) -> Any:
            node = super().compose_mapping_node(anchor)
            seen = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise yaml.composer.ComposerError(None, None, "a key must be a word, not a list or a mapping", key.start_mark)
                if key.value in seen and key.value != "<<":
                    raise yaml.composer.ComposerError(None, None, f"{key.value!r} is there twice", key.start_mark)
                seen.add(key.value)
            return node

    number = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|True|TRUE|false|False|FALSE")
    Loader.add_implicit_resolver("!plain", re.compile(rf"(?:{number.pattern})$"), list("-0123456789tTfF"))
    Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])
    Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"<<$"), ["<"])
    Loader.add_constructor("!plain", lambda loader, node: _Number(loader.construct_scalar(node).lower()))
    return Loader
