"""Measures how much faster two and four workers of a cluster do jobs of generation, agents and replays.

Usage: PYTHONPATH=src:tests python tests/studies/cluster_gain.py [JOBS [SECONDS]] (default: 16, 3)

Workers on one machine share its cores, so each job waits for some seconds before its work, like a job that
waits for a model. For each kind, prints the number of jobs, how many times as fast the workers are as one
(from the start of the first job to the end of the last one), and the command's processor time per job, which
no number of workers shortens. Exit code 1 if two workers are less than 1.7 times as fast as one, or four less
than 3 times.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

from dask_cluster import DaskCluster, scheduler  # noqa: E402
from small_library import write_small_library  # noqa: E402

from gistpoint.core.demo.tasks import demo_task  # noqa: E402

LEAST = {2: 1.7, 4: 3.0}
Command = Callable[[str, str], list[str]]
"""Returns a command, given the address of the cluster and a new name."""


def gistpoint(*words: str) -> list[str]:
    return [sys.executable, "-m", "gistpoint", *words]


def agents(home: Path, jobs: int) -> Command:
    task = demo_task("remove", home / "cache" / "demo").id
    return lambda address, name: gistpoint(
        *("agent", "run", task, "--model", "builtin:searcher", "--name", name, "--repeats", str(jobs)),
        *("--cluster", address, "--allow-unsandboxed", "--json"),
    )


def replays(home: Path, jobs: int) -> Command:
    """Return the command that replays all attempts in the home, which `agents` has made."""
    return lambda address, name: gistpoint("replay", "--all", "--cluster", address, "--allow-unsandboxed")


def generation(home: Path, jobs: int) -> Command:
    """Analyze a small library, and return the command that runs a campaign on it."""
    child, learned = TESTS / "campaign_child.py", home / "learned"

    def of(folder: Path, *where: str) -> list[str]:
        return [sys.executable, str(child), str(learned / "shop"), str(folder), "remove", "99", *where]

    write_small_library(learned / "shop", modules=-(-jobs // 5))
    subprocess.run(of(learned, "--workers", "1", "--learn-only"), check=True, stdout=subprocess.DEVNULL)

    def command(address: str, name: str) -> list[str]:
        folder = home / name
        shutil.copytree(learned / "library", folder / "library")
        (folder / "cache").symlink_to(learned / "cache")
        return of(folder, "--cluster", address)

    return command


def measured(machines: DaskCluster, command: Command, name: str, log: Path) -> tuple[int, float, float]:
    """Run a command; return the number of jobs, the seconds that they took, and its CPU seconds per job."""
    log.write_text("")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command(machines.address, name), check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    times = [[float(word) for word in row.split()] for row in log.read_text("ascii").splitlines()]
    span = max(end for _, end in times) - min(start for start, _ in times)
    return len(times), span, spent / len(times)


def main() -> int:
    given = [float(word) for word in sys.argv[1:]]
    jobs, wait_s = int(given[0]) if given else 16, given[1] if len(given) > 1 else 3.0
    spans: dict[str, dict[int, float]] = {}
    with tempfile.TemporaryDirectory(prefix="gistpoint-gain-") as place:
        folder, home = Path(place), Path(place) / "home"
        os.environ |= {"GISTPOINT_HOME": str(home), "ODD_WORKER_LOG": str(folder / "log")}
        kinds = {make.__name__: make(home, jobs) for make in (agents, replays, generation)}
        for workers in (1, 2, 4):
            with scheduler(folder / f"cluster-{workers}") as machines:
                for number in range(workers):
                    machines.add(odd=f"waiting:{wait_s}", home=folder / f"machine-{number}")
                warm = agents(home, 3 * workers)(machines.address, f"warm-{workers}")
                subprocess.run(warm, check=True, stdout=subprocess.DEVNULL)
                shutil.rmtree(home / "data" / "attempts")
                for kind, command in kinds.items():
                    count, span, spent = measured(machines, command, f"{kind}-{workers}", folder / "log")
                    spans.setdefault(kind, {})[workers] = span
                    print(
                        f"{kind}, {workers} workers: {count} jobs, {spans[kind][1] / span:.2f} times one,"
                        f" the command's own processor time {1000 * spent:.0f} ms a job",
                        flush=True,
                    )
    gains = [
        found[1] / found[workers] >= least for found in spans.values() for workers, least in LEAST.items()
    ]
    return int(not all(gains))


if __name__ == "__main__":
    sys.exit(main())
