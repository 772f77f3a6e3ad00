from __future__ import annotations

from pathlib import Path

from builders import REPAIR, SUSPICIOUS, build_services, build_task
from fakes import FakeClock
from screens.driving import LARGE, driving

from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.reviews.reviewing import Reviewer
from gistpoint.sessions.reviews.settling import reject_attempt
from gistpoint.sessions.reviews.store import ReviewStore
from gistpoint.tui.home_rows import Row, arranged
from gistpoint.tui.screens.home import HomeScreen
from gistpoint.tui.services import Services


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
        await driver.press("n", "r", "o", "s", "t", "f5")
        assert isinstance(driver.screen, HomeScreen)


async def test_tasks_are_filtered_and_sorted_and_what_they_ask_is_not_shown(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text() and "discovery" in driver.text())
        text = driver.text()
        assert "discount" not in text
        assert "shop" not in text
        await driver.press("slash")
        await driver.type("remo")
        await driver.until(lambda: "Tasks (1 of 2)" in driver.text())
        assert "discovery" not in driver.text()
        await driver.press("enter", "escape")
        await driver.until(lambda: "Tasks (2)" in driver.text())
        await driver.press("s", "s")
        assert "Mode ▲" in driver.text()
        home = driver.screen
        assert isinstance(home, HomeScreen)
        assert [row.cells[1] for row in home.tasks._in_sight] == ["discovery", "remove"]
        await driver.press("S")
        assert "Mode ▼" in driver.text()
        assert [row.cells[1] for row in home.tasks._in_sight] == ["remove", "discovery"]


async def test_attempts_are_started_resumed_and_looked_at(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text())
        await driver.press("n")
        await driver.until_screen("SolveScreen")
        first = driver.state.attempt_id
        await driver.press("ctrl+l")
        await driver.until(lambda: "unfinished" in driver.text())
        await driver.press("r")
        await driver.until_screen("SolveScreen")
        assert driver.state.attempt_id == first
        await driver.press("ctrl+l")
        await driver.until_screen("HomeScreen")
        await driver.press("n")
        await driver.until_screen("PickDialog")
        assert "has not ended" in driver.text()
        await driver.press("down", "enter")
        await driver.until_screen("SolveScreen")
        assert driver.state.attempt_id != first


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
        assert "2 of 4" in text
        await driver.press("right_square_bracket")
        await driver.until(lambda: "as it should be" in driver.text())
        await driver.press("right_square_bracket")
        await driver.until(lambda: "test_odd[list[int]]" in driver.text())
        await driver.press("escape")
        await driver.until_screen("HomeScreen")


async def test_what_is_damaged_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    broken = services.locations.tasks / "broken[∕x]"
    broken.mkdir()
    (broken / "task.toml").write_text("format = 3")
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (2)" in driver.text())
        assert "broken[∕x]" in driver.text()


async def test_an_unknown_id_is_told_with_a_hint(tmp_path: Path) -> None:
    clock = FakeClock()
    async with driving(build_services(tmp_path, clock=clock), clock, open="nonsense[/x]") as driver:
        await driver.until_screen("MessageDialog")
        assert "There is no task 'nonsense[/x]'" in driver.text()
        assert "gistpoint task list" in driver.text()


def test_rows_are_arranged_by_words_and_column() -> None:
    rows = [Row(key, (key, str(n)), ((0, key), (n, str(n)))) for key, n in (("b", 10), ("a", 9), ("ab", 100))]
    assert [row.key for row in arranged(rows, "", None)] == ["b", "a", "ab"]
    assert [row.key for row in arranged(rows, "", 1)] == ["a", "b", "ab"]
    assert [row.key for row in arranged(rows, "", 0, reverse=True)] == ["b", "ab", "a"]
    assert [row.key for row in arranged(rows, "A 1", None)] == ["ab"]


async def test_a_suspicious_pass_is_told_on_the_home_screen_and_in_its_summary(tmp_path: Path) -> None:
    clock = FakeClock()
    services = services_with_tasks(tmp_path, clock)
    task = next(t for t in services.tasks.tasks() if t.mode is Mode.REMOVE)  # type: ignore[union-attr]
    for code in (SUSPICIOUS, REPAIR):
        held = services.start(task)  # type: ignore[arg-type]
        held.attempt.call("submit_attempt", {"func_code": code})
        held.close()
        clock.advance(1_000)
    (attempt,) = [found.attempt_id for found in services.attempts.summaries() if found.state.suspicious]
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "1 of 2 solved, 1 more to be read" in driver.text())
        assert driver.text().count("? solved, to be read") == 1
    async with driving(services, clock, size=LARGE, open=attempt) as driver:
        await driver.until_screen("SummaryScreen")
        assert "? solved, to be read" in driver.text()
        assert "gc.collect" in driver.text()
        assert f"gistpoint attempt accept {attempt}" in driver.text()
    reviewer = Reviewer(ReviewStore(services.locations.reviews, clock), "r1")
    reject_attempt(reviewer, attempt, "No.")
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "✘ solved, rejected" in driver.text())
        assert "to be read" not in driver.text()
