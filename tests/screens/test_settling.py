"""Work that a key starts in a thread has ended when the tests look at the screen."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import ClassVar

import pytest
from textual.app import App

LIMIT_S = 1.0
"""The default limit of `settled`."""


class Computing(App[None]):
    BINDINGS: ClassVar = [("x", "compute", "Compute")]
    done = False

    def action_compute(self) -> None:
        threading.Thread(target=self._compute).start()

    def _compute(self) -> None:
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            pass
        self.call_from_thread(setattr, self, "done", True)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel doesn't say who waits")
async def test_a_thread_at_work_is_waited_for() -> None:
    app = Computing()
    async with app.run_test() as pilot:
        began = time.monotonic()
        await pilot.press("x")
        # A thread that gets less than a tenth of a processor is waited for up to the limit, and no longer.
        assert app.done or time.monotonic() - began >= LIMIT_S
