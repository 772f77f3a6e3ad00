"""Shows the progress of a command's long work on standard error, and stops it in an orderly way on Ctrl+C."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from signal import SIGINT, SIGTERM, signal
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING

from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.readable import duration
from gistpoint.core.running import CancelToken, RunContext, RunProgress, WorkStage
from gistpoint.core.text import visible_line
from gistpoint.tui import signs

if TYPE_CHECKING:
    from gistpoint.core.generation.progress import CampaignProgress
    from gistpoint.tui.commands.progress_bar import ProgressBar

_LOGGED_S = 30.0
"""Seconds between two lines on the same stage, if standard error is not a terminal."""


_OF_TESTS = ("running", "finished")
"""The phases that add nothing to the count of tests."""


class ProgressLine:
    """A context that shows the progress of long work, as a bar on a terminal or as lines with times."""

    def __init__(self, *, quiet: bool = False) -> None:
        """With `quiet`, nothing is shown, because another program reads the output."""
        self._quiet = quiet
        self._bar: ProgressBar | None = None
        self._stage: WorkStage | None = None
        self._logged_at = float("-inf")
        self.stopping = False
        """Whether the work is being stopped, in which case a stage that ends is not complete."""

    def __enter__(self) -> ProgressLine:
        if not self._quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            from gistpoint.tui.commands.progress_bar import ProgressBar

            self._bar = ProgressBar()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._end_stage()
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def making(self, progress: RunProgress) -> None:
        """Show the progress of a long operation."""
        from gistpoint.core.generation.progress import CampaignProgress

        if isinstance(progress, CampaignProgress):
            self._campaign(progress)
        elif progress.note:
            self.line(progress.note)
        else:
            if progress.step:
                self.stage(progress.step)
            if progress.total:
                self.count(
                    progress.done, progress.total, "" if progress.phase in _OF_TESTS else progress.phase
                )
            elif progress.phase:
                self.detail(progress.phase)

    def stage(self, name: str) -> None:
        """Begin a stage, which ends the previous one; do nothing if it is the current one."""
        if name == self._name:
            return
        self._end_stage()
        self._stage = WorkStage(name, time.monotonic())
        if self._bar is not None:
            self._bar.show(name, restart=True)
        else:
            self.line(name)

    def count(self, done: int, total: int, words: str = "") -> None:
        """Show how much of the stage is done. `words` describe the current work."""
        if self._bar is not None:
            self._bar.show(self._titled(words), done, total)
        elif self._is_time_to_log():
            self.line(f"  {done} of {total}{f', {words}' if words else ''}")

    def detail(self, text: str) -> None:
        """Show the current work; without a terminal, do nothing."""
        if self._bar is not None:
            self._bar.show(self._titled(text))

    def line(self, text: str, *, stamped: bool = True) -> None:
        """Print a line that remains. Without a terminal, the time of day precedes it if it is `stamped`."""
        if self._bar is not None:
            self._bar.line(visible_line(text))
        elif not self._quiet:
            at = f"{datetime.now():%H:%M:%S} " if stamped else ""
            print(f"{at}{visible_line(text)}", file=sys.stderr, flush=True)

    def _campaign(self, progress: CampaignProgress) -> None:
        parts = campaign_parts(progress)
        if self._bar is not None:
            self.stage("trying functions")
            kept, _, tried = parts[0].partition(" of ")
            words = visible_line("; ".join([*parts[2:3], tried, *parts[3:]]))
            self._bar.show(words, len(progress.kept), progress.wanted, count=kept, left_s=progress.remaining)
        elif self._is_time_to_log():
            self.line("; ".join(parts))

    @property
    def _name(self) -> str:
        return self._stage.name if self._stage is not None else ""

    def _titled(self, text: str) -> str:
        return visible_line(": ".join(filter(None, (self._name, text))))

    def _end_stage(self) -> None:
        if self._stage and self._bar is not None and not self.stopping:
            took = time.monotonic() - self._stage.began
            self.line(f"{signs.GOOD} {self._stage.name}  {duration(1000 * took)}")
        self._stage = None

    def _is_time_to_log(self) -> bool:
        now = time.monotonic()
        if self._quiet or now - max(self._logged_at, self._stage.began if self._stage else 0.0) < _LOGGED_S:
            return False
        self._logged_at = now
        return True


def campaign_parts(progress: CampaignProgress) -> list[str]:
    """Return strings that describe a campaign, most important first."""
    parts = [
        f"{len(progress.kept)}/{progress.wanted} kept of {progress.tried} tried of {progress.candidates}"
    ]
    left = "" if progress.remaining is None else f", about {duration(1000 * progress.remaining)} left"
    parts.append(f"{duration(1000 * progress.elapsed)}{left}")
    for trial in progress.trials:
        function = trial.function.partition("::")[2]
        number = f", try {trial.attempt}" if trial.attempt else ""
        latest = f", before it: {_stage_words(trial.latest)}" if trial.latest else ""
        parts.append(f"{function}{number}{f' ({trial.family})' if trial.family else ''}{latest}")
    parts.append(f"{progress.tests_per_second:.0f} tests/s")
    parts += [f"{count} {_stage_words(reason)}" for reason, count in progress.dropped.items()]
    return parts


def _stage_words(name: str) -> str:
    return name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class LongWork:
    """Work that a user waits for: its progress, and the token that Ctrl+C sets."""

    progress: ProgressLine
    cancel: CancelToken

    @property
    def run(self) -> RunContext:
        """The context for operations that report progress and can be cancelled."""
        return RunContext(self.cancel, self.progress.making)


@contextmanager
def long_work(*, kept: str, quiet: bool = False, asks_token: bool = True) -> Iterator[LongWork]:
    """Show the progress of work unless `quiet`, and stop the work on Ctrl+C.

    The first Ctrl+C sets the token, and the second ends the work at once. Work that doesn't check the token
    (`asks_token` is False) ends at the first. Raises `CancelledError` when the work is stopped, with a
    sentence on what is `kept` and how to continue.
    """
    stopped = CancelledError(f"Stopped. {kept}".strip())
    with ProgressLine(quiet=quiet) as progress:
        try:
            if not asks_token:
                yield LongWork(progress, CancelToken())
                return
            with interruptible(progress) as cancel:
                try:
                    yield LongWork(progress, cancel)
                except UserError as error:
                    # The same Ctrl+C ends a program such as git, which then reports a failure.
                    if cancel.cancelled:
                        raise stopped from error
                    raise
        except KeyboardInterrupt as error:
            raise stopped from error


@contextmanager
def interruptible(progress: ProgressLine | None = None) -> Iterator[CancelToken]:
    """Yield a token that the first Ctrl+C sets, with a message. The second one ends the program."""
    cancel = CancelToken()

    def stop(*_: object) -> None:
        cancel.cancel()
        signal(SIGINT, before)
        if progress is not None:
            progress.stopping = True
            message = "Stopping without loss. Press Ctrl+C again to stop at once."
            # A signal handler must not print, so a thread does.
            Thread(target=progress.line, args=(message,), daemon=True).start()

    before = signal(SIGINT, stop)
    try:
        yield cancel
    finally:
        signal(SIGINT, before)


@contextmanager
def orderly_end() -> Iterator[None]:
    """Make SIGTERM end the program like an exit, so that processes and folders are cleaned up."""

    def stop(*_: object) -> None:
        raise SystemExit(128 + SIGTERM)

    before = signal(SIGTERM, stop)
    try:
        yield
    finally:
        signal(SIGTERM, before)
