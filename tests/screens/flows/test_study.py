"""Taking part in a study: every page with the keyboard alone, and the state on disk after a kill."""

from __future__ import annotations

import re
import threading
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hostile import HOSTILE
from screens import settling
from screens.settling import text_of
from screens.study_driving import StudyDriver, taking
from small_study import CODE, do, opened, participation, study_at, take_part
from study_folders import Machine
from textual import events
from textual.app import App

from gistpoint.core.study.declaration import Texts
from gistpoint.core.study.operations import Answers, StudyError
from gistpoint.core.study.progress import study_progress
from gistpoint.core.study.steps import FormStep, ReadyStep, Step
from gistpoint.core.tasks.names import word_name
from gistpoint.core.text import visible_line
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.loading import rows_of_people
from gistpoint.sessions.studies.monitoring import MonitoredStudy
from gistpoint.tui.base_app import OneScreenApp
from gistpoint.tui.screens.study.form import FormPage
from gistpoint.tui.screens.study.pages import ConsentPage
from gistpoint.tui.screens.study.progress import CoverageTable, ProgressScreen
from gistpoint.tui.screens.summary import SummaryScreen
from gistpoint.tui.widgets.writing_area import WritingArea, WritingLine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine.at(tmp_path / "home")


def joined(
    machine: Machine, root: Path, more: dict[str, Any] | None = None, *, training: bool = False
) -> Path:
    opened(machine.open(study_at(root, more, training=training)))
    return root


def until(machine: Machine, root: Path, kind: type[Step], skip: int = 0) -> Step:
    """Carry out the steps before the first one of a kind without a screen, and return that one.

    With `skip`, this many steps of the kind are carried out too.
    """
    part = participation(machine, root)
    while not isinstance(step := part.step(), kind) or skip:
        skip -= isinstance(step, kind)
        assert do(part, step), step
    return step


async def working(driver: StudyDriver) -> None:
    """Start the task on the page, read its brief, and decline every forecast."""
    await driver.press("enter")
    await driver.until_page("SolveScreen")
    await driver.press("f9")
    await driver.until_page("FormPage")
    await driver.press("f9", "enter")
    await driver.until_page("SolveScreen")
    await driver.until(lambda: not driver.solve._brief_first)


async def test_the_whole_way_with_the_keyboard_alone(machine: Machine, tmp_path: Path) -> None:
    root = joined(machine, tmp_path / "study")
    async with taking(machine, root) as driver:
        await driver.until_page("ConsentPage")
        await driver.press("f9")
        assert "A required item is not ticked" in driver.text()
        await driver.press("space", "f9")
        await driver.until_page("FormPage")
        await driver.press("f9")
        assert "This question needs an answer" in driver.text()
        await driver.type("12,5")
        assert "This question needs an answer" not in driver.text()
        await driver.press("tab", "1", "2", "f9")
        await driver.until_page("RulesPage")
        await driver.press("f9")
        await driver.until_page("ReadyPage")
        assert "You have 6 tool uses, 2 submissions" in driver.text()
        await driver.press("enter")
        await driver.until_page("SolveScreen")
        await driver.press("f9")
        await driver.until_page("FormPage")
        await driver.type("20")
        await driver.press("tab")
        await driver.type("175")
        await driver.press("f9")
        assert "between 0 and 100" in driver.text()
        await driver.press("backspace", "f9")
        await driver.until_page("SolveScreen")
        await driver.press("ctrl+g")
        await driver.until(lambda: driver.page == "ReasonDialog")
        await driver.press("enter", "enter")
        await driver.until_page("FormPage")
        await driver.press(
            "1", "tab", "1", "tab", "1", "tab", "1", "tab", "tab", "4", "tab", "right", "space", "tab"
        )
        await driver.type("the rounding")
        await driver.press("f9", "enter")
        await driver.until_page("BetweenPage")
        assert "solved" not in driver.text()
        await driver.press("tab", "enter")
        await driver.until_page("BreakPage")
        await driver.press("f9")
        await driver.until_page("BetweenPage")
    person = participation(machine, root).person
    assert person.consent is not None
    assert person.consent.items == (True,)
    before, predicted, after = person.facts.all(Answers)
    assert before.values == {"years": 12.5, "tools": ["a debugger", "print"]}
    assert predicted.values == {"minutes": 20, "chance": 17}
    assert (after.values["ease"], after.values["seen"], after.values["how"]) == (4, "maybe", "the rounding")
    assert [end.end for end in person.finished.values()] == ["gave_up"]


