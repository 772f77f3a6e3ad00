"""Writes what the solver does beside tool calls, in order, on a thread of its own: a slow disk never stops a key."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from functools import partial

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import Pane
from gistpoint.core.errors import AttemptError

FLUSH_SECONDS = 1.0
"""Comforts are counted together for so long."""

HEARTBEAT_SECONDS = 5.0
"""After a crash the clock is right to this, also if the screen stands still: while another editor has the terminal."""


class Recording:
    """A queue in front of the engine's events that are not calls; `on_error` gets what goes wrong, on the thread."""

    def __init__(self, attempt: Attempt, on_error: Callable[[Exception], None]) -> None:
        self._attempt = attempt
        self._on_error = on_error
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._comforts: dict[str, int] = {}
        self._thread = threading.Thread(target=self._work, name="recording", daemon=True)
        self._thread.start()

    def do(self, action: Callable[[], None], *, done: Callable[[Exception | None], None] | None = None) -> None:
        """Run `action` behind everything that waits; `done` is called on the thread with what it raised."""

        def body() -> None:
            error: Exception | None = None
            try:
                action()
            except Exception as raised:
                error = raised
            if done is not None:
                done(error)
            elif error is not None and not isinstance(error, AttemptError):
                self._on_error(error)

        self._queue.put(body)

    def view(self, pane: Pane) -> None:
        """Say what has the focus."""
        self.do(lambda: self._attempt.view(pane))

    def heartbeat(self) -> None:
        """Say that the attempt is alive."""
        self.do(self._attempt.heartbeat)

    def comfort(self, kind: str) -> None:
        """Count a comfort; written with the next flush."""
        self._comforts[kind] = self._comforts.get(kind, 0) + 1

    def pasted(self, text: str, *, outside: bool) -> None:
        """Record that text was pasted."""
        self.do(lambda: self._attempt.pasted(text, outside=outside))

    def edited(self, buffer: str, text: str) -> None:
        """Keep half-written code; also from another thread, while another editor has the terminal."""
        self.do(lambda: self._attempt.edit(buffer, text))

    def noted(self, text: str) -> None:
        """Keep the notes."""
        self.do(lambda: self._attempt.note(text))

    def flush(self) -> None:
        """Write the comforts since the last time."""
        comforts, self._comforts = self._comforts, {}
        for kind, times in comforts.items():
            self.do(partial(self._attempt.comfort, kind, times))

    def close(self) -> None:
        """Write everything that waits, then stop."""
        self.flush()
        self._queue.put(None)
        self._thread.join(timeout=10)

    def _work(self) -> None:
        due = time.monotonic() + HEARTBEAT_SECONDS
        while True:
            try:
                body = self._queue.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                due = time.monotonic() + HEARTBEAT_SECONDS
                self.heartbeat()
                continue
            if body is None:
                return
            body()
