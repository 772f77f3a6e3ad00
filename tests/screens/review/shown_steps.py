"""Reads the rows that the step view draws and compares them with the step's text fields."""

from __future__ import annotations

from itertools import count

from screens.review.reviewing import Reviewing

from gistpoint.core.text import visible
from gistpoint.sessions.records.model import CutText, Step, TextScope, parts_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.tui.screens.review.step_list import EVERY
from gistpoint.tui.screens.review.step_view import StepView

MOST = 300_000
"""The maximum length of a compared string; scrolling through a longer one takes minutes."""


def rows_of(view: StepView) -> list[str]:
    """Return the lines that the view draws, with every row scrolled into view and rendered."""
    lines: dict[int, str] = {}
    height = max(1, view.sight.height)
    for top in range(0, len(view.rows), height):
        view.scroll_to(y=top, animate=False, force=True, immediate=True)
        first = view.scroll_offset.y
        for y in range(max(0, top - first), height):
            if first + y >= len(view.rows):
                break
            line, start, end = view.rows.at(first + y)
            drawn = view.render_line(y).text[view.gutter_width() :]
            lines[line] = lines.get(line, "") + drawn[: _length(view, line, start, end)]
    return [lines[n] for n in sorted(lines)]


def _length(view: StepView, line: int, start: int, end: int) -> int:
    return len(in_cells(view.lines[line][start:end]))


def in_cells(raw: str) -> str:
    """Return text as the screen should show it: glyphs for control characters, spaces for tabs."""
    if "\t" not in raw:
        return visible(raw)
    from rich.cells import cell_len

    shown, used = "", 0
    for character in visible(raw):
        part = " " * (4 - used % 4) if character == "\t" else character
        shown += part
        used += 1 if character == "\ufe0f" else cell_len(part)
    return shown


def texts_of(step: Step, document: RunDocument) -> list[str]:
    """Return every string of the step that a reader should see."""
    found = [_once(step, number, text) if scope is TextScope.CALL else text for scope, number, text in parts_of(step)
             if scope is not TextScope.DIFF]  # fmt: skip
    return [
        "".join(document.full_text(text)) if isinstance(text, CutText) else text for text in found if text
    ]


def _once(step: Step, number: int, text: str) -> str:
    """Return the text of a call, without its only argument if the step quotes that elsewhere."""
    values = list((step.calls[number].parsed or {}).values())
    quoted = f"\n{step.thought}\n{step.text}\n"
    return (
        values[0]
        if len(values) == 1 and isinstance(values[0], str) and f"\n{values[0]}\n" in quoted
        else text
    )


async def check_steps(driver: Reviewing, most: int | None = None) -> int:
    """Unfold each step of a run, require its strings on the screen, and return the number of strings.

    Strings of more than `MOST` characters are left out. With `most`, only this many steps are checked.
    """
    compared = 0
    driver.review.steps.action_list(EVERY)
    driver.review.steps.cursor = 0
    for index in count():
        await driver.until(
            lambda index=index: driver.review.run.step is not None and driver.review.run.step.index == index
        )
        screen = driver.review
        step, document = screen.run.step, screen.run.loader.document
        assert step is not None
        assert document is not None
        texts = [text for text in texts_of(step, document) if len(text) <= MOST]
        view = screen.step_page
        if view.composed.folded:
            screen.step_page.unfold()
            await driver.until(lambda: not driver.review.step_page.composed.folded)
        if not view.wrap:
            view.wrap = True
            await driver.pilot.pause()
        shown = "\n".join(rows_of(view))
        for text in texts:
            expected = "\n".join(in_cells(line) for line in text.rstrip("\n").split("\n"))
            assert expected in shown, f"step {index + 1}: {expected[:300]!r}"
            compared += 1
        if index + 1 == most or (document.finished and index + 1 >= document.step_count):
            return compared
        screen.steps.action_move(1)
    raise AssertionError("unreachable")
