"""Work that a key starts in a thread has ended when the tests look at the screen."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import ClassVar

import pytest
from screens.settling import until
from textual.app import App, ComposeResult
from textual.containers import Container
from textual.css.query import NoMatches
from textual.widgets import Label

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


class SlowPane(Container):
    """A pane that is on the screen for a while before its label is."""

    def compose(self) -> ComposeResult:
        return iter(())

    def on_mount(self) -> None:
        self.set_timer(0.1, lambda: self.mount(Label("here", id="late")))


async def test_a_condition_may_ask_for_a_widget_that_is_still_to_be_mounted() -> None:
    app = App[None]()
    async with app.run_test() as pilot:
        await app.mount(SlowPane(id="pane"))
        with pytest.raises(NoMatches):
            app.query_one("#pane #late")
        await until(pilot, lambda: app.query_one("#pane #late").is_mounted)


async def test_a_widget_that_is_never_mounted_is_named_by_the_failure() -> None:
    app = App[None]()
    async with app.run_test() as pilot:
        with pytest.raises(AssertionError) as failure:
            await until(pilot, lambda: app.query_one("#nowhere"), seconds=0.05)
    assert "#nowhere" in str(failure.value.__cause__)
