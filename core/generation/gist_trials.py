"""Trials of a gist task: its command run on the original again, or a gist scored, to judge the task.

A trial is no attempt: nothing of it counts for a solver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gistpoint.core.attempts.gist_judging import GistVerdict, judged
from gistpoint.core.cancel import CancelToken
from gistpoint.core.generation.trials import Subject
from gistpoint.core.gist.judging import GistJudge
from gistpoint.core.gist.runs import GistTrial, TestsRun
from gistpoint.core.outcomes import BackendRecord, RunStatus
from gistpoint.core.ports import RunProgress
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class ScoreTrial:
    """One run of a gist task. `text` and `verdict` are the gist and its score; there are none of the original."""

    subject: Subject
    status: RunStatus
    backend: BackendRecord
    solved: bool
    """Whether it does what was recorded when the task was made."""
    passing: int = 0
    failing: int = 0
    odd: tuple[str, ...] = ()
    """Tests in which it differs from what was recorded; for a command that is no test, what differs."""
    seconds: float = 0.0
    reason: str = ""
    text: str = ""
    verdict: GistVerdict | None = None

    @property
    def finished(self) -> bool:
        """Whether the run proves anything."""
        return self.status is RunStatus.FINISHED


def score_trial(
    judge: GistJudge,
    subject: Subject,
    text: str,
    *,
    on_progress: Callable[[RunProgress], None] | None = None,
    cancel: CancelToken | None = None,
) -> ScoreTrial:
    """Score a gist as a hand-in would be. Raises `CancelledError` when cancelled."""
    verdict = judged(judge, text, thorough=True, on_progress=on_progress, cancel=cancel)
    if cancel is not None:
        cancel.check()
    fidelity = verdict.score.fidelity if verdict.score is not None else None
    passed, instances = (fidelity.passed, fidelity.instances) if fidelity is not None else (0, 0)
    odd = {one.test or one.what for one in fidelity.differences} if fidelity is not None else set()
    return ScoreTrial(
        subject,
        RunStatus.FINISHED if verdict.score is not None else verdict.status,
        judge.runner.backend,
        verdict.solved,
        passed,
        instances - passed,
        tuple(sorted(odd)),
        verdict.seconds,
        verdict.reason,
        text,
        verdict,
    )


def original_trial(judge: GistJudge, *, cancel: CancelToken | None = None) -> ScoreTrial:
    """Run the command on the original again, and compare it with what was recorded. Raises as `score_trial`."""
    tree = SourceTree.open(judge.task.tree_path)
    run = judge.runner.run_original(
        tree, judge.task.environment, judge.entrypoint, timeout_s=judge.answer.timeout_s, cancel=cancel
    )
    if cancel is not None:
        cancel.check()
    fidelity = judge.fidelity(GistTrial(run.run, run.seconds, places=run.places))
    count = len(run.run.tests) if isinstance(run.run, TestsRun) else 0
    return ScoreTrial(
        Subject.ORIGINAL,
        run.run.status,
        judge.runner.backend,
        fidelity.value == 1,
        fidelity.passed,
        max(0, count - fidelity.passed),
        tuple(sorted({one.test or one.what for one in fidelity.differences})),
        run.seconds,
        run.reason,
    )