async def test_consent_of_any_length_is_ticked_in_sight(machine: Machine, tmp_path: Path) -> None:
    items = tuple(
        f"[required] Item {number}: {'I take part of my own free will. ' * 3}" for number in range(9)
    )
    texts = Texts(welcome="Welcome.", consent="A line of it.\n" * 60, consent_items=items, rules="None.")
    declared = machine.open(study_at(tmp_path / "study")).study
    page = ConsentPage("Study", CODE, msgspec.structs.replace(declared, texts=texts))
    app = OneScreenApp(machine.locations, "screens/study/study.tcss", lambda: page)  # type: ignore[arg-type,return-value]
    async with app.run_test(size=(80, 24)) as pilot:
        await settling.until(pilot, lambda: "more lines below" in text_of(app) and "Item 0" in text_of(app))
        await pilot.press("tab")
        for number in range(9):
            await settling.until(pilot, partial(_in_sight, app, f"[ ] Item {number}", "I agree"))
            await pilot.press("space", "down")
        await settling.until(pilot, partial(_in_sight, app, "9 of 9 ticked", "[x] Item 8", "Welcome."))


async def test_nobody_agrees_to_a_text_whose_end_was_not_on_the_screen(
    machine: Machine, tmp_path: Path
) -> None:
    declared = machine.open(study_at(tmp_path / "study")).study
    lines = "".join(f"Line {number} of it.\n" for number in range(60))
    texts = Texts(consent=lines, consent_items=("[required] Yes",), rules="None.", consent_version="2b")
    answers = list[str | None]()
    page = ConsentPage("Study", CODE, msgspec.structs.replace(declared, texts=texts))
    app = OneScreenApp(machine.locations, "screens/study/study.tcss", lambda: page)  # type: ignore[arg-type,return-value]
    async with app.run_test(size=(80, 24)) as pilot:
        await settling.until(pilot, lambda: "more lines below" in text_of(app))
        assert "(version 2b)" in text_of(app)
        page.dismiss = answers.append  # type: ignore[assignment,method-assign]
        await pilot.press("tab", "space", "f9")
        await settling.until(
            pilot, partial(_in_sight, app, "! Read the text to its end first", "Line 0 of it.")
        )
        assert answers == []
        await pilot.press(*["pagedown"] * 8, "f9")
        await settling.until(pilot, lambda: answers == ["agree"])


async def test_the_hint_on_the_items_says_tab_only_where_tab_leads_there(
    machine: Machine, tmp_path: Path
) -> None:
    root = joined(machine, tmp_path / "study")
    async with taking(machine, root) as driver:
        await driver.until_page("ConsentPage")
        assert "Tab goes there, Space ticks one" in driver.text()
        await driver.press("f9")
        await driver.until(lambda: "Space ticks the one under the cursor" in driver.text())
        assert "Tab goes there" not in driver.text()
        await driver.press("space", "space")
        await driver.until(lambda: "0 of 1 ticked; Space ticks one" in driver.text())


def _in_sight(app: App[object], *words: str) -> bool:
    text = text_of(app)
    return all(word in text for word in words)


