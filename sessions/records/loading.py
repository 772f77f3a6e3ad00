"""Decodes one raw record (long strings only in part), and finds the end of a string without decoding it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import AnyStr, Generic, cast

import msgspec

from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob
from gistpoint.sessions.records.model import ByteRange, CutText, Json
from gistpoint.sessions.records.values import is_deep

_DECODER = msgspec.json.Decoder()
_HOPS = 200
_NEAR = 64
_WHOLE_ESCAPES = re.compile(rb'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+', re.S)


@dataclass(frozen=True, slots=True)
class Quotes(Generic[AnyStr]):
    """Finds the end of a JSON string literal, in bytes or in text, by jumping from quote to quote."""

    quote: AnyStr
    slash: AnyStr
    remainder: re.Pattern[AnyStr]
    """The inside of a literal and its closing quote; for literals that contain very many quotes."""

    def closing(self, text: AnyStr, opening: int) -> int:
        """Return the position at which the literal that opens at `opening` closes; -1 if it does not."""
        closing = text.find(self.quote, opening + 1)
        for _ in range(_HOPS):
            if closing < 0 or not self._is_escaped(text, closing, opening):
                return closing
            closing = text.find(self.quote, closing + 1)
        match = self.remainder.match(text, opening + 1)
        return match.end() - 1 if match else -1

    def _is_escaped(self, text: AnyStr, quote: int, opening: int) -> bool:
        slashes = 0
        for reach in (_NEAR, quote - opening - 1):
            before = text[max(opening + 1, quote - reach) : quote]
            slashes = len(before) - len(before.rstrip(self.slash))
            if slashes < len(before):
                break
        return slashes % 2 == 1


IN_BYTES = Quotes(b'"', b"\\", re.compile(rb'(?:[^"\\]++|\\.)*+"', re.S))
IN_TEXT = Quotes('"', "\\", re.compile(r'(?:[^"\\]++|\\.)*+"', re.S))


def load_record(blob: Blob, start: int, end: int) -> tuple[Json, str]:
    """Return the value from `start` to `end` and an empty string, or None and the reason why there is none.

    Strings longer than the limit in long records are `CutText`.
    """
    if end - start > limits.RECORD:
        return None, f"is longer than {limits.RECORD >> 20} MB"
    raw = blob.read(start, end - start)
    if len(raw) < end - start:
        return None, "is no longer there"
    try:
        value = decoded(raw) if len(raw) <= limits.LONG_RECORD else _decode_long(raw, blob.name, start)
    except (ValueError, RecursionError):
        return None, "can't be decoded"
    deep = _has_many_brackets(raw) and is_deep(value)
    return (None, "is nested too deeply") if deep else (value, "")


def _has_many_brackets(raw: bytes) -> bool:
    """Return whether bytes have enough opening brackets for a value that is nested too deeply."""
    import stringzilla  # pyright: ignore[reportMissingImports]

    # `bytes.count` takes almost as long as decoding the record.
    brackets: int = stringzilla.count(raw, b"{") + stringzilla.count(raw, b"[")
    return brackets > limits.DECODED_DEPTH


def decoded(raw: bytes) -> Json:
    """Return the value of JSON bytes; invalid UTF-8 is replaced.

    The standard library reads input that msgspec rejects, such as half of a surrogate pair. Raises ValueError
    if the bytes are not JSON, and RecursionError if the value is nested too deep.
    """
    try:
        return cast("Json", _DECODER.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
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
    return _restore(decoded(b"".join(parts)), cut) if cut else decoded(raw)


def _long_strings(raw: bytes) -> Iterator[tuple[int, int]]:
    """Yield the position of each long string literal, quotes included, by jumping from quote to quote."""
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
    """Decode the inside of a string literal up to its last whole escape and character."""
    whole = _WHOLE_ESCAPES.match(literal)
    text = literal[: whole.end() if whole else 0].decode("utf-8", "ignore")
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def text_pieces(blob: Blob, source: ByteRange, *, escaped: bool = False) -> Iterator[str]:
    """Yield the text of the string literal at `source` in pieces, none of them longer than a chunk.

    With `escaped`, its escapes are not decoded.
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
    """Return `length`, reduced so that no character of `piece` is split.

    The shortened piece ends neither within a UTF-8 character nor with a surrogate escape whose second half
    may follow.
    """
    border = length
    while border and length - border < 4 and piece[border - 1] & 0xC0 == 0x80:
        border -= 1
    if border and piece[border - 1] >= 0xC0:
        border -= 1
    else:
        border = length
    half = re.search(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\Z", piece[:border])
    return half.start() if half and half.start() else border
