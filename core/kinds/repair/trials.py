"""Trials of a repair: its suite run on the corrupted tree, the original or a fix, to judge the task.

A trial is not an attempt: it never counts for a solver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gistpoint.core.attempts.state import AttemptResult
from gistpoint.core.code.splice import with_definition
from gistpoint.core.kinds.kind import Trial, TrialSubject
from gistpoint.core.kinds.repair.judge import Judgement, RepairJudge
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Baseline
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteTrial(Trial):
    """One run of the suite that judges a repair task."""

    judgement: Judgement

    @property
    def as_expected(self) -> bool:
        """Whether the run finished with the recorded outcomes; for a fix, whether it counts as solved."""
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
    """Run the suite and return the trial; `fix` is new code by `path::qualname`, for a trial of a fix.

    Raises `CodeError` if the code can't replace a function, and `CancelledError` when cancelled.
    """
    tree = SourceTree.open(judge.task.tree_path)
    if subject is TrialSubject.ORIGINAL:
        tree = repaired_tree(tree, judge.answer.targets)
    for name, code in (fix or {}).items() if subject is TrialSubject.FIX else ():
        path, _, qualname = name.partition("::")
        tree = with_definition(tree, path, qualname, code)
    judgement = judge.judge(tree, run=run)
    run.check()
    report = judgement.report
    score = judgement.score
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
        report=report,
        broken=score.failing,
        judgement=judgement,
    )


def odd_ids(subject: TrialSubject, baseline: Baseline, judgement: Judgement) -> tuple[str, ...]:
    """Return the baseline's passing ids whose outcome differs from the task's record, sorted.

    Empty for a fix, and for a run that did not finish.
    """
    if judgement.report.status is not RunStatus.FINISHED or subject is TrialSubject.FIX:
        return ()
    wanted = baseline.passed
    if subject is not TrialSubject.ORIGINAL:
        wanted = baseline.passed & baseline.passed_corrupted
    return tuple(sorted(wanted ^ (judgement.report.passed & baseline.passed)))
