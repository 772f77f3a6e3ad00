"""Reads the last records of a run from the end of its file, if the layout allows that."""

from __future__ import annotations

import re

from gistpoint.sessions.records.archives import Blob
from gistpoint.sessions.records.loading import load_record
from gistpoint.sessions.records.scanning import RawRecord

_LAST_RECORDS = 24
"""The number of records to read: enough for the last step, as calls and their results are close together."""
_WINDOWS = (1 << 20, 1 << 22, 1 << 24)
_BEFORE = 256
_INDENT = re.compile(rb"\n([ \t]+)\Z")
_FIRST_KEY = re.compile(rb'\{\s*"[^"\\]{1,60}"\s*:')


def last_records(blob: Blob, first: tuple[int, int]) -> list[RawRecord]:
    """Return the last records in order, decoded, read from the end of the file.

    `first` is the position of the first record. Only two layouts allow this: arrays whose records are
    indented on separate lines, and JSON lines. The result is empty for any other layout, for a damaged
    record, and if it is uncertain whether the end belongs to the same array; the index must then be built.
    """
    start, end = first
    before = blob.read(max(0, start - _BEFORE), min(start, _BEFORE))
    indent = _INDENT.search(before)
    opening = _FIRST_KEY.match(blob.read(start, _BEFORE))
    if opening is None:
        return []
    for window in _WINDOWS:
        at = max(end, blob.size - window)
        text = blob.read(at, blob.size - at)
        if indent is not None:
            places = _last_indented(text, indent[1], opening[0])
        else:
            places = _last_lines(text) if blob.read(end, 1) == b"\n" else []
        if places:
            return _decoded(blob, at, places)
        if at == end:
            break
    return []


def _last_indented(text: bytes, indent: bytes, opening: bytes) -> list[tuple[int, int]]:
    """Return the positions of an array's last records, in the text at its end; empty if in doubt."""
    over = re.search(rb"\n(?!" + indent + rb")[ \t]*+[\]\"]", text)
    if over is None or text[over.end() - 1 : over.end()] != b"]":
        return []
    head = b"\n" + indent + opening[:1]
    closing = re.compile(rb"\n" + indent + rb"\}(?=[,\r\n])")
    found: list[tuple[int, int]] = []
    right = over.start()
    while len(found) < _LAST_RECORDS and (left := text.rfind(head, 0, right)) >= 0:
        begin = left + len(head) - 1
        end = closing.search(text, begin, over.start() + 1)
        if (
            end is None
            or end.end() > (found[-1][0] if found else over.end())
            or not text.startswith(opening, begin)
        ):
            return []
        found.append((begin, end.end()))
        right = left
    return found[::-1]


def _last_lines(text: bytes) -> list[tuple[int, int]]:
    """Return the positions of the last whole lines; the beginning of `text` may be part of a line."""
    found: list[tuple[int, int]] = []
    right = len(text)
    while len(found) < _LAST_RECORDS and (left := text.rfind(b"\n", 0, right)) >= 0:
        if text[left + 1 : right].strip():
            found.append((left + 1, right))
        right = left
    return found[::-1]


def _decoded(blob: Blob, at: int, places: list[tuple[int, int]]) -> list[RawRecord]:
    records: list[RawRecord] = []
    for start, end in places:
        fields, damage = load_record(blob, at + start, at + end)
        if damage:
            return []
        records.append(RawRecord(at + start, at + end, fields))
    return records
