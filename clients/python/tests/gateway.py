"""A gateway to test against: the real program, built from this tree, in front of processes of this machine.

It keeps its ports when it is killed and started again, as a site's does.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from dagbridge import Client

REPOSITORY = Path(__file__).parents[3]
READY = re.compile(r"gRPC \S+?:(\d+), REST \S+?:(\d+), ")


def build(folder: Path) -> Path:
    """Builds the program; Go's cache makes it quick the second time."""
    binary = folder / "dagbridge"
    subprocess.run(["go", "build", "-o", binary, "./cmd/dagbridge"], cwd=REPOSITORY, check=True)
    return binary


class Gateway:
    """A gateway with the cluster "here"; its folder holds its configuration, data and log. Made stopped."""

    def __init__(
        self,
        binary: Path,
        folder: Path,
        *,
        clusters: str = "[{name: here, local: {}}]",
        listen: str = "",
        tokens: Sequence[str] = (),
    ) -> None:
        """``clusters`` is YAML; ``listen`` more of that map (``tls: {...}``); ``tokens`` are their own names."""
        self._binary, self._folder = binary, folder
        self._clusters, self._listen = clusters, listen
        #: Those it knows from its next start on.
        self.tokens = tokens
        self._process: subprocess.Popen[str] | None = None
        self._ports = ("0", "0")
        self._scheme = "https" if "tls:" in listen else "http"
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def port(self) -> int:
        """Of REST."""
        return int(self._ports[1])

    @property
    def url(self) -> str:
        """Of REST."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the process that runs."""
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it has been started and not killed since."""
        return self._process is not None

    @property
    def data(self) -> Path:
        """The folder of its store."""
        return self._folder / "data"

    @property
    def log(self) -> str:
        """What it has said so far."""
        return (self._folder / "log").read_text()

    def start(self) -> None:
        """Returns when it is ready."""
        assert self._process is None
        grpc, http = self._ports
        listen = ", ".join(filter(None, [f'grpc: "127.0.0.1:{grpc}", http: "127.0.0.1:{http}"', self._listen]))
        config = self._folder / "dagbridge.yaml"
        tokens = [{"name": token, "sha256": hashlib.sha256(token.encode()).hexdigest()} for token in self.tokens]
        config.write_text(
            f"listen: {{{listen}}}\ndata: {self.data}\nclusters: {self._clusters}\nauth: {json.dumps({'tokens': tokens})}\n"
        )
        with (self._folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                [self._binary, "serve", "--config", config], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        ready = READY.search(self._process.stdout.readline())
        if ready is None:
            self.kill()
            raise AssertionError(f"the gateway does not start:\n{self.log}")
        self._ports = (ready[1], ready[2])

    def kill(self) -> None:
        """Ends it at once, whatever it is doing. Its jobs go on."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def backup(self, file: Path) -> None:
        """Copies its store, as it is now."""
        subprocess.run([self._binary, "backup", "--http", f"127.0.0.1:{self.port}", file], check=True, capture_output=True)

    def __enter__(self) -> Gateway:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Its jobs outlive it: none is left behind."""
        if not self.runs:
            self.start()
        with Client(self.url, token=next(iter(self.tokens), None), verify=False) as bridge:
            live = [job["id"] for job in bridge.jobs(state=["ACCEPTED", "SUBMITTED", "RUNNING"], pageSize=1000)]
            bridge.batch_cancel(live)
            bridge.wait(live, timeout=60)
        self.kill()
