"""Unproven single-function tasks from the demo's library, for simulated studies.

Code and metrics are real, but no test is run on a corrupted function: all tests that enter it count as
failing. The tasks are therefore made instantly and can be attempted, but nobody has shown that they are fair;
their provenance says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from shutil import copytree
from typing import Any

from gistpoint.core.callgraph import build_call_graph
from gistpoint.core.code.index import index_source
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.code.testmap import TestMap
from gistpoint.core.corruption.corruptions import enumerate_corruptions
from gistpoint.core.corruption.subject import Vocabulary, read_vocabulary
from gistpoint.core.demo.building import PINS, VERSION, library_tree
from gistpoint.core.demo.tasks import LIBRARY, SECRET, unpack_demo
from gistpoint.core.errors import UserError
from gistpoint.core.generation.intake import CorruptionProof, Intake, NoGood, NoTaskError
from gistpoint.core.generation.making import write_proven
from gistpoint.core.generation.removal import definitions, removal_target
from gistpoint.core.kinds.folder import read_answer, read_task, write_task
from gistpoint.core.metrics.table import FunctionMetrics, measure_functions, standings
from gistpoint.core.outcomes import Outcome, RunStatus, SuiteReport, TestResult
from gistpoint.core.tasks.model import Answer, Mode, Source, Target, Task
from gistpoint.core.tasks.protection import Protection
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.tasks.trees import corrupted_tree
from gistpoint.core.trees import SourceTree
from gistpoint.core.unfinished import scratch_folder

BACKEND = "none"
"""The name that a task records in place of a backend, because no test was run for it."""
NOT_PROVEN = "not proven: for simulated studies"
LEAST_LINES = 2


@dataclass(frozen=True)
class DemoLibrary:
    """The demo's library, with its suite's results as recorded in the demo's tasks."""

    tree: SourceTree
    known: Answer
    """The answer of one of the demo's repairs."""
    suite: Task

    @classmethod
    def unpacked(cls, scratch: Path, demo: Path) -> DemoLibrary:
        """Return the library.

        Its tree is packed below `scratch`; the demo's tasks are unpacked below `demo`.
        """
        task = next(task for _, task in unpack_demo(demo) if task.brief.target)
        return cls(library_tree(scratch), read_answer(task), task)

    @cached_property
    def rows(self) -> tuple[FunctionMetrics, ...]:
        """The metrics of all functions of the library outside its tests, from its call graph."""
        tests = frozenset(self.suite.suite.test_files)
        own = {path: data for path, data in self.tree.read_all(".py") if not is_protected(path, tests)}
        return tuple(measure_functions(build_call_graph(own), own))

    def metrics(self, *functions: str) -> dict[str, Any]:
        """Return the metrics of functions in the form that an answer contains."""
        ranks = standings(self.rows, functions)
        return {
            "functions": {
                name: {
                    rank.metric: {"value": rank.value, "percentile": rank.percentile} for rank in ranks[name]
                }
                for name in functions
                if name in ranks
            },
            "population": len(self.rows),
        }

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The names that corruptions can use."""
        return read_vocabulary(self.tree, frozenset(self.suite.suite.test_files))

    @property
    def functions(self) -> list[str]:
        """The names of functions with three lines or more that tests enter, in file order."""
        found = definitions(self.tree, frozenset(self.suite.suite.test_files))
        return [
            str(one.ref)
            for one in found
            if one.end_line - one.def_line >= LEAST_LINES and self.known.entered.get(str(one.ref))
        ]

    def removed(self, function: str) -> Target | None:
        """Return the function without its body; None if the body can't be removed."""
        try:
            return removal_target(self.tree, function)
        except UserError:
            return None

    def corrupted(self, function: str) -> Target | None:
        """Return the function with the corruption that has the highest prior; None if there is none."""
        path, _, qualname = function.partition("::")
        index = index_source(path, self.tree.read(path))
        kept = enumerate_corruptions(index, index.get(qualname), self.vocabulary).kept
        return kept[0].target if kept else None

    def next_target(self, functions: Iterator[str], mode: Mode) -> tuple[Target, Mode]:
        """Return the next function that can be a task, with its mode.

        For `DISCOVERY`, it is corrupted if an operator applies. Otherwise its body is removed and the mode is
        `REMOVE`; functions whose body can't be removed are skipped. Raises `NoTaskError` if none is left.
        """
        for function in functions:
            if mode is Mode.DISCOVERY and (found := self.corrupted(function)):
                return found, mode
            if found := self.removed(function):
                return found, Mode.REMOVE
        raise NoTaskError(
            NoGood.NO_CANDIDATE,
            "The demo's library does not have that many functions.",
            hint="Ask for fewer.",
        )

    @cached_property
    def intake(self) -> Intake:
        """The results of the suite on the original, as recorded in the demo's task."""
        baseline = self.known.baselines[0]
        return Intake(
            repository=Repository(Source("demo", LIBRARY, VERSION), self.tree, PINS),
            collected=baseline.collected,
            passed=baseline.passed,
            flaky=self.suite.suite.deselected,
            seconds=self.suite.suite.seconds,
            runs=1,
            test_map=TestMap(self.known.entered),
            protection=next(iter(baseline.protections.values()), Protection(None)),
        )

    def write(self, target: Target, mode: Mode, into: Path) -> Task:
        """Write the task of a target and return it; all tests that enter the function count as failing."""
        failing = frozenset(self.known.entered[target.name]) & self.intake.passed
        results = {
            id: TestResult(id, Outcome.FAILED if id in failing else Outcome.PASSED)
            for id in sorted(self.intake.passed)
        }
        report = SuiteReport(RunStatus.FINISHED, results)
        proof = CorruptionProof((target,), corrupted_tree(self.tree, (target,)), report, failing)
        return write_proven(
            self.intake,
            proof,
            mode,
            BACKEND,
            into,
            demo=True,
            secret=SECRET,
            metrics=self.metrics(target.name),
            provenance={"corruption": NOT_PROVEN},
        )


def write_simulated_tasks(into: Path, demo: Path, functions: int = 60) -> Iterator[Task]:
    """Write the demo's own tasks with their metrics, then tasks of other functions, and yield each.

    `functions` is the number of the others; if possible, as many of them are `DISCOVERY` tasks as `REMOVE`
    tasks. The demo's tasks are unpacked below `demo`. Raises `NoTaskError` if the library has too few
    functions.
    """
    with scratch_folder("demo") as scratch:
        library = DemoLibrary.unpacked(Path(scratch), demo)
        used: set[str] = set()
        for _, task in unpack_demo(demo):
            answer = read_answer(task)
            names = [target.name for target in answer.targets]
            used.update(names)
            yield _copied(task, replace(answer, metrics=library.metrics(*names)), into)
        rest = iter([name for name in library.functions if name not in used])
        written: Counter[Mode] = Counter()
        for _ in range(functions):
            wanted = min(Mode.REMOVE, Mode.DISCOVERY, key=lambda mode: written[mode])
            target, mode = library.next_target(rest, wanted)
            written[mode] += 1
            yield library.write(target, mode, into)


def _copied(task: Task, answer: Answer, into: Path) -> Task:
    place = into / task.id
    if not place.is_dir():
        copytree(task.folder, place)
    copy = replace(task, folder=place)
    if answer.targets:
        write_task(copy, answer)
    return read_task(place)
