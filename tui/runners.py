"""The runners of one run of the program: the isolation is chosen once, and may be chosen while the screens load."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from threading import Lock, Thread
from typing import Generic, TypeVar

from gistpoint.core.errors import UserError

Ask = Callable[[str], bool]
Made = TypeVar("Made")


class Runners(Generic[Made]):
    """Makes a runner of each kind at most once; what could not be made is tried again when it is asked for."""

    def __init__(self, make: Callable[[bool, Ask], Made]) -> None:
        """`make` makes a runner for our own demo or for other code, with a way to ask for consent."""
        self._make = make
        self._made: dict[bool, Made] = {}
        self._lock = Lock()

    def get(self, demo: bool, ask: Ask) -> Made:
        """Return the runner. Raises `SandboxUnavailableError`; blocks while another thread makes it."""
        with self._lock:
            if demo not in self._made:
                self._made[demo] = self._make(demo, ask)
            return self._made[demo]

    def prepare(self, demo: bool) -> None:
        """Begin to make the runner in the background, asking nobody; a failure is left to whoever needs it."""

        def work() -> None:
            with contextlib.suppress(UserError):
                self.get(demo, lambda why_not: False)

        Thread(target=work, name="runner", daemon=True).start()
