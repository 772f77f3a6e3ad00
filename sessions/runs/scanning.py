"""Finds where the records of a JSON text begin and end, in one pass over its bytes, holding one chunk at a time.

The text is looked at as Latin-1, so that an offset in it is an offset in the file; keys and the values that pairing
needs are ASCII. Records are told apart by the standard library's scanner, and in files that were written with an
indent by the lines that close a record, which is three times faster: a JSON string never holds a raw line break.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from gistpoint.sessions.runs import limits
from gistpoint.sessions.runs.archives import Blob
from gistpoint.sessions.runs.loading import load_record
from gistpoint.sessions.runs.model import Json
from gistpoint.sessions.runs.quotes import IN_TEXT

_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(r'"[^"\\]*+"|[{}\[\]"]')
_OPENING = re.compile(r'\{\s*+"[^"\\]{1,60}"\s*+:')
_SCALAR = re.compile(r"[^,\]}\s]+")
_INDENTED = re.compile(r"\[\r?\n([ \t]+)(?=[{\[])")
_KEY_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")


class Record(NamedTuple):
    """One raw record: its place in its member, and what of it the scanner decoded; None if that failed.

    An `inner` one lies within another record, or beside all of them: a step made of it is put in between theirs.
    """

    start: int
    end: int
    fields: Json
    damage: str = ""
    member: int = 0
    inner: bool = False


@dataclass(slots=True)
class LightKeys:
    """Keys with short strings or integers that are all that pairing needs: indented records need no decoding."""

    names: tuple[str, ...]


class CutOffError(Exception):
    """The text ends within a value that began at `start`."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.start = start


class DamagedError(Exception):
    """What stands at `start` is no JSON."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.start = start


class TooLongError(Exception):
    """The value that begins at `start` is longer than a record may be."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.start = start


class TooDeepError(TooLongError):
    """The value that begins at `start` is nested deeper than any honest one."""


