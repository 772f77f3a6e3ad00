"""Charts of block characters: labelled bars, sparklines and gauges, as pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content

from gistpoint.tui import signs
from gistpoint.tui.widgets.plain import plain_line

_EIGHTHS = signs.EIGHTHS_ACROSS
_LEVELS = signs.EIGHTHS_UP


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its name, its value, a label for the value, and a Textual style."""

    name: str
    value: float
    words: str
    style: str = "$primary"


def bars(rows: Sequence[Bar], width: int) -> Content:
    """Return bars below one another, in `width` cells and on one scale.

    The longest bar fills the space between names and values. A value above zero gets at least the thinnest
    block. Without space for bars, only names and values are drawn.
    """
    return Content("\n").join(
        Content.assemble(
            *(plain_line(text).stylize(style) if style else plain_line(text) for text, style in line)
        )
        for line in bar_lines(rows, width)
    )


def bar_lines(rows: Sequence[Bar], width: int) -> list[list[tuple[str, str]]]:
    """Return the lines of `bars`, each as a list of plain strings with their styles."""
    names = max((cell_len(row.name) for row in rows), default=0)
    words = max((len(row.words) for row in rows), default=0)
    room = max(0, width - names - words - 2)
    top = max((row.value for row in rows), default=0.0)
    return [
        [
            (f"{row.name}{' ' * (names - cell_len(row.name))} ", ""),
            (_bar(row.value, top, room), row.style),
            (f" {row.words}", "$foreground 60%"),
        ]
        for row in rows
    ]


def _bar(value: float, top: float, room: int) -> str:
    if value <= 0 or top <= 0 or not room:
        return ""
    eighths = max(1, round(value / top * room * 8))
    return signs.BLOCK * (eighths // 8) + (_EIGHTHS[eighths % 8 - 1] if eighths % 8 else "")


def sparkline(values: Sequence[float], *, top: float | None = None) -> str:
    """Return a block for each value, on a scale from 0 to `top` (by default the largest value)."""
    highest = top if top is not None else max(values, default=0.0)
    if highest <= 0:
        return _LEVELS[0] * len(values)
    return "".join(_LEVELS[min(7, max(0, round(min(value, highest) / highest * 7)))] for value in values)


def gauge(done: float, total: float, width: int) -> str:
    """Return a bar of `width` cells, filled in proportion; empty if total or width is not positive."""
    if total <= 0 or width <= 0:
        return ""
    full = min(width, max(0, round(done / total * width)))
    return signs.BLOCK * full + signs.SHADE * (width - full)
