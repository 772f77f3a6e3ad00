"""The queue of a validator's trials and checks, which run one after another in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from textual.message import Message
from textual.widget import Widget

from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.kinds.checking import check_task
from gistpoint.core.kinds.kind import Trial, TrialSubject
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.kinds.titles import author_title
from gistpoint.core.running import CancelToken, RunContext, RunProgress
from gistpoint.core.tasks.leaks import CheckFinding
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.tui.jobs import Job, Jobs

_ON = {
    TrialSubject.ORIGINAL: "on the original code",
    TrialSubject.CORRUPTED: "on the corrupted code",
    TrialSubject.FIX: "with your own solution",
    TrialSubject.REFERENCE: "with the reference gist",
}


@dataclass(frozen=True, slots=True)
class EvidenceRun:
    """A run of the suite on `subject`, or a check of the task if `subject` is None.

    `number` and `total` count repeated runs. `texts` are the validator's own solution.
    """

    task: Task
    answer: Answer
    subject: TrialSubject | None
    number: int = 1
    total: int = 1
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The run in words, such as `shop · find one, 4 fail on the original code (2 of 5)`."""
        if self.subject is None:
            return f"Check of {author_title(self.task)}"
        of_repeats = f" ({self.number} of {self.total})" if self.total > 1 else ""
        return f"{author_title(self.task)} {_ON[self.subject]}{of_repeats}"

    @property
    def activity(self) -> str:
        """The current activity in words, such as `Running shop · find one, 4 fail with your own solution`."""
        return f"Checking {author_title(self.task)}" if self.subject is None else f"Running {self.words}"


class RunMoved(Message):
    """A message that a run has made progress."""

    def __init__(self, run: EvidenceRun, words: str) -> None:
        super().__init__()
        self.run, self.words = run, words

    def can_replace(self, message: Message) -> bool:
        """Return whether `message` makes this one superfluous: only the latest progress matters."""
        return isinstance(message, RunMoved)


class RunEnded(Message):
    """A message that a run has ended with a trial, with findings, or with an error."""

    def __init__(
        self,
        run: EvidenceRun,
        *,
        trial: Trial | None = None,
        findings: tuple[CheckFinding, ...] = (),
        backend: str = "",
        error: UserError | None = None,
    ) -> None:
        super().__init__()
        self.run, self.trial, self.findings, self.backend, self.error = run, trial, findings, backend, error

    @property
    def stopped(self) -> bool:
        """Whether the user stopped the run."""
        return isinstance(self.error, CancelledError)


class TrialQueue:
    """A queue with the run under way and the runs that wait for it. Messages are posted to one widget."""

    def __init__(self, owner: Widget, judge_for: Callable[[Task], TaskJudge]) -> None:
        """`judge_for` returns the judge of a task. It is called in the thread, and may be slow."""
        self._owner, self._judge_for = owner, judge_for
        self._jobs = Jobs(owner, "trials")
        self._queued: list[Job] = []

    @property
    def _unfinished(self) -> int:
        return sum(job.running for job in self._queued)

    @property
    def busy(self) -> bool:
        """Whether a run is under way."""
        return self._unfinished > 0

    @property
    def waiting(self) -> int:
        """The number of runs that have not begun."""
        return max(0, self._unfinished - 1)

    def ask(self, runs: Iterable[EvidenceRun]) -> None:
        """Add runs to the end of the queue."""
        self._queued = [job for job in self._queued if job.running]
        self._queued += [self._jobs.do(partial(self._body, run), self._owner.post_message) for run in runs]

    def cancel(self) -> None:
        """Stop the current run, and drop the waiting ones."""
        self._jobs.cancel()

    def _body(self, run: EvidenceRun, job: Job) -> RunEnded:
        """Return the end of a run. If it failed, drop the waiting runs."""
        try:
            job.post(RunMoved(run, "finding the isolation"))
            return self._run(run, job)
        except CodeError as error:
            ended = RunEnded(run, error=UserError(f"Your code can't replace the function: {error}"))
        except UserError as error:
            ended = RunEnded(run, error=error)
        except BaseException:
            self._jobs.cancel()
            raise
        if not ended.stopped:
            self._jobs.cancel()
        return ended

    def _run(self, run: EvidenceRun, job: Job) -> RunEnded:
        judge = self._judge_for(run.task)
        job.cancel.check()
        context = RunContext(job.cancel, lambda progress: job.post(RunMoved(run, _progress_words(progress))))
        if run.subject is not None:
            return RunEnded(run, trial=kind_of(run.task).trial(judge, run.subject, run.texts, context))
        findings = _collected(check_task(judge, run.answer, run=context), job.cancel)
        return RunEnded(run, findings=findings, backend=judge.backend.name)


def _collected(made: Iterable[CheckFinding], cancel: CancelToken) -> tuple[CheckFinding, ...]:
    findings = []
    for finding in made:
        cancel.check()
        findings.append(finding)
    return tuple(findings)


def _progress_words(progress: RunProgress) -> str:
    count = f"{progress.done} of {progress.total} tests" if progress.total else progress.phase
    return ", ".join(filter(None, (progress.step, count)))
