"""What KFP itself, on this machine (kfp.local), makes of compiled pipelines: oracle.py FOLDER FILE...

Prints a JSON object: for each file, whether the pipeline has succeeded, and the outputs of its steps as a sorted list of
[parameters, artifacts' texts], since the folders of kfp.local do not say which iteration a step belongs to.
"""

import json
import logging
import pathlib
import sys

from kfp import components, local


def steps(root: pathlib.Path) -> list:
    """The outputs of all steps that have left any."""
    found = []
    for file in sorted(root.rglob("executor_output.json")):
        said = json.loads(file.read_text())
        artifacts = {}
        for name, value in said.get("artifacts", {}).items():
            for artifact in value["artifacts"]:
                path = pathlib.Path(artifact["uri"])
                if path.is_file():
                    artifacts[name] = path.read_text()
        found.append([said.get("parameterValues", {}), artifacts])
    return sorted(found, key=lambda step: json.dumps(step, sort_keys=True))


def main() -> None:
    logging.disable(logging.CRITICAL)
    out = pathlib.Path(sys.argv[1])
    answers = {}
    for i, file in enumerate(sys.argv[2:]):
        root = out / str(i)
        local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=str(root), raise_on_error=True)
        try:
            components.load_component_from_file(file)()
            succeeded = True
        except RuntimeError:
            succeeded = False
        answers[file] = {"succeeded": succeeded, "steps": steps(root)}
    json.dump(answers, sys.__stdout__)


if __name__ == "__main__":
    sys.stdout = sys.stderr  # steps write to it
    main()
