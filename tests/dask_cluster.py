"""A Dask cluster of this machine: a scheduler and workers on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """A Dask scheduler and workers on loopback, each a process; yields the address."""
    known = folder / "scheduler.json"
    base = [sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0"]
    with ExitStack() as stack:

        def run(*command: str) -> None:
            environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
            child = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
            stack.callback(child.wait)
            stack.callback(child.terminate)

        run(*base, "--no-dashboard", "--scheduler-file", str(known))
        deadline = time.monotonic() + 300
        while not known.is_file() or not known.read_text().strip():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        address = str(json.loads(known.read_text())["address"])
        for _ in range(workers):
            run(
                sys.executable, "-m", "dask", "worker", address, "--no-nanny", "--no-dashboard",
                "--nthreads", "1", "--host", "127.0.0.1", "--local-directory", str(folder),
            )  # fmt: skip
        from distributed import Client

        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=300)
        yield address
