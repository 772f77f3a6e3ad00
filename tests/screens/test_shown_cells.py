"""Only changed cells are sent, and the terminal shows what the screen draws."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyte
import pytest
from examples import at_the_gate
from rich.text import Text
from screens.driving import LARGE, solving
from screens.settling import until
from textual.app import App, ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.drivers.headless_driver import HeadlessDriver
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from gistpoint.tui.shown_cells import SparingApp

Look = tuple[object, ...]
WORDS = ("plain", "─│╭", "漢字", "e\u0301te\u0301", "🚀 up", "   ", "[not markup]", "ab" * 40)
STYLES = ("", "bold", "reverse", "underline", "red", "on blue", "#123456 on #654321", "bold italic #ff0000")


class Drawn:
    """A terminal that counts what it is sent."""

    def __init__(self, columns: int, rows: int) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)
        self.sent = 0

    def feed(self, data: str) -> None:
        self._stream.feed(data)
        self.sent += len(data)

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)

    def cells(self) -> list[list[Look]]:
        lines, columns = self.screen.buffer, range(self.screen.columns)
        return [[_look(lines[y][x]) for x in columns] for y in range(self.screen.lines)]


def _look(cell: Any) -> Look:
    """Return what is seen of a cell: of a blank, only its background."""
    background = cell.fg if cell.reverse else cell.bg
    if cell.data == " " and not cell.underscore and not cell.strikethrough:
        return (" ", background, cell.reverse)
    return (cell.data, cell.fg, cell.bg, cell.bold, cell.italics, cell.underscore, cell.reverse)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """Let apps draw on a terminal of 60x16."""
    drawn = Drawn(60, 16)

    class Driver(HeadlessDriver):
        @property
        def is_headless(self) -> bool:
            return False

        def write(self, data: str) -> None:
            drawn.feed(data)

    monkeypatch.setattr("textual.drivers.headless_driver.HeadlessDriver", Driver)
    return drawn


def whole(app: App[Any]) -> tuple[list[list[Look]], int]:
    """Return the cells of a terminal that is sent the whole screen, and the number of characters sent."""
    there = Drawn(app.size.width, app.size.height)
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    there.feed(update.render_segments(app.console))  # type: ignore[union-attr]
    return there.cells(), there.sent


class Box(ModalScreen[None]):
    CSS = "Box { align: center middle; } Label { width: auto; border: round red; }"

    def compose(self) -> ComposeResult:
        yield Label("漢 a dialog above the screen")


class Patchwork(SparingApp):
    CSS = "Static { height: auto; } .thin { width: 20; } Static:focus { border: heavy red; }"

    def compose(self) -> ComposeResult:
        with Horizontal():
            for number in range(3):
                with VerticalScroll(id=f"column-{number}"):
                    for _ in range(4):
                        yield Static("first")
        yield Input()

    def change(self, draw: random.Random) -> None:
        """Make a random change."""
        part = draw.choice(list(self.query(Static))) if self.query(Static) else None
        match draw.randrange(7):
            case 0 | 1 | 2 if part is not None:
                words = [(draw.choice(WORDS), draw.choice(STYLES)) for _ in range(draw.randrange(9))]
                part.update(Text.assemble(*words))
            case 3 if part is not None:
                part.display = not part.display
            case 4:
                draw.choice(list(self.query(VerticalScroll))).toggle_class("thin")
            case 5:
                draw.choice(list(self.query(VerticalScroll))).scroll_to(y=draw.randrange(4), animate=False)
            case _:
                self.screen.focus_next()


@pytest.mark.parametrize("seed", [0, 1, *at_the_gate(range(2, 8))])
async def test_the_terminal_shows_what_is_drawn_after_any_changes(terminal: Drawn, seed: int) -> None:
    draw, app = random.Random(seed), Patchwork()
    async with app.run_test(size=(60, 16)) as pilot:
        for _ in range(40):
            match draw.randrange(12):
                case 0 if len(app.screen_stack) == 1:
                    await app.push_screen(Box())
                case 1 if len(app.screen_stack) > 1:
                    await app.pop_screen()
                case 2:
                    columns, rows = draw.randrange(30, 80), draw.randrange(8, 24)
                    terminal.resize(columns, rows)
                    await pilot.resize_terminal(columns, rows)
                case _:
                    with app.batch_update():
                        for _ in range(draw.randrange(1, 4)):
                            app.change(draw) if len(app.screen_stack) == 1 else None
            # A resize and a new screen are drawn some messages later, which a slow machine shows.
            await until(pilot, lambda: terminal.cells() == whole(app)[0])


async def settled(pilot: Pilot[Any]) -> None:
    for _ in range(3):
        await pilot.pause()


async def test_what_another_program_wrote_is_gone_after_a_resize(terminal: Drawn) -> None:
    app = Patchwork()
    async with app.run_test(size=(60, 16)) as pilot:
        await settled(pilot)
        terminal.feed("\x1b[3;3HBroadcast message from root")
        await pilot.resize_terminal(60, 16)
        await settled(pilot)
        assert terminal.cells() == whole(app)[0]


async def test_the_key_of_a_pane_sends_a_part_of_the_screen(terminal: Drawn, tmp_path: Path) -> None:
    terminal.resize(*LARGE)
    async with solving(tmp_path, size=LARGE) as driver:
        await settled(driver.pilot)
        for key in ("f3", "f2", "f7", "f3", "f6", "f3"):
            before = terminal.sent
            await driver.press(key)
            await settled(driver.pilot)
            shown, all_of_it = whole(driver.app)
            assert terminal.cells() == shown
            assert terminal.sent - before < all_of_it / 2, f"{key} sends {terminal.sent - before}"
