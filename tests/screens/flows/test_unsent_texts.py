"""Text that was typed and not sent is on disk a moment later, and the next program offers it again."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS, build_services
from fakes import FakeClock, FakeRunner
from screens.driving import Driver, driving, solving
from screens.flows.test_study import joined, working
from screens.flows.test_study import until as until_step
from screens.review.reviewing import TURNS, mini_run, reviewing
from screens.settling import text_of, until
from screens.study_driving import taking
from screens.test_blind_reading import change
from screens.test_glance import at_work, glance_app, items
from scripted_endpoint import ScriptedModel
from study_folders import Machine
from textual.pilot import Pilot
from textual.widgets import Input

from gistpoint.core.attempts.identity import Role
from gistpoint.core.locations import Locations
from gistpoint.core.study.steps import ReadyStep
from gistpoint.sessions.journal import JOURNAL, read_journal
from gistpoint.tui.base_app import OneScreenApp
from gistpoint.tui.screens.dialogs.ask import CommentDialog, MessageDialog, ReasonDialog, TextDialog
from gistpoint.tui.screens.review.annotation_dialogs import VerdictDialog
from gistpoint.tui.screens.review.search import SearchBar
from gistpoint.tui.screens.study.reading import BlindReadingScreen

WORDS = "half a sentence that I"


def on_disk(locations: Locations, words: str = WORDS) -> bool:
    """Return whether the text is in a file, as a kill at this moment would leave it."""
    return any(words in path.read_text("ascii") for path in locations.unsent_texts.glob("*.json"))


async def written(pilot: Pilot[Any], locations: Locations, words: str = WORDS) -> None:
    await until(pilot, lambda: on_disk(locations, words))


def again(root: Path, attempt_id: str, clock: FakeClock) -> AbstractAsyncContextManager[Driver]:
    """Return the driver of a new app that opens an attempt."""
    services = build_services(root, clock=clock, runner=FakeRunner(CHECKS), role=Role.BASELINE)
    return driving(services, clock, open=attempt_id)


@pytest.mark.parametrize(("key", "line"), [("f5", "search_code def (total|pri"), ("S", "def (total|pri")])
async def test_a_line_of_the_console(tmp_path: Path, key: str, line: str) -> None:
    async with solving(tmp_path) as driver:
        await driver.press(key)
        await driver.type(line)
        await written(driver.pilot, driver.services.locations, line)
        attempt_id, clock = driver.state.attempt_id, driver.clock
        left = driver.state.remaining
    async with again(tmp_path, attempt_id, clock) as driver:
        await driver.until_screen("SolveScreen")
        await driver.until(lambda: driver.solve.is_mounted and driver.solve.focused is not None)
        await driver.press("f2", key)
        await driver.until(lambda: driver.solve.console.line.value == line)
        assert driver.state.remaining == left
        await driver.pilot.pause()
        recorded = set(driver.events(driver.state.attempt_id))
        assert recorded == {"attempt_started", "process_started", "view"}
        await driver.press("escape")  # which keeps it
        await driver.press("f2", key)
        await driver.until(lambda: driver.solve.console.line.value == line)


async def test_a_call_that_was_made_is_not_offered_again(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("f5")
        await driver.type("search_code tot")
        await written(driver.pilot, driver.services.locations, "search_code tot")
        await driver.type("al")
        await driver.press("enter")
        await driver.until(lambda: driver.state.calls and driver.state.pending is None)
        await driver.until(lambda: not on_disk(driver.services.locations, "search_code"))


async def test_the_reason_for_giving_up_and_nothing_is_left_at_the_end(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        driver.solve._interruptions.end()
        await driver.until_screen("ReasonDialog")
        driver.screen.query_one(Input).focus()
        await driver.type(WORDS)
        await written(driver.pilot, driver.services.locations)
        attempt_id, clock = driver.state.attempt_id, driver.clock
    async with again(tmp_path, attempt_id, clock) as driver:
        await driver.until_screen("SolveScreen")
        await driver.until(lambda: driver.solve.is_mounted and driver.solve.focused is not None)
        await driver.press("f5")
        await driver.type("search_code x")
        driver.solve._interruptions.end()
        await driver.until_screen("ReasonDialog")
        assert isinstance(driver.screen, ReasonDialog)
        assert driver.screen.query_one(Input).value == WORDS
        driver.screen._answer()
        await driver.until(lambda: not list(driver.services.locations.unsent_texts.glob("*.json")))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return mini_run(tmp_path / "a.traj.json", TURNS)


async def test_a_comment_and_a_note_of_a_reviewer(run: Path, tmp_path: Path) -> None:
    here = Locations.of_user()
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("c")
        await driver.until_on(CommentDialog)
        await driver.type(WORDS)
        await written(driver.pilot, here)
        await driver.press("escape", "V")
        await driver.until_on(VerdictDialog)
        driver.app.screen.query_one("#note", Input).focus()
        await driver.type("a note")
        await written(driver.pilot, here, "a note")
    other = mini_run(tmp_path / "b.traj.json", TURNS)
    for path, reviewer, comment in ((run, "second", ""), (other, "first", ""), (run, "first", WORDS)):
        async with reviewing(path, reviewer=reviewer) as driver:
            await driver.until_read(0)
            await driver.press("c")
            dialog = await driver.until_on(CommentDialog)
            assert dialog.query_one(Input).value == comment
            if comment:
                await driver.press("enter")
                await driver.until(lambda: driver.review.run.review.comments)
                await driver.until(lambda: not on_disk(here))
                await driver.press("V")
                assert (await driver.until_on(VerdictDialog)).query_one("#note", Input).value == "a note"


async def test_a_query_of_a_review_until_it_is_used(run: Path) -> None:
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("slash")
        await driver.type("mean")
        await written(driver.pilot, Locations.of_user(), "mean")
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("slash")
        await driver.until(lambda: driver.review.query(SearchBar) and driver.review.search.hits)
        assert driver.review.query_one(SearchBar).query_one(Input).value == "mean"
        await driver.press("enter")
        await driver.until(lambda: not on_disk(Locations.of_user(), "mean"))


async def test_what_a_reader_of_functions_saw(tmp_path: Path) -> None:
    reader, chosen = at_work(tmp_path), items("cc")
    for offered in ("", WORDS):
        app = glance_app(chosen, reader)
        async with app.run_test() as pilot:
            await until(pilot, lambda app=app: "a = x - 1" in text_of(app))
            await pilot.press("1")
            await until(pilot, lambda app=app: isinstance(app.screen, TextDialog))
            assert app.screen.query_one(Input).value == offered
            if not offered:
                await pilot.press(*(WORDS.replace(" ", "_")))
                await pilot.pause()
                app.screen.query_one(Input).value = WORDS
            await written(pilot, app.locations)


async def test_why_a_reader_rejects_a_change() -> None:
    shown = [change(0), change(1)]
    changes = [type(one)(one.library, one.failing, one.files, f"s {n}") for n, one in enumerate(shown)]
    for reader, offered in (("ada", ""), ("bob", ""), ("ada", WORDS)):
        app = OneScreenApp(
            Locations.of_user(),
            "screens/study/reading.tcss",
            lambda reader=reader: BlindReadingScreen(changes, {}, lambda place, answer: None, reader=reader),
        )
        async with app.run_test() as pilot:
            await until(pilot, lambda app=app: "Change 1 of 2" in text_of(app))
            await pilot.press("3")
            await until(pilot, lambda app=app: isinstance(app.screen, TextDialog))
            assert app.screen.query_one(Input).value == offered
            if reader == "ada":
                app.screen.query_one(Input).value = WORDS
                await written(pilot, app.locations)


async def test_a_question_to_the_chat_and_why_somebody_leaves_a_study(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    chat = {"model": "m", "messages": 3}
    condition = {"condition": [{"id": "helped", "words": "with help", "assistance": "chat", "chat": chat}]}
    root = joined(machine, tmp_path / "study", condition)
    until_step(machine, root, ReadyStep)
    models = {"m": ScriptedModel([])}
    async with taking(machine, root, models=models) as driver:
        await driver.until_page("ReadyPage")
        await working(driver)
        await driver.press("alt+9")
        await driver.until(lambda: driver.app.focused is not None and driver.app.focused.id == "assist-line")
        await driver.type(WORDS)
        await written(driver.pilot, machine.locations)
        driver.app._ask_to_withdraw()
        await driver.until_page("WithdrawDialog")
        driver.app.screen.query_one(Input).value = "because of"
        await written(driver.pilot, machine.locations, "because of")
        journals = [read_journal(path).events for path in machine.locations.attempts.glob(f"*/{JOURNAL}")]
        assert not any(event.type.startswith("assist") for events in journals for event in events)
    async with taking(machine, root, models=models) as driver:
        await driver.until(lambda: driver.page in ("ReadyPage", "SolveScreen"))
        driver.app._ask_to_withdraw()
        await driver.until_page("WithdrawDialog")
        assert driver.app.screen.query_one(Input).value == "because of"
        await driver.press("escape")
        if driver.page == "ReadyPage":
            await driver.press("enter")
        await driver.until_page("SolveScreen")
        await driver.press("alt+9")
        await driver.until(lambda: driver.app.focused is not None and driver.app.focused.id == "assist-line")
        assert driver.app.focused.value == WORDS


async def test_a_password_is_not_kept(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = [("secret", True), ("words", False)]
    made = [lambda name=name, hides=hides: Input(id=name, password=hides) for name, hides in fields]
    monkeypatch.setattr(MessageDialog, "body", lambda dialog: [make() for make in made])
    async with reviewing(run) as driver:
        await driver.until_read(0)
        driver.review.open(dialog := MessageDialog("Log in", ""))
        await driver.until(lambda: dialog.is_mounted and dialog.query("#words"))
        for field, words in (("secret", "hunter2"), ("words", WORDS)):
            dialog.query_one(f"#{field}", Input).value = words
        await written(driver.pilot, Locations.of_user())
        assert not on_disk(Locations.of_user(), "hunter2")
        await driver.press("escape")
        driver.review.open(dialog := MessageDialog("Log in", ""))
        await driver.until(lambda: dialog.is_mounted and dialog.query("#words"))
        assert [field.value for field in dialog.query(Input)] == ["", WORDS]


async def test_numbers_and_filters_are_not_written_and_a_full_disk_is_reported_once(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("number_sign")
        await driver.until_on(TextDialog)
        await driver.type("31")
        driver.app.drafts.flush()
        assert not Locations.of_user().unsent_texts.exists()
        await driver.press("escape", "number_sign")
        await driver.until_on(TextDialog)
        assert driver.app.screen.query_one(Input).value == "31"
        await driver.press("escape")
        monkeypatch.setattr("gistpoint.sessions.unsent_texts.UnsentTextFiles.write", full)
        for letters in ("ab", "cd"):
            await driver.press("c")
            await driver.until_on(CommentDialog)
            await driver.type(letters)
            driver.app.drafts.flush()
            await driver.press("escape")
        failures = [one.message for one in driver.app._notifications if "can't be saved" in one.message]
        assert failures == ["Text that is not sent yet can't be saved: No space left on device"]
        await driver.press("c")
        assert (await driver.until_on(CommentDialog)).query_one(Input).value == "abcd"
