"""The tour: each card waits until its step is done, and nothing is saved."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from builders import build_services, build_task
from fakes import FakeClock, FakeRunner
from screens.driving import LARGE, SMALL, Driver, driving

from gistpoint.core.outcomes import RunStatus
from gistpoint.tui.screens.tour import STEPS, TourScreen, with_keys


def card(driver: Driver) -> str:
    found = driver.screen.query("#tour-card")
    return str(found.first().border_title) if found else ""


async def test_each_card_waits_for_its_step_and_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock, runner=FakeRunner({}, status=RunStatus.TIMED_OUT))
    build_task(services.locations.tasks)
    async with driving(services, clock, size=SMALL) as driver:
        await driver.until(lambda: "First time here? T" in driver.text())
        await driver.press("T")
        await driver.until_screen("TourScreen")

        async def at(number: int) -> None:
            await driver.until(lambda: f"Tour {number} of {len(STEPS)}" in card(driver))

        await at(1)
        assert "press F3" in driver.text()
        await driver.press("f3")
        await at(2)
        await driver.console("read_file sporvei/seats.py")
        await at(3)
        await driver.console("search_code seat")
        await at(4)
        await driver.press("f6")
        await driver.type("x")
        await at(5)
        clock.advance(1_000)
        await driver.press("f9")
        await driver.until(lambda: "1 submission" in driver.text())
        await driver.press("enter")
        await at(6)
        screen = driver.screen
        assert isinstance(screen, TourScreen)
        await driver.press("f10")
        await driver.until(lambda: driver.screen is not screen)
        await driver.press("tab", "tab", "enter")
        await driver.until(lambda: driver.state.pause is not None)
        clock.advance(5_000)
        await driver.press("enter")
        await driver.until(lambda: driver.state.pause is None and driver.screen is screen)
        await at(7)
        await driver.press("ctrl+l")
        await driver.until_screen("MessageDialog")
        assert "That was the tour" in driver.text()
        await driver.press("escape")
        await driver.until_screen("HomeScreen")
        await driver.until(lambda: "First time here? T" not in driver.text())
    assert list(services.attempts.summaries()) == []
    assert list(tmp_path.glob("gistpoint-tour-*")) == []


async def test_one_key_ends_it_and_the_cards_name_the_keys_of_the_user(tmp_path: Path) -> None:
    assert "press g." in with_keys(STEPS[0].words, {"pane.files": "g,alt+2"})
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "First time here? T" in driver.text())
        await driver.press("T")
        await driver.until_screen("TourScreen")
        await driver.until(lambda: "▸ Read the brief" in driver.text() and "· Leave" in driver.text())
        assert "Ctrl+L ends it" in driver.text()
        await driver.until(lambda: "Ctrl+L End the tour" in driver.text())
        assert "Esc" not in driver.text(), "one key ends it, and the card names the same one as the footer"
        await driver.press("S")
        await driver.until(lambda: "Esc goes back" in driver.text() and "Esc Back" in driver.text())
        await driver.press("escape", "escape")
        assert type(driver.screen).__name__ == "TourScreen"
        await driver.press("ctrl+l")
        await driver.until_screen("HomeScreen")
        await driver.until(lambda: "First time here? T" not in driver.text())
    assert list(services.attempts.summaries()) == []


async def test_the_tour_takes_few_rows_and_never_asks_whether_somebody_works(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "First time here? T" in driver.text())
        await driver.press("T")
        await driver.until_screen("TourScreen")
        await driver.until(lambda: "▸ Read the brief" in driver.text())
        card = driver.screen.query_one("#tour-card")
        assert (card.region.width, card.region.height) == (LARGE[0], 4)
        assert driver.screen.query_one("#work").region.width == LARGE[0]
        clock.advance(3_600_000)
        driver.solve._second()
        await driver.pilot.pause()
        assert "Were you working?" not in driver.text()
        assert type(driver.screen).__name__ == "TourScreen", "nothing is covered"
