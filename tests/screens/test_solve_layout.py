"""The solve screen by activity: reading and writing at four sizes (decision 127)."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import build_services, build_task
from examples import at_sizes
from screens.driving import LARGE, SMALL, Driver, solving
from textual import events

from gistpoint.core.tasks.model import Mode, Task
from gistpoint.tui.screens.solve.panes import EDITOR_COLUMNS
from gistpoint.tui.screens.solve.results_pane import ResultsPane

MIDDLE, HUGE = (120, 35), (200, 60)
SIZES = at_sizes(SMALL, MIDDLE, LARGE, HUGE)
LONG = "".join(
    f"def step_{number}(price, percent, count, reason=None, remark=None, origin=None, until=None, note={number}):\n"
    f'    """Return what step {number} leaves."""\n'
    f"    return price + {number}\n\n\n"
    for number in range(40)
)
"""A file longer than any pane, with lines that a narrow pane wraps."""


def long_task(root: Path) -> Task:
    return build_task(
        build_services(root).locations.tasks, Mode.DISCOVERY, extra_files={"shop/steps.py": LONG}
    )


def edge(driver: Driver) -> tuple[int, int]:
    """Return the line at the top of the code and the line with the cursor."""
    view = driver.solve.code.view
    return view.rows.at(view.scroll_offset.y)[0] + view.first_line, view.cursor_line


async def read_and_go(driver: Driver, line: int) -> None:
    await driver.console("read_file shop/steps.py")
    await driver.press("f4")
    await driver.until(lambda: driver.solve.code.view.has_focus)
    driver.solve.code.view.go_to(line)
    await driver.pilot.pause()


@pytest.mark.parametrize("size", SIZES)
async def test_reading_gives_the_code_its_width_and_writing_the_editor(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with solving(tmp_path, task=long_task(tmp_path), size=size) as driver:
        await read_and_go(driver, 101)
        code, files = driver.solve.code.region, driver.solve.query("#files")
        beside = files.first().region.width if files and files.first().display else 0
        assert code.width == size[0] - beside
        assert beside <= 30, "the files take what their rows need"
        rows, width = driver.solve.code.view.rows, driver.solve.code.view.size.width
        top, cursor = edge(driver)
        await driver.press("e")
        await driver.until(lambda: driver.solve.editor.is_mounted and driver.solve.editor.editor.has_focus)
        editor = driver.solve.editor.region
        assert editor.width == code.width
        assert editor.width >= (EDITOR_COLUMNS if size[0] >= 160 else size[0] - beside)
        assert driver.solve.editor.editor.scroll_offset.x == 0, "its indent is visible"
        assert str(driver.solve.editor.border_title).startswith("F6 ")
        await driver.press("f4")
        await driver.until(lambda: driver.solve.code.view.has_focus)
        assert driver.solve.code.view.size.width == width
        assert len(driver.solve.code.view.rows) == len(rows), "nothing was wrapped again"
        shown = driver.solve.code.view
        assert edge(driver)[1] == cursor
        assert shown.scroll_offset.y <= shown.cursor_row < shown.scroll_offset.y + shown.sight.height
        await driver.press("f7")
        await driver.until(lambda: driver.solve.results.calls.has_focus)
        await driver.press("f4")
        await driver.until(lambda: driver.solve.code.view.has_focus)
        assert edge(driver) == (top, cursor), "what one pane hid, its end shows again"


async def test_a_resize_keeps_the_line_at_the_top(tmp_path: Path) -> None:
    async with solving(tmp_path, task=long_task(tmp_path), size=LARGE) as driver:
        await read_and_go(driver, 101)
        before = edge(driver)
        await driver.pilot.resize_terminal(*SMALL)
        await driver.pilot.pause()
        assert edge(driver)[1] == before[1]
        await driver.pilot.resize_terminal(*LARGE)
        await driver.until(lambda: edge(driver) == before)


async def test_the_files_appear_when_the_terminal_becomes_wide_enough(tmp_path: Path) -> None:
    async with solving(tmp_path, task=long_task(tmp_path), size=SMALL) as driver:
        await driver.console("list_directory shop")
        await driver.press("f2")
        await driver.pilot.resize_terminal(*MIDDLE)
        await driver.until(lambda: "steps.py" in driver.text() and "F3 Files" in driver.text())
        files = driver.solve.query_one("#files")
        assert files.region.x == 0
        assert files.region.right == driver.solve.query_one("#divided").region.x
        await driver.pilot.resize_terminal(*SMALL)
        await driver.until(lambda: "steps.py" not in driver.text())
        await driver.pilot.resize_terminal(*MIDDLE)
        await driver.until(lambda: "steps.py" in driver.text())


async def test_the_function_in_the_editor_is_not_shown_twice(tmp_path: Path) -> None:
    async with solving(tmp_path, task=long_task(tmp_path), size=LARGE) as driver:
        await driver.console("read_function step_20 shop/steps.py")
        await driver.press("f4", "e")
        await driver.until(lambda: driver.solve.editor.is_mounted and driver.solve.editor.editor.has_focus)
        assert not driver.solve.code.is_on_screen
        assert driver.solve.editor.region.height > 35
        await driver.press("f4")
        await driver.until(lambda: driver.solve.code.is_on_screen)
        assert driver.solve.editor.is_on_screen, "one key puts the code above the editor"
        assert driver.solve.editor.region.height > driver.solve.code.region.height


@pytest.mark.parametrize("size", at_sizes(LARGE, HUGE))
async def test_one_key_puts_the_code_beside_the_editor(tmp_path: Path, size: tuple[int, int]) -> None:
    async with solving(tmp_path, task=long_task(tmp_path), size=size) as driver:
        await read_and_go(driver, 101)
        await driver.press("e")
        await driver.until(lambda: driver.solve.editor.is_mounted and driver.solve.editor.editor.has_focus)
        await driver.press("alt+vertical_line")
        await driver.until(lambda: driver.solve.code.region.y == driver.solve.editor.region.y)
        assert driver.solve.editor.region.width >= EDITOR_COLUMNS
        assert edge(driver)[1] == 101
        await driver.press("alt+vertical_line")
        await driver.until(lambda: driver.solve.code.region.y < driver.solve.editor.region.y)


async def test_a_read_is_one_line_of_the_results_until_a_key_unfolds_it(tmp_path: Path) -> None:
    async with solving(tmp_path, task=long_task(tmp_path), size=LARGE) as driver:
        await driver.console("search_code step_7")
        await driver.console("read_file shop/steps.py")
        await driver.console("read_function step_3 shop/steps.py")
        results = driver.solve.results
        await driver.until(lambda: "Read step_3 in shop/steps.py, 3 lines" in driver.text())
        assert "Read shop/steps.py, 200 lines" in driver.text()
        assert not results.answer.display
        assert results.region.height < 10, "the code has the height as well"
        await driver.press("f7", "o")
        await driver.until(lambda: results.answer.is_on_screen)
        assert "lines 16-18" in results.answer.text
        await driver.press("o", "up")
        await driver.until(lambda: results.folded and not results.answer.display)
        await driver.press("enter")
        await driver.until(lambda: driver.solve.code.view.has_focus)
        assert driver.solve.code.shown is not None
        assert driver.solve.code.shown.function == ""
        await driver.press("f7", "up")
        await driver.until(lambda: results.answer.is_on_screen)
        assert results.answer.parts, "the matches of a search are marked"
        assert driver.state.remaining.tool_uses == 13


async def test_the_answer_is_beside_the_list_from_its_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arranged = []
    resized = ResultsPane.on_resize

    def watched(pane: ResultsPane, event: events.Resize) -> None:
        arranged.append(pane.has_class("-side-by-side"))
        resized(pane, event)

    monkeypatch.setattr(ResultsPane, "on_resize", watched)
    async with solving(tmp_path, task=long_task(tmp_path), size=LARGE) as driver:
        await driver.console("search_code step_7")
        await driver.until(lambda: driver.solve.results.answer.is_on_screen)
        assert arranged
        assert all(arranged), "it does not jump there after it was drawn"


@pytest.mark.parametrize("size", at_sizes(MIDDLE, LARGE))
async def test_a_click_on_a_folded_line_and_on_a_pane(tmp_path: Path, size: tuple[int, int]) -> None:
    async with solving(tmp_path, task=long_task(tmp_path), size=size) as driver:
        await driver.console("read_file shop/steps.py")
        await driver.console("read_function step_3 shop/steps.py")
        calls = driver.solve.results.calls
        await driver.until(lambda: calls.is_on_screen)
        await driver.pilot.click(calls, offset=(8, 0))
        await driver.until(lambda: driver.solve.code.view.has_focus)
        await driver.until(lambda: driver.solve.code.shown and not driver.solve.code.shown.function)
        await driver.pilot.click("#known", offset=(2, 12))
        await driver.until(lambda: driver.solve.focused is driver.solve.query_one("#known"))
        assert driver.state.remaining.tool_uses == 14


@pytest.mark.parametrize("size", SIZES)
async def test_finding_editing_and_submitting_takes_seven_keys_besides_what_is_typed(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with solving(tmp_path, size=size) as driver:
        pressed = 0

        async def press(*keys: str) -> None:
            nonlocal pressed
            pressed += len(keys)
            await driver.press(*keys)

        await press("S")
        await driver.until(lambda: "Search the repository" in driver.text())
        await driver.type("discount")
        await press("enter", "enter", "enter")  # search, price, open
        await driver.until(lambda: driver.state.knowledge.files)
        await driver.until(lambda: driver.solve.code.view.has_focus)
        await press("e")
        await driver.until(lambda: driver.solve.editor.is_mounted and driver.solve.editor.editor.has_focus)
        await driver.type("return price - price * percent // 100")
        await press("f9")
        await driver.until_screen("ConfirmDialog")
        await press("enter")
        await driver.until_screen("SummaryScreen")
        assert pressed == 7
