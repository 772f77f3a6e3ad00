"""The help of every screen and dialog is about that screen, and its bottom line shows few keys."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from builders import build_services, build_task
from fakes import FakeClock
from screens.driving import LARGE, driving
from textual.app import App, ComposeResult
from textual.binding import Binding

from gistpoint.core.tasks.model import Mode
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import KEYS, KeyScope
from gistpoint.tui.screens.dialogs.ask import Dialog, MessageDialog, TextDialog
from gistpoint.tui.screens.dialogs.cover import IdleCover, PauseCover
from gistpoint.tui.screens.help import HelpScreen, page_text
from gistpoint.tui.screens.home import HomeScreen
from gistpoint.tui.widgets.key_bar import KeyBar


def every_screen() -> list[type[BaseScreen[object]]]:
    """Return every screen class of the program; the test of keys imports all modules of `tui`."""
    from screens import test_keys  # noqa: F401 (imports the screens)

    found: list[type[BaseScreen[object]]] = []
    waiting = list(BaseScreen.__subclasses__())
    while waiting:
        screen = waiting.pop()
        waiting += screen.__subclasses__()
        found.append(screen)
    return [screen for screen in found if screen.__module__.startswith("gistpoint.")]


def test_every_screen_names_the_page_of_its_help() -> None:
    for screen in every_screen():
        page = getattr(screen, "HELP_PAGE", "")
        assert page, f"{screen.__name__} names no page"
        assert page_text(page).startswith("# "), screen
        is_home = issubclass(screen, HomeScreen)
        assert (page == "home") is is_home, f"{screen.__name__} has the help of home"
        if issubclass(screen, Dialog):
            assert page in ("dialog", "opening"), screen


@pytest.mark.parametrize(
    ("screen", "named"),
    [
        (lambda: IdleCover(600_000), "Are you there?"),
        (lambda: PauseCover("break"), "The pause"),
        (lambda: TextDialog("Which line?"), "Which line?"),
        (lambda: MessageDialog("That did not work", "No."), "That did not work"),
    ],
    ids=["idle", "pause", "field", "message"],
)
async def test_f1_names_what_it_is_about(screen: object, named: str, tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.app.push_screen(screen())  # type: ignore[operator]
        driver.app.action_help()
        await driver.until_screen("HelpScreen")
        await driver.until(lambda: f"Help: {named}" in driver.text())
        assert isinstance(driver.app.screen, HelpScreen)
        assert "At the left are the tasks" not in driver.text()


async def test_home_has_few_keys_and_the_help_has_the_others(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    build_task(services.locations.tasks, Mode.REMOVE)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (1)" in driver.text())
        names = [key.name for key in driver.app.screen.query_one(KeyBar).shown]
        assert names == ["Open", "Attempts", "Filter", "Tour", "Quit", "Help"]
        assert "y copies" not in driver.text(), "an id is of no use to somebody who is new here"
        driver.app.action_help()
        await driver.until_screen("HelpScreen")
        for name in ("New", "Resume", "Review", "Sort", "Palette", "Zoom", "Jump"):
            assert name in driver.text(), name


def test_the_keys_of_no_scope_exceed_the_bottom_line() -> None:
    """Enter and the help are shown in addition to the keys of a scope."""
    shown = Counter(key.scope for key in KEYS if key.show)
    assert shown.pop(KeyScope.APP) == 1, "only the help is on every screen"
    assert shown.pop(KeyScope.HOME) + 2 <= HomeScreen.MOST_KEYS + 1, "one list's key is hidden on that list"
    assert {scope: count for scope, count in shown.items() if count + 2 > BaseScreen.MOST_KEYS} == {}


class Crowded(App[None]):
    """A screen with more keys than the bottom line can show."""

    BINDINGS = [  # noqa: RUF012
        *[Binding(letter, f"do('{letter}')", letter.upper()) for letter in "abcdefghijklmn"],
        Binding("f1", "help", "Help"),
    ]

    def compose(self) -> ComposeResult:
        yield KeyBar()

    def action_do(self, letter: str) -> None:
        """Do nothing."""

    def action_help(self) -> None:
        """Do nothing."""


async def test_the_bottom_line_has_at_most_its_number_of_keys() -> None:
    async with Crowded().run_test(size=(200, 5)) as pilot:
        await pilot.pause()
        shown = pilot.app.query_one(KeyBar).shown
        assert len(shown) == BaseScreen.MOST_KEYS
        assert shown[-1].name == "Help"