async def test_half_a_form_is_there_again(machine: Machine, tmp_path: Path) -> None:
    root = joined(machine, tmp_path / "study")
    until(machine, root, FormStep, skip=1)
    async with taking(machine, root) as driver:
        await driver.until_page("FormPage")
        assert "  1  Did you use an AI assistant" in driver.text()
        await driver.press("2", "tab", "1", "tab", "1", "tab", "1", "tab", "tab", "6", "shift+tab")
        await driver.type("half a sen")
        page = driver.app.screen
        assert isinstance(page, FormPage)
        kept = partial(page._drafts.read, page.step.form.id, page.step.assignment)
        await driver.until(lambda: "half a sen" in kept().values.values())
    async with taking(machine, root) as driver:
        await driver.until_page("FormPage")
        text = driver.text()
        assert "half a sen" in text
        assert "(6)" in text
        await driver.press(
            "0"
        )  # the focus is on the first question without an answer, which has no tenth option
        await driver.press("3", "f9", "enter")
        await driver.until_page("BetweenPage")
    (_, _, after) = participation(machine, root).person.facts.all(Answers)
    assert (after.values["aids_ai"], after.values["ease"], after.values["seen"]) == ("yes", 6, "yes")


async def test_the_brief_stands_alone_until_it_was_read(machine: Machine, tmp_path: Path) -> None:
    root = joined(machine, tmp_path / "study")
    until(machine, root, ReadyStep)
    async with taking(machine, root, size=(160, 48)) as driver:
        await driver.until_page("ReadyPage")
        await driver.press("enter")
        await driver.until_page("SolveScreen")
        await driver.press("f5", "f3", "colon", "tab")
        text = driver.text()
        assert "Read the task" in text
        assert "F3 Files" not in text
        assert "a tool call" not in text
        machine.clock.advance(7_000)  # type: ignore[attr-defined]
        assert driver.solve._attempt.clock().reading == 7_000
        await driver.press("f9")
        await driver.until_page("FormPage")
        assert driver.solve._attempt.state.pause is not None
    async with taking(machine, root) as driver:  # killed while the form was on the screen
        await driver.until_page("ReadyPage")
        assert "You left this task after 0:07" in driver.text()
        await driver.press("enter")
        await driver.until_page("FormPage")
        await driver.press("f9", "enter")
        await driver.until_page("SolveScreen")
        await driver.until(lambda: "F3 Files" in driver.text())
        state = driver.solve._attempt.state
        assert state.pause is None
        assert state.clock.reading == 7_000


async def test_leaving_comes_back_to_the_task(machine: Machine, tmp_path: Path) -> None:
    root = joined(machine, tmp_path / "study")
    until(machine, root, ReadyStep)
    async with taking(machine, root) as driver:
        await driver.until_page("ReadyPage")
        await working(driver)
        await driver.press("ctrl+l")
        await driver.until_page("ReadyPage")
        assert "Another time" in driver.text()
        assert len(list(driver.part.folder.attempts())) == 1
        await driver.press("enter")
        await driver.until_page("SolveScreen")
    elsewhere = Machine.at(tmp_path / "other", machine.clock)
    async with taking(elsewhere, root) as driver:
        await driver.until_page("LastPage")
        assert "another machine" in driver.text()


