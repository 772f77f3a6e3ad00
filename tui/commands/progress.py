"""Progress of a long command on standard error: one live line on a terminal, a line per step elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType

from gistpoint.core.generation.intake import MakingProgress
from gistpoint.core.text import visible_line

_INTERVAL_S = 0.1


class ProgressLine:
    """A context in which `MakingProgress` and plain lines are shown as they come."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._step = ""
        self._shown_at = 0.0
        self._started = time.monotonic()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear()

    def making(self, progress: MakingProgress) -> None:
        """Show where the making of a task stands."""
        if progress.step != self._step:
            self.line(progress.step)
            self._step = progress.step
        run = progress.run
        now = time.monotonic()
        if run is None or not self._live or now - self._shown_at < _INTERVAL_S:
            return
        self._shown_at = now
        count = f"{run.done}/{run.total}" if run.total else run.phase
        sys.stderr.write(f"\r\x1b[2K  {count}  {now - self._started:.0f} s")
        sys.stderr.flush()

    def detail(self, text: str) -> None:
        """Show a line of a tool underway; it is gone with the next one, and left out without a terminal."""
        if self._live:
            sys.stderr.write(f"\r\x1b[2K  {visible_line(text)[:76]}")
            sys.stderr.flush()

    def count(self, text: str) -> None:
        """Show a count that goes on; it is gone with the next line, and without a terminal it is left out."""
        now = time.monotonic()
        if self._live and now - self._shown_at >= _INTERVAL_S:
            self._shown_at = now
            sys.stderr.write(f"\r\x1b[2K  {visible_line(text)[: shutil.get_terminal_size().columns - 3]}")
            sys.stderr.flush()

    def line(self, text: str) -> None:
        """Print a line of its own."""
        self._clear()
        print(visible_line(text), file=sys.stderr, flush=True)

    def _clear(self) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
