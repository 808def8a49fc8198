"""Pipelines as people write them, for tests: python pipelines.py FOLDER compiles each to FOLDER/<name>/in.yaml with the SDK of KFP.

Container components run shell commands of the image "busybox:1"; lightweight ones run in "python:3.11-slim". What is random in
the wild is fixed here, so that two runs can be compared.
"""

import pathlib
import sys
from typing import List, NamedTuple

from kfp import compiler, dsl
from kfp import kubernetes as k8s
from kfp.compiler.compiler_utils import KubernetesManifestOptions
from kfp.dsl import Artifact, Collected, Dataset, Input, Metrics, Model, OneOf, Output, importer

PYTHON = "python:3.11-slim"
SHELL = "busybox:1"


@dsl.container_component
def preprocess(raw_uri: str, data: Output[Dataset], rows: dsl.OutputPath(int)):
    return dsl.ContainerSpec(
        image=SHELL,
        command=["sh", "-ec", 'echo "rows of $0" > "$1"; echo 42 > "$2"'],
        args=[raw_uri, data.path, rows],
    )


@dsl.container_component
def train(data: Input[Dataset], lr: float, epochs: int, model: Output[Model], logs: Output[Artifact]):
    return dsl.ContainerSpec(
        image=SHELL,
        command=["sh", "-ec", 'cat "$0" > "$3"; echo "lr=$1 epochs=$2" >> "$3"; env | grep ^NCCL > "$4"'],
        args=[data.path, lr, epochs, model.path, logs.path],
    )


@dsl.container_component
def evaluate(model: Input[Model], data: Input[Dataset], accuracy: dsl.OutputPath(float), metrics: Output[Metrics]):
    return dsl.ContainerSpec(
        image=SHELL,
        command=["sh", "-ec"],
        args=[f"cat '{model.path}' '{data.path}' > '{metrics.path}'; echo 0.9375 > '{accuracy}'"],
    )


@dsl.container_component
def deploy(model: Input[Model], accuracy: float, endpoint: dsl.OutputPath(str)):
    return dsl.ContainerSpec(
        image=SHELL,
        command=["sh", "-ec", 'printf "%s at %s" "$(basename "$0")" "$1" > "$2"'],
        args=[model.uri, accuracy, endpoint],
    )


@dsl.container_component
def greet(out: dsl.OutputPath(str), name: str = None, title: str = "Dr. "):
    return dsl.ContainerSpec(
        image=SHELL,
        command=["sh", "-ec", 'f="$0"; printf "<%s>" "$@" > "$f"'],
        args=[
            out,
            dsl.IfPresentPlaceholder(
                input_name="name", then=["--name", dsl.ConcatPlaceholder([title, name])], else_=["--anybody"]
            ),
        ],
    )


@dsl.component(base_image=PYTHON)
def flip(side: str = "heads") -> str:
    return side


@dsl.component(base_image=PYTHON)
def say(msg: str) -> str:
    print(msg)
    return msg


@dsl.component(base_image=PYTHON)
def sim(seed: int, scale: float = 1.0) -> float:
    return seed * scale + 0.5


@dsl.component(base_image=PYTHON, packages_to_install=["iniconfig==2.3.1"])
def version() -> str:
    import importlib.metadata

    return importlib.metadata.version("iniconfig")


@dsl.component(base_image=PYTHON)
def mk_list(n: int) -> List[int]:
    return list(range(n))


@dsl.component(base_image=PYTHON)
def agg(vals: List[float]) -> float:
    return sum(vals)


@dsl.component(base_image=PYTHON)
def mk_ds(i: int, d: Output[Dataset]):
    with open(d.path, "w") as f:
        f.write(str(i))
    d.metadata["i"] = i


@dsl.component(base_image=PYTHON)
def join(ds: Input[List[Dataset]]) -> str:
    return ",".join(open(x.path).read() + str(x.metadata["i"]) for x in ds)


@dsl.component(base_image=PYTHON)
def cleanup(user: str, status: dsl.PipelineTaskFinalStatus) -> str:
    return f"{user} {status.state} {status.pipeline_task_name}"


@dsl.component(base_image=PYTHON)
def boom():
    raise SystemExit(3)


