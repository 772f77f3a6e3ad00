"""Tries corrupted functions of real libraries by probing and by the whole suite, and compares the two.

A corrupted function returns None at once, or has its first comparison reversed. The verdict is the set of
tests that pass on the original but no longer pass. Prints each disagreement, and a row with the times for
each library; exit code 1 if there was any disagreement, or if a library could not be used.

usage: python tests/studies/probing.py [--count 30] [--seed 0] [--sandbox NAME] [NAME==VERSION|PYTEST
ARGS|EXTRAS]...
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.testmap import TestMap
from gistpoint.core.errors import UserError
from gistpoint.core.generation.intake import Intake, take_in
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import ProbeReport, RunRequest
from gistpoint.core.tasks.model import Target
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.tasks.trees import corrupted_tree
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.candidates.prober import SuiteProber
from gistpoint.sandbox.candidates.recording import SuiteTestMapper
from gistpoint.sandbox.environments.resolver import UvResolver
from gistpoint.sandbox.environments.sources import Fetcher
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.ladder import builtin_backends
from gistpoint.sandbox.testruns import SuiteRunner

LIBRARIES = ("boltons==26.2.0|tests|", "toolz==1.2.0|toolz|", "click==8.5.1|tests|")
FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass
class Tried:
    """The results for one library."""

    agree: int = 0
    seconds: list[float] = field(default_factory=list)
    suites: list[float] = field(default_factory=list)
    how: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)


def corrupted(original: str, flip: bool) -> str | None:
    """Return a corrupted form of a function.

    None if it is a class, or if it should be flipped but has no comparison.
    """
    module = ast.parse(original)
    function = module.body[0]
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    if flip:
        found = next((node for node in ast.walk(function) if isinstance(node, ast.Compare)), None)
        if found is None:
            return None
        found.ops[0] = FLIPPED[type(found.ops[0])]()
    else:
        has_text = ast.get_docstring(function) is not None
        function.body = [*function.body[:has_text], ast.Return(ast.Constant(None))]
    return ast.unparse(ast.fix_missing_locations(module))


def targets(tree: SourceTree, names: list[str]) -> list[Target]:
    """Return a corrupted form of each function that has one, with both kinds in turn."""
    made = []
    for number, name in enumerate(names):
        path, _, qualname = name.partition("::")
        original = index_source(path, tree.read(path)).get(qualname).dedented
        text = corrupted(original, flip=number % 2 == 1) or corrupted(original, flip=False)
        if text is None or ast.unparse(ast.parse(original)) == text:
            continue
        target = Target(path, qualname, original, text)
        try:
            corrupted_tree(tree, (target,))
        except CodeError:
            continue
        made.append(target)
    return made


def by_suite(intake: Intake, target: Target, runner: SuiteRunner) -> tuple[RunStatus, frozenset[str], float]:
    """Return how a run of the whole suite ended, the tests that it broke, and its seconds."""
    repository = intake.repository
    tree = corrupted_tree(repository.tree, (target,))
    began = time.perf_counter()
    report = runner.run(RunRequest(tree, repository.environment, intake.timeout_s, deselect=intake.flaky))
    seconds = time.perf_counter() - began
    broken = intake.passed - report.passed if report.status is RunStatus.FINISHED else frozenset()
    return report.status, broken, seconds


def verdict(status: RunStatus, broken: frozenset[str]) -> object:
    """Return the value to compare: the broken tests of a finished run, otherwise `stopped`."""
    return broken if status is RunStatus.FINISHED else "stopped"


def told(target: Target, report: ProbeReport, status: RunStatus, broken: frozenset[str]) -> None:
    """Print a disagreement."""
    found = frozenset(report.failed)
    print(
        f"  DISAGREE {target.name}: {report.how} {report.status} {len(found)}, suite {status} {len(broken)}"
    )
    print(
        f"    only by probing: {sorted(found - broken)[:3]}; only by the suite: {sorted(broken - found)[:3]}"
    )


def taken_in(library: str, backend: Backend, store: EnvironmentStore, place: Path) -> Intake:
    """Fetch a library, pin its requirements, run its suite, and return the intake."""
    source, arguments, extras = library.split("|")
    fetched, folder = Fetcher().fetch(source, place / "source")
    pins = UvResolver(store, backend).resolve(
        folder,
        extra_requirements=tuple(extras.split()),
        exclude_newer=None,
        pytest_args=tuple(arguments.split()),
    )
    write_tree(folder, place / "tree.tar")
    repository = Repository(fetched, SourceTree.open(place / "tree.tar"), pins)
    return take_in(repository, SuiteRunner(backend, store), runs=2)


def compare(
    intake: Intake, test_map: TestMap, count: int, seed: int, backend: Backend, store: EnvironmentStore
) -> bool:
    """Try `count` functions both ways, and print the results; return whether all verdicts agree."""
    repository, tried = intake.repository, Tried()
    names = sorted(test_map.entered.keys() | test_map.at_import)
    random.Random(seed).shuffle(names)
    runner = SuiteRunner(backend, store)
    prober = SuiteProber(
        backend,
        store,
        repository.tree,
        repository.environment,
        test_map,
        intake.passed,
        seconds=intake.seconds,
    )
    for target in targets(repository.tree, names[: 2 * count])[:count]:
        report = prober.decide((target,))
        status, broken, seconds = by_suite(intake, target, runner)
        tried.seconds.append(report.seconds)
        tried.suites.append(seconds)
        tried.how[report.how] += 1
        tried.statuses[str(status)] += 1
        print(
            f"    {report.how} {report.seconds * 1000:.0f} ms, suite {seconds:.1f} s: "
            f"{len(broken)} broken, {status}: {target.name}",
            flush=True,
        )
        if verdict(report.status, frozenset(report.failed)) == verdict(status, broken):
            tried.agree += 1
        else:
            told(target, report, status, broken)
    prober.close()
    median, suite = statistics.median(tried.seconds), statistics.median(tried.suites)
    print(
        f"  {tried.agree} of {len(tried.seconds)} verdicts agree; median {median * 1000:.0f} ms of {suite:.2f} s, "
        f"1/{suite / median:.0f}; mean {statistics.mean(tried.seconds) * 1000:.0f} ms; {dict(tried.how)}; "
        f"suite: {dict(tried.statuses)}",
        flush=True,
    )
    return tried.agree == len(tried.seconds)


def study(
    library: str, count: int, seed: int, backend: Backend, store: EnvironmentStore, place: Path
) -> bool:
    """Record a library and try `count` of its functions; return whether all verdicts agree."""
    intake = taken_in(library, backend, store, place)
    repository = intake.repository
    mapper = SuiteTestMapper(backend, store)
    test_map, calls = mapper.record(repository.tree, repository.environment, intake.collected)
    print(
        f"{library}: {len(intake.passed)} tests, suite {intake.seconds:.1f} s, recorded in {test_map.seconds:.1f} s: "
        f"{len(test_map.entered)} functions, {len(test_map.at_import)} at import, {len(test_map.opaque)} opaque tests, "
        f"{len(calls)} calls, {len(json.dumps(test_map.to_json())) >> 10} KiB",
        flush=True,
    )
    return compare(intake, test_map, count, seed, backend, store)


def main() -> int:
    """Study each library; return 1 if a verdict differed or a library failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sandbox", default="bwrap")
    parser.add_argument("libraries", nargs="*", default=LIBRARIES)
    options = parser.parse_args()
    backend = builtin_backends()[options.sandbox]()
    fine = True
    with tempfile.TemporaryDirectory() as cache:
        for library in options.libraries:
            with tempfile.TemporaryDirectory() as place:
                try:
                    store = EnvironmentStore(Path(cache))
                    fine &= study(library, options.count, options.seed, backend, store, Path(place))
                except UserError as error:
                    print(f"{library}: {error}")
                    fine = False
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