class Scanner:
    """A window that moves over a blob; positions are offsets in the blob."""

    def __init__(self, blob: Blob, start: int = 0, end: int | None = None) -> None:
        self.blob = blob
        self.end = blob.size if end is None else end
        self._base = start
        self._text = ""
        self._at = 0
        self._read = start

    @property
    def position(self) -> int:
        """Offset of the next character."""
        return self._base + self._at

    def seek(self, offset: int) -> None:
        """Go on at `offset`."""
        if self._base <= offset <= self._base + len(self._text):
            self._at = offset - self._base
        else:
            self._base, self._text, self._at, self._read = offset, "", 0, offset

    def _more(self, keep: int) -> bool:
        """Read on, forgetting what stands before offset `keep`; False at the end."""
        cut = min(keep - self._base, len(self._text))
        if cut > 0:
            self._text = self._text[cut:]
            self._at -= cut
            self._base += cut
        want = min(max(limits.CHUNK, len(self._text)), self.end - self._read, limits.RECORD)
        data = self.blob.read(self._read, want) if want > 0 else b""
        self._read += len(data)
        self._text += data.decode("latin-1")
        return bool(data)

    def peek(self) -> str:
        """Return the next character that is no white space, and stand on it; empty at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(self.position):
                return ""

    def take(self, character: str) -> bool:
        """Step over `character` if it comes next."""
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def value(self) -> tuple[Json, int, int]:
        """Decode the value that comes next and return it with its place; raises for a cut, damaged or long one."""
        if not self.peek():
            raise CutOffError(self.position)
        start = self.position
        try:
            found, end = _DECODER.raw_decode(self._text, self._at)
            if end < len(self._text) or self._read >= self.end:
                self._at = end
                return found, start, self.position
        except (ValueError, RecursionError):
            pass
        self.skip()
        end = self.position
        loaded, damage = load_record(self.blob, start, end)
        if damage:
            raise DamagedError(start)
        return loaded, start, end

    def skip(self) -> None:
        """Step over the value that comes next without decoding it, to any depth and in bounded memory."""
        first = self.peek()
        start = self.position
        if not first:
            raise CutOffError(start)
        if first in '"{[':
            self._skip_nested(start)
            return
        while True:
            match = _SCALAR.match(self._text, self._at)
            if match is None or len(self._text) - self._at > limits.LONG_RECORD * 2:
                raise DamagedError(start)
            if match.end() < len(self._text) or not self._more(self.position):
                self._at = match.end()
                return

    def _skip_nested(self, start: int) -> None:
        depth, at = 0, start
        while True:
            match = _TOKEN.search(self._text, at - self._base)
            if match is None:
                at = self._base + len(self._text)
                self._skip_on(start, at)
                continue
            token, end = match[0], match.end()
            if token in "{[":
                depth += 1
                if depth > limits.DEPTH:
                    raise TooDeepError(start)
            elif token in "}]":
                depth -= 1
            elif token == '"':
                end = IN_TEXT.closing(self._text, match.start()) + 1
                if not end:
                    at = self._base + match.start()
                    self._skip_on(start, at)
                    continue
            if depth <= 0:
                self._at = end
                return
            at = self._base + end

    def _skip_on(self, start: int, at: int) -> None:
        """Read on, forgetting what stands before offset `at`."""
        if self._read - at > limits.RECORD:
            raise TooLongError(start)
        self._at = at - self._base
        if not self._more(at):
            raise CutOffError(start)

    def key(self) -> str:
        """Read a key and its colon."""
        start = self.position
        if self.peek() != '"':
            raise DamagedError(start) if self.peek() else CutOffError(start)
        key, _, _ = self.value()
        if not self.take(":"):
            raise DamagedError(start) if self.peek() else CutOffError(start)
        return str(key)

    def elements(self, light: LightKeys | None = None) -> Iterator[Record]:
        """Yield the elements of the array that begins here, and stand behind it at the end."""
        if not self._text:
            self.peek()
        if self.peek() != "[":
            raise DamagedError(self.position)
        while len(self._text) - self._at < 4096 and self._more(self.position):
            pass
        match = _INDENTED.match(self._text, self._at)
        if light is not None and match is not None:
            unit = _KEY_INDENT.match(self._text, match.end())
            if unit is not None and unit[1].startswith(match[1]) and len(unit[1]) > len(match[1]):
                yield from self._indented(match[1], unit[1], light)
                return
        self._at += 1
        yield from self._spelled_out()

    def _spelled_out(self) -> Iterator[Record]:
        if self.take("]"):
            return
        opening = _OPENING.match(self._text, self._at) if self.peek() == "{" else None
        while True:
            start = self.position
            try:
                record = self.record()
                if record.damage and opening is not None and not self._goes_on(opening[0]):
                    raise DamagedError(start)
                separated = self.take(",")
                if not separated and not self.take("]"):
                    raise DamagedError(start) if self.peek() else CutOffError(self.position)
            except (DamagedError, CutOffError):
                if opening is None or not self._find_next(start, opening[0]):
                    raise
                yield Record(start, self.position, None, "is damaged")
                continue
            yield record
            if not separated:
                return

    def _goes_on(self, opening: str) -> bool:
        """Whether what comes next is another record or the end of the array; the window is left where it was."""
        character = self.peek()
        if character != ",":
            return character == "]"
        after = _SPACE.match(self._text, self._at + 1)
        return after is None or self._text.startswith(opening, after.end()) or after.end() >= len(self._text)

    def _find_next(self, start: int, opening: str) -> bool:
        """Stand on the next record behind a damaged one: on what looks as the first record of the array began."""
        pattern = re.compile(r",\s*+(?=" + re.escape(opening) + ")")
        self.seek(start)
        self.peek()
        at = start + 1
        while True:
            found = pattern.search(self._text, max(0, at - self._base))
            if found is not None and found.end() + len(opening) <= len(self._text):
                self._at = found.end()
                return True
            at = max(at, self._base + len(self._text) - 4096)
            self._at = max(0, at - self._base)
            if at - start > limits.RECORD or not self._more(at):
                return False

    def record(self) -> Record:
        """Read the value that comes next as a record, damaged or not; raises only where the text ends."""
        try:
            fields, start, end = self.value()
        except DamagedError as error:
            if self.position <= error.start:
                raise
            return Record(error.start, self.position, None, "can't be decoded")
        return Record(start, end, fields)

    def _indented(self, indent: str, keys: str, light: LightKeys) -> Iterator[Record]:
        """Take lines at `indent` as borders of records; keys of a record stand at `keys`, the array's end before.

        What most records are is one match each: the end of the one before, the opening, and the first light key.
        """
        outer = indent[: 2 * len(indent) - len(keys)] if 2 * len(indent) > len(keys) else ""
        names = "|".join(re.escape(name) for name in light.names)
        key = rf'{keys}"({names})": ?(?:"([^"\\\n]*)"|(-?\d{{1,18}}))'
        pattern = re.compile(
            rf"\n(?:{indent}(\}},\r?\n{indent}(?=\{{))?([^ \t\r\n])(?:(?<=\{{)\r?\n{key})?|{key}|{outer}(\]))"
        )
        start, fields = -1, dict[str, Json]()
        for match in self._borders(pattern):
            before, what, name, text, number, later, later_text, later_number, _ = match.groups()
            if later is not None:
                fields[later] = later_text if later_number is None else int(later_number)
                continue
            here = self._base + (match.end() - 1 if what is None else match.start(2))
            if start >= 0:
                if before is not None:
                    yield Record(start, self._base + match.start(1) + 1, fields)
                elif what is None or what in "{[":
                    yield Record(start, here, None, "is not closed")
                elif what in "}]":
                    yield Record(start, here + 1, fields)
                    start = -1
                    continue
            if what is None:
                self._at = match.end()
                return
            if what in "{[":
                start, fields = here, {}
                if name is not None:
                    fields[name] = text if number is None else int(number)
                elif self._text[match.end() : match.end() + 1] in ("}", "]"):
                    yield Record(here, here + 2, {})
                    start = -1
            elif what not in "}]" and start < 0:
                yield self._one_line(match.end() - 1)
        raise CutOffError(start if start >= 0 else self.position)

    def _borders(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Yield what matches at the beginning of lines, whole lines only, to the end of the text."""
        line = seen = self.position
        while True:
            complete = self._read >= self.end
            last = len(self._text) if complete else max(self._text.rfind("\n"), line - self._base)
            for match in pattern.finditer(self._text, line - self._base, last if complete else last + 1):
                seen = self._base + match.start()
                yield match
            line, self._at = self._base + last, last
            if line - seen > limits.RECORD:
                raise TooLongError(seen)
            if complete or not self._more(line):
                return

    def _one_line(self, at: int) -> Record:
        end = self._text.find("\n", at)
        end = len(self._text) if end < 0 else end
        line = self._text[at:end].rstrip("\r, ")
        try:
            found: Json = json.loads(line)
        except (ValueError, RecursionError):
            return Record(self._base + at, self._base + at + len(line), None, "can't be decoded")
        return Record(self._base + at, self._base + at + len(line), found)


def members(scanner: Scanner, wants: Callable[[str], bool]) -> Iterator[tuple[str, Json, int, int]]:
    """Yield the members of the object that begins here: key, value and place.

    Where `wants` is true for a key, nothing has been read of its value yet and the scanner stands before it; the
    caller reads it. Other values are decoded if they are no longer than a long record, else stepped over as None.
    """
    if not scanner.take("{"):
        raise DamagedError(scanner.position)
    if scanner.take("}"):
        return
    while True:
        key = scanner.key()
        scanner.peek()
        start = scanner.position
        if wants(key):
            yield key, None, start, start
        else:
            yield (key, *_bounded_value(scanner))
        if scanner.take(","):
            continue
        if scanner.take("}"):
            return
        raise DamagedError(scanner.position) if scanner.peek() else CutOffError(scanner.position)


def _bounded_value(scanner: Scanner) -> tuple[Json, int, int]:
    scanner.peek()
    start = scanner.position
    scanner.skip()
    end = scanner.position
    if end - start > limits.LONG_RECORD:
        return None, start, end
    return load_record(scanner.blob, start, end)[0], start, end
