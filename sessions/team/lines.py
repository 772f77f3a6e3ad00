"""The lines of journals for a team's store: numbered, hashed and chained, whatever their content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gistpoint.core.attempts.events import AttemptEnded, AttemptStarted
from gistpoint.core.decoding import decodable
from gistpoint.core.logs import line_hash, sync_file
from gistpoint.sessions.heads import ELSEWHERE, HEADS, BrokenHeadError, Head, read_head
from gistpoint.sessions.journal import JOURNAL, decoded, first_event, is_open

_TAIL = 1 << 16
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{3,63}(~[0-9a-z]{6}(-[0-9]{1,3})?)*")


@dataclass(frozen=True, slots=True)
class JournalLine:
    """A line of a journal, without its newline."""

    seq: int
    data: bytes
    sha256: str


class BrokenChainError(ValueError):
    """Lines do not form a chain; `at` is the number of the first line that does not continue it."""

    def __init__(self, at: int) -> None:
        self.at = at
        super().__init__(f"The chain of hashes breaks at line {at}.")


class _Link(msgspec.Struct):
    seq: int
    prev: str


_LINK = msgspec.json.Decoder(decodable(_Link))


def chained(data: Iterable[bytes], seq: int = 0, head: str = "") -> list[JournalLine]:
    """Return the lines after the line `seq`, whose hash is `head`.

    Raises `BrokenChainError` if they do not continue the chain of that line.
    """
    found = []
    for line in data:
        try:
            link = _LINK.decode(line)
        except (ValueError, RecursionError) as error:
            raise BrokenChainError(seq + 1) from error
        continues = link.seq == seq + 1 and link.prev == head
        is_one_line = b"\n" not in line and b"\r" not in line
        if not continues or not is_one_line:
            raise BrokenChainError(seq + 1)
        seq, head = seq + 1, line_hash(line)
        found.append(JournalLine(seq, line, head))
    return found


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a journal: the bytes and the number of the lines before it, and the last line's hash."""

    offset: int = 0
    seq: int = 0
    head: str = ""

    def after(self, lines: list[JournalLine]) -> Position:
        """Return the position after `lines`, which follow this position."""
        if not lines:
            return self
        return Position(
            self.offset + sum(len(line.data) + 1 for line in lines), lines[-1].seq, lines[-1].sha256
        )


START = Position()
"""The position before the first line."""


def lines_after(path: Path, known: Position = START) -> list[JournalLine]:
    """Return the whole lines of a journal after a position.

    Raises `BrokenChainError` if they do not continue its chain, and OSError if the journal can't be read.
    """
    with path.open("rb") as file:
        file.seek(known.offset)
        data = file.read()
    return chained(data.split(b"\n")[:-1], known.seq, known.head)


def safe_lines(folder: Path, known: Position = START) -> list[JournalLine]:
    """Return the lines of an attempt after a position that are on disk, safe from power cuts.

    Raises `BrokenChainError` if they do not continue its chain, and OSError if the journal can't be read.
    """
    kept = head_kept(folder) if is_open(folder) else None  # before the journal, which may grow
    if kept is None:
        with (folder / JOURNAL).open("rb") as file:
            sync_file(file.fileno())
    lines = lines_after(folder / JOURNAL, known)
    return lines if kept is None else [line for line in lines if line.seq <= kept.seq]


def end_of(path: Path) -> Position | None:
    """Return the position after the last whole line of a journal, reading only its end.

    Returns None if there is no such line, or if it can't be read or decoded.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = min(size, _TAIL)
            while True:
                file.seek(size - length)
                data = file.read(length)
                whole = data.rfind(b"\n")
                begin = data.rfind(b"\n", 0, max(whole, 0))
                if (whole >= 0 and begin >= 0) or length == size:
                    break
                length = min(size, length * 8)
        if whole < 0:
            return None
        line = data[begin + 1 : whole]
        return Position(size - length + whole + 1, _LINK.decode(line).seq, line_hash(line))
    except (OSError, ValueError, RecursionError):
        return None


def head_kept(folder: Path) -> Head | None:
    """Return the head of an attempt's journal; None if there is none or it can't be read."""
    try:
        return read_head(folder)
    except BrokenHeadError:
        return None


def cut_at(lines: Sequence[JournalLine], kept: Head | None) -> int:
    """Return the number of the line at which a journal contradicts its head; 0 if there is none."""
    if kept is None or not kept.seq:
        return 0
    has_line = len(lines) >= kept.seq
    if has_line and lines[kept.seq - 1].sha256 == kept.sha256:
        return 0
    return min(len(lines), kept.seq)


def is_attempt_id(name: str) -> bool:
    """Return whether a name from a store is a valid id of an attempt or branch, and so can name a folder."""
    return bool(_ID.fullmatch(name)) and name not in (HEADS, ELSEWHERE)


def branch_of(name: str) -> tuple[str, str]:
    """Return the attempt and the machine in a branch's name; two empty strings if it is not one."""
    attempt, tilde, machine = name.rpartition("~")
    return (attempt, machine) if tilde else ("", "")


def header_of(line: bytes) -> dict[str, object] | None:
    """Return the columns of an attempt, by name, from its first line; None if the line does not begin one."""
    event = decoded(line)
    if event is None or not isinstance(event.data, AttemptStarted):
        return None
    begun = event.data
    return {
        "task": begun.task_id,
        "actor": begun.actor,
        "participant": begun.participant or "",
        "started_utc_ms": event.utc_ms,
    }


def is_of(line: bytes, name: str) -> bool:
    """Return whether a first line begins the attempt with this name, or the attempt of its branch."""
    event = decoded(line)
    begun = event.data if event is not None else None
    return isinstance(begun, AttemptStarted) and begun.attempt_id in (name, branch_of(name)[0])


def ends(line: bytes) -> bool:
    """Return whether a line ends its attempt."""
    if AttemptEnded.type.encode() not in line:
        return False
    event = decoded(line)
    return event is not None and isinstance(event.data, AttemptEnded)


def is_shared(folder: Path) -> bool:
    """Return whether an attempt is shared individually; studies share and erase their attempts themselves."""
    first = first_event(folder / JOURNAL)
    return first is not None and isinstance(first.data, AttemptStarted) and first.data.study is None
