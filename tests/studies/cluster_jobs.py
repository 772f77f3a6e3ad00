"""Runs many small jobs on a Dask cluster, kills some of its workers, and checks that each job is done once.

Usage: PYTHONPATH=src:tests python tests/studies/cluster_jobs.py [JOBS [WORKERS [KILLS [FEWER]]]] (default:
2000, 4, 2, 200). Each worker has a separate home without the tasks; a killed one is not replaced. A job is an
attempt of the built-in solver at a task that it gives up on, so the time to and from the worker is measured.
Then FEWER jobs are done by one worker and by all, in turn, three times. Prints counts, times and the ratio.
Exit code 1 if the command failed, a job has not ended, has no attempt or has several, a journal does not
verify, or an attempt belongs to no job.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median

from dask_cluster import DaskCluster, scheduler

from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.locations import Locations
from gistpoint.sessions.agentruns.jobs import JobStatus
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore
from gistpoint.sessions.journal import read_journal


def begun(home: Path, name: str, address: str, jobs: int) -> subprocess.Popen[bytes]:
    """Start the command that runs the jobs."""
    words = [
        "agent",
        "run",
        task_id(home),
        "--model",
        "builtin:searcher",
        "--name",
        name,
        "--repeats",
        str(jobs),
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "gistpoint", *words, "--cluster", address, "--allow-unsandboxed", "--json"],
        env={**os.environ, "GISTPOINT_HOME": str(home)},
        stdout=subprocess.DEVNULL,
    )


def task_id(home: Path) -> str:
    """Return the id of the demo's remove task, which the solver gives up on."""
    return demo_task("remove", home / "cache" / "demo").id


def run_named(home: Path, name: str) -> AgentRun | None:
    store = AgentRunStore(home / "data" / "runs")
    return store.open(name) if name in store.names() else None


def ended(home: Path, name: str) -> int:
    found = run_named(home, name)
    return 0 if found is None else len(found.jobs) - len(found.left)


def wrong(home: Path, name: str, jobs: int) -> list[str]:
    """Return the violations found after a run, as sentences."""
    run = run_named(home, name)
    assert run is not None
    found = []
    if len(run.jobs) != jobs or any(state.status is not JobStatus.ENDED for state in run.jobs.values()):
        found.append(f"{jobs - len(run.jobs) + len(run.left)} jobs have not ended")
    folders = {path.parent.name: path for path in (home / "data" / "attempts").glob("*/journal.jsonl")}
    owners = Counter[str]()
    for id, path in folders.items():
        content = read_journal(path)
        begun = content.events[0].data
        if content.fault or content.torn:
            found.append(f"{id} does not verify: {content.fault}")
        if isinstance(begun, AttemptStarted) and (begun.solver or {}).get("run") == name:
            key = str((begun.solver or {}).get("job"))
            owners[key] += 1
            if key not in run.jobs or run.jobs[key].attempt != id:
                found.append(f"{id} is not the attempt of its job")
    found += [f"{key[:12]} has {owners[key]} attempts" for key in run.jobs if owners[key] != 1]
    return found


def with_kills(home: Path, machines: DaskCluster, workers: int, jobs: int, kills: int) -> list[str]:
    """Run the jobs while workers are killed at random moments; return the violations."""
    victims = [machines.add(home=machines.folder / f"machine-{number}") for number in range(workers)]
    chance = random.Random(18)
    moments = sorted(chance.sample(range(jobs // 10, jobs * 9 // 10), kills))
    began = time.monotonic()
    child = begun(home, "kills", machines.address, jobs)
    for moment in moments:
        while ended(home, "kills") < moment and child.poll() is None:
            time.sleep(0.05)
        assert child.poll() is None, "all was done before the kill"
        victim = victims.pop(chance.randrange(len(victims)))
        victim.send_signal(signal.SIGKILL)
        print(f"a worker is killed after {ended(home, 'kills')} jobs", flush=True)
    code = child.wait()
    seconds = time.monotonic() - began
    run = run_named(home, "kills")
    assert run is not None
    by_worker = Counter(state.worker.split()[0] for state in run.jobs.values())
    print(f"{jobs} jobs on {workers} workers, {kills} killed: exit code {code}, {seconds:.1f} s", flush=True)
    print(f"jobs by worker: {sorted(by_worker.values(), reverse=True)}", flush=True)
    for victim in victims:
        victim.kill()
        victim.wait()
    machines.wait_for(0)
    return [*wrong(home, "kills", jobs), *(["the command failed"] if code else [])]


def timed(home: Path, folder: Path, name: str, workers: int, jobs: int) -> float:
    """Return the seconds that a number of workers take for the jobs, after a warm-up."""
    with scheduler(folder / name) as machines:
        for number in range(workers):
            machines.add(home=folder / name / f"machine-{number}")
        begun(home, f"{name}-warm", machines.address, 8 * workers).wait()
        began = time.monotonic()
        assert begun(home, name, machines.address, jobs).wait() == 0
        return time.monotonic() - began


def main() -> int:
    given = [int(word) for word in sys.argv[1:]]
    jobs, workers, kills, fewer = [*given, *(2000, 4, 2, 200)[len(given) :]]
    with tempfile.TemporaryDirectory(prefix="gistpoint-cluster-") as place:
        folder, home = Path(place), Path(place) / "home"
        os.environ["GISTPOINT_HOME"] = str(home)
        assert Locations.of_user().data == home / "data"
        with scheduler(folder / "kills") as machines:
            found = with_kills(home, machines, workers, jobs, kills)
        print(
            "\n".join(found) or f"each of {jobs} jobs was done once: {jobs} attempts, whole, no other",
            flush=True,
        )
        ratios = []
        for turn in range(3):
            one = timed(home, folder, f"one-{turn}", 1, fewer)
            many = timed(home, folder, f"many-{turn}", workers, fewer)
            ratios.append(one / many)
            print(
                f"{fewer} jobs: {one:.1f} s by one worker, {many:.1f} s by {workers}: {one / many:.2f}",
                flush=True,
            )
        print(f"median: {median(ratios):.2f} times as fast with {workers} workers on {os.cpu_count()} cores")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
