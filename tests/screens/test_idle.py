"""An idle screen redraws only its clock, because every cell is sent over the participant's connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.cells import cell_len
from screens.driving import LARGE, SMALL, Driver, solving
from shown_screen import Stage, rows
from textual._compositor import ChopsUpdate
from textual.app import App
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from gistpoint.tui.screens.help import HelpScreen
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.one_line import END, OneLine, split
from gistpoint.tui.widgets.plain import Plain

WIDE_TITLE = "駅" * 30


@contextmanager
def drawn_cells(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Yield a list, to which the number of cells in each update for the terminal is added."""
    sent: list[int] = []

    def display(app: App[object], screen: Screen[object], update: object) -> None:
        if isinstance(update, ChopsUpdate):
            sent.append(sum(end - start for _, start, end in update.spans))
        elif update is not None:
            sent.append(app.size.width * app.size.height)

    with monkeypatch.context() as patch:
        patch.setattr(App, "_display", display)
        yield sent


async def idle_seconds(driver: Driver, seconds: int = 12) -> None:
    """Tick the clock and write heartbeats as during a number of idle seconds."""
    for second in range(seconds):
        driver.clock.advance(1000)
        driver.solve._second()
        if second % 5 == 0:
            driver.solve.controller.heartbeat()
            driver.solve.state_changed()
        await driver.pilot.pause()


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
async def test_an_idle_attempt_draws_its_clock_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    async with solving(tmp_path, size=size) as driver:
        await driver.press("f3", "f4")
        await idle_seconds(driver, 2)
        with drawn_cells(monkeypatch) as sent:
            await idle_seconds(driver)
        assert sent, "the clock is drawn"
        assert max(sent) <= 16, "only the time and the isolation"


async def test_a_clock_below_a_dialog_does_not_draw_the_dialog_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        await driver.press("f1")
        await driver.until_screen(HelpScreen.__name__)
        await idle_seconds(driver, 2)
        with drawn_cells(monkeypatch) as sent:
            await idle_seconds(driver)
        assert sent
        assert max(sent) <= 2 * END
        await driver.press("escape")
        await driver.until(lambda: driver.screen is driver.solve)
        assert "F4" in driver.text()


async def test_the_cursor_of_an_input_does_not_blink(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("f5")
        await driver.until(lambda: isinstance(driver.app.focused, Input))
        assert isinstance(driver.app.focused, Input)
        assert not driver.app.focused.cursor_blink


async def test_a_frame_is_drawn_again_only_if_its_title_or_note_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pane = Plain("text")
    async with Stage(pane).run_test():
        framed(pane, "A [bold]title", "note")
        drawn: list[Widget] = []
        monkeypatch.setattr(Widget, "refresh", lambda widget, *_, **__: drawn.append(widget))
        framed(pane, "A [bold]title", "note")
        assert not drawn
        framed(pane, "A [bold]title", "another note")
        assert drawn == [pane]


class Clock(OneLine):
    """A line that fills the width, with a title and a time."""

    title, time = "A title", "0:01"

    def line(self) -> Content:
        room = self.content_size.width - len(self.time)
        return Content(self.title).truncate(room, pad=True) + Content.styled(self.time, "bold")


@pytest.mark.parametrize("width", [12, 39, 40, 41, 80, 81])
@pytest.mark.parametrize("title", ["A title", WIDE_TITLE])
async def test_both_parts_of_a_line_fit_together(width: int, title: str) -> None:
    clock = Clock()
    clock.title = title
    app = Stage(clock)
    async with app.run_test(size=(width, 1)) as pilot:
        for time in ("0:01", "0:02", "10:03"):
            clock.time = time
            clock.redraw()
            await pilot.pause()
            kept, end = split(clock.render())
            halved = cell_len(kept.plain) + END > width  # a wide character at the edge is drawn as spaces
            assert halved or rows(app)[0] == (kept.plain + end.plain).rstrip()
            assert cell_len(rows(app)[0]) <= width
            assert rows(app)[0].endswith(time)


def test_half_a_wide_character_is_a_blank() -> None:
    kept, end = split(Content(WIDE_TITLE + "x"))
    assert cell_len(end.plain) == END
    assert end.plain == " " + "駅" * 19 + "x"
    assert kept.plain + end.plain.strip() == WIDE_TITLE + "x"
