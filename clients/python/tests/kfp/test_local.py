"""Pipelines with our steps, compiled by the SDK and run by KFP's own local runner: the authors' side.

The SDK reads annotations and takes no strings: no ``from __future__ import annotations`` here.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from gateway import Gateway
from kfp import compiler, components, dsl, local

from dagbridge import Client
from dagbridge.kfp import submit_task, submit_workflow

#: What somebody has found to arrive differently somewhere: quotes, line breaks, pictures, dashes, templates, nothing, a blank.
ODD = ['{"a":"b"}', "line1\nline2", "\u2728", "--x", "{{item}}", "", " ", "%F0%9F"]
#: A program that leaves its arguments as an output.
TELL = "import json, os, sys; json.dump({'argv': sys.argv[1:]}, open(os.environ['DAGBRIDGE_OUTPUT'], 'w'))"


@pytest.fixture
def run(gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., dict[str, Any]]]:
    """Compiles a pipeline, runs it from its file and answers with its outputs."""
    monkeypatch.setenv("DAGBRIDGE_URL", gateway.url)

    def run(pipeline: Any, **parameters: Any) -> dict[str, Any]:
        file = tmp_path / "pipeline.yaml"
        compiler.Compiler().compile(pipeline, str(file))
        local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "root"), raise_on_error=True)
        return components.load_component_from_file(str(file))(**parameters).outputs

    yield run
    local.config.LocalExecutionConfig.instance = None


def argv(*words: Any) -> dict[str, Any]:
    """A task that leaves these words."""
    return {"command": {"argv": ["python3", "-c", TELL, *words]}}


def test_a_chain(run: Callable[..., dict[str, Any]], bridge: Client) -> None:
    @dsl.pipeline(name="chain")
    def chain(rate: float, data: str = "/data/2026") -> dict:
        prepared = submit_task(argv(data, 3, *ODD), workflow="local-chain", name="prepare")
        script = 'printf \'{"rate": %s, "from": "%s", "argv": %s}\' "$RATE" "$FROM" "$argv" >"$DAGBRIDGE_OUTPUT"'
        task = {"script": {"text": script}, "env": {"RATE": rate, "FROM": prepared.outputs["native_id"]}}
        trained = submit_task(task, workflow="local-chain", name="train", env={"argv": 1})
        return trained.outputs["outputs"]

    outputs = run(chain, rate=0.25)
    prepared, trained = sorted(bridge.jobs(workflow="local-chain", view="FULL"), key=lambda job: job["createTime"])
    assert prepared["outputs"] == {"argv": ["/data/2026", "3", *ODD]}, "argument by argument what was given, byte by byte"
    assert outputs["Output"] == {"rate": 0.25, "from": prepared["nativeId"], "argv": 1}
    assert prepared["key"]["run"] == trained["key"]["run"]
    assert prepared["key"]["task"].startswith("prepare/")


def test_outputs_of_a_step_as_a_whole_environment(run: Callable[..., dict[str, Any]], bridge: Client) -> None:
    """Texts that would not survive inside of the task's own JSON."""

    @dsl.pipeline(name="environment")
    def environment() -> None:
        script = {
            "script": {"text": "printf '%s' '" + json.dumps({"TEXT": 'a "quoted"\n✨ {{item}}'}) + '\' >"$DAGBRIDGE_OUTPUT"'}
        }
        told = submit_task(script, workflow="local-environment", name="tell")
        task = {"command": {"argv": ["sh", "-c", 'python3 -c "$1" "$TEXT"', "sh", TELL]}}
        submit_task(task, workflow="local-environment", name="take", env=told.outputs["outputs"])

    run(environment)
    taken = next(bridge.jobs(workflow="local-environment", view="FULL"))
    assert taken["outputs"] == {"argv": ['a "quoted"\n✨ {{item}}']}


def test_each_iteration_of_a_loop_has_its_own_job(run: Callable[..., dict[str, Any]], bridge: Client) -> None:
    @dsl.pipeline(name="loop")
    def loop() -> None:
        with dsl.ParallelFor(["a", "b", "c"]) as seed:
            submit_task(argv(seed), workflow="local-loop")

    run(loop)
    jobs = list(bridge.jobs(workflow="local-loop", view="FULL"))
    assert sorted(job["outputs"]["argv"] for job in jobs) == [["a"], ["b"], ["c"]]


def test_a_failing_job_fails_the_pipeline(run: Callable[..., dict[str, Any]]) -> None:
    @dsl.pipeline(name="failing")
    def failing() -> None:
        submit_task({"script": {"text": "exit 3"}}, workflow="local-failing")

    with pytest.raises(RuntimeError, match="submit-task"):
        run(failing)


