from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from builders import REPAIR, SUSPICIOUS, build_services, build_task
from examples import at_sizes
from fakes import FakeClock
from screens.driving import LARGE, Driver, driving
from textual import events

from gistpoint.core.attempts.events import GiveUpCode
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.kinds.titles import author_title
from gistpoint.core.ports import Runner
from gistpoint.core.tasks.documents import ANSWER_FILE, TASK_FILE
from gistpoint.core.tasks.model import Failure, Mode, Task
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.settling import reject_attempt
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.services import Services
from gistpoint.sessions.team.address import choose
from gistpoint.sessions.team.pusher import Pusher
from gistpoint.tui.home_reader import Details, HomeReader, details_of, load_rows
from gistpoint.tui.home_rows import ATTEMPT_COLUMNS, TASK_COLUMNS
from gistpoint.tui.screens.dialogs.ask import MessageDialog
from gistpoint.tui.screens.home import HomeScreen
from gistpoint.tui.screens.home_detail import task_lines
from gistpoint.tui.tables import Column, arranged, parse_query


def standing(row: object) -> tuple[str, ...]:
    return tuple(cell(TASK_COLUMNS, row, name) for name in ("", "Best", "Last", "Attempts"))


def cell(columns: Sequence[Column[Any]], row: object, name: str) -> str:
    return next(column.shown(row) for column in columns if column.name == name)


def services_with_tasks(root: Path, clock: FakeClock) -> Services:
    services = build_services(root, clock=clock)
    for mode in (Mode.REMOVE, Mode.DISCOVERY):
        build_task(services.locations.tasks, mode)
    return services


async def test_an_empty_home_says_what_to_do(tmp_path: Path) -> None:
    clock = FakeClock()
    async with driving(build_services(tmp_path, clock=clock), clock) as driver:
        await driver.until(lambda: "gistpoint demo" in driver.text())
        assert "gistpoint task new" in driver.text()
        await driver.press("ctrl+n", "r", "v", "s", "y", "enter", "tab", "f3", "full_stop")
        assert isinstance(driver.screen, HomeScreen)


@pytest.mark.parametrize(("failing", "more"), [(6, ""), (20, ""), (25, "  and 5 more")])
def test_the_failing_tests_of_a_demo_are_listed(tmp_path: Path, failing: int, more: str) -> None:
    services = build_services(tmp_path)
    task = build_task(services.locations.tasks, Mode.REMOVE)
    (row,) = load_rows(services).tasks
    ids = [f"tests/test_shop.py::test_{number}" for number in range(failing)]
    brief = replace(task.brief, failing=tuple(Failure(id) for id in ids))
    details = Details(replace(task, brief=brief))
    shown = [text.text for text in task_lines(replace(row, shipped=True), details, 0, 60)]
    listed = [id for id in ids if any(id in text for text in shown)]
    assert listed == ids[:20]
    assert shown[-1] == more or (not more and ids[-1] in shown[-1])


async def test_tasks_are_filtered_and_sorted_and_their_titles_hide_what_is_to_be_found(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text() and "discovery" in driver.text())
        text = driver.text()
        # A title names the function that the brief names, and never one that has to be found.
        assert text.count("discount") == text.count("shop · discount removed") == 1
        assert "shop · find one, 4 fail" in text
        await driver.press("slash")
        await driver.type("remo")
        await driver.until(lambda: "Tasks (1 of 2)" in driver.text())
        assert "discovery" not in driver.text()
        await driver.press("enter", "escape")
        await driver.until(lambda: "Tasks (2)" in driver.text())
        await driver.press("s", "s", "s")
        assert "Mode ▲" in driver.text()
        home = driver.screen
        assert isinstance(home, HomeScreen)
        assert [cell(TASK_COLUMNS, row, "Mode") for row in home.tasks.shown] == ["discovery", "remove"]
        await driver.press("tilde")
        assert "Mode ▼" in driver.text()
        assert [cell(TASK_COLUMNS, row, "Mode") for row in home.tasks.shown] == ["remove", "discovery"]


async def test_attempts_are_started_resumed_and_looked_at(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text())
        assert "Enter starts the task" in driver.text()
        await driver.press("enter")
        await driver.until_screen("SolveScreen")
        first = driver.state.attempt_id
        await driver.press("ctrl+l")
        for key in ("r", "enter"):
            await driver.until(lambda: "Your attempts" in driver.text() and "unfinished" in driver.text())
            assert "used of 16" in driver.text()
            await driver.press(key)
            await driver.until_screen("SolveScreen")
            assert driver.state.attempt_id == first
            await driver.press("ctrl+l")
            await driver.until_screen("HomeScreen")
        await driver.press("ctrl+n")
        await driver.until_screen("PickDialog")
        assert "an attempt has not ended" in driver.text()
        assert "Resume the attempt of today" in driver.text()
        assert first not in driver.text()
        await driver.press("down", "enter")
        await driver.until_screen("SolveScreen")
        assert driver.state.attempt_id != first


