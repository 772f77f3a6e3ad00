"""Finds the beginning and end of each record of a JSON file, in one pass over its bytes, a chunk at a time.

The text is decoded as Latin-1, so that an offset in it is an offset in the file; keys, and the values that
pairing needs, are ASCII. Records are separated with the standard library's scanner. In indented files, they
are separated at their closing lines: three times faster, and safe, as no JSON string has a raw line break.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob
from gistpoint.sessions.records.indented import Indentation, PlainRecords
from gistpoint.sessions.records.loading import IN_TEXT, load_record
from gistpoint.sessions.records.model import Json

_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(r'"[^"\\]*+"|[{}\[\]"]')
_OPENING = re.compile(r'\{\s*+"[^"\\]{1,60}"\s*+:')
_SCALAR = re.compile(r"[^,\]}\s]+")
_INDENTED = re.compile(r"\[\r?\n([ \t]+)(?=[{\[])")
_KEY_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")


def _light(text: str | None, number: str | None) -> Json:
    return text if number is None else int(number)


class RawRecord(NamedTuple):
    """One raw record: its position in its member, and the scanner's decoding of it; None if that failed.

    The step of an `inner` record, inside another or outside all others, is inserted between their steps.
    """

    start: int
    end: int
    fields: Json
    damage: str = ""
    member: int = 0
    inner: bool = False


@dataclass(slots=True)
class LightKeys:
    """Keys of short values, for pairing; indented records are searched for them without being decoded."""

    names: tuple[str, ...]


class UnreadableError(Exception):
    """Raised if the value that begins at `start` can't be read."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.start = start


class CutOffError(UnreadableError):
    """Raised if the text ends within the value."""


class DamagedError(UnreadableError):
    """Raised if the text at `start` is not JSON."""


class TooLongError(UnreadableError):
    """Raised if the value is longer than a record may be."""

    reason = "is too long to read"


class TooDeepError(TooLongError):
    """Raised if the value is nested more deeply than `limits.DEPTH`."""

    reason = f"is nested deeper than {limits.DEPTH:,}"


