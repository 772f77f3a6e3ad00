"""Finds the records of an indented array by fixed strings, with SIMD, as long as lines have the usual form.

It finds the same records as the scanner's expression, which works line by line. A chunk is accepted only if
all its lines at the records' indent close one record or open the next, which two counts verify.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob
from gistpoint.sessions.records.model import Json

Place: TypeAlias = tuple[int, int, dict[str, Json]]
"""The start and the end of a record, and its light keys."""
_NO_VALUE: tuple[int, str, Json] = (sys.maxsize, "", None)
_VALUE = re.compile(rb' ?(?:"([^"\\\n]*)"|(-?\d{1,18}))')


class Indentation:
    """The lines of an indented array.

    `indent` is the whitespace before a record, `keys` the whitespace before its keys; `names` are the light
    keys.
    """

    def __init__(self, indent: str, keys: str, names: Sequence[str]) -> None:
        self.outer = indent[: 2 * len(indent) - len(keys)] if 2 * len(indent) > len(keys) else ""
        """The whitespace before the bracket that closes the array."""
        line = f"\n{indent}".encode()
        self.line, self.deeper = line, line + indent[:1].encode()
        self.close, self.open = line + b"}", line + b"{"
        self.border = self.close + b"," + self.open
        self.end = f"\n{self.outer}]".encode()
        self.keys = [(name, f'\n{keys}"{name}":'.encode()) for name in names]


class PlainRecords:
    """The records of an array from the line break at `at`, up to the first record that is in doubt.

    The text up to `end` is read a chunk at a time; a record is in doubt if it is longer than a chunk, or if a
    line of another form is in or before it.
    """

    def __init__(self, blob: Blob, at: int, end: int, indentation: Indentation) -> None:
        self._blob, self._end, self._layout = blob, end, indentation
        self.at = at
        """The line break before the first record that is not found yet."""

    def __iter__(self) -> Iterator[Place]:
        """Yield the records."""
        while self._end - self.at >= limits.CHUNK:
            text = self._blob.read(self.at, limits.CHUNK)
            found = _places(text, self.at, self._layout)
            if not found:
                return
            yield from found
            self.at = found[-1][1] + 1


def _places(text: bytes, at: int, indentation: Indentation) -> list[Place]:
    """Return the whole records in the text at offset `at`; none if a line is in doubt."""
    import stringzilla  # pyright: ignore[reportMissingImports]

    cut = text.rfind(indentation.border)
    if cut < 0 or not text.startswith(indentation.open):
        return []
    text = text[: cut + len(indentation.close)]
    pieces = stringzilla.Str(text)[:cut].split(indentation.border)
    lines = stringzilla.count(text, indentation.line) - stringzilla.count(text, indentation.deeper)
    if lines != 2 * len(pieces) or stringzilla.find(text, indentation.end) >= 0:
        return []
    values = iter(_light_values(text, indentation))
    place, name, value = next(values, _NO_VALUE)
    found: list[Place] = []
    start = 0
    for piece in pieces:
        if text[start + len(indentation.open)] in b"}]":
            break
        closing = start + len(piece) + (len(indentation.open) if found else 0)
        fields = dict[str, Json]()
        while place < closing:
            fields[name] = value
            place, name, value = next(values, _NO_VALUE)
        found.append((at + start + len(indentation.line), at + closing + len(indentation.close), fields))
        start = closing + len(indentation.close) + 1
    return found


def _light_values(text: bytes, indentation: Indentation) -> list[tuple[int, str, Json]]:
    """Return the position, name and value of each light key, in order."""
    import stringzilla  # pyright: ignore[reportMissingImports]

    find, found = stringzilla.find, list[tuple[int, str, Json]]()
    for name, key in indentation.keys:
        at = find(text, key)
        while at >= 0:
            value = _VALUE.match(text, at + len(key))
            if value is not None:
                found.append((at, name, value[1].decode("latin-1") if value[2] is None else int(value[2])))
            at = find(text, key, at + len(key))
    return sorted(found)
