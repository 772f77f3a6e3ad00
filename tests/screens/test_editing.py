"""The editor on the solve screen: real keys, and the code's state in the frame."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from builders import build_services
from examples import at_sizes
from screens.driving import LARGE, SMALL, solving

from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.tasks.model import Mode


@pytest.mark.parametrize("size", at_sizes(SMALL, LARGE))
async def test_the_frame_shows_the_state_of_the_code(tmp_path: Path, size: tuple[int, int]) -> None:
    async with solving(tmp_path, size=size) as driver:
        await driver.press("f6", "ctrl+end", "up", "end", "enter")
        await driver.until(lambda: "✔ parses" in driver.text())
        assert "─ F6 discount ─" in driver.text()
        await driver.type("return (price")
        await driver.until(lambda: "✘ line 4: '(' was never closed" in driver.text())
        assert "+1 −0" in driver.text()
        await driver.press("ctrl+underscore")
        await driver.until(lambda: "✔ parses" in driver.text())
        assert driver.solve.editor.code.endswith("    pass\n# return (price\n")
        await driver.press("ctrl+z", "ctrl+z", "ctrl+z", "alt+d")
        await driver.until(lambda: "diff against the original" in driver.text())


async def test_lines_have_the_numbers_of_the_file_once_it_was_shown(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        await driver.press("f6")
        await driver.until(lambda: "✔ parses" in driver.text())
        await driver.console("read_function total shop/prices.py")
        await driver.console("read_function discount shop/prices.py")
        await driver.press("f6")
        editor = driver.solve.editor
        first = editor.first_line_of(editor.buffer)
        await driver.until(lambda: editor.editor.line_number_start == first)
        await driver.press("ctrl+home")
        await driver.type("(")
        await driver.until(lambda: f"✘ line {first}" in driver.text())


async def test_a_method_stands_as_it_does_in_its_file_and_its_class_shows_it(tmp_path: Path) -> None:
    task = demo_task("seats-together", build_services(tmp_path).locations.tasks)
    async with solving(tmp_path, size=LARGE, task=task) as driver:
        await driver.press("f6")
        editor = driver.solve.editor
        await driver.until(lambda: editor.buffer == "sporvei/seats.py::SeatMap.find_block")
        begun = editor.code
        assert begun.startswith("    def find_block(")
        assert not editor.changed
        await driver.console("read_function SeatMap sporvei/seats.py")
        await driver.press("f4")
        view = driver.solve.code.view
        line = next(n for n, text in enumerate(view.lines, view.first_line) if "def find_block(" in text)
        view.go_to(line)
        await driver.press("e")
        await driver.until(lambda: editor.editor.has_focus and editor.editor.line_number_start == line)
        assert (editor.code, editor.changed) == (begun, False)
        left = driver.state.remaining
        assert driver.solve.code.go_to("sporvei/seats.py::SeatMap.find_block")
        await driver.until(lambda: view.first_line == line)
        assert driver.state.remaining == left


@pytest.mark.parametrize(("editor", "count"), [("", 0), ("/no/such", 0), ("'", 0), ("false", 1), ("true", 1)])
async def test_an_external_editor_counts_as_used_only_if_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, editor: str, count: int
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editor)
    async with solving(tmp_path, size=SMALL) as driver:
        monkeypatch.setattr(type(driver.app), "suspend", lambda app: nullcontext())
        await driver.press("f6")
        await driver.until(lambda: bool(driver.solve.editor.buffer))
        driver.solve.editor.action_external_editor()
        if editor != "true":
            await driver.until_screen("MessageDialog")
            await driver.press("escape")
        await driver.press("alt+d")
        await driver.until(lambda: bool(driver.state.affordances.get("diff")))
        assert driver.state.affordances.get("external_editor", 0) == count


async def test_an_empty_editor_offers_no_key_that_needs_a_function(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.press("f6")
        await driver.until(lambda: "Nothing to edit yet" in driver.text())
        assert "Alt+" not in driver.text().split("\n")[-1]
        await driver.press("alt+d", "alt+v")
        await driver.console("read_function discount shop/prices.py")
        await driver.press("f4", "e")
        await driver.until(lambda: driver.solve.editor.buffer == "shop/prices.py::discount")
        keys = driver.text().split("\n")[-1]
        assert "Alt+V $EDITOR" in keys
        assert "Alt+D Changes" in keys
