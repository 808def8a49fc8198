"""The JSON of the REST interface, typed. What each field means is said where it is defined: ``proto/dagbridge/v1``.

Durations are strings in seconds (``"3600s"``), times RFC 3339 in UTC, quantities as in Kubernetes (``"500m"``, ``"16Gi"``),
64-bit numbers strings. What is left out has the gateway's default.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

JobState = Literal["ACCEPTED", "SUBMITTED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED", "UPSTREAM_FAILED", "LOST"]
#: The states in which a job stays.
ENDS: frozenset[str] = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED", "UPSTREAM_FAILED", "LOST"})

TriggerRule = Literal[
    "all_success",
    "all_failed",
    "all_done",
    "all_done_min_one_success",
    "all_done_setup_success",
    "one_success",
    "one_failed",
    "one_done",
    "none_failed",
    "none_failed_min_one_success",
    "none_skipped",
    "all_skipped",
    "always",
]
WaitFor = Literal["ACCEPTED", "SUBMITTED", "TERMINAL"]
OnConflict = Literal["REFUSE", "ATTACH"]
IfLive = Literal["ATTACH", "REPLACE"]


class TaskKey(TypedDict, total=False):
    """Names a task as its orchestrator does."""

    deployment: str
    orchestrator: str
    workflow: str
    run: str
    task: str
    mapIndex: list[int]


class Command(TypedDict):
    """A program and its arguments; no shell reads them."""

    argv: list[str]


class Script(TypedDict):
    """A program's text; a first line ``#!`` names its interpreter, else it is bash's."""

    text: str


class Container(TypedDict, total=False):
    """An image to run in."""

    image: str
    command: list[str]
    args: list[str]


class Gpu(TypedDict, total=False):
    """GPUs of one type, per node."""

    type: str
    count: int


class Resources(TypedDict, total=False):
    """What a task needs: ``cpu`` per task, ``memory`` and ``gpus`` per node."""

    cpu: str
    memory: str
    gpus: list[Gpu]
    nodes: int
    tasksPerNode: int
    timeLimit: str


class NativeJob(TypedDict, total=False):
    """Somebody else's job in a cluster."""

    cluster: str
    id: str


class Edge(TypedDict, total=False):
    """What a task waits for: one of ``task``, ``key`` and ``native``."""

    task: str
    key: TaskKey
    native: NativeJob
    instances: Literal["ALL", "SAME_INDEX"]
    condition: Literal["STARTED", "SINGLETON", "SUCCEEDED"]
    delay: str
    optional: bool


class Item(TypedDict, total=False):
    """What one instance of an array adds to the task."""

    env: dict[str, str]
    argv: list[str]


class ArrayFrom(TypedDict):
    """An output of an upstream task, a list: one instance per element."""

    task: str
    output: str


# "from" is a word of Python's.
Array = TypedDict("Array", {"items": list[Item], "from": ArrayFrom, "maxParallel": int}, total=False)


class Teardown(TypedDict):
    """Which set-ups a tear-down takes away."""

    of: list[str]


class When(TypedDict):
    """A condition in CEL; a task of which it does not hold is skipped."""

    cel: str


class SkipUnless(TypedDict):
    """Skips a task that a branch has not chosen: unless the output of ``task`` contains the word."""

    task: str
    output: str
    contains: str


class Growth(TypedDict, total=False):
    """How a request grows from one attempt to the next."""

    factor: float
    max: str


class Retry(TypedDict, total=False):
    """What the gateway does on its own account when an attempt fails."""

    maxRetries: int
    backoff: str
    maxBackoff: str
    maxInfrastructureRetries: int
    finalExitCodes: list[int]
    memoryGrowth: Growth
    timeLimitGrowth: Growth


class SlurmOptions(TypedDict, total=False):
    """What only Slurm understands; ``options`` are sbatch's long names without the dashes."""

    partition: str
    account: str
    qos: str
    options: dict[str, str]
    container: Literal["", "apptainer", "pyxis", "oci", "charliecloud"]
    user: str


