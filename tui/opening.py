"""The opening of an attempt, which takes a moment and can be given up."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from gistpoint.core.errors import CancelledError


class Opening:
    """Shared by the thread that opens an attempt and the screen that shows the progress."""

    def __init__(self, report: Callable[[str], None] = lambda words: None) -> None:
        """`report` gets each step in words, on the opening thread."""
        self._report = report
        self._lock = Lock()
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
        """Pass the point from which on the attempt exists. Raises `CancelledError` if it is no longer wanted."""
        with self._lock:
            if self._cancelled:
                raise CancelledError("The attempt was not opened.")
            self._committed = True

    def cancel(self) -> bool:
        """Give up; False if it is too late, because the attempt has begun."""
        with self._lock:
            self._cancelled = not self._committed
            return self._cancelled