async def test_a_new_attempt_that_was_asked_for_is_begun_without_a_question(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    task = next(t for t in services.tasks.tasks() if t.mode is Mode.REMOVE)  # type: ignore[union-attr]
    opened = services.start(task)  # type: ignore[arg-type]
    opened.close()
    async with driving(services, clock, open=task.id, new=True) as driver:
        await driver.until_screen("SolveScreen")
        assert driver.state.attempt_id != opened.attempt.state.attempt_id


async def test_an_attempt_that_ended_opens_its_summary(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    task = next(t for t in services.tasks.tasks() if t.mode is Mode.REMOVE)  # type: ignore[union-attr]
    opened = services.start(task)  # type: ignore[arg-type]
    opened.attempt.call("submit_attempt", {"func_code": REPAIR.replace("- price *", "+ price *")})
    opened.attempt.call("submit_attempt", {"func_code": REPAIR})
    opened.close()
    async with driving(services, clock, size=LARGE, open=opened.attempt.state.attempt_id) as driver:
        await driver.until_screen("SummaryScreen")
        text = driver.text()
        assert "✔ solved" in text
        assert "2 used of 4" in text
        await driver.press("right_square_bracket")
        await driver.until(lambda: "no differences" in driver.text())
        await driver.press("right_square_bracket")
        await driver.until(lambda: "test_odd[list[int]]" in driver.text())
        await driver.press("escape")
        await driver.until_screen("HomeScreen")


async def test_a_summary_leads_on_to_the_record_and_to_the_next_task(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    task = next(t for t in services.tasks.tasks() if t.mode is Mode.REMOVE)  # type: ignore[union-attr]
    others = {t.id for t in services.tasks.tasks()} - {task.id}  # type: ignore[union-attr]
    opened = services.start(task)  # type: ignore[arg-type]
    opened.attempt.call("submit_attempt", {"func_code": REPAIR})
    opened.close()
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until_screen("HomeScreen")
        await driver.until(lambda: driver.screen.rows is not None)
        driver.app.post_message(HomeScreen.OpenRequested(opened.attempt.state.attempt_id))
        await driver.until_screen("SummaryScreen")
        assert "v Review" in driver.text()
        await driver.press("v")
        await driver.until_screen("ReviewScreen")
        await driver.press("q")
        await driver.until_screen("HomeScreen")
        driver.app.post_message(HomeScreen.OpenRequested(opened.attempt.state.attempt_id))
        await driver.until_screen("SummaryScreen")
        await driver.press("ctrl+n")
        await driver.until_screen("SolveScreen")
        assert driver.attempt.task.id in others


async def test_what_is_damaged_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    broken = services.locations.tasks / "broken[∕x]"
    broken.mkdir()
    (broken / "task.toml").write_text("format = 3")
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text())
        assert "broken[∕x]" in driver.text()


async def test_an_unknown_id_is_reported_with_a_hint(tmp_path: Path) -> None:
    clock = FakeClock()
    async with driving(build_services(tmp_path, clock=clock), clock, open="nonsense[/x]") as driver:
        await driver.until_screen("MessageDialog")
        assert "There is no task 'nonsense[/x]'" in driver.text()
        assert "gistpoint task list" in driver.text()


def test_rows_are_arranged_by_words_and_column() -> None:
    rows = [("b", 10), ("a", 9), ("ab", 100)]
    columns: list[Column[tuple[str, int]]] = [
        Column("key", lambda row: row[0]),
        Column("number", lambda row: str(row[1]), lambda row: row[1]),
    ]

    def keys(query: str, column: Column[tuple[str, int]] | None, *, reverse: bool = False) -> list[str]:
        return [row[0] for row in arranged(rows, parse_query(query, columns), column, reverse=reverse)]

    assert keys("", None) == ["b", "a", "ab"]
    assert keys("", columns[1]) == ["a", "b", "ab"]
    assert keys("", columns[0], reverse=True) == ["b", "ab", "a"]
    assert keys("A 1", None) == ["ab"]


async def test_a_suspicious_pass_is_shown_on_the_home_screen_and_in_its_summary(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    task = next(t for t in services.tasks.tasks() if t.mode is Mode.REMOVE)  # type: ignore[union-attr]
    for code, sign in ((SUSPICIOUS, "?"), (REPAIR, "✔")):
        held = services.start(task)  # type: ignore[arg-type]
        held.attempt.call("submit_attempt", {"func_code": code})
        held.close()
        clock.advance(1_000)
        (row,) = [row for row in load_rows(services).tasks if row.key == task.id]  # type: ignore[union-attr]
        assert (cell(TASK_COLUMNS, row, ""), cell(TASK_COLUMNS, row, "Best")) == (sign, "1.000")
    (attempt,) = [found.attempt_id for found in services.attempts.summaries() if found.state.suspicious]
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text() and "1 solved" in driver.text())
        await driver.press("f3")
        await driver.until(lambda: "1 of 2 solved, 1 more to be read" in driver.text())
        await driver.press("down")
        assert driver.text().count("? solved, to be read") == 1
        await driver.press("f2")
        assert "Attempts" not in driver.text().splitlines()[1]
    async with driving(services, clock, size=LARGE, open=attempt) as driver:
        await driver.until_screen("SummaryScreen")
        assert "? solved, to be read" in driver.text()
        assert "gc.collect" in driver.text()
        assert f"gistpoint attempt accept {attempt}" in driver.text()
    reviewer = Reviewer(ReviewStore(services.locations.reviews, clock), "r1")
    reject_attempt(reviewer, attempt, "No.")
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text())
        await driver.press("f3")
        await driver.until(lambda: "solved, rejected" in driver.text())
        assert "to be read" not in driver.text()


def at_once(driver: Driver, *keys: str) -> None:
    """Press keys without waiting for their effects."""
    for key in keys:
        driver.app.post_message(events.Key(key, key if len(key) == 1 else None))


def attempts_of(services: Services) -> list[AttemptSummary]:
    return list(services.attempts.summaries())


@dataclass
class SlowStart:
    """A probe of the isolation that waits until it may continue."""

    services: Services
    gate: threading.Event = field(default_factory=threading.Event)
    asked: int = 0

    def slowed(self) -> Services:
        def runner_for(task: Task) -> Runner:
            self.asked += 1
            assert self.gate.wait(30)
            return self.services.runner_for(task)

        return replace(self.services, runner_for=runner_for)


@pytest.mark.parametrize(
    "keys", [("ctrl+n", "ctrl+n"), ("enter", "enter"), ("ctrl+n", "r", "enter", "ctrl+n")]
)
async def test_keys_pressed_twice_begin_one_attempt(tmp_path: Path, keys: tuple[str, ...]) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text())
        at_once(driver, *keys)
        await driver.until_screen("SolveScreen")
        await driver.pilot.pause(0.3)
        assert len(attempts_of(services)) == 1
        assert [type(screen).__name__ for screen in driver.app.screen_stack] == ["HomeScreen", "SolveScreen"]
        await driver.press("ctrl+l")
        await driver.until(lambda: "unfinished" in driver.text())
        at_once(driver, "ctrl+n", "ctrl+n")
        await driver.until_screen("PickDialog")
        await driver.pilot.pause(0.3)
        assert len(driver.app.screen_stack) == 2
        await driver.press("escape")
        await driver.until_screen("HomeScreen")


