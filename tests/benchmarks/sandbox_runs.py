"""Times starting a trivial command and running a whole suite, on each backend and in plain processes.

usage: python tests/benchmarks/sandbox_runs.py [--backends bwrap,docker] [FOLDER [PYTEST_ARGUMENT]...]
Prints the ratios. Without a folder: the demo's library. A folder's requirements are resolved by uv, from its
index or cache.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.backends.base import Backend, probe_command
from gistpoint.sandbox.backends.docker.backend import DockerBackend
from gistpoint.sandbox.environments.projects import read_project
from gistpoint.sandbox.environments.resolver import UvResolver
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.ladder import builtin_backends, choose
from gistpoint.sandbox.testruns import SuiteRunner

RUNS = 5
DEMO = Path(__file__).resolve().parents[2] / "core" / "demo" / "library"


def median_ms(work: Callable[[], object], pause: Callable[[], object] = lambda: None) -> float:
    """Return the median time of `work` in milliseconds; `pause` is not counted."""
    taken = []
    for _ in range(RUNS):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1000)
        pause()
    return statistics.median(taken)


def settle(backend: Backend) -> None:
    """Give Docker time to prepare the next run, as pauses for editing would; do nothing on other backends."""
    if isinstance(backend, DockerBackend):
        time.sleep(1.5)


def pins_of(folder: Path, arguments: tuple[str, ...], store: EnvironmentStore) -> EnvironmentPins:
    """Return the pins that uv resolves, or pytest alone for a project without requirements."""
    project = read_project(folder)
    if folder == DEMO or (project.requirements == () and not project.test_requirements):
        return EnvironmentPins(
            import_roots=project.import_roots, pytest_args=arguments, metadata=project.metadata()
        )
    resolver = UvResolver(store, choose(None, consented=False))
    return resolver.resolve(folder, extra_requirements=(), exclude_newer=None, pytest_args=arguments)


def plain_pytest(folder: Path, pins: EnvironmentPins, python: Path) -> Callable[[], object]:
    """Return a function that runs the suite without any part of gistpoint."""
    roots = os.pathsep.join(str(folder / root) for root in pins.import_roots)
    command = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        *pins.pytest_args,
    ]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": roots, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return lambda: subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)


def main(names: list[str], folder: Path, arguments: tuple[str, ...]) -> int:
    """Measure and print; return 1 if backends disagree about the passing tests, else 0."""
    passed: dict[str, frozenset[str]] = {}
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        store = EnvironmentStore(base / "cache")
        pins = pins_of(folder, arguments, store)
        environment = store.get(pins, choose(None, consented=False))
        write_tree(folder, base / "tree.tar")
        tree = SourceTree.open(base / "tree.tar")
        python = environment.folder / "bin" / "python"
        bare = median_ms(lambda: subprocess.run([sys.executable, "-I", "-c", "pass"], check=True))
        suite = median_ms(plain_pytest(folder, pins, python))
        print(f"{folder.name}: plain subprocess {bare:.0f} ms, plain pytest {suite:.0f} ms")
        for name in names:
            backend = builtin_backends()[name]()
            probe = backend.probe()
            if not probe.works:
                print(f"  {name}: {probe.why_not}")
                continue
            (base / name).mkdir()
            command = probe_command(base / name, b"x")
            backend.run(command, on_line=lambda line: None)
            settle(backend)
            start = median_ms(
                lambda backend=backend, command=command: backend.run(command, on_line=lambda line: None),
                lambda backend=backend: settle(backend),
            )
            runner = SuiteRunner(backend, store)
            request = RunRequest(tree, pins, timeout_s=600)
            report = runner.run(request)
            passed[name] = report.passed
            settle(backend)
            whole = median_ms(
                lambda runner=runner, request=request: runner.run(request),
                lambda backend=backend: settle(backend),
            )
            print(
                f"  {name}: trivial command {start:.0f} ms ({start / bare:.1f} x), suite {whole:.0f} ms "
                f"({whole / suite:.2f} x, {whole - suite:+.0f} ms), {report.status}, {len(report.passed)} passed"
            )
            if isinstance(backend, DockerBackend):
                backend.close()
    return int(len(set(passed.values())) > 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backends", default="plain,bwrap,docker")
    parser.add_argument("folder", nargs="?", type=Path, default=DEMO)
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    sys.exit(main(options.backends.split(","), options.folder.resolve(), tuple(options.arguments)))
