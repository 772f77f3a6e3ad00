"""Whether a repair behaves like the original beyond what the tests check: the verdict, and its tester."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree


class Equivalence(StrEnum):
    """The outcome of comparing two versions of a function."""

    EQUIVALENT = "equivalent"
    """No difference on any input that was tried."""
    DIFFERS = "differs"
    NOT_COMPARABLE = "not_comparable"
    """There was no input on which both could be compared."""


@dataclass(frozen=True, slots=True)
class DifferingCall:
    """A call that the original and a repair answer differently."""

    function: str
    """`path::qualname`."""
    call: str
    """The call as Python writes it; arguments that are not plain values are named by their class."""
    original: str
    repair: str
    made_simpler: bool = False
    """Whether the call was made simpler after it had been found."""


@dataclass(frozen=True, slots=True)
class EquivalenceReport:
    """The comparison of the corrupted functions of a task with their repairs."""

    verdict: Equivalence
    recorded: int = 0
    """Calls of the suite that were compared."""
    varied: int = 0
    """Varied inputs that were compared: those that the original answers without an exception."""
    recorded_differing: int = 0
    varied_differing: int = 0
    passed_over: int = 0
    """Calls and inputs that could not be kept or repeated, or that the original did not answer the same way
    twice.
    """
    example: DifferingCall | None = None
    """The smallest difference that was found."""
    reason: str = ""
    """Why nothing could be compared."""


class EquivalenceTester(Protocol):
    """Calls functions of two trees with the same arguments, in a place where code of a repository may run."""

    def compare(
        self,
        original: SourceTree,
        repaired: SourceTree,
        environment: EnvironmentPins,
        functions: Collection[str],
        tests: Collection[str],
        *,
        test_files: Collection[str] = (),
        timeout_s: float,
        run: RunContext = UNATTENDED,
    ) -> EquivalenceReport:
        """Compare `functions`, named `path::qualname`, on the calls that `tests` make of the original, and
        variations.

        Raises `CancelledError`, and `InfrastructureError` if the calls can't be recorded.
        """
        ...


def compare_repair(
    task: Task,
    answer: Answer,
    repaired: SourceTree,
    tester: EquivalenceTester,
    *,
    run: RunContext = UNATTENDED,
) -> EquivalenceReport:
    """Compare a repaired tree of a task with its original. Raises as `EquivalenceTester.compare` does."""
    original = repaired_tree(SourceTree.open(task.tree_path), answer.targets)
    names = [target.name for target in answer.targets]
    tests = frozenset().union(*(answer.entered.get(name, frozenset()) for name in names))
    return tester.compare(
        original,
        repaired,
        task.environment,
        names,
        tests,
        test_files=task.suite.test_files,
        timeout_s=task.suite.timeout_s,
        run=run,
    )
