"""Runs that are not repeated, because they ended by something other than the code under test: they end so again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gistpoint.core.attempts.gist_judging import ScoresGists
from gistpoint.core.attempts.judging import FREE, Judge
from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import CancelledError, InfrastructureError
from gistpoint.core.gist.answer import GistAnswer
from gistpoint.core.gist.judging import GistJudgement, GistProgress
from gistpoint.core.outcomes import BackendRecord, RunStatus, SuiteReport
from gistpoint.core.ports import EntrypointRunner, Runner, RunProgress, RunRequest
from gistpoint.core.tasks.model import Task

NOT_REPEATED = frozenset({RunStatus.CANCELLED, *FREE})


@dataclass
class Instead:
    """How the next run ends without being run; None where it is run."""

    status: RunStatus | None = None
    reason: str = ""


@dataclass
class _Runner:
    """Runs as the runner it is given, but for a run that ends as it is told to."""

    inner: Runner
    instead: Instead

    @property
    def backend(self) -> BackendRecord:
        return self.inner.backend

    def run(
        self,
        request: RunRequest,
        *,
        on_progress: Callable[[RunProgress], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> SuiteReport:
        if self.instead.status is not None:
            return SuiteReport(self.instead.status, reason=self.instead.reason, backend=self.backend)
        return self.inner.run(request, on_progress=on_progress, cancel=cancel)


@dataclass
class _Gists:
    """Scores as the judge it is given, but for a gist whose scoring ends as it is told to."""

    inner: ScoresGists
    instead: Instead

    @property
    def task(self) -> Task:
        return self.inner.task

    @property
    def answer(self) -> GistAnswer:
        return self.inner.answer

    @property
    def runner(self) -> EntrypointRunner:
        return self.inner.runner

    def judge(
        self,
        gist: str,
        *,
        on_progress: Callable[[GistProgress], None] | None = None,
        cancel: CancelToken | None = None,
        thorough: bool = True,
    ) -> GistJudgement:
        if self.instead.status is RunStatus.CANCELLED:
            raise CancelledError(self.instead.reason)
        if self.instead.status is not None:
            raise InfrastructureError(self.instead.reason)
        return self.inner.judge(gist, on_progress=on_progress, cancel=cancel, thorough=thorough)


def judging_instead(judge: Judge | ScoresGists, instead: Instead) -> Judge | ScoresGists:
    """Return a judge that asks `instead` before every run."""
    if isinstance(judge, Judge):
        return replace(judge, runner=_Runner(judge.runner, instead))
    return _Gists(judge, instead)
