"""Finds edits of a library's functions that no test notices, and counts those with a smallest difference.

    python tests/studies/surviving_edits.py TASKS [--each N] [--seed S] [--only WORD]

For each library of the repair tasks in the folder, functions are drawn by the seed. Up to three single
corruptions of each are tried until the whole suite passes with one, which is then compared with the original
on inputs beyond the tests. At most N functions of a library are kept. Edits of functions that can't be
compared are counted and left out, because such tasks are not confirmable. Some of the others have no
observable effect; a person has to decide which. Prints a line for each with its change, and the counts.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from confirming import tasks_in
from wrong_repairs import changed_lines

from gistpoint.core.code.index import Definition, FileIndex, index_source
from gistpoint.core.code.splice import with_definition
from gistpoint.core.confirmation.differences import test_paths
from gistpoint.core.corruption.corruptions import enumerate_corruptions
from gistpoint.core.corruption.subject import vocabulary_of
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import RunRequest
from gistpoint.core.tasks.equivalence import Equivalence
from gistpoint.core.tasks.model import Task
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.equivalence import SandboxEquivalenceTester
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.testruns import SuiteRunner

_TRIED = 3
"""The maximum number of edits of a function for which the suite is run."""
_LEAST_LINES = 4


def functions_of(task: Task, original: SourceTree) -> list[tuple[FileIndex, Definition]]:
    """Return a library's definitions of at least five lines, except those in tests or inside functions."""
    hidden = set(test_paths(original, task.suite.test_files, data=False))
    found = []
    for path in original.files():
        if path.endswith(".py") and path not in hidden:
            index = index_source(path, original.read(path))
            found += [
                (index, definition)
                for definition in index.definitions
                if "<locals>" not in definition.ref.qualname
                and definition.end_line - definition.start_line >= _LEAST_LINES
            ]
    return found


def main() -> int:
    """Find edits that no test notices, and compare them with their originals."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--each", type=int, default=6)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    backend, environments = choose(None, consented=True), EnvironmentStore(Locations.of_user().cache)
    runner = SuiteRunner(backend, environments)
    tester = SandboxEquivalenceTester(backend, environments)
    counts: Counter[str] = Counter()
    for task in one_of_each_library(options.tasks):
        if options.only not in task.source.name:
            continue
        answer = read_answer(task)
        original = repaired_tree(SourceTree.open(task.tree_path), answer.targets)
        baseline = answer.baseline_for(backend.name)
        drawing = random.Random(f"{options.seed} {task.source.name}")
        functions = functions_of(task, original)
        drawing.shuffle(functions)
        kept = 0
        for index, definition in functions:
            if kept == options.each:
                break
            path, qualname = definition.ref.path, definition.ref.qualname
            edits = list(
                enumerate_corruptions(index, definition, vocabulary_of([index]), composed=False).kept
            )
            for edit in drawing.sample(edits, min(_TRIED, len(edits))):
                try:
                    tree = with_definition(original, path, qualname, edit.target.corrupted)
                except UserError:
                    continue
                request = RunRequest(
                    tree, task.environment, task.suite.timeout_s, deselect=task.suite.deselected
                )
                report = runner.run(request)
                if report.status is not RunStatus.FINISHED or not baseline.passed <= report.passed:
                    counts["noticed by a test"] += 1
                    continue
                came = tester.compare(
                    original,
                    tree,
                    task.environment,
                    [str(definition.ref)],
                    (),
                    test_files=task.suite.test_files,
                    timeout_s=task.suite.timeout_s,
                )
                change = changed_lines(edit.target.original, edit.target.corrupted)
                counts[came.verdict] += 1
                print(
                    f"{task.source.name} {definition.ref}: {came.verdict}, {came.recorded} recorded,"
                    f" {came.varied} varied; {change}; {came.example or came.reason[:100]}",
                    flush=True,
                )
                kept += came.verdict is not Equivalence.NOT_COMPARABLE
                break
        print(task.source.name, dict(counts), flush=True)
    return 0


def one_of_each_library(folder: Path) -> Iterator[Task]:
    """Yield the first task of each library."""
    seen = set()
    for task in tasks_in(folder):
        if task.source.name not in seen:
            seen.add(task.source.name)
            yield task


if __name__ == "__main__":
    sys.exit(main())
