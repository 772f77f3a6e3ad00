"""What a gist is worth, as an attempt takes it: the seam to what runs and scores it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from gistpoint.core.attempts.judging import FREE
from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import CancelledError, InfrastructureError
from gistpoint.core.gist.evidence import LineEvidence, evidence_rows, line_evidence
from gistpoint.core.gist.failures import ErrorKind
from gistpoint.core.gist.record import score_record
from gistpoint.core.gist.score import GistScore
from gistpoint.core.outcomes import BackendRecord, RunStatus
from gistpoint.core.ports import EntrypointRunner, RunProgress
from gistpoint.core.tasks.model import Answer, Task

OnProgress = Callable[[RunProgress], None]
_STATUS = {ErrorKind.TIMEOUT: RunStatus.TIMED_OUT, ErrorKind.CRASH: RunStatus.CRASHED}


class ScoresGists(Protocol):
    """Runs gists of one task and scores them; everything that is compared with lies in the answer."""

    @property
    def task(self) -> Task:
        """The task."""
        ...

    @property
    def answer(self) -> Answer:
        """Its answer."""
        ...

    @property
    def runner(self) -> EntrypointRunner:
        """Where code runs."""
        ...

    def judge(
        self, gist: str, *, on_progress: OnProgress | None = None, cancel: CancelToken | None = None
    ) -> GistScore:
        """Score a gist. Raises `InfrastructureError` where the harness failed, `CancelledError` when cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class GistJudgement:
    """The score of a text, or why there is none."""

    text: str
    score: GistScore | None
    status: RunStatus
    reason: str = ""
    lines: tuple[LineEvidence, ...] = ()
    """The evidence, line by line of `text`."""

    @property
    def counts(self) -> bool:
        """Whether it counts as a hand-in: not where the harness failed."""
        return self.status not in FREE

    @property
    def solved(self) -> bool:
        """Whether the gist is faithful."""
        return self.score is not None and self.score.execution_fidelity == 1


def judged(
    judge: ScoresGists, gist: str, on_progress: OnProgress | None = None, cancel: CancelToken | None = None
) -> GistJudgement:
    """Score a gist; what keeps it from being scored is told in the judgement. Progress names no test's outcome."""
    quiet = None if on_progress is None else _without_outcomes(on_progress)
    try:
        score = judge.judge(gist, on_progress=quiet, cancel=cancel)
    except InfrastructureError as error:
        return GistJudgement(gist, None, RunStatus.INFRASTRUCTURE, str(error))
    except CancelledError as error:
        return GistJudgement(gist, None, RunStatus.CANCELLED, str(error))
    answer, owned = judge.answer.gist_answer, judge.task.gist_settings.owned
    status = _STATUS.get(score.error.kind, RunStatus.FINISHED) if score.error else RunStatus.FINISHED
    return GistJudgement(gist, score, status, lines=line_evidence(gist, score, answer.test, owned))


def _without_outcomes(on_progress: OnProgress) -> OnProgress:
    return lambda progress: on_progress(RunProgress(progress.phase, progress.done, progress.total))


def gist_run_data(call_id: str, judgement: GistJudgement, backend: BackendRecord) -> dict[str, Any]:
    """Return the data of the `test_run` event of a hand-in."""
    fidelity = judgement.score.fidelity if judgement.score else None
    different = {one.test for one in fidelity.differences if one.test} if fidelity else set()
    return {
        "call_id": call_id,
        "status": judgement.status.value,
        "reason": judgement.reason,
        "counts": judgement.counts,
        "passed": fidelity.passed if fidelity else 0,
        "failing": sorted(different),
        "backend": {
            "name": backend.name,
            "version": backend.version,
            "isolated": backend.isolated,
            "limits": dict(backend.limits),
        },
    }


def gist_score_data(call_id: str, judgement: GistJudgement, *, trial: bool) -> dict[str, Any]:
    """Return the data of a `score` event; `trial` marks one that was asked for before the hand-in."""
    score = judgement.score
    data: dict[str, Any] = {
        "call_id": call_id,
        "score": float(judgement.solved),
        "solved": judgement.solved,
        "gist": {**score_record(score), "lines": evidence_rows(judgement.lines)} if score else {},
    }
    return {**data, "trial": True, "text": judgement.text} if trial else data
