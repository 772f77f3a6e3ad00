"""Campaigns in processes: killed ones continue, and the tasks are the same wherever they are decided."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from dask_cluster import cluster
from small_library import write_small_library

# The tests run in one process, so that the tasks of two workers are made only once.
pytestmark = pytest.mark.xdist_group("campaigns")
CHILD = Path(__file__).parents[1] / "campaign_child.py"
COUNT, KILLS = 2, 2


def start(folder: Path, *options: str, after: Path | None = None) -> subprocess.Popen[str]:
    """Start or resume a campaign on the small library; all of its data is kept in the folder.

    A campaign `after` another one uses its environment and its knowledge of the library.
    """
    if not folder.is_dir():
        write_small_library(folder / "shop")
        if after is not None:
            shutil.copytree(after / "library", folder / "library")
            (folder / "cache").symlink_to(after / "cache")
    command = [sys.executable, str(CHILD), str(folder / "shop"), str(folder), "remove", str(COUNT), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def ids_of(child: subprocess.Popen[str]) -> list[str]:
    output, _ = child.communicate()
    assert child.returncode == 0
    return output.split()


def tasks_in(folder: Path) -> set[str]:
    """Return the ids of the finished tasks; a task that a killed process had begun has a hidden name."""
    return {path.name for path in (folder / "tasks").iterdir() if not path.name.startswith(".")}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the campaign with two workers."""
    return tmp_path_factory.mktemp("campaigns") / "two"


@pytest.fixture(scope="module")
def two(place: Path) -> list[str]:
    """The ids of the tasks that two local workers make without an interruption."""
    ids = ids_of(start(place, "--workers", "2"))
    assert len(ids) == COUNT
    assert tasks_in(place) == set(ids)
    return ids


@pytest.mark.slow
def test_killed_campaign_goes_on_and_ends_as_one_that_was_not(tmp_path: Path, two: list[str]) -> None:
    """After kills during learning and deciding, no task is lost and none exists twice."""
    folder, chance = tmp_path / "killed", random.Random(5)
    known = folder / "library" / "intake.json"
    assert killed(folder, known.is_file, chance.random() / 2)
    deciding = 0
    for _ in range(KILLS):
        seen = _lines(folder)
        deciding += killed(folder, lambda seen=seen: _lines(folder) > max(seen, 1), chance.random() / 20)
    assert deciding
    assert ids_of(start(folder, "--workers", "2")) == two
    assert tasks_in(folder) == set(two)
    lines = [json.loads(line) for line in (folder / "state.jsonl").read_bytes().splitlines()]
    keys = [line["key"] for line in lines if "key" in line]
    assert len(keys) == len(set(keys)) > 0


def killed(folder: Path, when: Callable[[], bool], later: float) -> bool:
    """Start the campaign, and kill its first process `later` seconds after `when` returns True.

    Check that all of its other processes end too. Return whether it was killed before its end.
    """
    child = start(folder, "--workers", "2")
    while child.poll() is None and not when():
        time.sleep(0.02)
    time.sleep(later)
    others = psutil.Process(child.pid).children(recursive=True) if child.poll() is None else []
    child.kill()
    child.communicate()
    _, alive = psutil.wait_procs(others, timeout=300)
    assert not alive
    return child.returncode != 0


def _lines(folder: Path) -> int:
    state = folder / "state.jsonl"
    return state.read_bytes().count(b"\n") if state.is_file() else 0


@pytest.mark.slow
def test_tasks_are_the_same_with_one_worker_with_two_and_on_a_cluster(
    tmp_path: Path, place: Path, two: list[str]
) -> None:
    one = ids_of(start(tmp_path / "one", "--workers", "1", after=place))
    with cluster(tmp_path, 2) as address:
        many = ids_of(start(tmp_path / "many", "--cluster", address, after=place))
    assert one == two == many
    assert tasks_in(tmp_path / "one") == tasks_in(tmp_path / "many") == set(two)


def test_address_without_a_scheduler_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gistpoint.core.errors import InfrastructureError
    from gistpoint.sandbox import cluster as crew
    from gistpoint.sandbox import cluster_steps

    monkeypatch.setattr(crew, "_CONNECT_S", 0.5)
    refusal = pytest.raises(InfrastructureError, match=r"no Dask scheduler at 127\.0\.0\.1:9")
    with refusal as caught, cluster_steps.cluster_workers("127.0.0.1:9"):
        pass
    assert "dask scheduler" in caught.value.hint