@dsl.component(base_image=PYTHON)
def multi(x: int) -> NamedTuple("O", [("a", int), ("b", str)]):
    from collections import namedtuple

    return namedtuple("O", "a b")(x, str(x))


@dsl.component(base_image=PYTHON)
def all_types(d: dict, b: bool, items: list, text: str, opt: str = None) -> dict:
    return {"d": d, "b": b, "items": items, "text": text, "opt": opt}


@dsl.pipeline(name="linear-ml", description="preprocess, train, evaluate, deploy")
def linear_ml(raw_uri: str = "s3://raw/x.csv", lr: float = 0.01, epochs: int = 3) -> float:
    p = preprocess(raw_uri=raw_uri).set_cpu_limit("1").set_memory_limit("64M")
    t = train(data=p.outputs["data"], lr=lr, epochs=epochs)
    t.set_cpu_request("500m").set_cpu_limit("1").set_memory_request("32Mi").set_memory_limit("64Mi")
    t.set_retry(num_retries=3, backoff_duration="30s", backoff_factor=2, backoff_max_duration="600s")
    t.set_caching_options(False).set_env_variable("NCCL_DEBUG", "INFO").set_display_name("Train model")
    e = evaluate(model=t.outputs["model"], data=p.outputs["data"])
    deploy(model=t.outputs["model"], accuracy=e.outputs["accuracy"]).after(e)
    return e.outputs["accuracy"]


@dsl.pipeline(name="conditions-oneof")
def conditions_oneof(threshold: float = 0.5, side: str = "tails") -> str:
    f = flip(side=side)
    with dsl.If(f.output == "heads", name="is-heads"):
        a = say(msg="H")
    with dsl.Elif(f.output == "tails"):
        b = say(msg="T")
    with dsl.Else():
        c = say(msg="E")
    o = OneOf(a.output, b.output, c.output)
    say(msg=o)
    s = sim(seed=1)
    with dsl.If(s.output > threshold):
        with dsl.If(f.output != "edge"):
            say(msg="nested")
    return o


@dsl.pipeline(name="parallelfor-static")
def parallelfor_static():
    with dsl.ParallelFor(items=[{"seed": 1, "w": 3}, {"seed": 2, "w": 4}], parallelism=2) as item:
        s = sim(seed=item.seed)
        multi(x=item.w).after(s)
    agg(vals=Collected(s.output))


@dsl.pipeline(name="nested-loops")
def nested_loops(seeds: List[int] = [1, 2, 3]) -> float:
    with dsl.ParallelFor(seeds) as j:
        with dsl.ParallelFor([0.5, 0.25]) as k:
            s = sim(seed=j, scale=k)
    return agg(vals=Collected(s.output)).output


@dsl.pipeline(name="loops")
def loops(seeds: List[int] = [1, 2, 3]) -> str:
    with dsl.ParallelFor(seeds, parallelism=1) as i:
        s = sim(seed=i)
        with dsl.If(s.output > 2.0):
            say(msg=f"seed {i} gives {s.output}")
        d = mk_ds(i=i)
    return join(ds=Collected(d.outputs["d"])).output


@dsl.pipeline(name="parallelfor-dynamic")
def parallelfor_dynamic(n: int = 3) -> float:
    numbers = mk_list(n=n)
    with dsl.ParallelFor(numbers.output, parallelism=50) as i:
        s = sim(seed=i)
    return agg(vals=Collected(s.output)).output


@dsl.pipeline(name="dynamic-nested")
def dynamic_nested(n: int = 3, none: int = 0) -> float:
    with dsl.ParallelFor(mk_list(n=n).output, parallelism=2) as i:
        some = mk_list(n=i)
        with dsl.ParallelFor(some.output) as j:
            s = sim(seed=j)
        with dsl.If(i > 0):
            say(msg=f"instance {i}")
        say(msg="after").after(s)
    with dsl.ParallelFor([1, 2]) as k:
        with dsl.ParallelFor(mk_list(n=k).output) as m:
            r = sim(seed=m)
    with dsl.ParallelFor(mk_list(n=none).output) as e:
        t = sim(seed=e)
    agg(vals=Collected(r.output))
    agg(vals=Collected(t.output))
    return agg(vals=Collected(s.output)).output