class Scanner:
    """A window that moves over a blob, by offset.

    Methods that read raise `UnreadableError` if the text is cut off, damaged, or too long or deep to decode.
    """

    def __init__(self, blob: Blob, start: int = 0, end: int | None = None) -> None:
        self.blob = blob
        self.end = blob.size if end is None else end
        self._base = start
        self._text = ""
        self._at = 0
        self._read = start

    @property
    def position(self) -> int:
        """The offset of the next character."""
        return self._base + self._at

    def seek(self, offset: int) -> None:
        """Continue at `offset`."""
        if self._base <= offset <= self._base + len(self._text):
            self._at = offset - self._base
        else:
            self._base, self._text, self._at, self._read = offset, "", 0, offset

    def _more(self, keep: int) -> bool:
        """Read the next chunk and drop the text before offset `keep`; return False at the end."""
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
        """Move to the next character that is not whitespace and return it; empty at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(self.position):
                return ""

    def take(self, character: str) -> bool:
        """Skip `character` if it comes next; return whether it did."""
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def value(self) -> tuple[Json, int, int]:
        """Return the next value with its start and its end. Raises `CutOffError` and `DamagedError`."""
        if not self.peek():
            raise CutOffError(self.position)
        start = self.position
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._at)
                if end < len(self._text) or self._read >= self.end:
                    self._at = end
                    return found, start, self.position
            except (ValueError, RecursionError):
                pass
            if len(self._text) - self._at >= limits.CHUNK or not self._more(start):
                break
        self.skip()
        end = self.position
        loaded, damage = load_record(self.blob, start, end)
        if damage:
            raise DamagedError(start)
        return loaded, start, end

    def skip(self) -> None:
        """Skip the next value, at any depth and in bounded memory. Raises the errors of `value`."""
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
                self._skip_to(start, at)
                continue
            token, end = match[0], match.end()
            if token in "{[":
                depth += 1
                if depth > limits.DEPTH:
                    raise TooDeepError(start)
            elif token in "}]":
                depth -= 1
            elif token == '"':
                end = self._text_end(start, match.start())
            if depth <= 0:
                self._at = end
                return
            at = self._base + end

    def _text_end(self, start: int, opening: int) -> int:
        """Return the window's position after a literal that opens at `opening`; drop the literal's text."""
        first = self._base + opening
        while (closing := IN_TEXT.closing(self._text, opening)) < 0:
            # The kept text begins between two escapes, so that a quote after it is not mistaken for an
            # escaped one.
            before = self._text[opening + 1 :]
            half = (len(before) - len(before.rstrip("\\"))) % 2
            last = self._base + len(self._text) - 1 - half
            if last - first > limits.RECORD:
                raise TooLongError(start)
            self._skip_to(start, last)
            opening = last - self._base
        return closing + 1

    def _skip_to(self, start: int, at: int) -> None:
        """Read the next chunk and drop the text before offset `at`. Raises `CutOffError` at the end."""
        self._at = at - self._base
        if not self._more(at):
            raise CutOffError(start)

    def key(self) -> str:
        """Read a key and its colon; return the key."""
        start = self.position
        if self.peek() != '"':
            raise DamagedError(start) if self.peek() else CutOffError(start)
        key, _, _ = self.value()
        if not self.take(":"):
            raise DamagedError(start) if self.peek() else CutOffError(start)
        return str(key)

    def elements(self, light: LightKeys | None = None) -> Iterator[RawRecord]:
        """Yield the elements of the array here, and move to its end. Raises the errors of `value`."""
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
        yield from self._decoded_elements()

    def _decoded_elements(self) -> Iterator[RawRecord]:
        if self.take("]"):
            return
        opening = _OPENING.match(self._text, self._at) if self.peek() == "{" else None
        while True:
            start = self.position
            try:
                record = self.record()
                if record.damage and opening is not None and not self._continues(opening[0]):
                    raise DamagedError(start)
                separated = self.take(",")
                if not separated and not self.take("]"):
                    raise DamagedError(start) if self.peek() else CutOffError(self.position)
            except (DamagedError, CutOffError):
                if opening is None or not self._find_next(start, opening[0]):
                    raise
                yield RawRecord(start, self.position, None, "is damaged")
                continue
            yield record
            if not separated:
                return

    def _continues(self, opening: str) -> bool:
        """Whether another record or the end of the array comes next; the position does not change."""
        character = self.peek()
        if character != ",":
            return character == "]"
        after = _SPACE.match(self._text, self._at + 1)
        return after is None or self._text.startswith(opening, after.end()) or after.end() >= len(self._text)

    def _find_next(self, start: int, opening: str) -> bool:
        """Move to the next record that begins with `opening`, after a damaged one; False if there is none."""
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

    def record(self) -> RawRecord:
        """Read the next value as a record, damaged or not; raise an error only if its end can't be found."""
        try:
            fields, start, end = self.value()
        except DamagedError as error:
            if self.position <= error.start:
                raise
            return RawRecord(error.start, self.position, None, "can't be decoded")
        return RawRecord(start, end, fields)

    def _indented(self, indent: str, keys: str, light: LightKeys) -> Iterator[RawRecord]:
        """Yield the records of an indented array, found by the indent of its lines and not decoded.

        `indent` is the whitespace before a record, `keys` that before its keys; the bracket that closes the
        array is indented less. One match covers the border of two records: the brace that closes the first,
        the bracket that opens the second, and a light key on its first line.
        """
        lines = Indentation(indent, keys, light.names)
        names = "|".join(re.escape(name) for name in light.names)
        key = rf'{keys}"({names})": ?(?:"([^"\\\n]*)"|(-?\d{{1,18}}))'
        pattern = re.compile(
            rf"\n(?:{indent}(\}},\r?\n{indent}(?=\{{))?([^"
            rf" \t\r\n])(?:(?<=\{{)\r?\n{key})?|{key}|{lines.outer}(\]))"
        )
        self.seek(self._base + self._text.index("\n", self._at))
        following = f",\n{indent}{{"
        while True:
            plain = PlainRecords(self.blob, self.position, self.end, lines)
            for start, end, fields in plain:
                yield RawRecord(start, end, fields)
            self.seek(plain.at)
            for record in self._line_by_line(pattern):
                yield record
                if record.end - plain.at > limits.CHUNK and self._text.startswith(
                    following, record.end - self._base
                ):
                    self.seek(record.end + 1)
                    break
            else:
                return

    def _line_by_line(self, pattern: re.Pattern[str]) -> Iterator[RawRecord]:
        start, fields = -1, dict[str, Json]()
        for match in self._borders(pattern):
            before, what, name, text, number, later, later_text, later_number, _ = match.groups()
            if later is not None:
                fields[later] = _light(later_text, later_number)
                continue
            here = self._base + (match.end() - 1 if what is None else match.start(2))
            if start >= 0:
                if before is not None:
                    yield RawRecord(start, self._base + match.start(1) + 1, fields)
                elif what is None or what in "{[":
                    yield RawRecord(start, here, None, "is not closed")
                elif what in "}]":
                    yield RawRecord(start, here + 1, fields)
                    start = -1
                    continue
            if what is None:
                self._at = match.end()
                return
            if what in "{[":
                start, fields = here, {}
                if name is not None:
                    fields[name] = _light(text, number)
                elif self._text.startswith(("}", "]"), match.end()):
                    yield RawRecord(here, here + 2, {})
                    start = -1
            elif what not in "}]" and start < 0:
                yield self._one_line(match.end() - 1)
        raise self._cut_off(start)

    def _cut_off(self, start: int) -> CutOffError:
        """Return the error for a file that ends in the record at `start`, or between records if it is -1."""
        return CutOffError(start if start >= 0 else self.position)

    def _borders(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Yield the matches at the beginning of whole lines, to the end of the text.

        Raises `TooLongError` if more than `limits.RECORD` bytes follow a match without another.
        """
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
            if complete:
                return
            if len(self._text) - last > limits.CHUNK and not pattern.match(self._text, last):
                line = seen = self._line_after(line)
            elif not self._more(line):
                return

    def _line_after(self, line: int) -> int:
        """Return the offset of the line break after a line, or of the end; drop the text before it."""
        at = line + 1
        while (found := self._text.find("\n", at - self._base)) < 0:
            at = self._base + len(self._text)
            self._at = at - self._base
            if not self._more(at):
                return at
        return self._base + found

    def _one_line(self, at: int) -> RawRecord:
        end = self._text.find("\n", at)
        end = len(self._text) if end < 0 else end
        line = self._text[at:end].rstrip("\r, ")
        try:
            found: Json = json.loads(line)
        except (ValueError, RecursionError):
            return RawRecord(self._base + at, self._base + at + len(line), None, "can't be decoded")
        return RawRecord(self._base + at, self._base + at + len(line), found)


def members(scanner: Scanner, wants: Callable[[str], bool]) -> Iterator[tuple[str, Json, int, int]]:
    """Yield the members of the object at the position: the key, the value, and the value's start and end.

    If `wants` is true for a key, its value is None and is left for the caller to read. Other values are
    decoded, or None if they are longer than `limits.LONG_RECORD` or can't be decoded. Raises an
    `UnreadableError` if there is no object, or if the text ends within it or is damaged.
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


def elements_at(blob: Blob, start: int, *path: str, light: LightKeys | None = None) -> Iterator[RawRecord]:
    """Yield the elements of the array that a path of keys leads to, up to the first damage of the text."""
    try:
        yield from elements_below(Scanner(blob, start), path, light)
    except UnreadableError:
        return


def elements_below(
    scanner: Scanner, path: Sequence[str], light: LightKeys | None = None
) -> Iterator[RawRecord]:
    """Yield the elements of the array at a path of keys below the value at the position; skip the rest."""
    if not path and scanner.peek() == "[":
        yield from scanner.elements(light)
    elif path and scanner.peek() == "{":
        for key, _, _, _ in members(scanner, lambda _: True):
            if key == path[0]:
                yield from elements_below(scanner, path[1:], light)
            else:
                scanner.skip()
    else:
        scanner.skip()


def _bounded_value(scanner: Scanner) -> tuple[Json, int, int]:
    scanner.peek()
    start = scanner.position
    scanner.skip()
    end = scanner.position
    if end - start > limits.LONG_RECORD:
        return None, start, end
    return load_record(scanner.blob, start, end)[0], start, end


def one_record(blob: Blob, start: int = 0) -> Iterator[RawRecord]:
    """Yield the first value of a blob as a record."""
    yield Scanner(blob, start).record()


def lines(blob: Blob, start: int = 0) -> Iterator[RawRecord]:
    """Yield the non-empty lines of a JSONL text as records, damaged ones if they are not objects or lists."""
    held: list[bytes] = []
    begun, offset, size = start, start, blob.size
    while offset < size:
        chunk = blob.read(offset, limits.CHUNK)
        if not chunk:
            break
        at = 0
        while (found := chunk.find(b"\n", at)) >= 0:
            end = offset + found
            yield from _record_of_line(blob, held, chunk[at:found], begun, end)
            held = []
            at, begun = found + 1, end + 1
        offset += len(chunk)
        if offset - begun <= limits.LONG_RECORD:
            held.append(chunk[at:])
        else:
            held = []
    if offset > begun:
        yield from _record_of_line(blob, held, b"", begun, offset, last=True)


def _record_of_line(
    blob: Blob, held: list[bytes], remainder: bytes, start: int, end: int, last: bool = False
) -> Iterator[RawRecord]:
    """Yield the record on a line, if any, or its fault; bytes that are not in memory are read from `blob`."""
    if end - start > limits.RECORD:
        yield RawRecord(start, end, None, f"is longer than {limits.RECORD >> 20} MB")
        return
    raw = b"".join([*held, remainder]) if held else remainder
    if len(raw) < end - start:
        fields, damage = load_record(blob, start, end)
        yield RawRecord(start, end, fields, damage)
        return
    text = raw.strip(b" \t\r\0\xef\xbb\xbf")
    if not text:
        if b"\0" in raw:
            yield RawRecord(start, end, None, "contains only NUL bytes, which a crash may leave")
        return
    try:
        fields = _DECODER.decode(text.decode("latin-1"))
    except (ValueError, RecursionError):
        yield RawRecord(start, end, None, "is cut off" if last else "can't be decoded")
        return
    kind = "null" if fields is None else "a string" if isinstance(fields, str) else "a number, true or false"
    fault = "" if isinstance(fields, dict | list) else f"is {kind} and not an object"
    yield RawRecord(start, end, fields, fault)


def guarded(
    records: Iterator[RawRecord], blob: Blob, warnings: list[str], member: int = 0, *, before: int = 0
) -> Iterator[RawRecord]:
    """Yield `records`, at most `limits.RECORDS`, and add a sentence to `warnings` for each problem.

    If the text ends within a record or is damaged, the rest of it is yielded as a damaged record. `member` is
    the number of the records' file, and `before` the number of earlier records.
    """
    count = before
    try:
        for record in records:
            count += 1
            if count > limits.RECORDS:
                warnings.append(
                    f"Only the first {limits.RECORDS:,} records are read; the file continues after them."
                )
                return
            if record.damage:
                warnings.append(
                    f"Record {count}, at byte {record.start:,}, {record.damage}; it is shown raw."
                )
            yield record._replace(member=member) if member else record
    except CutOffError as error:
        if error.start < blob.size:
            warnings.append(
                f"The file ends within record {count + 1}, at byte {error.start:,}; everything before"
                " it is shown."
            )
            yield RawRecord(error.start, blob.size, None, "is cut off", member)
        else:
            warnings.append(
                f"The file ends without its closing bracket, after record {count}; it may still be written."
            )
    except DamagedError as error:
        left = blob.size - error.start
        warnings.append(
            f"The file is damaged at byte {error.start:,}, after record {count}; {left:,} bytes are shown"
            " raw."
        )
        if left:
            yield RawRecord(error.start, blob.size, None, "is damaged", member)
    except TooLongError as error:
        left = blob.size - error.start
        warnings.append(
            f"Record {count + 1}, at byte {error.start:,}, {error.reason}; {left:,} bytes are left out."
        )
        yield RawRecord(error.start, blob.size, None, error.reason, member)


def object_records(
    blob: Blob, start: int, arrays: tuple[str, ...], facts: dict[str, Json], light: LightKeys | None
) -> Iterator[RawRecord]:
    """Yield the elements of the top object's named arrays; add its other members to `facts`."""
    scanner = Scanner(blob, start)
    for key, value, _, _ in members(scanner, lambda key: key in arrays):
        if key not in arrays:
            facts[key] = value
        elif scanner.peek() == "[":
            yield from scanner.elements(light)
        else:
            facts[key] = scanner.value()[0]
    yield from _text_after(scanner)


def array_records(blob: Blob, start: int, light: LightKeys | None) -> Iterator[RawRecord]:
    """Yield the elements of the top array; text after its end is a damaged record."""
    scanner = Scanner(blob, start)
    yield from scanner.elements(light)
    yield from _text_after(scanner)


def _text_after(scanner: Scanner) -> Iterator[RawRecord]:
    if scanner.peek().strip("\0"):
        yield RawRecord(scanner.position, scanner.end, None, "is after the end of the JSON text")
