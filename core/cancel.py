"""A flag that stops a long operation from another thread."""

from __future__ import annotations

import threading

from gistpoint.core.errors import CancelledError


class CancelToken:
    """Set once by whoever wants the operation to stop, looked at by whoever runs it."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask the operation to stop as soon as it can."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise `CancelledError` when cancelled."""
        if self._event.is_set():
            raise CancelledError("Stopped at your request.")

    def sleep(self, seconds: float) -> None:
        """Wait; raise `CancelledError` as soon as somebody asks to stop."""
        if self._event.wait(max(0.0, seconds)):
            self.check()
