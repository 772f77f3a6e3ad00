"""Makes text from outside safe for display.

Text is stored raw; every display of it goes through `visible`, which maps code points one to one, so that
ranges of the raw text are the same on the screen.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ZERO_WIDTH = (0x00AD, 0x180E, 0x200B, 0x200C, 0x200D, *range(0x2060, 0x2066), *range(0x206A, 0x2070), 0xFEFF)
_TAGS = (*range(0xE0000, 0xE0080), *range(0xFFF9, 0xFFFC))
_BLANK = (
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0),
    *range(0xFE00, 0xFE0E),
    *range(0xE0080, 0xE1000),
    *(*range(0x13430, 0x13456), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B)),
)
"""Characters that programs may leave out when they draw text (Unicode's `Default_Ignorable_Code_Point`), or
that control how other characters are drawn. Text and emoji styles (U+FE0E, U+FE0F) stay.
"""

_GLYPHS: dict[int, int] = {
    **{code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0x2426),
    **dict.fromkeys(_BIDI, ord("⇄")),
    **dict.fromkeys(_ZERO_WIDTH, ord("·")),
    **dict.fromkeys(_TAGS, 0xFFFD),
    **dict.fromkeys(_BLANK, ord("·")),
    0x2028: 0x2424,
    0x2029: 0x2424,
    **dict.fromkeys(range(0xD800, 0xE000), 0xFFFD),
}
_ONE_LINE = {**_GLYPHS, 0x0A: 0x240A, 0x09: 0x2409}


def visible(text: str) -> str:
    """Return `text` with control, bidirectional, invisible and surrogate characters as visible glyphs.

    Newlines and tabs stay. Every other code point maps to exactly one, so lengths and ranges agree.
    """
    return text if is_ordinary(text) else text.translate(_GLYPHS)


def visible_line(text: str) -> str:
    """Return `text` as one line: like `visible`, with newlines and tabs also as glyphs."""
    return text if is_ordinary(text) else text.translate(_ONE_LINE)


_ORDINARY = re.compile("[ -~\u00a1-\u00ac\u00ae-\u017f\u2010-\u2027\u2030-\u205e\u2190-\u25ff]*")
"""Matches text of frequent characters that are drawn unchanged, which need no further examination."""


def is_ordinary(text: str) -> bool:
    """Return whether text certainly consists of one line of visible characters; False if in doubt."""
    return _ORDINARY.fullmatch(text) is not None


_MARKDOWN = re.compile(r"[\\`*_\[\]<>#&|!~$^{}@]|^[-+=:](?=\s|[-+=:]|$)")
_NUMBERED = re.compile(r"^([0-9]{1,9})([.)])")


def markdown_line(text: str) -> str:
    """Return `text` as one line of Markdown whose markup is escaped, even if it is converted to LaTeX.

    It escapes what CommonMark, GitHub and Pandoc read as markup: HTML, links, math, citations and attributes,
    and, at the beginning of the line, lists, headings and the bounds of metadata. Outer spaces are left out,
    because they could be markup, too.
    """
    line = _MARKDOWN.sub(r"\\\g<0>", visible_line(text).strip(" "))
    return _NUMBERED.sub(r"\1\\\2", line)


def plural(number: int, one: str, several: str = "") -> str:
    """Return a number with its noun: `1 task`, `2 tasks`; `several` is an irregular plural."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def failing_in_words(failing: int, total: int | None = None) -> str:
    """Return how many tests fail, of `total` if given: `1 test fails`, `3 of 40 tests fail`."""
    of = "" if total is None else f" of {total:,}"
    noun = "test" if (failing if total is None else total) == 1 else "tests"
    return f"{failing:,}{of} {noun} {'fails' if failing == 1 else 'fail'}"


_MOST_DIGITS = 19
"""The number of digits of a 64-bit number; `int` raises `ValueError` for several thousand digits."""


def whole_number(text: str) -> int | None:
    """Return the number in a string from outside; None unless it consists of 1 to 19 digits from 0 to 9.

    `int` reads digits of every script, and `str.isdigit` is true for strings that `int` rejects, such as
    `1²`.
    """
    are_digits = text.isascii() and text.isdecimal()
    return int(text) if are_digits and len(text) <= _MOST_DIGITS else None


def shortened(text: str, characters: int) -> str:
    """Return `text`, with its middle replaced by an ellipsis if it is too long: `abc…xyz`."""
    if len(text) <= characters:
        return text
    tail = characters // 3
    return f"{text[: characters - tail - 1]}…{text[len(text) - tail :]}"


def bounded(text: str, characters: int, *, what: str = "text") -> str:
    """Return `text`; if it is too long, a line with the number of characters left out replaces the middle."""
    return text if len(text) <= characters else bounded_pieces((text,), characters, what=what)


def bounded_pieces(pieces: Iterable[str], characters: int, *, what: str = "text") -> str:
    """Return text that comes in pieces, shortened as by `bounded`, without keeping all of it in memory."""
    ends = ends_of(pieces, characters)
    if not ends.left_out:
        return ends.head
    return f"{ends.head}\n[... {ends.left_out} characters of this {what} left out ...]\n{ends.tail}"


class TextEnds(NamedTuple):
    """The beginning of a string, the number of characters left out after it, and its end.

    A string of which nothing is left out is entirely in `head`.
    """

    head: str
    left_out: int = 0
    tail: str = ""


def ends_of(pieces: Iterable[str], characters: int) -> TextEnds:
    """Return the ends of text that comes in pieces, together at most `characters` long.

    Only these ends and a piece are in memory at once. Two thirds of the characters are from the beginning.
    """
    head_size = characters * 2 // 3
    tail_size = characters - head_size
    begun, begun_size, total, tail = list[str](), 0, 0, ""
    for piece in pieces:
        total += len(piece)
        if begun_size <= characters:
            begun.append(piece)
            begun_size += len(piece)
        tail = (tail + piece)[-tail_size:] if tail_size else ""
    whole = "".join(begun)
    if total <= characters:
        return TextEnds(whole)
    return TextEnds(whole[:head_size], total - head_size - len(tail), tail)


_ERROR_LINES = 3


def last_lines(message: str) -> str:
    """Return the last three lines of pytest's error message; only lines marked `E`, if there are any."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    marked = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return "\n".join((marked or lines)[-_ERROR_LINES:])
