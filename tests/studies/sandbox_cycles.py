"""Runs a small suite repeatedly on one backend, kills every tenth run, and searches for leftovers.

No container, mount, process or temporary folder may be left over. Prints the findings; exit code 1 if there
is any.

usage: python tests/studies/sandbox_cycles.py BACKEND [RUNS]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import CancelToken, RunContext, RunProgress
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.backends.docker.backend import DockerBackend
from gistpoint.sandbox.backends.docker.containers import OWNER, this_program
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.ladder import builtin_backends
from gistpoint.sandbox.testruns import SuiteRunner

SUITE = """
import os, subprocess, sys, time
def test_quick(): pass
def test_daemon():
    if os.fork() == 0:
        os.setsid()
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)  # {mark}"])
        time.sleep(600)
def test_last(): time.sleep({seconds})
"""


def tree_of(folder: Path, mark: str, seconds: int) -> SourceTree:
    """Write the suite, which leaves a daemon with `mark` on its command line, and open it."""
    (folder / f"suite{seconds}").mkdir()
    (folder / f"suite{seconds}" / "test_a.py").write_text(SUITE.format(mark=mark, seconds=seconds))
    write_tree(folder / f"suite{seconds}", folder / f"tree{seconds}.tar")
    return SourceTree.open(folder / f"tree{seconds}.tar")


def processes_with(mark: str) -> list[str]:
    """Return the ids of processes whose command line contains `mark`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in entry.read_bytes():
                found.append(entry.parent.name)
        except OSError:
            continue
    return found


def containers() -> list[str]:
    """Return the ids of the engine's containers that belong to this program."""
    from gistpoint.sandbox.backends.docker.engine import connect

    found = connect().client.api.containers(all=True, filters={"label": f"{OWNER}={this_program()}"})
    return sorted(str(container["Id"]) for container in found)


def main(name: str, runs: int) -> int:
    """Run and kill suites, and print the leftovers; return 1 if there are any, otherwise 0."""
    mark = f"mark-{os.urandom(6).hex()}"
    with tempfile.TemporaryDirectory() as place:
        base, temporary = Path(place), Path(place) / "temporary"
        temporary.mkdir()
        backend = builtin_backends()[name]()
        runner = SuiteRunner(backend, EnvironmentStore(base / "cache"))
        trees = [tree_of(base, mark, 0), tree_of(base, mark, 600)]
        tempfile.tempdir = str(temporary)
        before = containers() if name == "docker" else []
        mounts = Path("/proc/self/mountinfo").read_text()
        statuses: Counter[str] = Counter()
        began = time.perf_counter()
        for number in range(runs):
            cancel, killed = CancelToken(), number % 10 == 1

            def look(progress: RunProgress, cancel: CancelToken = cancel, killed: bool = killed) -> None:
                if killed and progress.done == 2:
                    cancel.cancel()

            request = RunRequest(trees[killed], EnvironmentPins(), timeout_s=60)
            statuses[str(runner.run(request, run=RunContext(cancel, look)).status)] += 1
        seconds = time.perf_counter() - began
        if isinstance(backend, DockerBackend):
            backend.close()
        left = {
            "containers": sorted(set(containers()) - set(before)) if name == "docker" else [],
            "processes": processes_with(mark),
            "folders": [path.name for path in temporary.iterdir()],
            "mounts": sorted(
                set(Path("/proc/self/mountinfo").read_text().splitlines()) - set(mounts.splitlines())
            ),
        }
        tempfile.tempdir = None
    print(f"{name}: {runs} runs in {seconds:.0f} s ({seconds / runs * 1000:.0f} ms each): {dict(statuses)}")
    for kind, found in left.items():
        print(f"  {kind} left: {len(found)} {' '.join(found)[:200]}")
    return int(any(left.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200))
