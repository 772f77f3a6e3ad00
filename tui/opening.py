"""An attempt that is being opened: what is done just now, and whether it is still wanted."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from gistpoint.core.errors import CancelledError


class Opening:
    """Shared by the thread that opens an attempt and the screen that shows how far it is."""

    def __init__(self, report: Callable[[str], None] = lambda words: None) -> None:
        """`report` gets what is done, in words, on the thread that does it."""
        self._report = report
        self._lock = Lock()
        self._cancelled = self._committed = False

    @property
    def cancelled(self) -> bool:
        """Whether it is not wanted any more."""
        return self._cancelled

    def step(self, words: str) -> None:
        """Say what is done next. Raises `CancelledError` if nobody wants it any more."""
        if self._cancelled:
            raise CancelledError("The attempt was not opened.")
        self._report(words)

    def commit(self) -> None:
        """Pass the point from which on an attempt is there. Raises `CancelledError` if nobody wants it any more."""
        with self._lock:
            if self._cancelled:
                raise CancelledError("The attempt was not opened.")
            self._committed = True

    def cancel(self) -> bool:
        """Give up; False if it is too late, because the attempt has begun."""
        with self._lock:
            self._cancelled = not self._committed
            return self._cancelled