@dsl.pipeline(name="exit-handler")
def exit_handler(user: str = "me"):
    done = cleanup(user=user)
    with dsl.ExitHandler(done, name="guarded"):
        a = say(msg="work")
        boom().after(a)


@dsl.pipeline(name="ignore-upstream-failure")
def ignore_upstream():
    a = flip()
    say(msg=a.output).after(a)
    say(msg="x").after(boom()).ignore_upstream_failure()


@dsl.pipeline(name="inner")
def inner(seed: int) -> float:
    return sim(seed=seed).output


@dsl.pipeline(name="nested")
def nested(seed: int = 3):
    i1 = inner(seed=seed)
    i2 = inner(seed=7).after(i1)
    say(msg=f"got {i2.output} and {seed}")
    with dsl.If(i1.output > 0.0):
        inner(seed=9)


@dsl.pipeline(name="importer-artifacts")
def importer_artifacts(uri: str = "/dev/null"):
    im = importer(artifact_uri=uri, artifact_class=Dataset, reimport=False, metadata={"k": "v", "u": uri})
    t = train(data=im.output, lr=0.1, epochs=1).set_env_variable("NCCL_DEBUG", "WARN")
    evaluate(model=t.outputs["model"], data=im.output)


@dsl.pipeline(name="multi-params")
def multi_params(
    d: dict = {"a": [1, 2], "q": 'say "hi" \\ {{x}}'},
    b: bool = True,
    items: list = [1, "zwei", {"drei": 3.5}],
    text: str = "\u2728 --x %F0%9F",
):
    m = multi(x=4)
    say(msg=m.outputs["b"])
    sim(seed=m.outputs["a"])
    all_types(d=d, b=b, items=items, text=text)
    say(msg='line1\nline2 {"a":"b"} {{item}} \\u2728')


@dsl.pipeline(name="structures")
def structures():
    greet(name="Ada")
    greet()


@dsl.pipeline(name="packages")
def packages():
    version()


@dsl.pipeline(name="kubernetes-extras")
def kubernetes_extras():
    t = say(msg="x")
    k8s.use_secret_as_env(t, secret_name="s", secret_key_to_env={"k": "ENVK"})
    k8s.add_node_selector(t, label_key="accel", label_value="a100")
    k8s.set_timeout(t, 3600)
    t.set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(2)
    claim = k8s.CreatePVC(pvc_name_suffix="-p", access_modes=["ReadWriteMany"], size="5Gi", storage_class_name="standard")
    k8s.mount_pvc(t, pvc_name=claim.outputs["name"], mount_path="/data")


@dsl.pipeline(name="finance-fanout-300")
def finance_fanout():
    with dsl.ParallelFor(list(range(300)), parallelism=100) as i:
        s = sim(seed=i)
    agg(vals=Collected(s.output))


@dsl.pipeline(name="dynamic-resources")
def dynamic_resources(cpu: str = "4", mem: str = "8Gi", acc: str = "nvidia.com/gpu", n: str = "1"):
    sim(seed=1).set_cpu_limit(cpu).set_memory_limit(mem).set_accelerator_type(acc).set_accelerator_limit(n)


PIPELINES = [
    linear_ml,
    conditions_oneof,
    parallelfor_static,
    nested_loops,
    loops,
    parallelfor_dynamic,
    dynamic_nested,
    exit_handler,
    ignore_upstream,
    nested,
    importer_artifacts,
    multi_params,
    structures,
    packages,
    kubernetes_extras,
    finance_fanout,
    dynamic_resources,
]

if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1])
    for pipeline in PIPELINES:
        (out / pipeline.name).mkdir(parents=True, exist_ok=True)
        compiler.Compiler().compile(pipeline, str(out / pipeline.name / "in.yaml"))
    (out / "manifest").mkdir(exist_ok=True)
    compiler.Compiler().compile(
        parallelfor_static,
        str(out / "manifest" / "in.yaml"),
        kubernetes_manifest_format=True,
        kubernetes_manifest_options=KubernetesManifestOptions(
            pipeline_name="parallelfor-static", pipeline_version_name="v1", namespace="kubeflow"
        ),
    )
