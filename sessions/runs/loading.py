"""Decodes one raw record, its very long strings only in part."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

from gistpoint.sessions.runs import limits
from gistpoint.sessions.runs.archives import Blob
from gistpoint.sessions.runs.model import ByteRange, CutText, Json
from gistpoint.sessions.runs.quotes import IN_BYTES

_WHOLE_ESCAPES = re.compile(rb'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+', re.S)


def load_record(blob: Blob, start: int, end: int) -> tuple[Json, str]:
    """Return the value that stands in `start` to `end`, and what is wrong with it, empty if nothing.

    Strings longer than the limit in long records are `CutText`.
    """
    if end - start > limits.RECORD:
        return None, f"is longer than {limits.RECORD >> 20} MB"
    raw = blob.read(start, end - start)
    if len(raw) < end - start:
        return None, "is no longer there"
    try:
        value = _decode(raw) if len(raw) <= limits.LONG_RECORD else _decode_long(raw, blob.name, start)
    except (ValueError, RecursionError):
        return None, "can't be decoded"
    deep = raw.count(b"{") + raw.count(b"[") > limits.DECODED_DEPTH and is_deep(value)
    return (None, "is nested too deep") if deep else (value, "")


def is_deep(value: Json) -> bool:
    """Whether a value is nested deeper than what is used may be; never recurses."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limits.DECODED_DEPTH):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return True


def _decode(raw: bytes) -> Json:
    found: Json = json.loads(raw.strip(b" \t\r\n\0\xef\xbb\xbf").decode("utf-8", "replace"), strict=False)
    return found


def _decode_long(raw: bytes, member: str, offset: int) -> Json:
    nonce = os.urandom(8).hex()
    cut: dict[str, CutText] = {}
    parts: list[bytes] = []
    at = 0
    for start, end in _long_strings(raw):
        name = f"{nonce}{len(cut)}"
        head = raw[start + 1 : start + 1 + limits.STRING_HEAD]
        cut[name] = CutText(_text_of(head), ByteRange(member, offset + start, offset + end))
        parts += (raw[at:start], b'"', name.encode(), b'"')
        at = end
    parts.append(raw[at:])
    return _restore(_decode(b"".join(parts)), cut) if cut else _decode(raw)


def _long_strings(raw: bytes) -> Iterator[tuple[int, int]]:
    """Yield the place of each string literal that is long, quotes included, by hopping from quote to quote."""
    opening = raw.find(b'"')
    while opening >= 0:
        closing = IN_BYTES.closing(raw, opening)
        if closing < 0:
            return
        if closing - opening >= limits.LONG_STRING:
            yield opening, closing + 1
        opening = raw.find(b'"', closing + 1)


def _restore(value: Json, cut: dict[str, CutText]) -> Json:
    if isinstance(value, str):
        return cut.get(value, value)
    if isinstance(value, list):
        return [_restore(item, cut) for item in value]
    if isinstance(value, dict):
        return {cut.get(key, key): _restore(item, cut) for key, item in value.items()}
    return value


def _text_of(literal: bytes) -> str:
    """Decode the inside of a string literal as far as its last whole escape and character."""
    whole = _WHOLE_ESCAPES.match(literal)
    text = literal[: whole.end() if whole else 0].decode("utf-8", "ignore")
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def text_pieces(blob: Blob, source: ByteRange, *, escaped: bool = False) -> Iterator[str]:
    """Yield the text of the string literal at `source`, piece by piece, none of them longer than a chunk.

    With `escaped`, its escapes stay as they are written.
    """
    at, end = source.start + 1, source.end - 1
    while at < end:
        piece = blob.read(at, min(limits.CHUNK, end - at))
        whole = _WHOLE_ESCAPES.match(piece)
        length = whole.end() if whole else 0
        if at + length < end:
            length = _character_border(piece, length)
        if not length:
            yield "\N{REPLACEMENT CHARACTER}"
            return
        yield piece[:length].decode("utf-8", "replace") if escaped else _text_of(piece[:length])
        at += length


def _character_border(piece: bytes, length: int) -> int:
    """Move back to where a UTF-8 character begins, and before a surrogate escape whose second half may follow."""
    border = length
    while border and length - border < 4 and piece[border - 1] & 0xC0 == 0x80:
        border -= 1
    if border and piece[border - 1] >= 0xC0:
        border -= 1
    else:
        border = length
    half = re.search(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\Z", piece[:border])
    return half.start() if half and half.start() else border
