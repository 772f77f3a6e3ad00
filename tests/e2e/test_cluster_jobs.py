"""Attempts and replays on a Dask cluster: each is done once, whatever happens, and no lie is kept."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent_runs import LOOK
from builders import build_task
from dask_cluster import LIMIT_S, DaskCluster, scheduler
from scripted_endpoint import completion, endpoint

from gistpoint.core.errors import InfrastructureError
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Task
from gistpoint.sandbox.cluster_steps import cluster_workers
from gistpoint.sessions.agentruns.jobs import JobStatus
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore
from gistpoint.sessions.journal import read_journal
from gistpoint.tui.cli import main

# The tests run in one worker, so that the machines are started only once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]
JOBS = 20


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """A cluster with one worker, whose own home has none of the tasks."""
    folder = tmp_path_factory.mktemp("machines")
    with scheduler(folder) as found:
        found.add(home=folder / "steady")
        yield found


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def task(home: Path) -> Task:
    return build_task(Locations.of_user().tasks)


@pytest.fixture
def odd(machines: DaskCluster, home: Path) -> Iterator[Callable[[str], str]]:
    """A function that adds an odd worker until the end of a test, and returns its address."""
    added: list[subprocess.Popen[bytes]] = []
    steady = machines.present()

    def add(what: str) -> str:
        before = machines.present()
        added.append(machines.add(odd=what, home=home / what.partition(":")[0]))
        return (machines.present() - before).pop()

    yield add
    for worker in added:
        worker.kill()
    machines.wait_for(len(steady))


def words(task: Task, address: str, jobs: int = JOBS) -> list[str]:
    return [
        "agent", "run", task.id, "--model", "builtin:searcher", "--name", "r", "--repeats", str(jobs),
        "--cluster", address, "--allow-unsandboxed",
    ]  # fmt: skip


def the_run() -> AgentRun:
    return AgentRunStore(Locations.of_user().runs).open("r")


def require_each_done_once(jobs: int = JOBS) -> None:
    """Check that each job has ended with an attempt whose journal verifies, and that there is no other."""
    states = the_run().jobs.values()
    assert [state.status for state in states] == [JobStatus.ENDED] * jobs
    folders = {path.parent.name: path for path in Locations.of_user().attempts.glob("*/journal.jsonl")}
    assert len({state.attempt for state in states}) == jobs
    assert folders.keys() == {state.attempt for state in states}
    for state in states:
        content = read_journal(folders[state.attempt])
        assert (content.fault, content.torn) == ("", 0)
        assert content.events[0].data.solver["job"] == state.job.key  # type: ignore[attr-defined]


def test_a_killed_worker_and_a_clock_that_is_wrong(
    task: Task, machines: DaskCluster, odd: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A dead worker's jobs are done elsewhere; attempts made with a wrong clock are kept, and marked."""
    odd("dying")
    ahead = odd("ahead")
    assert main(words(task, machines.address)) == 0
    printed = capsys.readouterr()
    require_each_done_once()
    assert len(machines.present()) == 2
    assert "600 s ahead" in printed.err
    by_it = [state for state in the_run().jobs.values() if ahead in state.worker]
    assert by_it
    assert all(599_000 < state.clock_ms < 601_000 for state in by_it)
    assert {state.clock_ms for state in the_run().jobs.values() if ahead not in state.worker} == {0}
    assert f"{len(by_it)} attempts on a machine whose clock was wrong" in printed.out
    main(["agent", "show", "r", "--json"])
    rows = json.loads(capsys.readouterr().out)["attempts"]
    assert all(0 <= row["wall_s"] < 300 for row in rows), "durations come from the monotonic clock"


