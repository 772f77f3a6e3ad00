"""No key costs a tool use before its price was shown and confirmed."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples import at_the_gate
from screens.driving import LARGE, Driver, solving
from screens.settling import send_keys

from gistpoint.core.tasks.model import Mode
from gistpoint.tui.possible import possible_now
from gistpoint.tui.screens.solve.panes import PANES


async def at(driver: Driver, pane: str) -> None:
    await driver.press("f4")
    await driver.solve.action_pane(pane)
    await driver.pilot.pause()
    if pane == "files":
        await driver.press("end")  # moves to a file


@pytest.mark.parametrize(("pane", "key"), [("code", "f"), ("files", "f"), ("code", "full_stop")])
async def test_a_key_that_costs_a_tool_use_shows_its_price_and_waits_for_a_second_press(
    tmp_path: Path, pane: str, key: str
) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        await at(driver, pane)
        left = driver.state.remaining.tool_uses
        await driver.press(key)
        await driver.until(lambda: f"costs 1 tool use, leaves {left - 1}" in driver.text())
        assert driver.state.remaining.tool_uses == left
        await driver.press(key)
        await driver.until(lambda: driver.state.remaining.tool_uses == left - 1)


async def test_letters_typed_without_looking_pay_nothing(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        await at(driver, "code")
        left = driver.state.remaining.tool_uses
        await driver.type("off fifth")
        assert driver.state.remaining.tool_uses == left


async def test_what_hides_a_price_takes_the_offer_back(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        await at(driver, "code")
        left = driver.state.remaining.tool_uses
        await driver.press("f", "full_stop", "f")
        assert driver.state.remaining.tool_uses == left
        await driver.press("f2", "f4", "f")
        assert driver.state.remaining.tool_uses == left


async def test_no_key_pressed_once_costs_anything_whose_price_is_not_in_sight(tmp_path: Path) -> None:
    ends, tried = {"attempt.leave", "app.quit"}, set[tuple[str, str]]()
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        solve = driver.solve
        for pane in ("code", "files", *at_the_gate(sorted(PANES.keys() - {"console", "code", "files"}))):
            await at(driver, pane)
            found = [entry for entry in possible_now(driver.screen) if not entry.moves]
            for key, where in [(entry.key, type(entry.node).__name__) for entry in found]:
                if key.id in ends or key.action.startswith("pane(") or (key.id, where) in tried:
                    continue
                tried.add((key.id, where))
                await at(driver, pane)
                calls = len(driver.state.calls)
                in_sight = "−1 tool use" in driver.text()
                await driver.press(key.keys.split(",")[0])
                await driver.until(lambda: driver.state.pending is None)
                assert len(driver.state.calls) == calls or in_sight, key.id
                while driver.screen is not solve:
                    driver.screen.dismiss(None)
                    await driver.pilot.pause()
    assert {"code.list", "files.list", "code.again", "code.definition"} <= {id for id, _ in tried}


async def test_enter_in_the_brief_leads_to_the_next_place_and_shows_its_price(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.press("enter")
        await driver.until(lambda: "Enter again opens it (costs 1 tool use, leaves 15)" in driver.text())
        assert driver.state.calls == ()
        await driver.press("end", "enter")  # the last line names a different place, which has its own price
        assert driver.state.calls == ()
        await driver.press("enter")
        await driver.until(lambda: len(driver.state.calls) == 1 and driver.state.pending is None)
        assert driver.state.calls[0].tool == "read_function"


async def test_enter_twice_at_once_in_the_brief_pays_nothing(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        send_keys(driver.app, "\n\n")
        await driver.until(lambda: "Enter again opens it" in driver.text())
        await driver.pilot.pause(0.2)
        assert driver.state.calls == ()
