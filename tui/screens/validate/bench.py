"""Runs what a validator asks for, one after another, in a thread that can be stopped."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.message import Message
from textual.widget import Widget

from gistpoint.core.cancel import CancelToken
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.generation.check import Finding, check_task
from gistpoint.core.generation.intake import MakingProgress
from gistpoint.core.generation.trials import Subject, Trial, run_trial
from gistpoint.core.kinds.repair.judge import Judge
from gistpoint.core.ports import Runner, RunProgress
from gistpoint.core.tasks.model import Answer, Mode, Task

if TYPE_CHECKING:
    from gistpoint.core.kinds.gist.check import ScoreTrial
    from gistpoint.core.kinds.gist.judge import GistJudge


@dataclass(frozen=True, slots=True)
class Job:
    """A run of the suite on `subject`, or the task's check where that is None; `gist` is the text to be scored."""

    task: Task
    answer: Answer
    subject: Subject | None
    number: int = 1
    of: int = 1
    fix: Mapping[str, str] = field(default_factory=dict)
    gist: str = ""

    @property
    def words(self) -> str:
        """What is run, in short."""
        what = "check" if self.subject is None else {"fix": "your fix"}.get(self.subject, self.subject.value)
        return f"{what} {self.number}/{self.of}" if self.of > 1 else what


class JobMoved(Message):
    """A job has come further."""

    def __init__(self, job: Job, words: str) -> None:
        super().__init__()
        self.job, self.words = job, words

    def can_replace(self, message: Message) -> bool:
        """Only the latest matters."""
        return isinstance(message, JobMoved)


class JobEnded(Message):
    """A job is over: with a trial, with findings, with an error that the user can do something about, or stopped."""

    def __init__(
        self,
        job: Job,
        *,
        trial: Trial | None = None,
        findings: tuple[Finding, ...] = (),
        backend: str = "",
        score: ScoreTrial | None = None,
        error: UserError | None = None,
    ) -> None:
        super().__init__()
        self.job, self.trial, self.findings, self.backend, self.error = job, trial, findings, backend, error
        self.score = score


class Bench:
    """The jobs that wait, and the one that runs; its messages go to one widget."""

    def __init__(
        self, owner: Widget, runner_for: Callable[[Task], Runner], gist_judge_for: Callable[[Task], GistJudge]
    ) -> None:
        """What makes a runner, or a judge of gists, is called in the thread and may take a while."""
        self._owner, self._runner_for, self._gist_judge_for = owner, runner_for, gist_judge_for
        self._waiting: deque[Job] = deque()
        self._lock = threading.Lock()
        self._cancel = CancelToken()
        self._working = False

    @property
    def busy(self) -> bool:
        """Whether something runs."""
        return self._working

    @property
    def waiting(self) -> int:
        """Jobs that have not begun."""
        return len(self._waiting)

    def ask(self, jobs: Iterable[Job]) -> None:
        """Put jobs at the end of the queue."""
        with self._lock:
            self._waiting.extend(jobs)
            if self._working:
                return
            self._working = True
            self._cancel = CancelToken()
        self._owner.run_worker(self._work, thread=True, group="bench", exit_on_error=False)

    def cancel(self) -> None:
        """Stop what runs, and forget what waits."""
        with self._lock:
            self._waiting.clear()
            self._cancel.cancel()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._working = False
                    return
                job = self._waiting.popleft()
                if self._cancel.cancelled:
                    self._cancel = CancelToken()
                cancel = self._cancel
            try:
                ended = self._run(job, cancel)
            except CodeError as error:
                ended = JobEnded(job, error=UserError(f"Your code can't take the function's place: {error}"))
            except UserError as error:
                ended = JobEnded(job, error=error)
            except BaseException:
                with self._lock:
                    self._waiting.clear()
                    self._working = False
                raise
            with self._lock:
                if ended.error is not None and not stopped(ended):
                    self._waiting.clear()
                idle = not self._waiting
                self._working = not idle
            self._owner.post_message(ended)
            if idle:
                return

    def _run(self, job: Job, cancel: CancelToken) -> JobEnded:
        self._owner.post_message(JobMoved(job, "finding the isolation"))
        if job.task.mode is Mode.GIST:
            return self._run_gist(job, cancel)
        judge = Judge(job.task, job.answer, self._runner_for(job.task))
        cancel.check()
        backend = judge.runner.backend.name
        if job.subject is None:
            made = check_task(judge, on_progress=self._making(job), cancel=cancel)
            return JobEnded(job, findings=_found(made, cancel), backend=backend)

        def running(progress: RunProgress) -> None:
            self._owner.post_message(JobMoved(job, _count(progress)))

        trial = run_trial(judge, job.subject, job.fix, on_progress=running, cancel=cancel)
        return JobEnded(job, trial=trial, backend=backend)

    def _run_gist(self, job: Job, cancel: CancelToken) -> JobEnded:
        from gistpoint.core.kinds.gist.check import check_gist_task, original_trial, score_trial

        judge = self._gist_judge_for(job.task)
        cancel.check()
        backend = judge.runner.backend.name
        if job.subject is None:
            made = check_gist_task(judge, job.answer, on_progress=self._making(job), cancel=cancel)
            return JobEnded(job, findings=_found(made, cancel), backend=backend)

        def running(progress: RunProgress) -> None:
            self._owner.post_message(JobMoved(job, progress.phase))

        if job.subject is Subject.ORIGINAL:
            return JobEnded(job, score=original_trial(judge, cancel=cancel), backend=backend)
        trial = score_trial(judge, job.subject, job.gist, on_progress=running, cancel=cancel)
        return JobEnded(job, score=trial, backend=backend)

    def _making(self, job: Job) -> Callable[[MakingProgress], None]:
        return lambda progress: self._tell(job, f"{progress.step} {_count(progress.run)}")

    def _tell(self, job: Job, words: str) -> None:
        self._owner.post_message(JobMoved(job, words))


def _found(made: Iterable[Finding], cancel: CancelToken) -> tuple[Finding, ...]:
    findings = []
    for finding in made:
        cancel.check()
        findings.append(finding)
    return tuple(findings)


def stopped(ended: JobEnded) -> bool:
    """Whether a job was stopped by the user."""
    return isinstance(ended.error, CancelledError)


def _count(progress: RunProgress | None) -> str:
    if progress is None:
        return ""
    return f"{progress.done}/{progress.total} tests" if progress.total else progress.phase
