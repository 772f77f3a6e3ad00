"""The contrast of all text on the screens in both of gistpoint's themes: WCAG 2.2, level AA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from contrast import inked
from fakes import FakeClock
from screens.driving import LARGE, driving, solving
from screens.review.reviewing import reviewing
from screens.review.test_reading import run  # noqa: F401  # a recorded run
from screens.settling import text_of
from screens.test_home import services_with_tasks
from screens.validate.validating import make_tasks, validating
from textual.app import App
from textual.pilot import Pilot

from gistpoint.core.tasks.model import Mode
from gistpoint.tui.themes import OWN


async def unreadable(app: App[Any], pilot: Pilot[Any]) -> str:
    """Return a line for each text on the current screen with too little contrast.

    The minimum is 4.5 for text and 3 for frames and bars.
    """
    found: set[str] = set()
    for theme in OWN:
        app.theme = theme.name
        await pilot.pause()
        texts = inked(app.export_screenshot())
        assert len(texts) > 20
        poor = (one for one in texts if one.ratio < one.needed)
        found |= {f"{theme.name} {one.ratio:.2f} {one.ink} on {one.ground} {one.text!r}" for one in poor}
    return "\n".join(sorted(found))


async def test_home(tmp_path: Path) -> None:
    clock = FakeClock()
    async with driving(services_with_tasks(tmp_path, clock), clock, size=LARGE) as driver:
        await driver.until(lambda: "discovery" in driver.text())
        assert await unreadable(driver.app, driver.pilot) == ""


@pytest.mark.parametrize(
    "variables", [{"NO_COLOR": "1"}, {"TERM": "xterm-16color", "COLORTERM": ""}], ids=["none", "16"]
)
async def test_focus_and_the_chosen_row_are_shown_by_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    clock = FakeClock()
    async with driving(services_with_tasks(tmp_path, clock), clock) as driver:
        await driver.until(lambda: "discovery" in driver.text())
        assert driver.text().count("┏") == 1
        row = next(strip for strip in driver.screen._compositor.render_strips() if "▸" in strip.text)
        chosen = [piece.style for piece in row if "discovery" in piece.text or "remove" in piece.text]
        assert chosen
        assert all(style is not None and style.reverse for style in chosen)


async def test_solve(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f4")
        driver.solve.code.view.go_to(13)
        await driver.press("e")
        await driver.console("search_code discount")
        await driver.press("f3")
        assert await unreadable(driver.app, driver.pilot) == ""


async def test_review(run: Path) -> None:  # noqa: F811
    async with reviewing(run, size=LARGE) as driver:
        await driver.until_read(0)
        await driver.until_surveyed()
        found = await unreadable(driver.app, driver.pilot)
        await driver.press("number_sign", "6", "enter")
        await driver.until_read(5)
        await driver.press("d")
        await driver.until(lambda: "len(values)" in text_of(driver.app))
        assert found + await unreadable(driver.app, driver.pilot) == ""


async def test_validate(tmp_path: Path) -> None:
    services, tasks = make_tasks(tmp_path)
    async with validating(services, tasks, size=LARGE) as driver:
        await driver.shows(tasks[0].id)
        found = await unreadable(driver.app, driver.pilot)
        await driver.press("f4")
        await driver.until(lambda: "+" in text_of(driver.app))
        assert found + await unreadable(driver.app, driver.pilot) == ""