async def test_the_loader_says_what_it_does_and_escape_leaves_no_attempt(tmp_path: Path) -> None:
    clock = FakeClock()
    slow = SlowStart(services_with_tasks(tmp_path, clock))
    async with driving(slow.slowed(), clock) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text())
        await driver.press("ctrl+n")
        await driver.until(lambda: "Preparing the isolation for the code" in driver.text())
        assert "Esc cancels" in driver.text()
        await driver.press("ctrl+n", "enter", "r", "tab", "enter")
        await driver.pilot.pause(0.2)
        assert slow.asked == 1
        await driver.press("escape")
        await driver.until_screen("HomeScreen")
        slow.gate.set()
        await driver.pilot.pause(0.5)
        assert isinstance(driver.screen, HomeScreen)
        assert attempts_of(slow.services) == []
        await driver.press("ctrl+n")
        await driver.until_screen("SolveScreen")
        assert len(attempts_of(slow.services)) == 1


async def test_what_the_command_line_asked_for_can_be_cancelled_too(tmp_path: Path) -> None:
    clock = FakeClock()
    slow = SlowStart(services_with_tasks(tmp_path, clock))
    task = next(task for task in slow.services.tasks.tasks() if isinstance(task, Task))
    async with driving(slow.slowed(), clock, open=task.id) as driver:
        await driver.until(lambda: "Preparing the isolation" in driver.text())
        await driver.press("escape")
        await driver.until_screen("HomeScreen")
        slow.gate.set()
        await driver.pilot.pause(0.3)
        assert attempts_of(slow.services) == []
        await driver.until(lambda: "Tasks (2)" in driver.text())
        assert isinstance(driver.screen, HomeScreen)


