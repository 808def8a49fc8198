"""Workflow files: the command line and the operator read the same out of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagbridge import workflow

NATIVE = """
name: nightly
defaults: &small {cpu: 4, memory: 2Gi}
tasks:
  - key: {task: a}
    command: {argv: [python, train.py, 10, 1.10, 0o17, on]}
    env: {EPOCHS: 4, LR: 1e-3, VERSION: 1.10, DEBUG: true, DATE: 2026-01-01, EMPTY: ""}
    resources: {<<: *small, nodes: 2, timeLimit: 60s}
    atMostOnce: false
    array: {items: [{env: {SEED: 1}}, {argv: [2]}], maxParallel: 5}
  - key: {task: b}
    upstream: [{task: a, instances: ALL, optional: True}]
parameters: {big: 12345678901234567890, rate: 3.0, none: null, flag: true}
"""


def test_text_is_text_as_it_is_written_and_numbers_are_numbers(tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(NATIVE)
    read = workflow.read(file)
    assert read["tasks"] == [
        {
            "key": {"task": "a"},
            "command": {"argv": ["python", "train.py", "10", "1.10", "0o17", "on"]},
            "env": {"EPOCHS": "4", "LR": "1e-3", "VERSION": "1.10", "DEBUG": "true", "DATE": "2026-01-01", "EMPTY": ""},
            "resources": {"cpu": "4", "memory": "2Gi", "nodes": 2, "timeLimit": "60s"},
            "atMostOnce": False,
            "array": {"items": [{"env": {"SEED": "1"}}, {"argv": ["2"]}], "maxParallel": 5},
        },
        {"key": {"task": "b"}, "upstream": [{"task": "a", "instances": "ALL", "optional": True}]},
    ]
    assert read["parameters"] == {"big": 12345678901234567890, "rate": 3.0, "none": None, "flag": True}


def test_json_is_read_as_exactly(tmp_path: Path) -> None:
    file = tmp_path / "flow.json"
    file.write_text('{"tasks": [{"key": {"task": "a"}, "env": {"V": 1.10}, "tryNumber": 2}], "parameters": {"x": 1.10}}')
    assert workflow.read(file) == {
        "tasks": [{"key": {"task": "a"}, "env": {"V": "1.10"}, "tryNumber": 2}],
        "parameters": {"x": 1.1},
    }


def test_a_dict_of_a_dag_file_may_have_numbers_as_text(tmp_path: Path) -> None:
    tasks = [{"key": {"task": "a"}, "env": {"N": 1, "T": True}, "resources": {"cpu": 0.5}, "command": {"argv": ("f", 2)}}]
    assert workflow.native({"tasks": tasks}) == {
        "tasks": [
            {
                "key": {"task": "a"},
                "env": {"N": "1", "T": "true"},
                "resources": {"cpu": "0.5"},
                "command": {"argv": ["f", "2"]},
            }
        ]
    }


@pytest.mark.parametrize("name", ["pipeline.yaml", "pipeline"])
def test_a_compiled_pipeline_is_sent_as_it_is(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text("# PIPELINE DEFINITION\npipelineInfo: {name: p}\nroot: {}\n")
    assert workflow.read(file) == {"kfpPipeline": file.read_text()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tasks: [", "is not YAML: (.|\n)*line 1"),
        ("a: 1\na: 2\n", "'a' is there twice(.|\n)*line 2"),
        ("[a]: 1\n", "a key must be a word"),
        ("- a\n", "holds no mapping"),
        ("", "holds no mapping"),
        ("{a: 1, a: 1}", "'a' is there twice"),
        ("!!python/name:os.system x: 1", "is not YAML"),
    ],
)
def test_what_is_no_workflow_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=said) as caught:
        workflow.read(file)
    assert str(file) in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the workflow file .*/nowhere\.yaml cannot be read: .*No such file"):
        workflow.read(tmp_path / "nowhere.yaml")
