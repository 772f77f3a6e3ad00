"""The check of a gist task: what its scoring makes of gists whose worth is known beforehand."""

from __future__ import annotations

from collections.abc import Iterator

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import CancelledError
from gistpoint.core.generation.findings import Finding
from gistpoint.core.generation.intake import MakingProgress, OnMaking
from gistpoint.core.generation.leaks import leaks_of
from gistpoint.core.gist.failures import ErrorCategory
from gistpoint.core.gist.judging import GistJudge, GistJudgement, sources_of
from gistpoint.core.gist.pasted import pasted
from gistpoint.core.gist.reference.trace import read_trace
from gistpoint.core.gist.splicing import original_test
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