class KubernetesOptions(TypedDict, total=False):
    """What only Kubernetes understands; lists and maps are as in a pod spec or, of the program's container, as in a container."""

    namespace: str
    serviceAccount: str
    nodeSelector: dict[str, str]
    tolerations: list[dict[str, Any]]
    volumes: list[dict[str, Any]]
    queue: str
    gang: Literal["", "kueue", "podgroup", "volcano", "coscheduling"]
    template: dict[str, Any]
    volumeMounts: list[dict[str, Any]]
    affinity: dict[str, Any]
    topologySpreadConstraints: list[dict[str, Any]]
    priorityClass: str
    imagePullPolicy: Literal["", "Always", "IfNotPresent", "Never"]
    imagePullSecrets: list[str]
    securityContext: dict[str, Any]
    podSecurityContext: dict[str, Any]
    env: list[dict[str, Any]]
    envFrom: list[dict[str, Any]]
    initContainers: list[dict[str, Any]]
    sidecars: list[dict[str, Any]]
    hostAliases: list[dict[str, Any]]
    resourceClaims: list[dict[str, Any]]
    annotations: dict[str, str]
    podTemplatePaths: list[str]
    successConditions: list[str]
    failureConditions: list[str]


class Task(TypedDict, total=False):
    """One step: a program, what it needs, and what it waits for."""

    key: TaskKey
    tryNumber: int
    uid: str
    maxTries: int
    retryWindow: str
    cluster: str
    fallbacks: list[str]
    command: Command
    script: Script
    container: Container
    prologue: str
    env: dict[str, str]
    workingDirectory: str
    resources: Resources
    launch: Literal["ONCE", "PER_TASK"]
    upstream: list[Edge]
    triggerRule: TriggerRule
    skipExitCodes: list[int]
    setup: bool
    teardown: Teardown
    when: When
    skipUnless: SkipUnless
    array: Array
    retry: Retry
    atMostOnce: bool
    slurm: SlurmOptions
    kubernetes: KubernetesOptions
    labels: dict[str, str]
    empty: bool


class Attempt(TypedDict, total=False):
    """One native job made for a job."""

    number: int
    cluster: str
    nativeId: str
    submitTime: str
    startTime: str
    endTime: str
    node: str
    state: JobState
    reason: str
    message: str
    exitCode: int
    signal: int
    nativeDigest: str
    token: str
    indices: str
    memory: str
    timeLimit: str
    excludedNodes: list[str]


class Logs(TypedDict, total=False):
    """Where the program's output is, as the cluster sees it."""

    stdout: str
    stderr: str


class _JobAlways(TypedDict):
    id: str
    key: TaskKey
    state: JobState


class Job(_JobAlways, total=False):
    """One try of a task, from its acceptance on."""

    tryNumber: int
    uid: str
    owner: str
    cluster: str
    nativeId: str
    reason: str
    message: str
    exitCode: int
    signal: int
    createTime: str
    submitTime: str
    startTime: str
    endTime: str
    cancelRequestTime: str
    attempts: list[Attempt]
    outputs: dict[str, Any]
    logs: Logs
    labels: dict[str, str]
    url: str
    runId: str
    parent: str
    counts: dict[str, int]
    notes: list[str]
    user: str
    reserved: str


class RunKey(TypedDict, total=False):
    """Which run of a workflow, and how it meets what is already there."""

    deployment: str
    orchestrator: str
    workflow: str
    run: str
    tryNumber: int
    uid: str
    mode: Literal["ALL", "ONLY_FAILED"]
    parent: TaskKey


class _RunAlways(TypedDict):
    id: str
    state: Literal["RUNNING", "SUCCEEDED", "FAILED"]


class Run(_RunAlways, RunKey, total=False):
    """The jobs of one run of a workflow."""

    owner: str
    createTime: str
    endTime: str
    counts: dict[str, int]


class Workflow(TypedDict, total=False):
    """A DAG to run once: ``tasks``, or a DAG in its orchestrator's own form. What ``dagbridge run -f`` reads as YAML."""

    run: RunKey
    name: str
    cluster: str
    parameters: dict[str, Any]
    logicalDate: str
    conf: dict[str, Any]
    tasksSelected: list[str]
    tasks: list[Task]
    airflowDag: dict[str, Any]
    kfpPipeline: str
    waitFor: WaitFor
    onConflict: OnConflict
    ifLive: IfLive
    fold: Literal["auto", "off"]


class Cluster(TypedDict, total=False):
    """One place to run jobs."""

    name: str
    kind: Literal["local", "slurm", "kubernetes"]
    reachable: bool
    message: str
    lastLookTime: str
    liveJobs: int


class Submitted(TypedDict):
    """The answer to a workflow: the run, and one job per task in the workflow's order (an array is its parent job)."""

    run: Run
    jobs: list[Job]
    warnings: list[str]


class Watched(TypedDict, total=False):
    """A line of a watch: a job as it is now, or a bookmark (no ``job``) that says where to go on."""

    job: Job
    resumeToken: str