async def test_a_task_that_is_open_in_another_window_is_not_begun_again(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text())
        task = next(task for task in services.tasks.tasks() if isinstance(task, Task))
        there = services.start(task)
        await driver.press("full_stop")
        await driver.until(lambda: "▶ open elsewhere" in driver.text())
        assert "open in another window: continue there, or close it first" in " ".join(driver.text().split())
        assert "Enter continues" not in driver.text()
        for key in ("ctrl+n", "r"):
            await driver.press(key)
            await driver.until_screen("MessageDialog")
            assert isinstance(driver.screen, MessageDialog)
            assert "open in another window" in driver.screen._text
            await driver.press("escape")
            await driver.until_screen("HomeScreen")
        assert len(attempts_of(services)) == 1
        there.close()
        await driver.press("ctrl+n")
        await driver.until_screen("PickDialog")


async def test_a_damaged_attempt_and_one_that_was_played_open_for_reading_only(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    task = next(task for task in services.tasks.tasks() if isinstance(task, Task))
    for replay, message in ((False, "It was cut off"), (True, "It is a playback of a recorded attempt")):
        opened = services.start(task, replay=replay)
        opened.attempt.call("list_directory", {})
        opened.close()
        identity = opened.attempt.state.attempt_id
        journal = services.attempts.folder(identity) / "journal.jsonl"
        if not replay:
            journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]))
        before = journal.read_bytes()
        async with driving(services, clock, size=LARGE, open=identity) as driver:
            await driver.until_screen("MessageDialog")
            assert message in driver.text()
            await driver.press("escape")
            await driver.until_screen("ReviewScreen")
            await driver.pilot.pause(0.2)
        assert journal.read_bytes() == before
        clock.advance(1000)


