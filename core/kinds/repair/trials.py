"""Trials of a task: its suite run on the corrupted tree, on the original, or on a person's own fix, to judge the task.

A trial is not an attempt: it never counts for a solver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gistpoint.core.attempts.state import AttemptResult
from gistpoint.core.code.splice import with_definition
from gistpoint.core.kinds.kind import Trial, TrialSubject
from gistpoint.core.kinds.repair.bench import Judgement
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Baseline
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteTrial(Trial):
    """One run of the suite."""

    judgement: Judgement

    @property
    def as_expected(self) -> bool:
        """Whether the run finished with the outcomes that the task says; of a fix, whether it counts as solved."""
        if self.subject is TrialSubject.FIX:
            return self.judgement.result is AttemptResult.SOLVED
        return self.finished and not self.odd


def run_trial(
    judge: RepairJudge,
    subject: TrialSubject,
    fix: Mapping[str, str] | None = None,
    *,
    run: RunContext = UNATTENDED,
) -> SuiteTrial:
    """Run the suite. `fix` is new code by `path::qualname`; raises `CodeError` if it can't replace a function.

    Raises `CancelledError` when cancelled.
    """
    tree = SourceTree.open(judge.task.tree_path)
    if subject is TrialSubject.ORIGINAL:
        tree = repaired_tree(tree, judge.answer.targets)
    for name, code in (fix or {}).items() if subject is TrialSubject.FIX else ():
        path, _, qualname = name.partition("::")
        tree = with_definition(tree, path, qualname, code)
    judgement = judge.judge(tree, run=run)
    run.check()
    report, score = judgement.report, judgement.score
    return SuiteTrial(
        subject=subject,
        status=report.status,
        backend=report.backend,
        solved=judgement.solved,
        score=score.value,
        passing=score.passing,
        failing=len(score.failing),
        odd=odd_ids(subject, judge.baseline, judgement),
        suspicious=judgement.suspicious,
        seconds=report.seconds,
        reason=report.reason,
        fix=(fix or {}) if subject is TrialSubject.FIX else {},
        judgement=judgement,
    )


def odd_ids(subject: TrialSubject, baseline: Baseline, judgement: Judgement) -> tuple[str, ...]:
    """Return the ids of B that passed though the task says that they fail, or the other way round; of a fix, none."""
    if judgement.report.status is not RunStatus.FINISHED or subject is TrialSubject.FIX:
        return ()
    wanted = baseline.passed if subject is TrialSubject.ORIGINAL else baseline.passed & baseline.passed_corrupted
    return tuple(sorted(wanted ^ (judgement.report.passed & baseline.passed)))


@dataclass(frozen=True, slots=True)
class TestSteadiness:
    """How often a test passed in how many finished runs of the original and of the corrupted tree."""

    id: str
    original: int
    original_runs: int
    corrupted: int
    corrupted_runs: int

    @property
    def flaky(self) -> bool:
        """Whether runs of one tree disagree."""
        return self.original not in (0, self.original_runs) or self.corrupted not in (0, self.corrupted_runs)


@dataclass(frozen=True, slots=True)
class Steadiness:
    """The tests of B over the runs that made the task and later trials; only finished ones count."""

    baseline: Baseline
    original_runs: int
    corrupted_runs: int
    odd_original: Mapping[str, int]
    odd_corrupted: Mapping[str, int]

    def of(self, id: str) -> TestSteadiness:
        """Return how often a test of B passed."""
        odd = self.odd_corrupted.get(id, 0)
        passes = id in self.baseline.passed_corrupted
        corrupted = self.corrupted_runs - odd if passes else odd
        original = self.original_runs - self.odd_original.get(id, 0)
        return TestSteadiness(id, original, self.original_runs, corrupted, self.corrupted_runs)

    @property
    def flaky(self) -> tuple[TestSteadiness, ...]:
        """The tests in which runs of one tree disagree, by id."""
        return tuple(self.of(id) for id in sorted({*self.odd_original, *self.odd_corrupted}))


def steadiness(baseline: Baseline, trials: Iterable[tuple[TrialSubject, Iterable[str]]]) -> Steadiness:
    """Count the finished trials of original and corrupted tree, given by the ids in which each was not as expected."""
    odd: dict[TrialSubject, Counter[str]] = {subject: Counter() for subject in TrialSubject}
    runs = Counter({TrialSubject.ORIGINAL: baseline.runs, TrialSubject.CORRUPTED: 1})
    for subject, ids in trials:
        runs[subject] += 1
        odd[subject].update(id for id in ids if id in baseline.passed)
    return Steadiness(
        baseline,
        runs[TrialSubject.ORIGINAL],
        runs[TrialSubject.CORRUPTED],
        odd[TrialSubject.ORIGINAL],
        odd[TrialSubject.CORRUPTED],
    )
