"""The arithmetic of a score: sets of test ids, never counts, exit codes or lines of text."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from gistpoint.core.outcomes import RunStatus, SuiteReport
from gistpoint.core.tasks.model import Baseline


@dataclass(frozen=True, slots=True)
class Score:
    """What a run of the suite is worth."""

    value: float
    """1 - |failing now| / |F0|, within 0 and 1."""
    failing: frozenset[str]
    """B minus the ids that pass now: missing, skipped and errored ones count as failing."""
    passing: int
    """How many ids of B pass now."""
    valid: bool
    """Whether the run finished; one that did not is worth 0 and proves nothing."""

    @property
    def all_pass(self) -> bool:
        """Whether every test that passed on the original passes again."""
        return self.valid and not self.failing


def score(baseline: Baseline, report: SuiteReport) -> Score:
    """Score a run against a baseline, by the rules of the task format."""
    if report.status is not RunStatus.FINISHED:
        return Score(0.0, baseline.passed, 0, valid=False)
    failing = baseline.passed - report.passed
    value = 1.0 if not failing else 0.0
    if failing and baseline.failing:
        value = min(1.0, max(0.0, 1 - len(failing) / len(baseline.failing)))
    return Score(value, failing, len(baseline.passed) - len(failing), valid=True)


def solved(score: Score, targets: Collection[str], changed: Collection[str]) -> bool:
    """All tests pass again, and every corrupted function was changed."""
    return score.all_pass and set(targets) <= set(changed)
