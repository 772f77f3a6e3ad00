"""A base for readers of plain-text runs: blocks of lines, each of which begins with a recognisable line."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator

from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob
from gistpoint.sessions.records.format import RunReader
from gistpoint.sessions.records.model import Json
from gistpoint.sessions.records.scanning import RawRecord


def text_lines(blob: Blob, start: int = 0) -> Iterator[tuple[int, int, str]]:
    """Yield the start, the end and the text of each line, without its line break.

    A line longer than a chunk is yielded in pieces.
    """
    at, kept = start, b""
    while chunk := blob.read(at + len(kept), limits.CHUNK):
        window = kept + chunk
        begun = 0
        while (found := window.find(b"\n", begun)) >= 0:
            yield at + begun, at + found + 1, window[begun:found].rstrip(b"\r").decode("utf-8", "replace")
            begun = found + 1
        at, kept = at + begun, window[begun:]
        # A file without line breaks must not be held in memory as one line.
        if len(kept) > limits.CHUNK:
            yield at, at + len(kept), kept.decode("utf-8", "replace")
            at, kept = at + len(kept), b""
    if kept:
        yield at, at + len(kept), kept.decode("utf-8", "replace")


def first_group(pattern: re.Pattern[str], text: str) -> str:
    """Return the first group of a pattern's first match in a string; empty if there is no match."""
    found = pattern.search(text)
    return found[1] if found else ""


_LONGEST_TEXT = 1 << 20
"""The maximum number of bytes in a log that are shown."""


def text_of(blob: Blob) -> str:
    """Return the beginning of a text file, followed by the number of bytes that were left out, if any."""
    text = blob.read(0, _LONGEST_TEXT).decode("utf-8", "replace")
    left = blob.size - _LONGEST_TEXT
    return f"{text}\n[... {left:,} more bytes]" if left > 0 else text


class TextReader(RunReader):
    """Yields blocks of lines; the fields of a record are the kind of its block."""

    @abstractmethod
    def begins(self, line: str, following: str, kind: str) -> str:
        """Return the kind of the block that a line begins; empty if it continues the block of `kind`."""

    def records(self) -> Iterator[RawRecord]:
        """Yield every block."""
        begun, kind, end = self.probe.start, "", self.probe.start
        found = text_lines(self.probe.blob, self.probe.start)
        line = next(found, None)
        while line is not None:
            following = next(found, None)
            start, end, text = line
            fresh = self.begins(text, following[2] if following else "", kind)
            if fresh:
                if start > begun:
                    yield RawRecord(begun, start, kind)
                begun, kind = start, fresh
            line = following
        if end > begun:
            yield RawRecord(begun, end, kind)

    def load(self, blob: Blob, start: int, end: int) -> tuple[Json, str]:
        """Return the text of a block and an empty fault, or None and the fault if the block is too long."""
        if end - start > limits.RECORD:
            return None, f"is longer than {limits.RECORD >> 20} MB"
        return blob.read(start, end - start).decode("utf-8", "replace"), ""
