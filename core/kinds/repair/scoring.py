"""Computes a repair's score from sets of test ids and syntax trees, never from counts or exit codes.

A verifier in another harness runs this module with Python 3.9 and the standard library alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gistpoint.core.code.compare import same_program
from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.outcomes import RunStatus, SuiteReport

if TYPE_CHECKING:
    from gistpoint.core.tasks.model import Baseline, Target
    from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a run of the suite."""

    value: float
    """1 - (number of `failing`) / (number of the baseline's failing tests), from 0 to 1."""
    failing: frozenset[str]
    """The baseline's passing ids that do not pass now, including missing, skipped and errored tests."""
    passing: int
    """The number of the baseline's passing ids that pass now."""
    valid: bool
    """Whether the run finished; otherwise the value is 0 and proves nothing."""

    @property
    def all_pass(self) -> bool:
        """Whether every test that passed on the original passes again."""
        return self.valid and not self.failing


def score(baseline: Baseline, report: SuiteReport) -> Score:
    """Return the score of a run against a baseline; it is 0, and not valid, if the run did not finish."""
    # A run that did not finish is not a pass, whatever its records say (docs/guide/what-is-believed.md).
    if report.status is not RunStatus.FINISHED:
        return Score(0.0, baseline.passed, 0, valid=False)
    # Tests are compared by id, not by number: a test that is now missing or skipped has not passed.
    failing = baseline.passed - report.passed
    value = 0.0
    if not failing:
        value = 1.0
    elif baseline.failing:
        value = min(1.0, max(0.0, 1 - len(failing) / len(baseline.failing)))
    return Score(value, failing, len(baseline.passed) - len(failing), valid=True)


def solved(score: Score, targets: Collection[str], changed: Collection[str]) -> bool:
    """Return whether all tests pass again, and every corrupted function was changed."""
    return score.all_pass and set(targets) <= set(changed)


def changed_targets(tree: SourceTree, targets: tuple[Target, ...]) -> tuple[str, ...]:
    """Return the names of the targets that are no longer equivalent to their corrupted versions."""
    return tuple(target.name for target in targets if _is_changed(tree, target))


def _is_changed(tree: SourceTree, target: Target) -> bool:
    """Return whether a target differs from its corrupted version; missing and unreadable targets do."""
    try:
        now = index_source(target.path, tree.read(target.path)).get(target.qualname).source
        return not same_program(now, target.corrupted)
    except (CodeError, FileNotFoundError):
        return True


def taken_over(
    tree: SourceTree, read: Callable[[str], bytes | None], test_files: Collection[str]
) -> SourceTree:
    """Return the corrupted `tree` with changes that a solver made elsewhere.

    `read` returns a file's bytes by its path. Only Python files that the tree has and that do not belong to
    its tests are taken over: a solver's tool can replace functions and nothing else. All other files keep the
    task's contents, even if the solver changed them.
    """
    protected = frozenset(test_files)
    found = dict[str, bytes]()
    for path in tree.files(".py"):
        if is_protected(path, protected):
            continue
        data = read(path)
        if data is not None and data != tree.read(path):
            found[path] = data
    return tree.with_files(found)
