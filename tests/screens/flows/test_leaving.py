"""A screen closes only itself, and releases its attempt however it is removed; a crash loses no typing."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeClock
from screens.driving import Driver, solving
from textual import events
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

from gistpoint import tui
from gistpoint.core.errors import AttemptError
from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.annotations.labels import Label
from gistpoint.sessions.journal import JournalWriter
from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.screens.dialogs.ask import (
    CommentDialog,
    ConfirmDialog,
    Dialog,
    MessageDialog,
    PickDialog,
    ReasonDialog,
    TextDialog,
)
from gistpoint.tui.screens.dialogs.cover import PauseCover
from gistpoint.tui.screens.help import HelpScreen
from gistpoint.tui.screens.jump import JumpScreen
from gistpoint.tui.screens.palette import Palette, PaletteEntry
from gistpoint.tui.screens.review.annotation_dialogs import LabelDialog, VerdictDialog
from gistpoint.tui.screens.review.verdicts import OF_A_PERSON
from gistpoint.tui.screens.solve.controller import StateChanged
from gistpoint.tui.screens.solve.panes import StatePane
from gistpoint.tui.screens.solve.screen import SolveScreen
from gistpoint.tui.screens.study.pages import WithdrawDialog

CHOICES = [("a", "first"), ("b", "second")]
DIALOGS: dict[str, Callable[[], Screen[Any]]] = {
    "confirm": lambda: ConfirmDialog("Really?", "It is about to happen.", yes="Yes"),
    "message": lambda: MessageDialog("So it is", "Nothing can be done."),
    "text": lambda: TextDialog("Which line?"),
    "reason": lambda: ReasonDialog("Why?", "Say it.", CHOICES, yes="Say", at_once=True),
    "pick": lambda: PickDialog("Which?", CHOICES),
    "comment": lambda: CommentDialog("Why?"),
    "withdraw": WithdrawDialog,
    "cover": lambda: PauseCover("break"),
    "help": lambda: HelpScreen("solve", [], "", []),
    "palette": lambda: Palette("Commands", [PaletteEntry("a", "first", "x", "", lambda: None)]),
    "jump": lambda: JumpScreen({}),
    "verdict": lambda: VerdictDialog(OF_A_PERSON, []),
    "label": lambda: LabelDialog("Label", {"a": Label("hard", "It is hard", "h")}),
}


def post(driver: Driver, *keys: str) -> None:
    """Put keys into the app's queue, all before it can handle the first."""
    assert driver.app._driver is not None
    for key in keys:
        event = events.Key(key, "\r" if key == "enter" else "\x1b" if key == "escape" else None)
        event.set_sender(driver.app)
        driver.app._driver.send_message(event)


def is_held(driver: Driver, attempt_id: str) -> bool:
    """Return whether the attempt's journal is open."""
    try:
        JournalWriter(driver.services.attempts.folder(attempt_id), FakeClock()).close()
    except AttemptError:
        return True
    return False


@pytest.mark.parametrize("key", ["escape", "enter"])
async def test_two_keys_at_once_close_one_dialog(tmp_path: Path, key: str) -> None:
    async with solving(tmp_path) as driver:
        for name, make in DIALOGS.items():
            await press_twice(driver, make(), name, key)


async def press_twice(driver: Driver, dialog: Screen[Any], name: str, key: str) -> None:
    """Press a key twice at once in a dialog, and require one answer and that the attempt stays open."""
    solve, answers = driver.solve, list[object]()
    driver.app.push_screen(dialog, answers.append)
    await driver.until(lambda: driver.screen is dialog and dialog.is_mounted)
    await driver.pilot.pause()
    post(driver, key, key)
    await driver.pilot.pause()
    await driver.pilot.pause()
    if driver.screen is dialog:  # this key does not close the dialog
        dialog.dismiss(None)
        dialog.dismiss(None)
        await driver.pilot.pause()
    assert driver.screen is solve, name
    assert len(answers) == 1, name
    assert is_held(driver, driver.state.attempt_id), name


async def test_every_dialog_is_tried() -> None:
    def below(kind: type[BaseScreen[Any]]) -> set[type[BaseScreen[Any]]]:
        return {kind}.union(*(below(sub) for sub in kind.__subclasses__()))

    tried = {type(make()) for make in DIALOGS.values()}
    modal = {kind for kind in below(BaseScreen) if issubclass(kind, ModalScreen)}
    assert {kind.__name__ for kind in modal - tried} <= {"Dialog", "OpeningDialog"}


def test_only_the_base_classes_say_how_a_screen_is_closed() -> None:
    """A screen closed in another way would close the topmost screen, or release nothing."""
    for module in pkgutil.walk_packages(tui.__path__, "gistpoint.tui."):
        if ".screens." in module.name:
            importlib.import_module(module.name)
    below, found = [Screen], set[type[Screen[Any]]]()
    while below:
        kind = below.pop()
        below += kind.__subclasses__()
        if kind.__module__.startswith("gistpoint."):
            found.add(kind)
    assert SolveScreen in found
    assert {kind.__name__ for kind in found if not issubclass(kind, BaseScreen)} == set()
    assert {kind for kind in found if "dismiss" in kind.__dict__} == {BaseScreen, Dialog}
    assert {kind for kind in found if "leave" in kind.__dict__} == {BaseScreen}


