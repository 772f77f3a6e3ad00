"""Times the first relevant failing test: failing tests first, against the suite's order and plain pytest.

In each library, one function is broken that tests in the middle of the suite call. All runs are full runs,
which differ only in the order. The plain run is pytest itself, which prints its summary at the end. Sdists
come from the package index.

usage: python tests/benchmarks/feedback.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import replace_definition
from gistpoint.core.outcomes import Outcome
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.environments.sources import Fetcher
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.testruns import SuiteRunner


@dataclass(frozen=True)
class Case:
    sdist: str
    root: str
    arguments: tuple[str, ...]
    path: str
    function: str
    body: str


CASES = (
    Case("boltons==25.0.0", ".", ("tests",), "boltons/urlutils.py", "parse_url", "return {}"),
    Case(
        "more-itertools==10.5.0",
        ".",
        ("tests",),
        "more_itertools/recipes.py",
        "triplewise",
        "return iter(())",
    ),
    Case("click==8.1.7", "src", ("tests",), "src/click/utils.py", "format_filename", 'return ""'),
)


def first_failure(runner: SuiteRunner, request: RunRequest) -> tuple[float, float, tuple[str, ...]]:
    """Return the seconds to the first failure, those of the whole run, and the failing ids."""
    began = time.perf_counter()
    seen: list[float] = []

    def look(progress: RunProgress) -> None:
        if (
            progress.latest is not None
            and progress.latest.outcome in (Outcome.FAILED, Outcome.ERROR)
            and not seen
        ):
            seen.append(time.perf_counter() - began)

    report = runner.run(request, run=RunContext(progress=look))
    whole = time.perf_counter() - began
    return (seen or [whole])[0], whole, tuple(result.id for result in report.failed)


def broken(tree: SourceTree, case: Case) -> SourceTree:
    """Return the tree with the case's function broken."""
    index = index_source(case.path, tree.read(case.path))
    definition = index.get(case.function)
    head = f"{definition.signature}:\n    {case.body}\n"
    return tree.with_files({case.path: replace_definition(index, definition, head)})


def main() -> None:
    """Fetch and break each library, run it three times each way, and print medians and ratios."""
    backend = choose(None, consented=True)
    print(f"on {backend.name}; seconds, medians of three")
    print("library\tfails\tfirst failure: suite's order\tfailing first\tplain pytest, whole\tratio to plain")
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        base.chmod(0o755)
        runner = SuiteRunner(backend, EnvironmentStore(base / "cache"))
        for case in CASES:
            _, folder = Fetcher().fetch(case.sdist, base / f"{case.sdist}-source")
            write_tree(folder, base / f"{case.sdist}.tar")
            tree = broken(SourceTree.open(base / f"{case.sdist}.tar"), case)
            pins = EnvironmentPins(import_roots=(case.root,), pytest_args=(*case.arguments, "-o", "addopts="))
            request = RunRequest(tree, pins, timeout_s=300)
            rows: list[tuple[float, float, float]] = []
            for _ in range(3):
                slow, _, failing = first_failure(runner, request)
                fast, _, _ = first_failure(runner, RunRequest(tree, pins, timeout_s=300, first=failing))
                rows.append((slow, fast, _plain(base, tree, case)))
            slow, fast, whole = (sorted(column)[1] for column in zip(*rows, strict=True))
            print(
                f"{case.sdist}\t{len(failing)}\t{slow:.2f}\t{fast:.2f}\t{whole:.2f}\t{fast / whole:.2f}",
                flush=True,
            )


def _plain(base: Path, tree: SourceTree, case: Case) -> float:
    from gistpoint.sandbox.layout import lay_out

    with tempfile.TemporaryDirectory(dir=base) as folder:
        lay_out(tree, Path(folder) / "tree")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *case.arguments,
            "-o",
            "addopts=",
        ]
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(folder) / "tree" / case.root)}
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        began = time.perf_counter()
        subprocess.run(command, cwd=Path(folder) / "tree", env=environment, capture_output=True, check=False)
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
