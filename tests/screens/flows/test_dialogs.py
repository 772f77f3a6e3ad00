"""Dialogs over a screen: it stays visible, choices have marks, and no stray key answers unexpected ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from screens.driving import LARGE, SMALL, solving
from screens.flows.test_leaving import DIALOGS
from screens.settling import text_of
from screens.validate.validating import make_tasks, validating
from textual.screen import Screen
from textual.widgets import Button, Input

from gistpoint.sessions.annotations.labels import Label
from gistpoint.tui.screens.dialogs.ask import (
    GRACE_S,
    Choices,
    ConfirmDialog,
    Dialog,
    MessageDialog,
    PickDialog,
    ReasonDialog,
    TextDialog,
)
from gistpoint.tui.screens.review.annotation_dialogs import LabelDialog, VerdictDialog
from gistpoint.tui.screens.review.verdicts import OF_A_PERSON, OF_AN_AGENT
from gistpoint.tui.widgets.options import Options

LONG = "It says what will become of the attempt, of its budgets and of everything that was typed. " * 4


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
async def test_what_a_dialog_is_about_stays_in_sight(
    tmp_path: Path, size: tuple[int, int], colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks, size=size) as driver:
        app = driver.app
        await driver.until(lambda: "budget" in driver.text())
        for dialog in (ConfirmDialog("Really?", LONG, yes="Yes"), TextDialog("Why?", label=LONG)):
            app.push_screen(dialog)
            await driver.until(lambda dialog=dialog: app.screen is dialog and dialog.focused)
            shown = text_of(app)
            assert "budget    16 tool uses" in shown
            assert "Cancel" in shown.splitlines()[-1]
            await driver.press("escape")


@pytest.mark.parametrize("size", [(80, 24), (60, 11)])
async def test_the_buttons_of_a_long_dialog_are_in_sight(tmp_path: Path, size: tuple[int, int]) -> None:
    many = [(str(number), f"choice {number}, which says what it means") for number in range(40)]
    labels = {code: Label(code, f"label {code}", "", words * 3) for code, words in many}
    async with solving(tmp_path, size=size) as driver:
        for dialog in (
            PickDialog("Which?", many),
            ReasonDialog("Why?", "Say it.", many, yes="Say"),
            MessageDialog("So it is", "Nothing can be done.\n" * 40),
            ConfirmDialog("Really?", "It is about to happen.\n" * 40, yes="Yes"),
            VerdictDialog(OF_AN_AGENT, []),
            LabelDialog("Label", labels),
        ):
            driver.app.push_screen(dialog)
            await driver.until(lambda dialog=dialog: driver.screen is dialog and dialog.is_mounted)
            await driver.pilot.pause()
            for button in dialog.query(Button):
                place = dialog.find_widget(button)
                assert place.visible_region == place.region, f"{dialog}:\n{driver.text()}"
                assert str(button.label) in driver.text()
            await driver.press("escape")


async def test_a_mark_shows_what_is_chosen(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks) as driver:
        answers: list[object] = []
        names = [("a", "first"), ("b", "second"), ("c", "third")]
        driver.app.push_screen(PickDialog("Which?", names), answers.append)
        await driver.until(lambda: "▸ first" in text_of(driver.app))
        await driver.press("down")
        await driver.until(lambda: "▸ second" in text_of(driver.app) and "  first" in text_of(driver.app))
        await driver.type("ir")
        await driver.until(lambda: "▸ first" in text_of(driver.app) and "second" not in text_of(driver.app))
        await driver.press("down", "enter")
        driver.app.push_screen(ReasonDialog("Why?", "Say it.", names, yes="Say"), answers.append)
        await driver.until(lambda: "(●) first" in text_of(driver.app))
        await driver.press("down")
        await driver.until(lambda: "(●) second" in text_of(driver.app) and "( ) first" in text_of(driver.app))
        await driver.press("escape")
        assert answers == ["c", None]


async def test_a_key_on_its_way_is_no_answer_to_a_question_that_opened_by_itself(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks) as driver:
        answers: list[object] = []
        dialog = ConfirmDialog("Did you mean it?", "It came by itself.", yes="Yes")
        dialog.unrequested = True
        under: Screen[object] = driver.app.screen
        driver.app.push_screen(dialog, answers.append)
        await driver.until(lambda: driver.app.screen is dialog and dialog.focused)
        dialog.opened_at += 60  # however slow the machine is
        await driver.press("enter", "escape")
        assert driver.app.screen is dialog
        dialog.opened_at -= 60 + GRACE_S
        await driver.press("enter")
        await driver.until(lambda: driver.app.screen is under)
        assert answers == [True]


async def test_a_notification_covers_no_dialog_and_is_shown_once(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks, size=SMALL) as driver:
        driver.app.push_screen(ReasonDialog("Why?", "Say it.", [("a", "first"), ("b", "second")], yes="Say"))
        await driver.until(lambda: "(●) first" in text_of(driver.app))
        for _ in range(3):
            driver.app.notify("There is nothing to undo.")
        await driver.until(lambda: "There is nothing to undo." in text_of(driver.app))
        shown = text_of(driver.app)
        assert shown.count("There is nothing to undo.") == 1
        for words in ("Why?", "Say it.", "first", "second"):
            assert words in shown
        assert "nothing to undo" in shown.splitlines()[1]


def content_of(dialog: Dialog[Any]) -> dict[str, str]:
    """Return the typed text and the choices of a dialog, by the names of its fields and lists."""
    return dialog._texts()


WITH_ANSWERS = [
    name
    for name, make in DIALOGS.items()
    if isinstance(make(), Dialog) and name not in {"confirm", "message"}
]


async def test_escape_loses_nothing_that_was_typed_or_chosen_in_a_dialog(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks) as driver:
        for name in WITH_ANSWERS:
            driver.app.push_screen(dialog := DIALOGS[name]())
            await driver.until(lambda: driver.app.screen is dialog and dialog.focused)
            assert isinstance(dialog, Dialog)
            first = content_of(dialog)
            for choices in dialog.query(Choices):
                choices.highlighted = choices.option_count - 1
            for options in dialog.query(Options):
                options.pick(1)
            await driver.type("so")
            await driver.pilot.pause()
            before = content_of(dialog)
            assert before != first, name
            assert not dialog.query(Input) or any("so" in text for text in before.values()), name
            await driver.press("escape")
            await driver.until(lambda: driver.app.screen is driver.screen and not driver.app.screen.is_modal)
            driver.app.push_screen(again := DIALOGS[name]())
            await driver.until(lambda: driver.app.screen is again and again.focused)
            await driver.pilot.pause()
            await driver.pilot.pause()
            assert isinstance(again, Dialog)
            assert content_of(again) == before, name
            await driver.press("escape")
            await driver.until(lambda: not driver.app.screen.is_modal)


async def test_a_letter_next_to_the_fields_answers_nothing_and_is_not_lost(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks) as driver:
        for name in WITH_ANSWERS:
            answers: list[object] = []
            driver.app.push_screen(dialog := DIALOGS[name](), answers.append)
            await driver.until(lambda: driver.app.screen is dialog and dialog.focused)
            assert isinstance(dialog, Dialog)
            for place in [widget for widget in dialog.focus_chain if not isinstance(widget, Input)]:
                place.focus()
                await driver.pilot.pause()
                await driver.type("It Zags")
                await driver.pilot.pause()
                assert any(field.value.endswith("It Zags") for field in dialog.query(Input)), (name, place)
            assert not answers, name
            await driver.press("escape")
            await driver.until(lambda: not driver.app.screen.is_modal)


async def test_a_note_typed_without_going_to_its_field_is_no_verdict(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks) as driver:
        for form in (OF_A_PERSON, OF_AN_AGENT):
            answers: list[object] = []
            driver.app.push_screen(dialog := VerdictDialog(form, form.words), answers.append)
            await driver.until(lambda: driver.app.screen is dialog and dialog.focused)
            note = "".join(word.key for word in form.words) + " why"
            await driver.type(note)
            await driver.until(lambda: dialog.query_one("#note", Input).value == note)  # noqa: B023
            assert not answers
            assert f"{form.words[0].key} {form.words[0].words}" in text_of(driver.app)
            dialog.query_one("#note", Input).value = ""
            await driver.press("escape")
            await driver.until(lambda: not driver.app.screen.is_modal)
