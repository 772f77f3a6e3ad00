"""The context of a long operation: a flag that stops it, and a function that receives reports of its
progress.

Code that reports takes a whole `RunContext`; code that only has to stop takes the `CancelToken` of one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gistpoint.core.errors import CancelledError

if TYPE_CHECKING:
    from gistpoint.core.outcomes import TestResult


class CancelToken:
    """Set once by the caller of a long operation, which checks it repeatedly."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask the operation to stop as soon as it can."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether the operation should stop."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise `CancelledError` when cancelled."""
        if self._event.is_set():
            raise CancelledError("Stopped at your request.")

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Surround a wait that is not part of the operation's work, such as one for an endpoint's rate limit.

        Waits may be nested. Here it does nothing; a caller who counts such time passes a token that counts
        it.
        """
        yield

    def sleep(self, seconds: float) -> None:
        """Wait; raise `CancelledError` as soon as the token is set."""
        with self.waiting():
            if self._event.wait(max(0.0, seconds)):
                self.check()


NEVER = CancelToken()
"""The default, which is never set."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a long operation."""

    phase: str = ""
    """The phase of a run of tests: `preparing`, `collecting`, `running` or `finished`; empty if no tests run.
    """
    done: int = 0
    total: int = 0
    latest: TestResult | None = None
    step: str = ""
    """The purpose of the run in a few words; empty if there is only one run."""
    note: str = ""
    """A sentence about a result; empty in most reports."""


@dataclass(frozen=True, slots=True)
class WorkStage:
    """A step of a long operation, as its reports describe it; times are seconds of a monotonic clock."""

    name: str
    began: float
    phase: str = ""
    done: int = 0
    total: int = 0
    took: float | None = None
    """None while it runs."""


def stages_after(stages: tuple[WorkStage, ...], progress: RunProgress, now: float) -> tuple[WorkStage, ...]:
    """Return the stages after a report on one of them; a report without a name is on the last, any other one
    begins.
    """
    *done, last = stages or (WorkStage(progress.step, now),)
    if progress.step and progress.step != last.name:
        done, last = [*done, replace(last, took=now - last.began)], WorkStage(progress.step, now)
    return (*done, replace(last, phase=progress.phase, done=progress.done, total=progress.total))


def time_left(passed: float, done: int, left: int) -> float | None:
    """Return how long the rest takes at the pace of the part `done` in the time that `passed`; None without a
    pace.
    """
    return passed * left / done if done else None


OnProgress = Callable[[RunProgress], None]


def _ignore(progress: RunProgress) -> None:
    """Ignore a report."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """The token that stops a long operation, and the function that its progress is reported to."""

    cancel: CancelToken = field(default_factory=CancelToken)
    progress: OnProgress = _ignore

    def check(self) -> None:
        """Raise `CancelledError` when cancelled."""
        self.cancel.check()

    def note(self, sentence: str) -> None:
        """Report a result in a sentence."""
        self.progress(RunProgress(note=sentence))

    @property
    def quiet(self) -> RunContext:
        """Return a context with the same token and without reports."""
        return RunContext(self.cancel)

    def step(self, name: str) -> RunContext:
        """Report that a step begins, and return a context whose reports have its name."""
        self.progress(RunProgress(step=name))
        return RunContext(self.cancel, lambda progress: self.progress(replace(progress, step=name)))


UNATTENDED = RunContext(NEVER)
"""The default: it is never cancelled and drops reports."""


class Opening:
    """Shared by the thread that opens an attempt and the screen that shows the progress."""

    def __init__(self, report: Callable[[str], None] = lambda words: None) -> None:
        """`report` gets each step in words, on the opening thread."""
        self._report = report
        self._lock = threading.Lock()
        self._cancelled = self._committed = False

    @property
    def cancelled(self) -> bool:
        """Whether the user has cancelled the opening."""
        return self._cancelled

    def step(self, words: str) -> None:
        """Report the next step. Raises `CancelledError` if it is no longer wanted."""
        if self._cancelled:
            raise CancelledError("The attempt was not opened.")
        self._report(words)

    def commit(self) -> None:
        """Mark that the attempt now exists. Raises `CancelledError` if it is no longer wanted."""
        with self._lock:
            if self._cancelled:
                raise CancelledError("The attempt was not opened.")
            self._committed = True

    def cancel(self) -> bool:
        """Give up; False if it is too late, because the attempt has begun."""
        with self._lock:
            self._cancelled = not self._committed
            return self._cancelled