async def test_closing_the_program_leaves_the_task_even_if_it_can_not_be_published(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = joined(machine, tmp_path / "study")
    until(machine, root, ReadyStep)

    def away(self: StudyFolder, folder: Path) -> None:
        raise StudyError("The folder is away.")

    async with taking(machine, root) as driver:
        await driver.until_page("ReadyPage")
        await working(driver)
        with monkeypatch.context() as broken:
            broken.setattr(StudyFolder, "publish", away)
            await driver.press("ctrl+q")
            await driver.until_page("ConfirmDialog")
            await driver.press("enter")
            await driver.until_page("MessageDialog")
            assert "The folder is away." in driver.text()
            assert driver.app._solving is None  # what is typed would be lost on it
        await driver.press("enter")
        await driver.until_page("ReadyPage")
        await driver.press("enter")
        await driver.until_page("SolveScreen")
        await driver.press("ctrl+q")
        await driver.until_page("ConfirmDialog")
        await driver.press("enter")
        await driver.until(lambda: not driver.app.is_running)
    assert len(list(machine.open(root).attempts())) == 1


async def test_the_time_on_a_form_counts_although_nothing_is_typed(machine: Machine, tmp_path: Path) -> None:
    root = joined(machine, tmp_path / "study")
    until(machine, root, FormStep, skip=1)
    for seconds in (0, 300):
        async with taking(machine, root) as driver:
            await driver.until_page("FormPage")
            page = driver.app.screen
            assert isinstance(page, FormPage)
            assert round(page.seconds / 100) == seconds / 100
            page._now = lambda since=page._since: since + 300.0
            await driver.press("ctrl+q")
            await driver.until(lambda: not driver.app.is_running)


async def test_training_shows_how_and_counted_tasks_only_what_is_declared(
    machine: Machine, tmp_path: Path
) -> None:
    texts = {
        "consent": "Yes?", "consent_items": ["[required] Yes"], "rules": "None.", "feedback": "outcome",
    }  # fmt: skip
    root = joined(machine, tmp_path / "study", {"texts": texts}, training=True)
    until(machine, root, ReadyStep)
    async with taking(machine, root) as driver:
        await driver.until_page("ReadyPage")
        assert "for practice" in driver.text()
        await driver.press("enter")
        await driver.until_page("SolveScreen")
        await driver.press("f9")
        await driver.until_page("FormPage")  # the forecast, which training introduces
        await driver.press("f9", "enter")
        await driver.until_page("SolveScreen")
        await driver.press("ctrl+g")
        await driver.until(lambda: driver.page == "ReasonDialog")
        await driver.press("enter", "enter")
        await driver.until(lambda: isinstance(driver.app.screen, SummaryScreen))
        await driver.until(lambda: "Esc  Continue" in driver.text() or "Esc Continue" in driver.text())
        assert "Home" not in driver.text()
        await driver.press("escape")
        await driver.until_page("ReadyPage")
        assert "for practice" not in driver.text()
        await working(driver)
        driver.solve._asking.ask("read_file", {"file_path": "shop/prices.py"})
        await driver.until(lambda: driver.solve._attempt.state.calls and not driver.solve.busy)
        await driver.press("ctrl+g")
        await driver.until(lambda: driver.page == "ReasonDialog")
        await driver.press("enter", "enter")
        await driver.until_page("FormPage")
        await driver.press("1", "tab", "1", "tab", "1", "tab", "1", "f9", "enter")
        await driver.until_page("BetweenPage")
        assert "This task: not solved." in driver.text()


@pytest.mark.parametrize(("keys", "left"), [((), 1), (("down",), 0)], ids=["keep", "erase"])
async def test_withdrawing_from_within_a_task(
    machine: Machine, tmp_path: Path, keys: tuple[str, ...], left: int
) -> None:
    root = joined(machine, tmp_path / "study")
    until(machine, root, ReadyStep)
    async with taking(machine, root) as driver:
        await driver.until_page("ReadyPage")
        await working(driver)
        await driver.press("ctrl+g")
        await driver.until(lambda: driver.page == "ReasonDialog")
        await driver.press("up", "end", "enter", "enter")
        await driver.until(lambda: driver.page == "WithdrawDialog")
        await driver.press("escape")
        await driver.until_page("SolveScreen")
        assert driver.part.person.withdrawn is None
        await driver.press("ctrl+g")
        await driver.until(lambda: driver.page == "ReasonDialog")
        await driver.press("end", "enter", "enter")
        await driver.until(lambda: driver.page == "WithdrawDialog")
        await driver.press(*keys, "tab", "tab", "tab", "enter")
        await driver.until_page("LastPage")
        assert ("was erased" in driver.text() or "were erased" in driver.text()) == (not left)
    assert len(list(machine.locations.attempts.glob("*/journal.jsonl"))) == left


async def test_asked_after_the_time_that_the_study_says(machine: Machine, tmp_path: Path) -> None:
    root = joined(machine, tmp_path / "study", {"clock": {"idle_after_s": 30}})
    until(machine, root, ReadyStep)
    async with taking(machine, root) as driver:
        await driver.until_page("ReadyPage")
        await working(driver)
        machine.clock.advance(29_000)  # type: ignore[attr-defined]
        driver.solve._second()
        assert not driver.solve._attempt.state.doubt
        machine.clock.advance(2_000)  # type: ignore[attr-defined]
        driver.solve._second()
        await driver.until(lambda: driver.solve._attempt.state.doubt)
        machine.clock.advance(120_000)  # type: ignore[attr-defined]
        driver.solve._second()
        await driver.until(lambda: driver.page == "IdleCover")


async def test_pasting_and_copying_that_are_switched_off(machine: Machine, tmp_path: Path) -> None:
    condition = [{"id": "few", "comforts_off": ["paste", "copy", "external_editor"]}]
    root = joined(machine, tmp_path / "study", {"condition": condition})
    until(machine, root, ReadyStep)
    async with taking(machine, root) as driver:
        await driver.until_page("ReadyPage")
        await working(driver)
        await driver.press("f5")
        driver.app.post_message(events.Paste("search_code total"))
        await driver.pilot.pause()
        assert driver.solve.query_one("#console-line", WritingLine).value == ""
        assert "Pasting is disabled" in driver.text()
        await driver.press("f2", "y")
        assert "Copying is disabled" in driver.text()
        assert driver.app.clipboard == ""


async def test_hostile_texts_are_drawn_as_they_are(machine: Machine, tmp_path: Path) -> None:
    short = [text for text in HOSTILE if len(text) < 40 and text.strip() == text and "\n" not in text][:12]
    form = {"id": "before", "at": "before", "item": [
        {"id": f"q{n}", "text": text, "kind": "choice", "options": [f"a {text}", f"b {text}"], "required": True}
        for n, text in enumerate(short)
    ]}  # fmt: skip
    texts = {"consent": "\n".join(short), "consent_items": short, "rules": "\n".join(short)}
    more = {"title": short[0], "questionnaire": [form], "texts": texts}
    root = joined(machine, tmp_path / "study", more)
    async with taking(machine, root, size=(120, 70)) as driver:
        await driver.until_page("ConsentPage")
        text = driver.text()
        for hostile in short:
            assert text.count(visible_line(hostile)) >= 2, hostile
        await driver.press("f9")
        await driver.until_page("FormPage")
        text = driver.text()
        for hostile in short:
            assert f"a {visible_line(hostile)}" in text, hostile
        for _ in short:
            await driver.press("2", "tab")
        await driver.press("f9")
        await driver.until_page("RulesPage")
        assert visible_line(short[-1]) in driver.text()
    (given,) = participation(machine, root).person.facts.all(Answers)
    assert list(given.values.values()) == [f"b {text}" for text in short]


async def test_giving_up_between_tasks_ends_nothing_and_names_the_key_that_does(
    machine: Machine, tmp_path: Path
) -> None:
    root = joined(machine, tmp_path / "study")
    until(machine, root, ReadyStep)
    async with taking(machine, root) as driver:
        await driver.until_page("ReadyPage")
        await driver.press("ctrl+g")
        assert driver.page == "ReadyPage"
        assert "No task is open. F8" in driver.text()
        await driver.press("f8")
        await driver.until(lambda: driver.page == "WithdrawDialog")
        assert "Leave this study?" in driver.text()
        await driver.press("escape")
        await driver.until_page("ReadyPage")
    assert participation(machine, root).person.withdrawn is None


async def test_declining_asks_once_and_ends_it(machine: Machine, tmp_path: Path) -> None:
    root = joined(machine, tmp_path / "study")
    async with taking(machine, root) as driver:
        await driver.until_page("ConsentPage")
        await driver.press("f8")
        await driver.until_page("ConfirmDialog")
        await driver.press("enter")  # the default goes back, so one wrong key ends nothing
        await driver.until_page("ConsentPage")
        assert not participation(machine, root).person.declined
        await driver.press("f8")
        await driver.until_page("ConfirmDialog")
        await driver.press("shift+tab", "enter")
        await driver.until_page("LastPage")
        assert "decided not to take part" in driver.text()
    assert participation(machine, root).person.declined


async def test_a_form_names_the_questions_without_an_answer(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = joined(machine, tmp_path / "study")
    until(machine, root, FormStep, skip=1)
    async with taking(machine, root) as driver:
        await driver.until_page("FormPage")
        page = driver.app.screen
        assert isinstance(page, FormPage)
        monkeypatch.setattr(page.form, "check", lambda: True)
        await driver.press("f9")
        await driver.until_page("ConfirmDialog")
        assert re.search(r"Questions (\d+, )*\d+ and \d+ have no answer\.", driver.text())


async def test_the_progress_says_that_the_study_is_being_read(machine: Machine, tmp_path: Path) -> None:
    root = joined(machine, tmp_path / "study")
    folder = machine.open(root)
    read, goes_on = threading.Event(), threading.Event()

    def slowly() -> tuple[MonitoredStudy, str]:
        read.set()
        goes_on.wait(20)
        rows, _ = rows_of_people(folder)
        return MonitoredStudy(study_progress(folder.study, folder.tasks, folder.ledger, rows)), "state"

    app = OneScreenApp(
        machine.locations,
        "screens/study/study.tcss",
        lambda: ProgressScreen(folder.study, slowly, str(root), hidden=True),
    )
    async with app.run_test(size=(80, 24)) as pilot:
        await settling.until(pilot, read.is_set)
        assert "Reading the study …" in text_of(app)
        goes_on.set()
        await settling.until(pilot, lambda: "people  " in text_of(app))
        assert "Reading" not in text_of(app)


async def test_the_progress_is_read_again_and_lists_attempts_without_their_outcome(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gistpoint.tui.screens.study.progress.POLL_S", 0.1)
    root = joined(machine, tmp_path / "study")
    folder = machine.open(root)

    def read() -> tuple[MonitoredStudy, str]:
        folder.reload()
        rows, _ = rows_of_people(folder)
        return MonitoredStudy(study_progress(folder.study, folder.tasks, folder.ledger, rows)), "state"

    app = OneScreenApp(
        machine.locations,
        "screens/study/study.tcss",
        lambda: ProgressScreen(folder.study, read, str(root), hidden=True),
    )
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await settling.until(pilot, lambda: re.search(r"consented +0", text_of(app)))
        take_part(participation(machine, root))
        screen = app.screen
        assert isinstance(screen, ProgressScreen)
        await settling.until(pilot, lambda: re.search(r"consented +█+ 1", text_of(app)))
        assert text_of(app).count("hidden until closed") == 4
        for row in screen.query_one(CoverageTable).shown:
            await pilot.press("enter")
            await pilot.pause()
            if row.counted:
                break
            await pilot.press("down")
        await settling.until(pilot, lambda: type(app.screen).__name__ == "PickDialog")
        assert CODE in text_of(app)
        assert f"Attempts at {word_name(row.task)}" in text_of(app)
        assert all("solved" not in line for line in text_of(app).splitlines() if CODE in line)


async def test_an_answer_is_kept_if_the_page_stops_before_its_message_arrives(
    machine: Machine, tmp_path: Path
) -> None:
    root = joined(machine, tmp_path / "study")
    until(machine, root, FormStep, skip=1)
    async with taking(machine, root) as driver:
        await driver.until_page("FormPage")
        page = driver.app.screen
        assert isinstance(page, FormPage)
        area = page.form.query(WritingArea).first()
        area.insert("half a sen")
        area.flush()
        page.stop()
        kept = page._drafts.read(page.step.form.id, page.step.assignment)
        assert "half a sen" in kept.values.values()


async def test_keys_that_come_at_once_answer_one_question_after_the_other(
    machine: Machine, tmp_path: Path
) -> None:
    root = joined(machine, tmp_path / "study")
    until(machine, root, FormStep, skip=1)
    async with taking(machine, root) as driver:
        await driver.until_page("FormPage")
        for key in ("2", "tab", "1", "tab", "2", "tab", "1"):
            character = key if len(key) == 1 else "\t"
            driver.app.post_message(events.Key(key, character))
        page = driver.app.screen
        assert isinstance(page, FormPage)
        await driver.until(lambda: page.form.answered == 4)
        answers = [
            page.values[name] for name in ("aids_ai", "aids_internet", "aids_repository", "aids_person")
        ]
        assert answers == ["yes", "no", "yes", "no"]