def test_lies_are_refused_and_named_and_a_liar_is_left_out(
    task: Task, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The honest worker is slow, so that the liars get jobs until they are excluded."""
    with scheduler(home / "liars") as found:
        found.add(odd="slow", home=home / "honest")
        honest = found.present()
        for number, kind in enumerate(("lying:hash,chain,reply", "lying:task,job,ending")):
            found.add(odd=kind, home=home / f"liar-{number}")
        assert main(words(task, found.address, 12)) == 0
    errors = capsys.readouterr().err
    require_each_done_once(12)
    assert {state.worker.split()[0] for state in the_run().jobs.values()} == honest
    for reason in (
        "the hash that it gave does not match its result",
        "its journal does not verify: Its chain of hashes breaks at line",
        "it returned the reply to another job",
        "its attempt was made on content that differs from the task's",
        "its journal is that of another job",
        "it reports an end of the attempt that differs from its journal",
    ):
        assert reason in errors
    assert errors.count("gets no jobs: 3 jobs failed there; the last reason is that it is rejected: ") == 2


def test_another_version_gets_no_job(
    task: Task, machines: DaskCluster, odd: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    old = odd("old")
    assert main(words(task, machines.address, 2)) == 0
    assert f"{old} (" in (errors := capsys.readouterr().err)
    assert "gets no jobs: it has gistpoint 0.0.1, but " in errors
    require_each_done_once(2)
    with (
        pytest.raises(InfrastructureError, match=r"has gistpoint 0\.0\.1, but"),
        cluster_workers(machines.address),
    ):
        pass


def test_all_attempts_are_replayed_and_a_second_start_goes_on(
    task: Task,
    machines: DaskCluster,
    odd: Callable[[str], str],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    looks, talks = completion(None, LOOK), completion("I think that it is fine.")
    with endpoint(*[looks, talks, talks, talks] * 4) as served:
        made = [
            "agent",
            "run",
            task.id,
            "--model",
            "m",
            "--base-url",
            served.url,
            "--name",
            "r",
            "--repeats",
            "4",
        ]
        assert main([*made, "--at-once", "1", "--allow-unsandboxed"]) == 0
    odd("lying:replay")
    kept = home / "replays.jsonl"
    command = ["replay", "--all", "--cluster", machines.address, "--allow-unsandboxed", "-o", str(kept)]
    capsys.readouterr()
    assert main(command) == 0
    printed = capsys.readouterr()
    assert "4 runs: 4 the same, 0 not the same, 0 not replayed" in printed.out
    assert "is rejected: its report does not have the calls of the run" in printed.err
    lines = kept.read_text().splitlines()
    assert {json.loads(line)["run"] for line in lines} == {state.attempt for state in the_run().jobs.values()}
    kept.write_text("\n".join([*lines[:3], lines[3][:40]]))  # killed while it wrote the last report
    assert main(command) == 0
    assert "replaying 1 of 4 runs" in capsys.readouterr().err
    again = kept.read_text().splitlines()
    assert again[:3] == lines[:3]
    assert json.loads(again[3])["same"] is True


def test_each_attempt_has_its_share_of_what_a_run_may_cost(
    task: Task, machines: DaskCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with endpoint(completion("I think that it is fine.")) as served:
        made = [
            task.id,
            "--model",
            "m",
            "--base-url",
            served.url,
            "--name",
            "r",
            "--repeats",
            "3",
            "--price",
            "1/1",
        ]
        where = ["--cluster", machines.address, "--allow-unsandboxed", "--max-cost"]
        assert main(["agent", "run", *made, *where, "0.000001"]) == 1
        assert {state.problem for state in the_run().jobs.values()} == {"over_cost"}
        assert not served.requests
        assert main(["agent", "resume", "r", "--base-url", served.url, *where, "100"]) == 0
        assert len(served.requests) == 9
    require_each_done_once(3)


def test_interrupted_runs_and_lost_schedulers_lose_nothing(
    task: Task, home: Path, machines: DaskCluster
) -> None:
    """Ctrl+C, then a killed scheduler, then a start that completes the run."""
    with scheduler(home / "slow") as slow:
        for name in ("one", "two"):
            slow.add(odd="slow", home=home / name)
        child = started(words(task, slow.address))
        ended = wait_for_ended(1)
        child.send_signal(signal.SIGINT)
        _, output = child.communicate(timeout=LIMIT_S)
        assert child.returncode == 130, output
        assert "stopped at your request" in output
        kept = wait_for_ended(ended)
        assert kept < JOBS
        child = started(words(task, slow.address))
        assert wait_for_ended(kept + 1) < JOBS
    _, output = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 1, output
    assert f"The Dask scheduler at {slow.address} no longer answers. The results so far are kept." in output
    before = {key: state.attempt for key, state in the_run().jobs.items() if state.attempt}
    assert main(words(task, machines.address)) == 0
    require_each_done_once()
    assert before.items() <= {key: state.attempt for key, state in the_run().jobs.items()}.items()


def started(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "gistpoint", *command], stderr=subprocess.PIPE, text=True)


def wait_for_ended(least: int) -> int:
    """Wait until at least `least` jobs have ended; return the number that have."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if (Locations.of_user().runs / "r" / "jobs.jsonl").is_file():
            found = sum(state.status is JobStatus.ENDED for state in the_run().jobs.values())
            if found >= least:
                return found
        time.sleep(0.02)
    raise AssertionError(f"fewer than {least} jobs have ended")
