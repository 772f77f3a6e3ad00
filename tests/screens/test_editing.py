"""The editor on the solve screen: real keys, and what the frame tells of the code."""

from __future__ import annotations

from pathlib import Path

import pytest
from screens.driving import LARGE, SMALL, solving


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_frame_tells_how_the_code_stands(tmp_path: Path, size: tuple[int, int]) -> None:
    async with solving(tmp_path, size=size) as driver:
        await driver.press("f6", "ctrl+end", "up", "end", "enter")
        await driver.until(lambda: "✔ parses" in driver.text())
        assert "─ discount ─" in driver.text()
        await driver.type("return (price")
        await driver.until(lambda: "✘ line 4: '(' was never closed" in driver.text())
        assert "+1 −0" in driver.text()
        await driver.press("ctrl+underscore")
        await driver.until(lambda: "✔ parses" in driver.text())
        assert driver.solve.editor.code.endswith("    pass\n# return (price\n")
        await driver.press("ctrl+z", "ctrl+z", "ctrl+z", "alt+d")
        await driver.until(lambda: "diff against the start" in driver.text())


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
        await driver.type("(")
        await driver.until(lambda: f"✘ line {first}" in driver.text())
