"""A Dask cluster on this machine: a scheduler and workers on loopback, each a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from warm_homes import warmed

from gistpoint.sandbox.cluster import connected

ODD = Path(__file__).parent / "odd_worker.py"
LIMIT_S = 300


@dataclass
class DaskCluster:
    """A scheduler and the added workers."""

    folder: Path
    stack: ExitStack
    address: str = ""
    tls: dict[str, str] = field(default_factory=dict)
    """The environment with the certificates of an encrypted cluster; empty for one that is not."""

    def run(self, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a process of the cluster; it is killed when the cluster ends."""
        child = subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            cwd=self.folder,
            env={**os.environ, "DASK_DISTRIBUTED__WORKER__DAEMON": "False", **self.tls, **environment},
            stderr=(self.folder / "log").open("ab"),
        )
        self.stack.callback(child.wait)
        self.stack.callback(child.kill)
        return child

    def add(self, *, odd: str = "", home: Path | None = None) -> subprocess.Popen[bytes]:
        """Add a worker, perhaps an odd one (see `odd_worker.py`) or one with a separate home; return it."""
        before = len(self.present())
        preload = ["--preload", str(ODD)] if odd else []
        worker = self.run(
            "worker", self.address, "--no-nanny", "--no-dashboard", "--nthreads", "1", "--host", "127.0.0.1",
            "--local-directory", str(self.folder), *preload,
            **({"ODD_WORKER": odd} if odd else {}), **({"GISTPOINT_HOME": str(warmed(home))} if home else {}),
        )  # fmt: skip
        self.wait_for(before + 1, lambda: worker.poll() is None)
        return worker

    def present(self) -> set[str]:
        """Return the addresses of the workers that the scheduler knows."""
        with connected(self.address) as client:
            return set(client.nthreads())

    def wait_for(self, count: int, hopeful: Callable[[], bool] = lambda: True) -> None:
        """Wait until there are `count` workers; fail after `LIMIT_S`, or once `hopeful` returns false."""
        deadline = time.monotonic() + LIMIT_S
        while len(self.present()) != count:
            assert hopeful()
            assert time.monotonic() < deadline
            time.sleep(0.1)


@contextmanager
def scheduler(folder: Path, tls: dict[str, str] | None = None) -> Iterator[DaskCluster]:
    """Yield a scheduler on loopback without workers; with the environment of `tls`, an encrypted one."""
    folder.mkdir(parents=True, exist_ok=True)
    known = folder / "scheduler.json"
    known.unlink(missing_ok=True)
    with ExitStack() as stack:
        found = DaskCluster(folder, stack, tls=tls or {})
        found.run(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(known),
            *(("--protocol", "tls") if tls else ()),
        )
        deadline = time.monotonic() + LIMIT_S
        while not known.is_file() or not known.read_text().strip():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        found.address = str(json.loads(known.read_text())["address"])
        yield found


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """Yield the address of a scheduler with workers that share the home of this process."""
    with scheduler(folder) as found:
        for _ in range(workers):
            found.add()
        yield found.address
