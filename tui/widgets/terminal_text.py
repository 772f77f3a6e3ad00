"""Converts output with escape sequences to what a terminal would show. No sequence takes effect."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from gistpoint.core.text import whole_number

_PIECES = re.compile(
    r"\x1b\[(?P<parameters>[0-9;:?<=>]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)|\x1b(?![\[\]PX^_])[ -/]*[0-~]"
    r"|(?P<control>[\r\b])|(?P<text>[^\x1b\r\b]+)|\x1b",
    re.DOTALL,
)
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",)}


@dataclass(frozen=True, slots=True)
class TextStyle:
    """Colours and attributes set by escape sequences. Colours are in Textual's notation, empty for none."""

    colour: str = ""
    background: str = ""
    attributes: frozenset[str] = frozenset()

    def __str__(self) -> str:
        parts = [*sorted(self.attributes), self.colour]
        return " ".join(filter(None, [*parts, f"on {self.background}" if self.background else ""]))


@dataclass(frozen=True, slots=True)
class TerminalLine:
    """A line as a terminal shows it, with the styled ranges of its characters."""

    text: str
    looks: tuple[tuple[int, int, str], ...] = ()


@dataclass(slots=True)
class _Pen:
    look: TextStyle = field(default_factory=TextStyle)
    cells: list[tuple[str, TextStyle]] = field(default_factory=list)
    place: int = 0

    def write(self, text: str) -> None:
        new = [(character, self.look) for character in text]
        self.cells.extend([(" ", TextStyle())] * (self.place - len(self.cells)))
        self.cells[self.place : self.place + len(new)] = new
        self.place += len(new)

    def line(self) -> TerminalLine:
        looks: list[tuple[int, int, str]] = []
        start = 0
        for index in range(1, len(self.cells) + 1):
            if index == len(self.cells) or self.cells[index][1] != self.cells[start][1]:
                if style := str(self.cells[start][1]):
                    looks.append((start, index, style))
                start = index
        return TerminalLine("".join(character for character, _ in self.cells), tuple(looks))


_MOST_DIGITS = 5
MAX_COLUMN = 10_000
"""The last column to which the cursor can be moved."""


def terminal_lines(text: str) -> list[TerminalLine]:
    """Return the lines of text with its colours, and its movements and erasures within a line, applied.

    Movements between lines, titles, links and all other sequences are dropped. Other control characters are
    kept, and later drawn as glyphs.
    """
    lines: list[TerminalLine] = []
    pen = _Pen()
    for raw in text.split("\n"):
        raw = raw.removesuffix("\r")
        has_controls = "\x1b" in raw or "\r" in raw or "\b" in raw
        if not has_controls and pen.look == TextStyle():
            lines.append(TerminalLine(raw))
            continue
        pen.cells, pen.place = [], 0
        for piece in _PIECES.finditer(raw):
            _apply(pen, piece)
        lines.append(pen.line())
    return lines


def _apply(pen: _Pen, piece: re.Match[str]) -> None:
    if text := piece["text"]:
        pen.write(text)
    elif control := piece["control"]:
        pen.place = 0 if control == "\r" else max(0, pen.place - 1)
    elif final := piece["final"]:
        parameters = [
            [_number(part) for part in parameter.split(":")]
            for parameter in (piece["parameters"] or "").split(";")
        ]
        first = parameters[0][0]
        if final == "m":
            pen.look = _selected(pen.look, parameters)
        elif final == "K":
            _erase(pen, first)
        elif final == "C":
            pen.place = min(MAX_COLUMN, pen.place + max(1, first))
        elif final == "D":
            pen.place = max(0, pen.place - max(1, first))
        elif final == "G":
            pen.place = min(MAX_COLUMN, max(1, first)) - 1


def _number(text: str) -> int:
    """Return the number in a parameter; 0 if it is empty, which is the default, or not a sensible number."""
    return (whole_number(text) or 0) if len(text) <= _MOST_DIGITS else 0


def _erase(pen: _Pen, what: int) -> None:
    if what == 0:
        del pen.cells[pen.place :]
    elif what == 1:
        pen.cells[: pen.place] = [(" ", TextStyle())] * min(pen.place, len(pen.cells))
    else:
        pen.cells.clear()


def _selected(look: TextStyle, parameters: list[list[int]]) -> TextStyle:
    """Return the look after a sequence; a parameter is a number, perhaps with further parts after colons."""
    numbers = [number for number, *_ in parameters]
    index = 0
    while index < len(parameters):
        number, *parts = parameters[index]
        if number in (38, 48):
            if parts:
                colour = _extended_by_parts(parts)
            else:
                colour, index = _extended(numbers, index + 1)
            look = replace(look, colour=colour) if number == 38 else replace(look, background=colour)
        elif number == 4 and parts[:1] == [0]:  # `4:3` is a curly underline, and `4:0` is none
            look = _simple(look, 24)
        else:
            look = _simple(look, number)
        index += 1
    return look


def _simple(look: TextStyle, number: int) -> TextStyle:
    if number == 0:
        return TextStyle()
    if number in _ON:
        return replace(look, attributes=look.attributes | {_ON[number]})
    if number in _OFF:
        return replace(look, attributes=look.attributes - set(_OFF[number]))
    if number == 39:
        return replace(look, colour="")
    if number == 49:
        return replace(look, background="")
    bright = "bright_" if number >= 90 else ""
    if 30 <= number <= 37 or 90 <= number <= 97:
        return replace(look, colour=f"ansi_{bright}{_NAMES[number % 10]}")
    if 40 <= number <= 47 or 100 <= number <= 107:
        return replace(look, background=f"ansi_{bright}{_NAMES[number % 10]}")
    return look


def _extended(numbers: list[int], index: int) -> tuple[str, int]:
    """Return the colour that starts at `index`, after a 38 or 48, and the index of its last number."""
    kind = numbers[index] if index < len(numbers) else 0
    if kind == 5 and index + 1 < len(numbers):
        return _of_256(numbers[index + 1] & 255), index + 1
    if kind == 2 and index + 3 < len(numbers):
        red, green, blue = (n & 255 for n in numbers[index + 1 : index + 4])
        return f"rgb({red},{green},{blue})", index + 3
    return "", index


def _extended_by_parts(parts: list[int]) -> str:
    """Return the colour in the parts of a 38 or 48: `5:N`, `2:R:G:B` or the standard's `2:SPACE:R:G:B`."""
    has_space = len(parts) > 4 and parts[0] == 2
    return _extended([parts[0], *parts[2:]] if has_space else parts, 0)[0]


def _of_256(number: int) -> str:
    if number < 16:
        return f"ansi_{'bright_' if number > 7 else ''}{_NAMES[number % 8]}"
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return f"rgb({grey},{grey},{grey})"
    number -= 16
    red, green, blue = (0 if n == 0 else 55 + 40 * n for n in (number // 36, number // 6 % 6, number % 6))
    return f"rgb({red},{green},{blue})"
