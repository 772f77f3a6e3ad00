"""Published journals: copies of attempts in a study's folder, each with a note of its size and last line.

An attempt is written in the data folder of its machine, and published whenever others may need it. A copy is
replaced only by a journal that extends it, so that two versions of an attempt are never mixed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.decoding import decodable
from gistpoint.core.locations import read_regular
from gistpoint.core.logs import line_hash, sync_file, sync_folder, wait_for
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.ports import Publication, PublishedAttempt
from gistpoint.sessions.attempt_copies import AttemptCopies
from gistpoint.sessions.journal import JOURNAL, decoded, first_event

PUBLISHED = "published.json"
FORMAT, VERSION = "gistpoint.published", 1
CONFLICT = "~"
"""Separates, in the name of a folder, an attempt's id from the head of a second journal of the attempt."""


class PublishedNote(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `published.json`: the journal's last hash, its size, and the writer `CODE@MACHINE`."""

    format: str = FORMAT
    version: int = VERSION
    head: str = ""
    bytes: int = 0
    writer: str = ""


def header_of(journal: bytes) -> AttemptStarted | None:
    """Return the header in a journal's first line; None if there is none."""
    event = decoded(journal.partition(b"\n")[0])
    if event is None or not isinstance(event.data, AttemptStarted):
        return None
    return event.data


def head_at(journal: bytes, size: int) -> str:
    """Return the hash of the journal line that ends after `size` bytes; empty if none ends there."""
    if not 0 < size <= len(journal) or journal[size - 1 : size] != b"\n":
        return ""
    return line_hash(journal[journal.rfind(b"\n", 0, size - 1) + 1 : size])


def publish(attempt: Path, into: Path, machine: str) -> Publication:
    """Copy the whole lines of the journal in the folder `attempt` into a folder of published attempts.

    Returns the outcome. Raises `StudyError` if the journal names no participant, or if the copy can't be
    written.
    """
    try:
        with wait_for(os.open(attempt, os.O_RDONLY)):  # one process on this machine at a time
            return _published(read_regular(attempt / JOURNAL), attempt.name, into, machine)
    except OSError as error:
        raise StudyError(
            f"Attempt {attempt.name} can't be published in {into.parent.name}: {error.strerror}.",
            hint="It is safe on this machine. `gistpoint study sync` publishes it later.",
        ) from error


def published(folder: Path) -> Iterator[PublishedAttempt]:
    """Yield the published attempts in a folder, sorted by id; one in conflict, once for each journal.

    A copy of a journal under another name is left out.
    """
    if not folder.is_dir():
        return
    copies = AttemptCopies(folder)
    for place in sorted(folder.iterdir()):
        is_folder_of_attempt = not place.name.startswith(".") and not place.is_symlink()
        if not is_folder_of_attempt or not _is_there(place / JOURNAL):
            continue
        identity = place.name.partition(CONFLICT)[0]
        event = first_event(place / JOURNAL)
        own_id = event.data.attempt_id if event is not None and isinstance(event.data, AttemptStarted) else ""
        if identity == place.name and copies.is_copy(identity, own_id):
            continue
        note = read_note(place) or PublishedNote()
        yield PublishedAttempt(identity, place / JOURNAL, note.head, note.bytes, note.writer)


def _is_there(journal: Path) -> bool:
    """Return whether a journal exists as a file; a link is refused, because it could lead to any file."""
    return journal.is_file() and not journal.is_symlink()


def read_note(place: Path) -> PublishedNote | None:
    """Return the note of a published journal; None if the note is missing or can't be read."""
    try:
        note = msgspec.json.decode(
            read_regular(place / PUBLISHED, links=False), type=decodable(PublishedNote)
        )
    except (OSError, ValueError, RecursionError):
        return None
    return note if (note.format, note.version) == (FORMAT, VERSION) else None


def put(journal: bytes, note: PublishedNote, identity: str, into: Path) -> Publication:
    """Add a journal to the published attempts in `into`, and return the outcome.

    A journal that extends the published one replaces it. A journal that contradicts it is added next to it.
    Raises OSError if files can't be read or written.
    """
    place = into / identity
    here = _journal_in(place)
    if here is None:
        _place(journal, note, place)
        return Publication.NEW
    if journal == here:
        noted = read_note(place)
        if noted is None or noted.bytes != len(journal):  # a process was killed between the two writes
            _replace(journal, note, place)
        return Publication.SAME
    if here.startswith(journal):
        return Publication.OLDER
    if journal.startswith(here):
        _replace(journal, note, place)
        return Publication.EXTENDED
    for conflicting in sorted(into.glob(f"{identity}{CONFLICT}*")):
        other = _journal_in(conflicting)
        if other is not None and other.startswith(journal):
            return Publication.CONFLICT
        if other is not None and journal.startswith(other):
            _replace(journal, note, conflicting)
            return Publication.CONFLICT
    _place(journal, note, into / f"{identity}{CONFLICT}{note.head[:8]}")
    return Publication.CONFLICT


def _published(data: bytes, identity: str, into: Path, machine: str) -> Publication:
    journal = data[: data.rfind(b"\n") + 1]
    header = header_of(journal)
    if header is None or not header.participant:
        raise StudyError(f"Attempt {identity} has no participant: it is not part of a study.")
    note = PublishedNote(
        head=head_at(journal, len(journal)), bytes=len(journal), writer=f"{header.participant}@{machine}"
    )
    return put(journal, note, identity, into)


def _journal_in(place: Path) -> bytes | None:
    try:
        return read_regular(place / JOURNAL, links=False)
    except FileNotFoundError:
        return None


def _place(journal: bytes, note: PublishedNote, place: Path) -> None:
    """Create the folder of a published attempt, which appears complete or not at all."""
    part = _written(journal, note, place)
    if place.is_dir():  # a synchronisation left the folder without a journal
        shutil.rmtree(place)
    part.rename(place)
    sync_folder(place.parent)


def _replace(journal: bytes, note: PublishedNote, place: Path) -> None:
    """Replace a published attempt.

    The journal is replaced before the note. If this stops halfway, readers find the note of the shorter
    journal, which is a prefix of the new one.
    """
    part = _written(journal, note, place)
    for name in (JOURNAL, PUBLISHED):
        (part / name).replace(place / name)
    sync_folder(place)
    part.rmdir()


def _written(journal: bytes, note: PublishedNote, place: Path) -> Path:
    part = place.with_name(f".{place.name}.tmp")
    if part.is_dir():
        shutil.rmtree(part)
    part.mkdir(parents=True)
    for name, data in ((JOURNAL, journal), (PUBLISHED, msgspec.json.encode(note) + b"\n")):
        file = os.open(part / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(file, "wb", closefd=False) as out:
                out.write(data)
            sync_file(file)
        finally:
            os.close(file)
    sync_folder(part)
    return part
