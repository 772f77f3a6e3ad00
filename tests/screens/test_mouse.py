"""What the mouse alone can do, and what stays visible below it."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import build_services, build_task
from examples import at_sizes
from fakes import FakeClock
from screens.driving import LARGE, SMALL, Driver, driving, solving
from screens.review.reviewing import Reviewing
from screens.validate.validating import make_tasks, validating

from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.annotations.validations import TaskVerdict


def place_of(driver: Driver | Reviewing, words: str, nth: int = 0) -> tuple[int, int]:
    """Return the column and row of words on the screen."""
    rows = enumerate(driver.text().split("\n"))
    return [(line.index(words), row) for row, line in rows if words in line][nth]


async def click(driver: Driver | Reviewing, words: str, nth: int = 0) -> None:
    """Click words on the screen."""
    await driver.until(lambda: words in driver.text())
    await driver.pilot.click(offset=place_of(driver, words, nth))
    await driver.pilot.pause()


def known(driver: Driver) -> set[str]:
    """Return the folders and files that results have shown."""
    return {*driver.state.knowledge.listed, *driver.state.knowledge.files}


@pytest.mark.parametrize("size", at_sizes(LARGE, SMALL))
async def test_a_file_is_read_and_a_function_opened_in_the_editor(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=size) as driver:
        await click(driver, "F3 Files")
        for words, read in (("○ /", ""), ("○ shop/", "shop"), ("○ prices.py", "shop/prices.py")):
            await click(driver, words)
            assert read not in known(driver), "one click only selects"
            await click(driver, words)
            await driver.until(lambda read=read: read in known(driver))
        await driver.until(lambda: "def discount" in driver.text())
        await click(driver, "def discount")
        await click(driver, "F6 Editor")
        await driver.until(lambda: driver.solve.editor.buffer == "shop/prices.py::discount")
        assert driver.solve.focused is driver.solve.editor.editor


async def test_the_editor_stays_empty_while_no_function_is_meant(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        driver.solve.code.view.go_to(1)
        await driver.press("f6")
        await driver.until(lambda: "press e or F6" in driver.text())
        assert not driver.solve.editor.buffer


async def test_the_editor_keeps_its_function_wherever_the_cursor_of_the_code_is(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        lines = driver.solve.code.view.lines
        for words in ("def discount", "def add"):
            driver.solve.code.view.go_to(next(n for n, line in enumerate(lines, 1) if words in line))
            await driver.press("f6")
            await driver.until(lambda: driver.solve.editor.buffer == "shop/prices.py::discount")
            await driver.press("f4")


async def test_nothing_pops_up_over_the_text_below_the_mouse(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("list_directory ''")
        for pane in ("f2", "f3", "f4", "f6", "f7", "f8"):
            await driver.press(pane)
        large = [widget for widget in driver.solve.query("*") if widget.tooltip and widget.size.height > 1]
        assert large == []


@pytest.mark.parametrize("size", at_sizes(LARGE, SMALL))
async def test_every_verdict_on_a_task_can_be_clicked(tmp_path: Path, size: tuple[int, int]) -> None:
    services, tasks = make_tasks(tmp_path, 1)
    async with validating(services, tasks, size=size) as driver:
        await driver.shows(tasks[0].id)
        for number, verdict in enumerate(TaskVerdict, 1):
            column = str(driver.screen.verdict_line.content).index(f"{number} ")
            await driver.pilot.click(driver.screen.verdict_line, offset=(column + 2, 0))
            await driver.until(
                lambda verdict=verdict: (
                    driver.said.verdict is not None and driver.said.verdict.verdict is verdict
                )
            )


@pytest.mark.parametrize("size", at_sizes(SMALL, LARGE))
async def test_the_help_is_closed_with_the_mouse(tmp_path: Path, size: tuple[int, int]) -> None:
    services = build_services(tmp_path)
    build_task(services.locations.tasks)
    async with driving(services, FakeClock(), size=size) as driver:
        await driver.until_screen("HomeScreen")
        await click(driver, "F1 Help")
        await driver.until_screen("HelpScreen")
        await driver.until(lambda: "Home" in driver.text())
        await driver.pilot.click(offset=(size[0] // 2, size[1] // 2))
        await driver.until_screen("HelpScreen")
        await click(driver, "Esc closes")
        await driver.until_screen("HomeScreen")
