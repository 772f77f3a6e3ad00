"""Finds the records of a JSON lines text, in one pass, holding one chunk and one line of ordinary length at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator

from gistpoint.sessions.runs import limits
from gistpoint.sessions.runs.archives import Blob
from gistpoint.sessions.runs.loading import load_record
from gistpoint.sessions.runs.scanning import Record

_DECODER = json.JSONDecoder(strict=False)


def lines(blob: Blob, start: int = 0) -> Iterator[Record]:
    """Yield the lines of a JSONL text as records; empty ones are left out."""
    held: list[bytes] = []
    begun, offset, size = start, start, blob.size
    while offset < size:
        chunk = blob.read(offset, limits.CHUNK)
        if not chunk:
            break
        at = 0
        while (found := chunk.find(b"\n", at)) >= 0:
            end = offset + found
            yield from _line(blob, held, chunk[at:found], begun, end)
            held = []
            at, begun = found + 1, end + 1
        offset += len(chunk)
        if offset - begun <= limits.LONG_RECORD:
            held.append(chunk[at:])
        else:
            held = []
    if offset > begun:
        yield from _line(blob, held, b"", begun, offset, last=True)


def _line(blob: Blob, held: list[bytes], rest: bytes, start: int, end: int, last: bool = False) -> Iterator[Record]:
    if end - start > limits.RECORD:
        yield Record(start, end, None, f"is longer than {limits.RECORD >> 20} MB")
        return
    raw = b"".join([*held, rest]) if held else rest
    if len(raw) < end - start:
        fields, damage = load_record(blob, start, end)
        yield Record(start, end, fields, damage)
        return
    text = raw.strip(b" \t\r\0\xef\xbb\xbf")
    if not text:
        return
    try:
        yield Record(start, end, _DECODER.decode(text.decode("latin-1")))
    except (ValueError, RecursionError):
        yield Record(start, end, None, "is cut off" if last else "can't be decoded")