def test_a_workflow(run: Callable[..., dict[str, Any]], bridge: Client) -> None:
    tasks = [
        {"key": {"task": "a"}, "script": {"text": 'echo \'{"rows": 3}\' >"$DAGBRIDGE_OUTPUT"'}},
        {
            "key": {"task": "b"},
            "upstream": [{"task": "a"}],
            "script": {"text": "true"},
            "array": {"items": [{}, {"env": {"A": 1}}]},
        },
    ]

    @dsl.pipeline(name="whole")
    def whole() -> dict:
        step = submit_workflow({"tasks": tasks}, workflow="local-whole", name="dag")
        return step.outputs["outputs"]

    outputs = run(whole)
    assert outputs["Output"] == {"a": {"rows": 3.0}, "b": {"instances": [{}, {}]}}
    (found,) = bridge.runs(workflow="local-whole:dag")
    assert (found["state"], found["parent"]["orchestrator"]) == ("SUCCEEDED", "kfp")


def test_a_pipeline_inside_of_a_step(binary: Path, tmp_path: Path, run: Callable[..., dict[str, Any]], monkeypatch: Any) -> None:
    """Its placeholders are its own, also where they are called as the step's inputs are."""

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def greet(name: str, run: str) -> str:
        return f"hello {name} of {run}"

    @dsl.pipeline(name="inner")
    def inner(name: str) -> str:
        return greet(name=name, run=dsl.PIPELINE_JOB_ID_PLACEHOLDER).output

    compiler.Compiler().compile(inner, str(tmp_path / "inner.yaml"))
    definition = {"kfpPipeline": (tmp_path / "inner.yaml").read_text()}

    @dsl.pipeline(name="outer")
    def outer() -> dict:
        step = submit_workflow(definition, workflow="outer", name="inner", parameters={"name": "Ann"})
        return step.outputs["outputs"]

    images = json.dumps([{"name": "python:3.11", "folder": sys.prefix}])
    with Gateway(binary, tmp_path / "own", clusters=f"[{{name: here, local: {{images: {images}}}}}]") as own:
        monkeypatch.setenv("DAGBRIDGE_URL", own.url)
        with Client(own.url) as bridge:
            outputs = run(outer)
            (found,) = bridge.runs(workflow="outer:inner")
            assert outputs["Output"]["greet"] == {"Output": f"hello Ann of {found['run']}"}


def compiled(pipeline: Any, folder: Path) -> Any:
    """The pipeline's IR."""
    compiler.Compiler().compile(pipeline, str(folder / "ir.yaml"))
    return yaml.safe_load((folder / "ir.yaml").read_text())


def test_image_and_caching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def steps() -> None:
        submit_task({"script": {"text": "true"}}, workflow="w", name="one")
        submit_task({"script": {"text": "true"}}, workflow="w").set_container_image("mine:2")

    def images() -> list[str]:
        ir = compiled(dsl.pipeline(name="images")(steps), tmp_path)
        assert all(not task["cachingOptions"].get("enableCache") for task in ir["root"]["dag"]["tasks"].values())
        return sorted(executor["container"]["image"] for executor in ir["deploymentSpec"]["executors"].values())

    monkeypatch.delenv("DAGBRIDGE_KFP_IMAGE", raising=False)
    assert images() == ["dagbridge-kfp:0.1.0", "mine:2"]
    monkeypatch.setenv("DAGBRIDGE_KFP_IMAGE", "registry.example/step:1")
    assert images() == ["mine:2", "registry.example/step:1"]


def test_the_readmes_pipeline(tmp_path: Path) -> None:
    _, _, example = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[2] / "README.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    (task,) = compiled(names["risk"], tmp_path)["root"]["dag"]["tasks"].values()
    given = task["inputs"]["parameters"]["task"]["runtimeValue"]["constant"]
    assert given["resources"]["cpu"] == "4"
    assert task["retryPolicy"]["maxRetryCount"] == 3


def test_the_step_says_who_it_is() -> None:
    with pytest.raises(ValueError, match="task: key and uid cannot be given"):
        submit_task({"key": {"task": "a"}, "uid": "1"}, workflow="w")
    with pytest.raises(ValueError, match="definition: run cannot be given"):
        submit_workflow({"run": {}, "tasks": []}, workflow="w")


def test_the_component_files_are_what_the_sdk_makes(tmp_path: Path) -> None:
    """Anew: ``python -m dagbridge.kfp.components``."""
    from dagbridge.kfp import components as ours

    ours.write(tmp_path)
    beside = Path(ours.__file__).parent
    made = sorted(tmp_path.glob("*.yaml"))
    assert [file.name for file in made] == sorted(file.name for file in beside.glob("*.yaml"))
    for file in made:
        assert file.read_text() == (beside / file.name).read_text(), file.name
        components.load_component_from_file(str(file))
