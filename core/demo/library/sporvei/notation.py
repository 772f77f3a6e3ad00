"""The plain-text notation that networks and timetables are written in, and the names that stand in it."""

import unicodedata
from collections.abc import Callable, Iterator
from functools import wraps
from typing import TypeVar

Target = TypeVar("Target")

_LETTERS = str.maketrans({"ø": "o", "æ": "ae", "đ": "d", "ł": "l", "-": " ", "’": "", "'": ""})


class NotationError(ValueError):
    """Text that does not follow the notation."""


def numbered(read: Callable[[Target, list[str]], None]) -> Callable[[Target, int, list[str]], None]:
    """Turn a reader of fields into one that is also given their line number, which its errors then carry."""

    @wraps(read)
    def reading(target: Target, line: int, fields: list[str]) -> None:
        try:
            read(target, fields)
        except (ValueError, LookupError) as error:
            raise NotationError(f"line {line}: {error}") from error

    return reading


def split_fields(line: str) -> list[str]:
    """Split a line at white space into fields; "double quotes" keep one together, # starts a comment."""
    fields: list[str] = []
    current: str | None = None
    quoted = False
    for character in line:
        if character == '"':
            quoted = not quoted
            current = current or ""
        elif quoted:
            current = (current or "") + character
        elif character == "#":
            break
        elif character.isspace():
            if current is not None:
                fields.append(current)
            current = None
        else:
            current = (current or "") + character
    if quoted:
        raise NotationError(f"a quote is never closed: [{line.strip()}]")
    if current is not None:
        fields.append(current)
    return fields


def lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of every line that has any."""
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            fields = split_fields(line)
        except NotationError as error:
            raise NotationError(f"line {number}: {error}") from error
        if fields:
            yield number, fields


def fold(name: str) -> str:
    """Reduce a name to what people type for it: lower case, no accents, single spaces.

    `Mjølfjell`, `MJOLFJELL` and `mjolfjell` fold alike, and so do `Kærvik-Øst` and `kaervik  ost`.
    """
    lowered = name.casefold().translate(_LETTERS)
    decomposed = unicodedata.normalize("NFKD", lowered)
    plain = "".join(character for character in decomposed if not unicodedata.combining(character))
    return " ".join(plain.split())


def cell_width(text: str) -> int:
    """Count the terminal cells that a text takes: none for a combining mark, two for a wide character."""
    width = 0
    for character in text:
        if unicodedata.combining(character):
            continue
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return width


def pad(text: str, width: int, align: str = "<") -> str:
    """Fill a text with spaces to `width` cells, on its right for `<` and on its left for `>`."""
    filling = " " * (width - cell_width(text))
    match align:
        case "<":
            return text + filling
        case ">":
            return filling + text
        case _:
            raise ValueError(f"align must be [<] or [>], not [{align}]")
