"""Held-back updates are drawn together with related ones, or alone after a delay."""

from __future__ import annotations

import asyncio

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Static

from gistpoint.tui.screens.review.step_list import DrawingDelay


class Pair(App[None]):
    """An app with two lines, which records the text of each picture that is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[str] = []

    def compose(self) -> ComposeResult:
        yield Static("one", id="left")
        yield Static("one", id="right")

    def _display(self, screen: object, renderable: object) -> None:
        super()._display(screen, renderable)  # type: ignore[arg-type]
        self.drawn.append(
            " ".join(strip.text.strip() for strip in self.screen._compositor.render_strips()[:2])
        )


@pytest.mark.parametrize("patience", [30.0, 0.02])
async def test_both_are_drawn_at_once_or_one_after_patience(patience: float) -> None:
    app = Pair()
    async with app.run_test() as pilot:
        await pilot.pause(0.1)
        app.drawn.clear()
        together = DrawingDelay(app, patience)
        together.hold()
        together.hold()
        app.query_one("#left", Static).update("two")
        await asyncio.sleep(0.3)
        assert app.drawn == ([] if patience > 1 else ["two one"])
        app.query_one("#right", Static).update("two")
        together.release()
        together.release()
        await pilot.pause(0.2)
        assert set(app.drawn) == ({"two two"} if patience > 1 else {"two one", "two two"})


async def test_a_delay_that_ends_after_the_app_has_closed_draws_nothing() -> None:
    app = Pair()
    async with app.run_test():
        delay = DrawingDelay(app, 30.0)
        delay.hold()
    drawn = [*app.drawn]
    delay.release()
    assert app.drawn == drawn
