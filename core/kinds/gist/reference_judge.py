"""A reference gist of any command: several tests, and made ones, are shown to its maker as a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gistpoint.core.entrypoints.command import Entrypoint, EntrypointKind
from gistpoint.core.entrypoints.runs import GistTrial, TestsRun, Watched
from gistpoint.core.kinds.gist.answer import ReferenceGist
from gistpoint.core.kinds.gist.fidelity import Fidelity
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.original_test import SplicedGist, ready_text
from gistpoint.core.kinds.gist.references import ReferenceMaker
from gistpoint.core.kinds.gist.score import GistJudgement
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.running import NEVER, UNATTENDED, CancelToken, RunContext


def reference_of(judge: GistJudge, maker: Callable[[GistJudge], ReferenceMaker]) -> ReferenceGist:
    """Return the reference gist that a maker makes with the judge it is given. Raises as `ReferenceMaker.make`.

    Of several tests, and of one that its own file does not define, the text holds the original tests.
    """
    test = judge.answer.test
    if test is None or not (test.defined_as or test.doctest or test.qualname != judge.entrypoint.qualname):
        return maker(judge).make()
    found = maker(_SeveralTests(judge.task, judge.answer, judge.runner)).make()
    spliced = _ready(judge, found.text) if found.faithful else None
    return found if spliced is None else replace(found, text=spliced.text)


def _ready(judge: GistJudge, text: str) -> SplicedGist | None:
    try:
        return ready_text(text, judge.answer.test, judge.answer.owned)
    except (SyntaxError, ValueError):
        return None


class _SeveralTests(GistJudge):
    """Judges with the original tests put in; the maker sees a program that starts in the file of the first test."""

    @property
    def entrypoint(self) -> Entrypoint:
        """The file of the first test, as a program is named."""
        first = self.answer.originals[0]
        ids = first.tests if isinstance(first, TestsRun) else ()
        return Entrypoint(EntrypointKind.SCRIPT, next(iter(ids), "").partition("::")[0])

    def run(
        self,
        text: str,
        *,
        measure: bool,
        seed: int = 0,
        watched: Watched | None = None,
        cancel: CancelToken = NEVER,
    ) -> GistTrial:
        """Run a text with the original tests in it; the lines that ran are those of the text without them."""
        spliced = _ready(self, text)
        if spliced is None:
            return GistTrial(TestsRun(RunStatus.CRASHED), 0.0, reason="A test is missing, or the text does not parse.")
        trial = self._itself.run(spliced.text, measure=measure, seed=seed, watched=watched, cancel=cancel)
        lines = (spliced.origin[line - 1] for line in trial.executed if line <= len(spliced.origin))
        return replace(trial, executed=frozenset(line for line in lines if line is not None))

    def fidelity(self, trial: GistTrial) -> Fidelity:
        """Compare a run of the command with the runs of the original."""
        return self._itself.fidelity(trial)

    def judge(self, gist: str, *, run: RunContext = UNATTENDED, thorough: bool = True) -> GistJudgement:
        """Score a gist as a hand-in is scored."""
        return self._itself.judge(gist, run=run, thorough=thorough)

    @property
    def _itself(self) -> GistJudge:
        return GistJudge(self.task, self.answer, self.runner)
