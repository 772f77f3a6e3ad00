"""The check and the trials of a gist task: what its scoring makes of gists whose worth is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import CancelledError
from gistpoint.core.generation.check import Finding, leaks_of
from gistpoint.core.generation.intake import MakingProgress, OnMaking
from gistpoint.core.generation.trials import Subject
from gistpoint.core.kinds.gist.failures import ErrorCategory
from gistpoint.core.kinds.gist.judge import GistJudge, GistJudgement, sources_of
from gistpoint.core.kinds.gist.reference.making import pasted
from gistpoint.core.kinds.gist.reference.trace import read_trace
from gistpoint.core.kinds.gist.runs import GistTrial, TestsRun
from gistpoint.core.kinds.gist.splicing import original_test
from gistpoint.core.kinds.gist.verdict import GistVerdict, judged
from gistpoint.core.outcomes import BackendRecord, RunStatus
from gistpoint.core.ports import RunProgress
from gistpoint.core.tasks.brief import render_brief
from gistpoint.core.tasks.folder import verify_identity
from gistpoint.core.tasks.model import Answer
from gistpoint.core.trees import SourceTree

PASTED_LEAST = 99.0
"""Line existence that a paste of the original's own modules must reach."""


def check_gist_task(
    judge: GistJudge, answer: Answer, *, on_progress: OnMaking | None = None, cancel: CancelToken | None = None
) -> Iterator[Finding]:
    """Yield what each check found, as they are made. Raises `TaskError` for a folder that is no task."""
    task = judge.task
    verify_identity(task, answer)
    yield Finding("identity", True, f"the id {task.short_id} is the hash of the content")
    render_brief(task)
    yield Finding("brief", True, f"{task.brief.template}, hash {task.brief.template_sha256[:12]}")
    tree = SourceTree.open(task.tree_path)
    found = list(leaks_of(tree, ()))
    yield Finding("tree", not found, "; ".join(found[:5]) or f"{len(tree.members)} files, no history and no bytecode")
    probes = _Probes(judge, on_progress, cancel)
    yield probes.empty()
    yield probes.importing()
    yield probes.pasted(sources_of(tree))
    yield probes.reference()


class _Probes:
    """Gists whose worth is known."""

    def __init__(self, judge: GistJudge, on_progress: OnMaking | None, cancel: CancelToken | None) -> None:
        self._judge, self._on_progress, self._cancel = judge, on_progress, cancel

    def _judged(self, name: str, gist: str) -> GistJudgement:
        if self._on_progress is not None:
            self._on_progress(MakingProgress(name))
        judgement = self._judge.judge(gist, cancel=self._cancel)
        if self._cancel is not None and self._cancel.cancelled:
            raise CancelledError("Stopped at your request.")
        return judgement

    def empty(self) -> Finding:
        """No gist is `file_creation`."""
        error = self._judged("no gist", "").score.error
        right = error is not None and error.category is ErrorCategory.FILE_CREATION
        return Finding("no gist scores 0", right, error.category if error else "it is scored as faithful")

    def importing(self) -> Finding:
        """The test with an import of the codebase before it is refused that import."""
        answer = self._judge.answer
        test = original_test(answer.test.source, answer.test.qualname) if answer.test else ""
        names = "\n".join(f"import {name}" for name in answer.owned)
        name = "the codebase can't be imported"
        judgement = self._judged(name, f"{names}\n\n\n{test}")
        error = judgement.score.error
        right = error is not None and error.category is ErrorCategory.IMPORT_ERROR
        seen = judgement.trial.run.isolation.refused_imports if judgement.trial else ()
        return Finding(name, right and bool(seen), f"refused: {', '.join(seen)}" if seen else "nothing was refused")

    def pasted(self, sources: dict[str, str]) -> Finding:
        """All modules that ran, pasted, exist; what they are worth besides is told."""
        name = "pasted modules exist"
        answer = self._judge.answer
        score = self._judged(name, pasted(sources, read_trace(answer.trace), answer.owned)).score
        rate = score.existence.rate if score.existence else None
        told = f"existence {rate:.1f}" if rate is not None else "no figure"
        error = f", {score.error.category} {score.error.kind}".rstrip() if score.error else ""
        return Finding(name, (rate or 0) >= PASTED_LEAST, f"{told}, fidelity {score.execution_fidelity}{error}")

    def reference(self) -> Finding:
        """The reference gist, where there is one, is faithful."""
        name, reference = "reference gist is faithful", self._judge.answer.reference
        if reference is None:
            return Finding(name, True, "there is none: `gistpoint gist reference` makes one", reduced=True)
        if not reference.faithful:
            return Finding(name, True, f"none was found: {reference.reason}", reduced=True)
        score = self._judged(name, reference.text).score
        told = f"execution {_rate(score.execution)}, existence {_rate(score.existence)}"
        vacuous = ", and vacuous" if score.flags.vacuous else ""
        return Finding(name, score.execution_fidelity == 1 and not vacuous, told + vacuous)


def _rate(report: object) -> str:
    rate = getattr(report, "rate", None)
    return f"{rate:.1f}" if rate is not None else "unknown"


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
