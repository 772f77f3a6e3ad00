"""PgDn and PgUp scroll the text of a page, even while one of its buttons or fields has the focus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from screens import settling
from screens.settling import text_of
from small_study import CODE, study_at
from study_folders import Machine
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Button

from gistpoint.core.study.declaration import Study, Texts
from gistpoint.tui.base_app import OneScreenApp
from gistpoint.tui.screens.dialogs.ask import ConfirmDialog, MessageDialog
from gistpoint.tui.screens.study.pages import (
    AwayPage,
    BetweenPage,
    ConsentPage,
    LastPage,
    ReadyPage,
    RulesPage,
)

LINES = [f"Line {number} of it." for number in range(60)]
TEXT = "\n".join(LINES)


def _consent(study: Study) -> Screen[str]:
    texts = Texts(consent=TEXT, consent_items=("[required] Yes",), rules="None.")
    return ConsentPage("Study", CODE, msgspec.structs.replace(study, texts=texts))


PAGES: dict[str, Callable[[Study], Screen[object]]] = {
    "consent": _consent,  # type: ignore[dict-item]
    "rules": lambda study: RulesPage("Study", CODE, TEXT),  # type: ignore[dict-item,return-value]
    "between": lambda study: BetweenPage("S", CODE, LINES, more=True, break_offered=True, look=True),  # type: ignore[dict-item,return-value]
    "ready": lambda study: ReadyPage("Study", CODE, LINES, resume=False, may_skip=True),  # type: ignore[dict-item,return-value]
    "away": lambda study: AwayPage("Study", CODE, LINES),  # type: ignore[dict-item,return-value]
    "last": lambda study: LastPage("Study", CODE, ["Thank you."], text=TEXT),  # type: ignore[dict-item,return-value]
    "question": lambda study: ConfirmDialog("Really?", TEXT, yes="Yes"),  # type: ignore[dict-item,return-value]
    "message": lambda study: MessageDialog("Look", TEXT),  # type: ignore[dict-item,return-value]
}


async def _press_until(pilot: Pilot[object], key: str, line: str) -> None:
    """Press a key until a line is shown; the layout of a page may still change after its first drawing."""
    for _ in range(20):
        await pilot.press(key)
        await pilot.pause()
        if line in text_of(pilot.app):
            return
    raise AssertionError(f"{line} is not shown:\n{text_of(pilot.app)}")


@pytest.mark.parametrize("name", PAGES)
async def test_pages_are_scrolled_while_a_button_has_the_focus(name: str, tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    page = PAGES[name](machine.open(study_at(tmp_path / "study")).study)
    app = OneScreenApp(machine.locations, "screens/study/study.tcss", lambda: page)  # type: ignore[arg-type,return-value]
    async with app.run_test(size=(80, 24)) as pilot:
        await settling.until(pilot, lambda: "Line 0 of it." in text_of(app))
        for button in page.query(Button):
            button.focus()
            await _press_until(pilot, "pagedown", LINES[-1])
            assert app.focused is button
            await _press_until(pilot, "pageup", LINES[0])
