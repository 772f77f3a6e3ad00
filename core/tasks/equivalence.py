"""Reports on whether a repair is equivalent to the original beyond the tests, and their interface."""

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
    """The verdict on two versions of a function."""

    EQUIVALENT = "equivalent"
    """No input tried showed a difference."""
    DIFFERS = "differs"
    NOT_COMPARABLE = "not_comparable"
    """No input allowed a comparison."""


@dataclass(frozen=True, slots=True)
class DifferingCall:
    """A call with different results in the original and a repair."""

    function: str
    """The name of the function, as `path::qualname`."""
    call: str
    """The call in Python; arguments that are not plain values are named by their class."""
    original: str
    repair: str
    made_simpler: bool = False
    """Whether the call was simplified after it was found."""


@dataclass(frozen=True, slots=True)
class EquivalenceReport:
    """The comparison of the original functions of a task with their repairs."""

    verdict: Equivalence
    recorded: int = 0
    """The number of calls by the suite that were compared."""
    varied: int = 0
    """The number of varied inputs that were compared.

    The original either answers such an input, or rejects it with its own `raise` although the repair answers.
    """
    recorded_differing: int = 0
    varied_differing: int = 0
    passed_over: int = 0
    """The number of calls and inputs not compared: they were not kept, not repeatable, late or unstable."""
    example: DifferingCall | None = None
    """The smallest difference found; None if there is none."""
    reason: str = ""
    """The reason why nothing could be compared."""


class EquivalenceTester(Protocol):
    """Calls functions of two trees with equal arguments, isolated like a repository's code."""

    def compare(
        self,
        original: SourceTree,
        repaired: SourceTree,
        environment: EnvironmentPins,
        functions: Collection[str],
        tests: Collection[str],
        *,
        first: Collection[str] = (),
        test_files: Collection[str] = (),
        timeout_s: float,
        run: RunContext = UNATTENDED,
    ) -> EquivalenceReport:
        """Return the comparison of `functions` on calls that the original's `tests` make, and on variations.

        The tests in `first` are run first: only a limited number of calls is recorded.

        Raises `CancelledError` when cancelled, and `InfrastructureError` if the calls can't be recorded.
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
    """Return the comparison of a task's repaired tree with its original.

    Raises `CancelledError` when cancelled, and `InfrastructureError` if the calls can't be recorded.
    """
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
