"""Erases people: each person's data are in separate files, which are deleted again if they reappear."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.logs import sync_folder, torn_path
from gistpoint.core.study.ledger import person_sha256
from gistpoint.core.study.operations import StudyError, writer_sha8
from gistpoint.core.study.ports import Erasure
from gistpoint.sessions.heads import HEADS, remove_head
from gistpoint.sessions.journal import JOURNAL, first_event, is_open
from gistpoint.sessions.studies.publishing import CONFLICT, read_note
from gistpoint.sessions.studies.writers import name_in, writer_of

LOG, ATTEMPTS, REVIEWS = "log", "attempts", "reviews"


@dataclass(frozen=True, slots=True)
class PersonsFiles:
    """The files and folders with data of some people."""

    logs: tuple[Path, ...] = ()
    attempts: tuple[Path, ...] = ()
    reviews: tuple[Path, ...] = ()
    """The files with their reviews."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files and folders."""
        return (*self.logs, *self.attempts, *self.reviews)


def leftovers(root: Path, erased: Collection[str], begun: Collection[str] = ()) -> PersonsFiles:
    """Return the files in a study's folder that contain the data of some people.

    `erased` are the hashes of the people's codes, and `begun` the ids of the attempts that the log assigns to
    them.
    """
    if not erased:
        return PersonsFiles()
    return PersonsFiles(
        tuple(path for path in _files(root / LOG) if _is_of(writer_of(path), erased)),
        tuple(place for place in _folders(root / ATTEMPTS) if _is_attempt_of(place, erased, begun)),
        tuple(path for path in _files(root / REVIEWS) if _is_of(writer_of(path), erased)),
    )


def local_leftovers(attempts: Path, study: str, erased: Collection[str]) -> tuple[Path, ...]:
    """Return the folders of erased people's attempts at a study below this machine's folder of attempts."""
    if not erased:
        return ()
    found = []
    for place in _folders(attempts):
        header = _header(place)
        if header is None or header.study != study:
            continue
        if _is_of(header.participant or "", erased):
            found.append(place)
    return tuple(found)


def delete(found: PersonsFiles) -> Erasure:
    """Delete files in a study's folder, and return the logs and attempts that were deleted."""
    for path in (*found.logs, *found.reviews):
        path.unlink(missing_ok=True)
    for place in found.attempts:
        if place.is_symlink():
            place.unlink()
        else:
            shutil.rmtree(place)
    for folder in {path.parent for path in found.paths}:
        sync_folder(folder)
    return Erasure(
        tuple(sorted({writer_sha8(writer_of(path)) for path in found.logs})),
        tuple(sorted({_identity(place) for place in found.attempts})),
    )


def refuse_open(found: Collection[Path]) -> None:
    """Raise `StudyError` if one of the attempts is open."""
    for place in found:
        if is_open(place):
            raise StudyError(
                f"Attempt {place.name} is open in another window or process, so it can't be deleted.",
                hint="Close it there, then run the command again.",
            )


def delete_local(found: Collection[Path]) -> tuple[str, ...]:
    """Delete attempts on this machine, with the heads of their journals, and return their ids."""
    for place in found:
        remove_head(place)
        shutil.rmtree(place)
    return tuple(place.name for place in found)


def _is_of(writer: str, erased: Collection[str]) -> bool:
    return person_sha256(name_in(writer)) in erased


def _is_attempt_of(place: Path, erased: Collection[str], begun: Collection[str]) -> bool:
    """Return whether a published attempt belongs to one of the people, by header, publisher or log."""
    header = _header(place)
    if header is not None and _is_of(header.participant or "", erased):
        return True
    note = read_note(place)
    if note is not None and _is_of(note.writer, erased):
        return True
    return _identity(place) in begun


def _identity(place: Path) -> str:
    """Return the id of an attempt from the name of its folder, which is different during publication."""
    return place.name.removeprefix(".").removesuffix(".tmp").partition(CONFLICT)[0]


def _header(place: Path) -> AttemptStarted | None:
    event = first_event(place / JOURNAL)
    if event is None or not isinstance(event.data, AttemptStarted):
        return None
    return event.data


def _files(folder: Path) -> list[Path]:
    """Return the logs in a folder, and the files with their torn lines."""
    if not folder.is_dir():
        return []
    return sorted({*folder.glob("*.jsonl"), *folder.glob(torn_path(Path("*.jsonl")).name)})


def _folders(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for place in sorted(folder.iterdir()):
        if place.is_dir() and place.name != HEADS:
            yield place