async def test_what_is_asked_twice_is_answered_once_and_leaves_the_attempt_open(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f4")
        await driver.type("#")
        await driver.until_screen("TextDialog")
        post(driver, "enter", "enter")
        await driver.until_screen("SolveScreen")
        await driver.pilot.pause()
        assert isinstance(driver.screen, SolveScreen)
        assert is_held(driver, driver.state.attempt_id)


async def write(driver: Driver, text: str) -> None:
    """Put text into the editor as if it had just been typed and not saved yet."""
    await driver.press("f6")
    await driver.until(lambda: driver.solve.editor.is_mounted)
    editor = driver.solve.editor.editor
    editor.replace(text, editor.document.start, editor.document.end)


def typed(driver: Driver, attempt_id: str) -> list[str]:
    """Return the text of each buffer, as the attempt's journal has it."""
    return list(driver.services.attempts.summary(attempt_id).state.buffers.values())


TYPED = "def discount(price, percent):\n    return price  # as far as I came\n"


def popped(driver: Driver) -> None:
    driver.app.pop_screen()


def popped_behind_the_app(driver: Driver) -> None:
    super(BaseApp, driver.app).pop_screen()


def replaced(driver: Driver) -> None:
    driver.app.switch_screen(PauseCover("break"))


def dismissed(driver: Driver) -> None:
    driver.solve.dismiss("left")


@pytest.mark.parametrize("away", [popped, popped_behind_the_app, replaced, dismissed])
async def test_an_attempt_is_free_however_its_screen_goes(
    tmp_path: Path, away: Callable[[Driver], None]
) -> None:
    async with solving(tmp_path) as driver:
        attempt_id, screen = driver.state.attempt_id, driver.solve
        assert is_held(driver, attempt_id)
        await write(driver, TYPED)
        away(driver)
        await driver.until(lambda: screen not in driver.app.screen_stack and not is_held(driver, attempt_id))
        assert typed(driver, attempt_id) == [TYPED] or away is popped_behind_the_app


async def test_the_end_of_the_program_frees_the_attempt_and_keeps_what_was_typed(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        attempt_id = driver.state.attempt_id
        await write(driver, TYPED)
        driver.app.exit()
        await driver.until(lambda: not is_held(driver, attempt_id))
    assert typed(driver, attempt_id) == [TYPED]


async def until_message_is_shown(driver: Driver) -> None:
    """Wait for the message without the pilot, which would wait for the widgets of a dead screen."""
    for _ in range(500):
        await asyncio.sleep(0.02)
        if isinstance(driver.screen, MessageDialog) and driver.screen.is_mounted:
            break
    await driver.until_screen("MessageDialog")


async def test_a_crash_keeps_what_was_typed_and_reports_only_the_first_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with solving(tmp_path, crashes=3) as driver:
        attempt_id, solve = driver.state.attempt_id, driver.solve
        await write(driver, TYPED)

        def broken(self: SolveScreen) -> None:
            raise ZeroDivisionError("the first")

        async def broken_too(self: SolveScreen, pane: str) -> None:
            raise LookupError("what follows")

        monkeypatch.setattr(SolveScreen, "_draw", broken)
        monkeypatch.setattr(SolveScreen, "action_pane", broken_too)
        solve.post_message(StateChanged())
        solve.editor.call_later(solve.editor.app.query_one, "#what-follows-in-a-widget")
        while not driver.app.crashes:
            await asyncio.sleep(0.01)
        await solve.run_action("pane('notes')")
        post(driver, "f4", "enter", "escape")
        await until_message_is_shown(driver)
        await driver.pilot.pause()
        assert "the first" in driver.text()
        assert "what follows" not in driver.text()
        assert typed(driver, attempt_id) == [TYPED]
        assert driver.events(attempt_id)[-1] == "crash"
        assert not is_held(driver, attempt_id)
        await driver.press("enter")
        await driver.until_screen("HomeScreen")


async def test_a_second_crash_after_the_first_was_read_is_reported_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: SolveScreen) -> None:
        raise ZeroDivisionError("again and again")

    async with solving(tmp_path, crashes=2) as driver:
        with monkeypatch.context() as patched:
            patched.setattr(SolveScreen, "_draw", broken)
            driver.solve.post_message(StateChanged())
            await until_message_is_shown(driver)
        await driver.press("enter")
        await driver.until_screen("HomeScreen")
        await driver.until(lambda: "unfinished" in driver.text())
        await driver.press("tab", "r")
        await driver.until_screen("SolveScreen")
        with monkeypatch.context() as patched:
            patched.setattr(SolveScreen, "_draw", broken)
            driver.solve.post_message(StateChanged())
            await until_message_is_shown(driver)
        assert "again and again" in driver.text()


async def test_no_pane_gets_the_state_before_it_is_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = Widget.mount_composed_widgets

    async def slow(self: Widget, widgets: list[Widget]) -> None:
        if isinstance(self, StatePane) or self.id == "editor":
            await asyncio.sleep(0.05)
        await mount(self, widgets)

    async with solving(tmp_path, Mode.DISCOVERY) as driver:
        await driver.console("read_file shop/prices.py")
        monkeypatch.setattr(Widget, "mount_composed_widgets", slow)
        post(driver, *(f"f{n}" for n in (3, 6, 7, 8, 4, 6)))
        for _ in range(40):
            driver.solve.post_message(StateChanged())
            await asyncio.sleep(0.01)
        await driver.until(lambda: driver.solve.editor.is_mounted)
        assert isinstance(driver.screen, SolveScreen)
