"""The context of a long operation: a token to cancel it, and a function for progress reports.

Code that reports progress receives a whole `RunContext`; code that only stops receives its `CancelToken`.
Neither is ever optional, so no code has to test whether it was given (decision 60).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gistpoint.core.errors import CancelledError

if TYPE_CHECKING:
    from gistpoint.core.chat import Usage
    from gistpoint.core.outcomes import TestResult


class CancelToken:
    """A flag set once by the caller of a long operation, which checks it repeatedly."""

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
        """Enclose a wait outside of the operation's work, such as for an endpoint's rate limit.

        Waits may be nested. This token does nothing; a caller that measures waits passes one that overrides
        this method.
        """
        yield

    def failed(self, usage: Usage) -> None:
        """Record that a request failed at this cost and will be sent again; this token ignores it."""

    def sleep(self, seconds: float) -> None:
        """Wait for this many seconds. Raises `CancelledError` as soon as the token is set."""
        with self.waiting():
            if self._event.wait(max(0.0, seconds)):
                self.check()


NEVER = CancelToken()
"""The default token, which is never set."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """A progress report of a long operation."""

    phase: str = ""
    """The phase of a test run: `preparing`, `collecting`, `running` or `finished`; else empty."""
    done: int = 0
    total: int = 0
    latest: TestResult | None = None
    step: str = ""
    """The purpose of the run in a few words; empty for a single run."""
    note: str = ""
    """A sentence about a result; empty in most reports."""


@dataclass(frozen=True, slots=True)
class WorkStage:
    """A step of a long operation, derived from its reports; times are seconds of a monotonic clock."""

    name: str
    began: float
    phase: str = ""
    done: int = 0
    total: int = 0
    took: float | None = None
    """The duration in seconds; None while it runs."""


def stages_after(stages: tuple[WorkStage, ...], progress: RunProgress, now: float) -> tuple[WorkStage, ...]:
    """Return the stages after a report, which updates the last stage or, under a new name, begins one."""
    *done, last = stages or (WorkStage(progress.step, now),)
    if progress.step and progress.step != last.name:
        done, last = [*done, replace(last, took=now - last.began)], WorkStage(progress.step, now)
    return (*done, replace(last, phase=progress.phase, done=progress.done, total=progress.total))


def time_left(passed: float, done: int, left: int) -> float | None:
    """Return the remaining time at the current pace, in the unit of `passed`; None if nothing is done."""
    return passed * left / done if done else None


OnProgress = Callable[[RunProgress], None]
OnCount = Callable[[int, int], None]
"""A function called with the numbers of parts done and in total; it may raise `CancelledError`."""


def _ignore(progress: RunProgress) -> None:
    """Ignore a report."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """The token that stops a long operation, and the function for its progress reports."""

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
        """The context with the same token and without reports."""
        return RunContext(self.cancel)

    def step(self, name: str) -> RunContext:
        """Report the beginning of a step, and return a context whose reports carry the step's name."""
        self.progress(RunProgress(step=name))
        return RunContext(self.cancel, lambda progress: self.progress(replace(progress, step=name)))


UNATTENDED = RunContext(NEVER)
"""The default context, which is never cancelled and discards reports."""


class Opening:
    """The state shared by the thread that opens an attempt and the screen that shows its progress."""

    def __init__(self, report: Callable[[str], None] = lambda words: None) -> None:
        """Set the function that receives a description of each step, on the opening thread."""
        self._report = report
        self._lock = threading.Lock()
        self._cancelled = self._committed = False

    @property
    def cancelled(self) -> bool:
        """Whether the user has cancelled the opening."""
        return self._cancelled

    def step(self, words: str) -> None:
        """Report the next step. Raises `CancelledError` if the opening was cancelled."""
        if self._cancelled:
            raise CancelledError("The attempt was not opened.")
        self._report(words)

    def commit(self) -> None:
        """Mark the attempt as existing. Raises `CancelledError` if the opening was cancelled."""
        with self._lock:
            if self._cancelled:
                raise CancelledError("The attempt was not opened.")
            self._committed = True

    def cancel(self) -> bool:
        """Cancel the opening; return False if the attempt already exists."""
        with self._lock:
            self._cancelled = not self._committed
            return self._cancelled
