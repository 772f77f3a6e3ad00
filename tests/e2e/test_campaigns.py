"""Campaigns in processes: killed ones go on, and the tasks are the same wherever they are decided."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

CHILD = Path(__file__).parents[1] / "campaign_child.py"
COUNT = 3


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(CHILD), str(folder), "remove", str(COUNT), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def ids_of(child: subprocess.Popen[str]) -> list[str]:
    output, _ = child.communicate()
    assert child.returncode == 0
    return output.split()


def tasks_in(folder: Path) -> set[str]:
    return {path.name for path in (folder / "tasks").iterdir()}


@pytest.mark.slow
def test_killed_campaign_goes_on_and_ends_as_one_that_was_not(tmp_path: Path) -> None:
    """Killed while it learns the library and while it decides; at the end no task is lost and none is there twice."""
    expected = ids_of(start(tmp_path / "whole", "--workers", "2"))
    assert len(expected) == len(set(expected)) == COUNT
    folder, chance, kills, seen = tmp_path / "killed", random.Random(5), 0, 0
    while True:
        child = start(folder, "--workers", "2")
        deadline = time.monotonic() + chance.uniform(2, 12)
        while child.poll() is None and time.monotonic() < deadline and _lines(folder) <= seen:
            time.sleep(0.02)
        if child.poll() is not None:
            break
        workers = psutil.Process(child.pid).children(recursive=True)
        child.kill()
        child.communicate()
        kills += 1
        _, alive = psutil.wait_procs(workers, timeout=30)
        assert not alive
        assert _lines(folder) >= seen
        seen = _lines(folder)
    assert kills >= 2
    assert child.communicate()[0].split() == expected
    assert tasks_in(folder) == set(expected) == tasks_in(tmp_path / "whole")
    keys = [json.loads(line).get("key") for line in (folder / "state.jsonl").read_text().splitlines()]
    assert len(keys) == len(set(keys))


def _lines(folder: Path) -> int:
    state = folder / "state.jsonl"
    return state.read_bytes().count(b"\n") if state.is_file() else 0


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
        deadline = time.monotonic() + 60
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
            client.wait_for_workers(workers, timeout=60)
        yield address


@pytest.mark.slow
def test_tasks_are_the_same_with_one_worker_with_two_and_on_a_cluster(tmp_path: Path) -> None:
    one = ids_of(start(tmp_path / "one", "--workers", "1"))
    two = ids_of(start(tmp_path / "two", "--workers", "2"))
    with cluster(tmp_path, 2) as address:
        many = ids_of(start(tmp_path / "many", "--cluster", address))
    assert one == two == many
    assert tasks_in(tmp_path / "one") == tasks_in(tmp_path / "two") == tasks_in(tmp_path / "many") == set(one)
    assert len(one) == COUNT


def test_address_without_a_scheduler_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gistpoint.core.errors import InfrastructureError
    from gistpoint.sandbox import pools

    monkeypatch.setattr(pools, "_CONNECT_S", 0.5)
    told = pytest.raises(InfrastructureError, match=r"no Dask scheduler at 127\.0\.0\.1:9")
    with told as caught, pools.cluster_crew("127.0.0.1:9"):
        pass
    assert "dask scheduler" in caught.value.hint
