"""What a gist is worth, as an attempt takes it: the seam to what runs and scores it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import CancelledError, InfrastructureError
from gistpoint.core.kinds.gist.evidence import LineEvidence, evidence_rows, line_evidence
from gistpoint.core.kinds.gist.judge import GistJudgement, GistProgress
from gistpoint.core.kinds.gist.model import GistAnswer
from gistpoint.core.kinds.gist.score import GistScore, score_record
from gistpoint.core.kinds.repair.judge import FREE
from gistpoint.core.outcomes import BackendRecord, RunStatus
from gistpoint.core.ports import EntrypointRunner, RunProgress
from gistpoint.core.tasks.model import Task

OnProgress = Callable[[RunProgress], None]


class ScoresGists(Protocol):
    """Runs gists of one task and scores them (`core.kinds.gist.judge.GistJudge`)."""

    @property
    def task(self) -> Task:
        """The task."""
        ...

    @property
    def answer(self) -> GistAnswer:
        """What gists are compared with."""
        ...

    @property
    def runner(self) -> EntrypointRunner:
        """Where code runs."""
        ...

    def judge(
        self,
        gist: str,
        *,
        on_progress: Callable[[GistProgress], None] | None = None,
        cancel: CancelToken | None = None,
        thorough: bool = True,
    ) -> GistJudgement:
        """Score a gist, in one run alone where it need not be `thorough`.

        Raises `InfrastructureError` where the harness failed, `CancelledError` when cancelled.
        """
        ...


@dataclass(frozen=True, slots=True)
class GistVerdict:
    """The score of a text, or why there is none."""

    text: str
    status: RunStatus
    score: GistScore | None = None
    reason: str = ""
    lines: tuple[LineEvidence, ...] = ()
    """The evidence, line by line of `text`."""
    seconds: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether it counts as a hand-in: not where the harness failed."""
        return self.status not in FREE

    @property
    def solved(self) -> bool:
        """Whether the gist is faithful."""
        return self.score is not None and self.score.execution_fidelity == 1


def judged(
    judge: ScoresGists,
    gist: str,
    *,
    thorough: bool,
    on_progress: OnProgress | None = None,
    cancel: CancelToken | None = None,
) -> GistVerdict:
    """Score a gist; what keeps it from being scored is told in the verdict. Progress tells no test's outcome."""

    def report(progress: GistProgress) -> None:
        if on_progress is not None:
            on_progress(RunProgress(progress.step, progress.done, progress.total))

    try:
        found = judge.judge(gist, on_progress=report, cancel=cancel, thorough=thorough)
    except InfrastructureError as error:
        return GistVerdict(gist, RunStatus.INFRASTRUCTURE, reason=str(error))
    except CancelledError as error:
        return GistVerdict(gist, RunStatus.CANCELLED, reason=str(error))
    lines = line_evidence(found.score, found.spliced)
    if found.trial is None:
        return GistVerdict(gist, RunStatus.FINISHED, found.score, lines=lines)
    trial = found.trial
    return GistVerdict(gist, trial.run.status, found.score, trial.reason, lines, trial.seconds)


def gist_run_data(call_id: str, verdict: GistVerdict, backend: BackendRecord) -> dict[str, Any]:
    """Return the data of the `test_run` event of a hand-in."""
    fidelity = verdict.score.fidelity if verdict.score else None
    different = {one.test for one in fidelity.differences if one.test} if fidelity else set()
    return {
        "call_id": call_id,
        "status": verdict.status.value,
        "reason": verdict.reason,
        "counts": verdict.counts,
        "passed": fidelity.passed if fidelity else 0,
        "failing": sorted(different),
        "seconds": round(verdict.seconds, 3),
        "backend": {
            "name": backend.name,
            "version": backend.version,
            "isolated": backend.isolated,
            "limits": dict(backend.limits),
        },
    }


def gist_score_data(call_id: str, verdict: GistVerdict, *, trial: bool) -> dict[str, Any]:
    """Return the data of a `score` event; `trial` marks one that was asked for before the hand-in."""
    score = verdict.score
    data: dict[str, Any] = {
        "call_id": call_id,
        "score": float(verdict.solved),
        "solved": verdict.solved,
        "gist": {**score_record(score), "lines": evidence_rows(verdict.lines)} if score else {},
    }
    return {**data, "trial": True, "text": verdict.text} if trial else data
