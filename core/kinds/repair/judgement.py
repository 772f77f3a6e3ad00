"""The judgement of a repair: the run of the suite and its score, by sets of test ids, never by counts or exit codes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from gistpoint.core.attempts.state import AttemptResult, result_of
from gistpoint.core.outcomes import FREE, RunStatus, SuiteReport
from gistpoint.core.ports import Runner
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Baseline
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a run of the suite."""

    value: float
    """1 - |failing now| / |F0|, within 0 and 1."""
    failing: frozenset[str]
    """B minus the ids that pass now: missing, skipped and errored ones count as failing."""
    passing: int
    """How many ids of B pass now."""
    valid: bool
    """Whether the run finished; if not, its value is 0 and it proves nothing."""

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
    """Whether all tests pass again, and every corrupted function was changed."""
    return score.all_pass and set(targets) <= set(changed)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The score of a submission, and the run that shows it."""

    report: SuiteReport
    score: Score
    solved: bool
    changed: tuple[str, ...]
    """Corrupted functions that are no longer equivalent to the corrupted one."""
    suspicious: tuple[str, ...] = ()
    """Why a pass has to be read before it counts as solved; such a pass was run twice."""

    @property
    def result(self) -> AttemptResult:
        """The result before anybody has read the submission."""
        return result_of(self.solved, self.suspicious)

    @property
    def reason(self) -> str:
        """Why the run did not finish; empty if it did."""
        return self.report.reason

    @property
    def counts(self) -> bool:
        """Whether it costs a submission."""
        return self.report.status not in FREE


class JudgesTrees(Protocol):
    """Runs the suite of one task on trees and scores them (`core.kinds.repair.judge.RepairJudge`)."""

    @property
    def runner(self) -> Runner:
        """The runner of the suite."""
        ...

    def judge(
        self,
        tree: SourceTree,
        *,
        run: RunContext = UNATTENDED,
        first: tuple[str, ...] = (),
        replaced: tuple[str, ...] = (),
    ) -> Judgement:
        """Run the suite on a tree and score it."""
        ...