async def test_the_best_and_the_last_are_shown_and_what_was_played_is_neither(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    task = next(t for t in services.tasks.tasks() if isinstance(t, Task) and t.mode is Mode.REMOVE)
    for replay, code in ((False, REPAIR.replace("- price *", "+ price *")), (True, REPAIR)):
        opened = services.start(task, replay=replay)
        opened.attempt.call("submit_attempt", {"func_code": code})
        opened.close()
        clock.advance(60_000)
    (played, tried) = attempts_of(services)
    row = next(row for row in load_rows(services).tasks if row.key == task.id)
    assert standing(row) == ("‖", "0.200", "‖ 0.200", "1")
    assert row.unfinished is not None
    assert (row.unfinished.attempt_id, row.others) == (tried.attempt_id, 1)
    assert row.title == author_title(task)
    opened = services.start(task)
    opened.attempt.call("submit_attempt", {"func_code": REPAIR})
    opened.close()
    clock.advance(60_000)
    services.start(task).close()
    rows = load_rows(services)
    row = next(row for row in rows.tasks if row.key == task.id)
    assert standing(row) == ("✔", "1.000", "‖ –", "3")
    assert row.title == "shop · discount removed"
    other = replace(services, enrolment=replace(services.enrolment, participant="p07"))
    (seen,) = (row for row in load_rows(other).tasks if row.key == task.id)
    assert (seen.title, seen.mine, seen.others) == (author_title(task), (), 4)
    who = {row.key: cell(ATTEMPT_COLUMNS, row, "Actor") for row in rows.attempts}
    assert who[played.attempt_id] == "replay"
    assert sorted(who.values()) == ["person", "person", "person", "replay"]


async def test_what_another_program_does_is_shown_without_moving_the_cursor(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    tasks = [task for task in services.tasks.tasks() if isinstance(task, Task)]
    services.start(tasks[0]).close()
    clock.advance(1_000)
    elsewhere = services.start(tasks[1])
    clock.advance(1_000)
    services.start(tasks[0]).close()
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text())
        await driver.press("f3", "down", "down")
        await driver.until(lambda: "open elsewhere" in driver.text())
        home = driver.screen
        assert isinstance(home, HomeScreen)
        before = home._table.chosen
        await driver.press("up", "enter")
        await driver.until_screen("MessageDialog")
        await driver.press("escape")
        await driver.until_screen("HomeScreen")
        assert home._table.cursor == 1, "a refusal leaves the cursor where it is"
        await driver.press("down")
        elsewhere.attempt.give_up(GiveUpCode.TOO_HARD)
        elsewhere.close()
        home._poll()
        await driver.until(lambda: "open elsewhere" not in driver.text() and "gave up" in driver.text())
        assert home._table.cursor == 2
        assert home._table.chosen is before, "an attempt of which nothing changed is not made again"


async def test_a_click_selects_a_row_and_a_second_one_opens_it(tmp_path: Path) -> None:
    clock = FakeClock()
    async with driving(services_with_tasks(tmp_path, clock), clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text())
        home = driver.screen
        assert isinstance(home, HomeScreen)
        for row in (1, 0, 1):
            await driver.pilot.click(home.tasks, offset=(8, row + home.tasks.HEAD + 1))
            assert home.tasks.cursor == row
            assert driver.screen is home
        await driver.pilot.click(home.tasks, offset=(8, home.tasks.HEAD + 2))
        await driver.until_screen("SolveScreen")


async def test_home_below_an_attempt_takes_any_size_of_the_terminal(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    build_task(services.locations.tasks)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "6 tests, 5 fail" in driver.text())
        await driver.press("enter")
        await driver.until_screen("SolveScreen")
        for size in ((80, 24), (160, 90), (40, 12), (160, 48)):
            await driver.pilot.resize_terminal(*size)
            await driver.until(lambda size=size: driver.screen.size == size)
        assert type(driver.screen).__name__ == "SolveScreen"


async def test_home_shows_the_state_of_a_teams_store(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    choose(services.locations.config, f"postgresql:///team?host={tmp_path}")  # without a server
    mirror = Pusher(services.locations, clock)
    places = services.locations
    store = AttemptStore(places.attempts, clock, "test", places.reviews, mirror)
    async with driving(replace(services, attempts=store, mirror=mirror), clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text())
        assert "store" not in driver.text().splitlines()[0]
        await driver.press("enter")
        await driver.until_screen("SolveScreen")
        await driver.press("ctrl+l")
        await driver.until(lambda: "! away," in driver.text())
        assert "lines to send" in driver.text().splitlines()[0]
    mirror.close()


@pytest.mark.parametrize("size", at_sizes((80, 24), (120, 35), (160, 48), (200, 60)))
async def test_neither_titles_nor_details_nor_the_summarys_header_are_cut(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    task = next(t for t in services.tasks.tasks() if t.mode is Mode.REMOVE)  # type: ignore[union-attr]
    opened = services.start(task)  # type: ignore[arg-type]
    opened.attempt.call("submit_attempt", {"func_code": REPAIR.replace("- price *", "+ price *")})
    clock.advance(3_723_000)
    opened.attempt.call("submit_attempt", {"func_code": REPAIR})
    opened.close()
    async with driving(services, clock, size=size) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text())
        while "Your attempts" not in driver.text():
            await driver.press("down")
        rows = driver.text().splitlines()
        assert any("shop · find one, 4 fail" in row for row in rows)
        assert sum("shop · discount removed" in row for row in rows) >= 2, "the row, and the details' frame"
        assert not any("→  " in row for row in rows), "the line of an attempt is wrapped"
        await driver.press("enter")
        await driver.until_screen("SummaryScreen")
        (header, *_) = driver.text().splitlines()
        assert "…" not in header
        assert "✔ solved" in header
        assert "score 1.000" in header
        assert "working time 1:02:03" in header


async def test_no_task_comes_next_while_home_is_still_being_opened(tmp_path: Path) -> None:
    services = build_services(tmp_path)
    build_task(services.locations.tasks)
    async with driving(services, FakeClock()):
        assert HomeScreen(lambda: services).next_untried("") == ""


def test_the_details_of_a_task_do_not_need_its_answer(tmp_path: Path) -> None:
    services = build_services(tmp_path)
    task = build_task(services.locations.tasks, Mode.REMOVE)
    reader = HomeReader(services)
    (row,) = reader.read().tasks
    (task.folder / ANSWER_FILE).unlink()
    details = details_of(services, row)
    assert details.task == task
    shown = " ".join(text.text for text in task_lines(row, details, 0, 60))
    assert kind_of(task).asks(task).split()[0] in shown
    (task.folder / TASK_FILE).unlink()
    assert details_of(services, row).task is None, "the row is still described"
    assert task_lines(row, details_of(services, row), 0, 60)
