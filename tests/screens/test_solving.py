from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from builders import CHECKS, REPAIR, build_services, build_task
from examples import at_sizes
from fakes import FakeRunner
from screens.driving import LARGE, SMALL, solving
from textual import events

from gistpoint.core.attempts.events import AffordanceUsed
from gistpoint.core.attempts.identity import Role
from gistpoint.core.kinds.folder import read_answer, write_task
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.model import Mode, Rules
from gistpoint.sessions.journal import JOURNAL, read_journal
from gistpoint.tui.widgets.text_view import TextView
from gistpoint.tui.widgets.writing_area import DELAY_SECONDS

BODY = "return price - price * percent // 100"


@pytest.mark.parametrize("size", at_sizes(SMALL, LARGE))
async def test_a_removed_function_is_written_with_keys_alone(tmp_path: Path, size: tuple[int, int]) -> None:
    async with solving(tmp_path, size=size) as driver:
        brief = driver.solve.query_one("#brief-view", TextView)
        source = render_brief(driver.attempt.task)
        assert (brief.raw, brief.text == source) == (source, False)
        await driver.press("v")
        assert brief.text == source, "the source is a key away"
        await driver.press("f6")
        assert driver.solve.editor.code.endswith("    pass\n")
        await driver.press("f9")
        await driver.until_screen("ConfirmDialog")
        await driver.press("enter")
        assert driver.state.calls == (), "the tests are not run on what nobody has changed"
        await driver.type(BODY)
        assert driver.solve.editor.code.endswith(f"    {BODY}\n"), (
            "it takes the place of what stands for the body"
        )
        await driver.press("f9")
        await driver.until_screen("ConfirmDialog")
        await driver.until(lambda: "-     pass" in driver.text() and f"+     {BODY}" in driver.text())
        assert "shop/prices.py::discount  +1 −1" in driver.text()
        assert "costs 1 tool use and 1 submission; leaves 15 and 3" in driver.text()
        await driver.press("enter")
        await driver.until_screen("SummaryScreen")
        assert "✔ solved" in driver.text()
        assert "score 1.000" in driver.text()


async def test_a_corrupted_function_is_found_and_repaired_with_keys_alone(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY) as driver:
        await driver.press("f9")
        assert not driver.solve.editor.buffer
        assert driver.state.submissions == ()
        await driver.press("f3", "enter")
        await driver.until(lambda: "" in driver.state.knowledge.listed)
        await driver.press("down", "enter")
        await driver.until(lambda: "shop" in driver.state.knowledge.listed)
        await driver.press("down", "down", "down", "enter")
        await driver.until(lambda: "shop/prices.py" in driver.state.knowledge.files)
        await driver.until(lambda: driver.solve.focused is driver.solve.code.view)
        await driver.press(*["down"] * 5, "e")
        await driver.until(lambda: driver.solve.focused is driver.solve.editor.editor)
        assert driver.solve.editor.buffer == "shop/prices.py::discount"
        assert "price + price" in driver.solve.editor.code
        await driver.press("ctrl+home", "down", "down", "end", *["backspace"] * len(BODY))
        await driver.type(BODY)
        await driver.press("ctrl+r")
        await driver.until_screen("ConfirmDialog")
        assert "changes stay" in driver.text()
        first = driver.solve.editor.editor.line_number_start
        assert first > 1
        assert f" {first + 2} " in driver.text(), "numbered as in the file"
        await driver.press("enter")
        await driver.until_screen("SummaryScreen")
        assert "✔ solved" in driver.text()


