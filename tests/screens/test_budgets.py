from __future__ import annotations

from pathlib import Path

from builders import CHECKS
from fakes import FakeRunner
from screens.driving import LARGE, solving

from gistpoint.core.kinds.titles import title_in_attempt
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode
from gistpoint.tui.widgets.budget_bar import BudgetBar


async def test_the_price_is_shown_before_a_call(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("f5")
        await driver.type("read_file shop/prices.py")
        assert "costs 1 tool use, leaves 15" in driver.text()
        await driver.press("f3")
        await driver.until(lambda: "−1 tool use" in driver.text())


async def test_a_line_that_is_no_call_costs_nothing(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        for line in ("read_fil x", "read_function only_a_name", "read_file 'a"):
            await driver.press("f5")
            await driver.type(line)
            await driver.press("enter")
            await driver.until(lambda: "nothing spent" in driver.text())
            await driver.press("escape")
        assert driver.state.calls == ()
        assert driver.state.remaining.tool_uses == 16


async def test_a_refused_call_costs_a_tool_use_as_for_a_model(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.console("read_file nowhere.py")
        assert driver.state.remaining.tool_uses == 15
        assert "Refused: There is no file nowhere.py" in driver.text()


async def test_the_last_submission_is_asked_about_and_refusing_is_the_usual_answer(tmp_path: Path) -> None:
    async with solving(tmp_path, budgets=Budgets(4, 1)) as driver:
        await driver.press("f9")
        await driver.until_screen("ConfirmDialog")
        assert "last submission: the attempt ends" in driver.text()
        await driver.press("enter")
        await driver.until_screen("SolveScreen")
        assert driver.state.calls == ()
        await driver.press("f9")
        await driver.until_screen("ConfirmDialog")
        await driver.press("shift+tab", "enter")
        await driver.until_screen("SummaryScreen")
        assert "submissions used up" in driver.text()


async def test_the_row_of_a_run_that_was_stopped_is_marked(tmp_path: Path) -> None:
    stopped = FakeRunner(CHECKS, status=RunStatus.TIMED_OUT)
    async with solving(tmp_path, runner=stopped, size=LARGE) as driver:
        await driver.console("read_file README.md")
        await driver.press("f9", "shift+tab", "enter")
        await driver.until(lambda: driver.state.submissions and driver.state.pending is None)
        await driver.until(lambda: "✘  2  submit_attempt" in driver.text())
        assert "·  1  Read README.md, 1 line" in driver.text()


async def test_the_last_tool_uses_are_asked_about(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, budgets=Budgets(3, 2), size=LARGE) as driver:
        await driver.console("list_directory")
        await driver.press("f5")
        await driver.type("list_directory shop")
        await driver.press("enter")
        await driver.until_screen("ConfirmDialog")
        assert "which can only be a submission" in driver.text()
        await driver.press("escape")
        await driver.until_screen("SolveScreen")
        assert driver.state.remaining.tool_uses == 2
        await driver.press("f5", "up")
        await driver.type("list_directory shop") if not driver.solve.console.line.value else None
        driver.solve.console.line.value = "list_directory shop"
        await driver.press("enter")
        await driver.until_screen("ConfirmDialog")
        await driver.press("shift+tab", "enter")
        await driver.until(lambda: driver.state.remaining.tool_uses == 1)
        assert [tool.name for tool in driver.attempt.offered()] == ["replace_function"]
        await driver.press("f5")
        await driver.type("list_directory tests")
        await driver.press("enter")
        await driver.until(lambda: "nothing spent" in driver.text())
        assert driver.state.remaining.tool_uses == 1


async def test_budgets_are_always_in_sight(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        for key in ("f2", "f3", "f4", "f5", "f6", "f7", "f8"):
            await driver.press(key)
            first = driver.text().split("\n")[0]
            assert title_in_attempt(driver.attempt.task, driver.attempt.state.header) in first
            assert "16 left" in first
            assert "4 left ●●●●" in first
        assert driver.solve.query_one(BudgetBar).region.height == 1
