"""A component's step as KFP's launcher runs it in a pod (backend/src/v2/component/launcher_v2.go of kubeflow/pipelines 2.17).

The executor's input is one argument; the files of its outputs are read when it has ended well. A step that runs again, after a
kill or a failure, has the same input: KFP's driver makes it once, before the first try.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import yaml
from condition import until

COMPONENTS = Path(__file__).parents[2] / "src/dagbridge/kfp"


class Step:
    """One step of a run of a pipeline. ``start`` is one try of it."""

    def __init__(self, folder: Path, component: str, environment: dict[str, str], **inputs: Any) -> None:
        """``component`` is the name of a component.yaml; KFP's placeholders are resolved unless they are among the inputs."""
        ir = yaml.safe_load((COMPONENTS / f"{component}.component.yaml").read_text())
        (self._spec,) = ir["components"].values()
        (executor,) = ir["deploymentSpec"]["executors"].values()
        self._container, self._folder, self.environment = executor["container"], folder, environment
        self.inputs = {"workflow": "risk", "run": str(uuid.uuid4()), "step": "submit-task", "uid": "17", **inputs}
        declared = self._spec["inputDefinitions"]["parameters"]
        assert self.inputs.keys() <= declared.keys()
        defaults = {name: spec["defaultValue"] for name, spec in declared.items() if "defaultValue" in spec}
        values = json.loads(json.dumps({**defaults, **self.inputs}), parse_int=float)  # all numbers are doubles
        outputs = self._spec["outputDefinitions"]
        self._files = {name: folder / "parameters" / name for name in outputs["parameters"]}
        self._artifacts = {name: folder / "artifacts" / name for name in outputs["artifacts"]}
        self._metadata = folder / "output_metadata.json"
        self._executor_input = {
            "inputs": {"parameterValues": values},
            "outputs": {
                "parameters": {name: {"outputFile": str(file)} for name, file in self._files.items()},
                "artifacts": {
                    name: {"artifacts": [{"name": name, "type": outputs["artifacts"][name]["artifactType"], "uri": str(file)}]}
                    for name, file in self._artifacts.items()
                },
                "outputFile": str(self._metadata),
            },
        }
        for file in (*self._files.values(), *self._artifacts.values()):
            file.parent.mkdir(parents=True, exist_ok=True)

    @property
    def key(self) -> dict[str, str]:
        """The job's key, for a look-up."""
        names = (self.inputs.get("name"), self.inputs["step"], self.inputs["uid"])
        run = {"workflow": self.inputs["workflow"], "run": self.inputs["run"]}
        return {"orchestrator": "kfp", **run, "task": "/".join(filter(None, names))}

    def start(self) -> subprocess.Popen[bytes]:
        """Its stdout and stderr are in ``log``. In a process group of its own, which is signalled as a container is."""
        given = json.dumps(self._executor_input)
        command = [part.replace("{{$}}", given) for part in (*self._container["command"], *self._container["args"])]
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **self.environment}
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def run(self) -> int:
        """One try, to its end: the exit code."""
        return self.start().wait(timeout=90)

    @property
    def log(self) -> str:
        """What its tries have written."""
        return (self._folder / "log").read_text()

    @property
    def outputs(self) -> dict[str, Any]:
        """Parameters, each by its type, and the texts of artifacts; of metrics what the executor says of them."""
        said = json.loads(self._metadata.read_text())
        types = {name: spec["parameterType"] for name, spec in self._spec["outputDefinitions"]["parameters"].items()}
        texts = {name: file.read_text() for name, file in self._files.items()}
        parameters = {name: text if types[name] == "STRING" else json.loads(text) for name, text in texts.items()}
        return {
            **parameters,
            "job": self._artifacts["job"].read_text(),
            "metrics": said["artifacts"]["metrics"]["artifacts"][0]["metadata"],
        }


def written(process: subprocess.Popen[bytes], step: Step, word: str) -> None:
    """Waits until the step has written a word. It must not end before."""

    def there() -> bool:
        assert process.poll() is None, step.log
        return word in step.log

    asyncio.run(until(there, 90))
