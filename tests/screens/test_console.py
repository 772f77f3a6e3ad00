"""The console parses typed text, asks about unclear lines, and makes the same calls as a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples import at_sizes
from screens.driving import LARGE, SMALL, solving

from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode

DISCOUNT = {"function_name": "discount", "file_path": "shop/prices.py"}


@pytest.mark.parametrize(
    "line",
    [
        "read_function shop/prices.py discount",
        "read_function shop/prices.py::discount",
        "read_function file_path=shop/prices.py function_name=discount",
    ],
)
async def test_what_is_sent_is_the_call_that_a_model_makes(tmp_path: Path, line: str) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("f5")
        await driver.type(line)
        assert "read_function discount shop/prices.py  costs 1 tool use, leaves 15" in driver.text()
        await driver.press("enter")
        await driver.until(lambda: driver.state.calls and driver.state.pending is None)
        (call,) = driver.state.calls
        assert (call.tool, call.arguments, call.refused) == ("read_function", DISCOUNT, False)
        assert driver.state.remaining.tool_uses == 15
        await driver.press("up")
        assert driver.solve.console.line.value == "read_function discount shop/prices.py"


@pytest.mark.parametrize("size", at_sizes(SMALL, LARGE))
async def test_a_question_costs_nothing_and_enter_takes_what_it_suggests(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with solving(tmp_path, size=size) as driver:
        await driver.console("list_file_functions shop/prices.py")
        await driver.press("f5")
        await driver.type("read_function total")
        await driver.press("enter")
        await driver.until(lambda: "nothing spent" in driver.text())
        line = driver.solve.console.line
        assert line.value == "read_function Basket.total shop/prices.py"
        assert "Enter calls this: costs 1 tool use, leaves 14" in driver.text()
        assert driver.state.remaining.tool_uses == 15
        await driver.press("enter")
        await driver.until(lambda: driver.state.remaining.tool_uses == 14)
        await driver.until(lambda: driver.state.pending is None)
        call = driver.state.calls[-1]
        assert call.arguments == {"function_name": "Basket.total", "file_path": "shop/prices.py"}
        assert not call.refused
        await driver.until(lambda: driver.state.affordances.get("question") == 1)


NO_PATTERN = "✘ not a regular expression, costs 1 tool use, leaves 15: missing )"


async def test_a_suggestion_can_be_changed_or_thrown_away(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        line = driver.solve.console.line
        await driver.press("f5")
        await driver.type("read_fil README.md")
        await driver.press("enter")
        await driver.until(lambda: line.value == "read_file README.md")
        await driver.press("backspace")
        await driver.until(lambda: "nothing spent" not in driver.text())
        assert "read_file file_path" in driver.text()
        await driver.press("escape")
        assert line.value == ""
        await driver.type("read_function one two three")
        await driver.press("enter")
        await driver.until(lambda: "nothing spent: Too many words" in driver.text())
        assert line.value == "read_function one two three"
        assert driver.state.calls == ()


async def test_a_tool_that_can_t_be_called_now_is_not_charged_from_any_pane(tmp_path: Path) -> None:
    async with solving(tmp_path, budgets=Budgets(2, 1)) as driver:
        driver.attempt.call("list_directory", {})
        await driver.press("f3")
        await driver.until(lambda: "shop/" in driver.text())
        await driver.press("down")
        for _ in range(4):
            await driver.press("enter")
            await driver.until(lambda: "the final one, and nothing was" in driver.text())
        assert len(driver.state.calls) == 1
        assert (driver.state.remaining.tool_uses, driver.state.ended) == (1, False)


async def test_a_misspelt_submission_is_a_question_like_any_other(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, budgets=Budgets(1, 1)) as driver:
        await driver.press("f5")
        for typed in ("replace_functoin discount shop/prices.py", "read_file README.md"):
            await driver.type(typed)
            await driver.press("enter")
            await driver.until(lambda: "nothing spent: There is no tool" in driver.text())
            await driver.press("escape")
        assert driver.state.calls == ()


async def test_an_invalid_pattern_is_reported_before_it_costs_and_is_found_as_text(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("S")
        await driver.type("total(")
        await driver.until(lambda: NO_PATTERN in driver.text())
        assert "Alt+R As text" in driver.text()
        line = driver.solve.console.line
        for typed in ("total\\(", "total(", "total\\("):
            await driver.press("alt+r")
            await driver.until(lambda typed=typed: line.value == typed)
        await driver.until(lambda: "✘" not in driver.text())
        assert driver.state.calls == ()
        await driver.press("enter")
        await driver.until(lambda: driver.state.calls and driver.state.pending is None)
        assert driver.state.calls[0].arguments == {"pattern": "total\\("}
        assert not driver.state.calls[0].refused


async def test_a_pattern_that_is_none_can_be_sent_and_costs_what_it_costs_a_model(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("f5")
        await driver.type("search_code total(")
        await driver.until(lambda: NO_PATTERN in driver.text())
        await driver.press("enter")
        await driver.until(lambda: driver.state.calls and driver.state.pending is None)
        assert driver.state.calls[0].refused
        assert driver.state.remaining.tool_uses == 15
