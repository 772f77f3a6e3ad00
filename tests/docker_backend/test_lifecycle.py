"""Lifecycle of containers: one per run, the next one waiting, and none left over, whatever is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gistpoint.core.outcomes import RunStatus
from gistpoint.core.running import CancelToken
from gistpoint.sandbox.backends.docker import backend as docker_backend
from gistpoint.sandbox.backends.docker import containers
from gistpoint.sandbox.backends.docker.backend import DockerBackend
from gistpoint.sandbox.backends.docker.containers import OWNER, this_program
from gistpoint.sandbox.backends.docker.engine import Engine, connect
from gistpoint.sandbox.limits import RunLimits

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("machine")]

GREEN = {"test_a.py": "def test_a(): pass\n"}
HANGS = {"test_a.py": "import time\ndef test_a(): time.sleep(600)\n"}


@pytest.fixture
def engine(shared: DockerBackend) -> Engine:
    shared.close()
    return connect()


@pytest.fixture
def ours(engine: Engine) -> Callable[[], dict[str, str]]:
    """A function that returns the states, by id, of the containers that this program made during the test.

    Earlier ones are left out, because backends of other tests may keep a container.
    """

    def found() -> dict[str, str]:
        found = engine.client.api.containers(all=True, filters={"label": f"{OWNER}={this_program()}"})
        return {str(container["Id"]): str(container["State"]) for container in found}

    before = set(found())
    return lambda: {name: state for name, state in found().items() if name not in before}


def wait_until(true) -> None:
    deadline = time.monotonic() + 300
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_each_run_has_a_container_of_its_own_and_the_next_one_waits(run, engine, ours):
    backend = DockerBackend()
    used: list[set[str]] = []
    waiting: list[set[str]] = []

    def look(progress) -> None:
        if progress.latest is not None:
            used.append(set(ours()))

    def only_the_next_one() -> bool:
        return list(ours().values()) == ["running"] and not set(ours()) & used[-1]

    for _ in range(3):
        assert run(GREEN, backend=backend, on_progress=look).passed
        wait_until(only_the_next_one)
        waiting.append(set(ours()))
    assert used[1:] == waiting[:-1]
    assert len(set().union(*used, *waiting)) == 4
    backend.close()
    assert ours() == {}


def test_a_waiting_container_that_died_costs_nothing(run, engine, ours):
    backend = DockerBackend()
    assert run(GREEN, backend=backend).passed
    wait_until(lambda: list(ours().values()) == ["running"])
    (waiting,) = ours()
    containers.remove(engine, waiting)
    assert run(GREEN, backend=backend).passed
    backend.close()


def test_a_container_ended_from_outside_is_no_verdict(run, engine, ours):
    def end(progress) -> None:
        if progress.phase == "running":
            for found in ours():
                containers.remove(engine, found)

    report = run(HANGS, on_progress=end)
    assert (report.status, report.passed) == (RunStatus.HARNESS_FAILED, frozenset())
    assert report.reason


def test_cancel_does_not_wait_for_the_engine_to_tidy_up(run, engine):
    cancel = CancelToken()
    threading.Timer(1.5, cancel.cancel).start()
    assert run(HANGS, cancel=cancel).status is RunStatus.CANCELLED


def test_an_image_removed_meanwhile_is_built_again(run, engine):
    backend = DockerBackend()
    assert run(GREEN, backend=backend).passed
    backend.close()
    for image in set(backend._images.values()):
        engine.client.images.remove(image, force=True)
    assert run(GREEN, backend=backend).passed
    backend.close()


def test_only_what_dead_programs_of_ours_left_is_removed(run, engine):
    backend = DockerBackend()
    assert run(GREEN, backend=backend).passed
    image = next(iter(backend._images.values()))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    version, place, boot, _, _ = this_program().split("/")
    owners = {
        "gone": f"{version}/{place}/{boot}/{ended.pid}/1",
        "another boot": f"{version}/{place}/before/1/1",
        "alive": this_program(),
        "another machine": f"{version}/elsewhere/{boot}/{ended.pid}/1",
        "nobody": "",
    }
    made = {}
    for name, owner in owners.items():
        labels = {"io.gistpoint.kind": "run", **({OWNER: owner} if owner else {})}
        made[name] = engine.client.api.create_container(image, command=["/bin/sh"], labels=labels)["Id"]
    stranger = engine.client.api.create_container(image, command=["/bin/sh"])["Id"]
    try:
        containers.remove_leftovers(engine)  # another program that connects at the same time does so too
        left = {str(found["Id"]) for found in engine.client.api.containers(all=True)}
        assert {made["alive"], made["another machine"], made["nobody"], stranger} <= left
        assert not {made["gone"], made["another boot"]} & left
    finally:
        for identity in (*made.values(), stranger):
            containers.remove(engine, identity)
        backend.close()


def test_ten_runs_a_fifth_of_them_killed_leave_nothing(run, engine, tmp_path, monkeypatch, ours):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    mark = f"mark-{os.urandom(6).hex()}"
    before = ours().keys()
    backend = DockerBackend()
    statuses = []
    for number in range(10):
        cancel = CancelToken()

        def kill(progress, cancel=cancel) -> None:
            if progress.phase == "running":
                cancel.cancel()

        killed = number % 5 == 2
        files = {"test_a.py": f"import time\ndef test_a(): time.sleep({600 if killed else 0})  # {mark}\n"}
        statuses.append(
            run(
                files, backend=backend, cancel=cancel, on_progress=kill if killed else lambda progress: None
            ).status
        )
    backend.close()
    assert statuses.count(RunStatus.FINISHED) == 8
    assert statuses.count(RunStatus.CANCELLED) == 2
    assert ours().keys() <= before
    assert list((tmp_path / "temporary").iterdir()) == []
    commands = [entry.read_bytes() for entry in Path("/proc").glob("[0-9]*/cmdline") if entry.exists()]
    assert not [
        command for command in commands if b"container_entry.py" in command and mark.encode() in command
    ]


def test_limits_that_the_engine_ignores_are_recorded_and_set_inside(run, engine):
    backend = DockerBackend()
    backend._engine = replace(engine, not_enforced=("memory", "processes", "cpus"))
    body = """
import os, time
def test_a():
    children = []
    try:
        for _ in range(200):
            child = os.fork()
            if child == 0:
                time.sleep(20); os._exit(0)
            children.append(child)
    except BlockingIOError: pass
    for child in children: os.kill(child, 9)
    assert len(children) < 60
"""
    report = run({"test_a.py": body}, backend=backend, limits=RunLimits(processes=60))
    backend.close()
    assert report.passed, report
    assert report.backend.limits["not_enforced"] == "memory, processes, cpus"
    assert "not_enforced" not in DockerBackend().record(RunLimits()).limits


def test_a_container_that_nobody_ends_ends_itself(run, engine, monkeypatch):
    """As after the death of an engine, nothing is closed or killed."""
    kept: list[containers.DockerContainer] = []
    monkeypatch.setattr(docker_backend, "_GRACE_S", 1.0)
    monkeypatch.setattr(containers.DockerContainer, "kill", lambda container: kept.append(container))
    monkeypatch.setattr(docker_backend.Conversation, "close", lambda conversation: None)
    monkeypatch.setattr(docker_backend.WaitingContainer, "replace", lambda *arguments, **more: None)
    assert run(HANGS, timeout_s=2).status is RunStatus.TIMED_OUT
    (container,) = kept
    assert container.state()["ExitCode"] == 4
    containers.remove(engine, container.id)