async def test_the_answer_is_shown_as_a_model_gets_it(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        for line in (
            "search_code total",
            "list_file_functions shop/prices.py",
            "read_function add shop/prices.py",
        ):
            await driver.console(line)
            await driver.press("f7")
            await driver.until(lambda: driver.solve.results.answer.text == driver.state.calls[-1].text)
            assert driver.solve.results.answer.text == driver.state.calls[-1].text


async def test_a_counted_attempt_shows_no_more_than_the_answer(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        await driver.press("f9", "shift+tab", "enter")
        await driver.until(lambda: driver.state.submissions and driver.state.pending is None)
        await driver.press("f7")
        assert "Tests" not in driver.text()
        await driver.press("right_square_bracket", "right_square_bracket")
        assert driver.solve.results.page == "answer"
        shown = [id for id in CHECKS if id in driver.text()]
        assert shown == ["tests/test_prices.py::test_total"]


async def test_a_practice_attempt_shows_every_test(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE, role=Role.TRAINING) as driver:
        await driver.press("f9", "shift+tab", "enter")
        await driver.until(lambda: driver.state.submissions and driver.state.pending is None)
        await driver.press("f7", "right_square_bracket")
        assert driver.solve.results.page == "tests"
        await driver.until(lambda: all(id in driver.text() for id in CHECKS))


async def test_code_that_does_not_parse_costs_a_tool_use_and_no_submission(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("f6")
        await driver.type("))")
        await driver.press("f9")
        await driver.until(lambda: "costs 1 tool use, leaves 15" in driver.text())
        await driver.press("shift+tab", "enter")  # the default is not to submit it
        await driver.until(lambda: driver.state.calls and driver.state.pending is None)
        assert (driver.state.remaining.tool_uses, driver.state.remaining.submissions) == (15, 4)
        assert driver.state.calls[-1].refused
        await driver.until(lambda: "Refused" in driver.text())


async def test_the_price_of_code_that_does_not_parse_follows_the_rules_of_the_task(tmp_path: Path) -> None:
    task = build_task(build_services(tmp_path).locations.tasks)
    costly = replace(task, rules=Rules(refused_costs_attempt=True))
    write_task(costly, read_answer(task))
    async with solving(tmp_path, task=costly) as driver:
        await driver.press("f6")
        await driver.type("))")
        await driver.press("f9")
        await driver.until(lambda: "costs 1 tool use and 1 submission; leaves 15 and 3" in driver.text())
        await driver.press("shift+tab", "enter")
        await driver.until(lambda: driver.state.calls and driver.state.pending is None)
        assert (driver.state.remaining.tool_uses, driver.state.remaining.submissions) == (15, 3)


async def test_a_failure_of_the_harness_costs_no_submission(tmp_path: Path) -> None:
    runner = FakeRunner(CHECKS, status=RunStatus.INFRASTRUCTURE)
    async with solving(tmp_path, runner=runner, size=LARGE) as driver:
        await driver.press("f9", "shift+tab", "enter")
        await driver.until(lambda: driver.state.calls and driver.state.pending is None)
        assert driver.state.remaining.submissions == 4
        await driver.until(lambda: "costs no submission" in driver.text())


async def test_the_keyboard_is_alive_and_a_run_can_be_cancelled(tmp_path: Path) -> None:
    gate = threading.Event()
    async with solving(tmp_path, runner=FakeRunner(CHECKS, gate=gate)) as driver:
        await driver.press("f9", "shift+tab", "enter")
        await driver.until(lambda: "1 of 6" in driver.text())
        assert "failed so far" not in driver.text()
        await driver.press("f8")
        await driver.type("still here")
        assert "still here" in driver.text()
        await driver.press("f10")
        assert type(driver.screen).__name__ == "SolveScreen", "a pause waits for the call"
        await driver.press("escape")
        await driver.until_screen("ConfirmDialog")
        assert "still counts" in driver.text()
        await driver.press("enter")
        await driver.until_screen("SolveScreen")
        assert driver.state.pending is not None, "letting it run is the careful answer"
        await driver.press("escape")
        await driver.until_screen("ConfirmDialog")
        await driver.press("shift+tab", "enter")
        await driver.until(lambda: driver.state.pending is None)
        assert driver.state.submissions[0].status == "cancelled"
        assert driver.state.remaining.submissions == 3


async def test_half_written_code_is_compared_with_its_start(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("f6")
        driver.solve.editor.editor.text = REPAIR + "\n"
        await driver.press("alt+d")
        await driver.until(lambda: "price - price" in driver.text() and "pass" in driver.text())
        await driver.press("alt+d")
        assert driver.solve.focused is driver.solve.editor.editor
        driver.solve.controller.flush()
        await driver.until(lambda: driver.state.affordances.get("diff"))


async def test_what_is_typed_is_written_soon_and_waits_for_no_tick_or_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DELAY_SECONDS < 0.3
    monkeypatch.setattr("gistpoint.tui.screens.solve.screen.FLUSH_SECONDS", 3_600)
    async with solving(tmp_path) as driver:
        await driver.press("f8")
        await driver.type("half")
        await driver.until(lambda: driver.state.notes == "half")
        await driver.press("f6", "end")
        await driver.type("  # half")
        editor = driver.solve.editor.editor
        await driver.until(lambda: driver.state.buffered(editor.buffer) == editor.code)
        assert driver.solve.focused is editor
        assert "# half" in editor.code
        journal = driver.services.attempts.folder(driver.state.attempt_id) / JOURNAL
        assert [event.type for event in read_journal(journal).events].count("edit_buffer") >= 1


async def test_pastes_are_recorded_with_whether_they_had_been_shown(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        await driver.console("read_file shop/stock/shelf.py")
        for pane, text in (
            ("f6", "return width * depth"),
            ("f6", "solution from elsewhere"),
            ("f8", "Write the function again"),
            ("f5", "search_code x"),
        ):
            await driver.press(pane)
            driver.app.post_message(events.Paste(text))
            await driver.pilot.pause()
        folder = driver.services.attempts.folder(driver.state.attempt_id)
        await driver.until(lambda: driver.state.affordances.get("paste") == 4)
        kept = [event.data for event in read_journal(folder / JOURNAL).events]
        found = [data for data in kept if isinstance(data, AffordanceUsed) and data.kind == "paste"]
        assert [(paste.shown, paste.outside) for paste in found] == [
            (True, True),
            (False, True),
            (True, True),
            (False, True),
        ]
        assert all(
            paste.characters and len(paste.sha256 or "") == 64 and "text" not in paste.written()
            for paste in found
        )


async def test_notes_and_code_are_kept_however_soon_the_screen_is_left(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        attempt_id = driver.state.attempt_id
        await driver.press("f8")
        await driver.type("why 100")
        await driver.press("f6", "ctrl+home", "#", "ctrl+l")
        await driver.until_screen("HomeScreen")
        state = driver.services.attempts.summary(attempt_id).state
        assert state.notes == "why 100"
        assert next(iter(state.buffers.values())).startswith("#def discount")


async def test_notes_are_kept_if_the_screen_stops_before_their_message_arrives(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("f8")
        driver.solve.notes.insert("why 100")
        driver.solve.notes.flush()
        driver.solve.stop()
        assert driver.state.notes == "why 100"


@pytest.mark.parametrize(("role", "shows_failures"), [(Role.TRAINING, True), (Role.BASELINE, False)])
async def test_a_submission_shows_what_changes_and_its_run_what_may_be_known(
    tmp_path: Path, role: Role, shows_failures: bool
) -> None:
    gate = threading.Event()
    async with solving(tmp_path, runner=FakeRunner(CHECKS, gate=gate), role=role, size=LARGE) as driver:
        await driver.press("f6")
        await driver.type("return None")
        await driver.press("f9")
        await driver.until_screen("ConfirmDialog")
        text = driver.text()
        assert "-     pass" in text
        assert "+     return None" in text
        assert "F2 Brief" in text, "what is submitted lies below what was read"
        await driver.press("enter")
        await driver.until(lambda: "1 of 6" in driver.text())
        line = driver.solve.run_line.render().plain
        assert "Esc cancels (the submission is spent)" in line
        assert ("✘" in line, "first: " in line) == (shows_failures, shows_failures)
        gate.set()
        await driver.until(lambda: driver.state.submissions and driver.state.pending is None)


async def test_a_long_change_is_scrolled_while_it_is_asked_about(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("f6")
        await driver.type("\n".join(f"line_{number} = {number}" for number in range(20)))
        await driver.press("f9")
        await driver.until_screen("ConfirmDialog")
        await driver.until(lambda: "↓ Scroll" in driver.text())
        assert "-     pass" in driver.text()
        assert "+     line_0 = 0" in driver.text()
        assert "line_19" not in driver.text()
        await driver.press(*["down"] * 20)
        await driver.until(lambda: "line_19" in driver.text())
