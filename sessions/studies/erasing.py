"""Erasing: all data of a person are in separate files, which are deleted whenever they turn up."""

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
    """The files of people who were, or are to be, erased."""

    logs: tuple[Path, ...] = ()
    attempts: tuple[Path, ...] = ()
    reviews: tuple[Path, ...] = ()
    """Files of their reviews."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files and folders."""
        return (*self.logs, *self.attempts, *self.reviews)


def leftovers(root: Path, erased: Collection[str], begun: Collection[str] = ()) -> PersonsFiles:
    """Return what a study's folder contains of people, by the hashes of their codes, and of the attempts
    `begun`.
    """
    if not erased:
        return PersonsFiles()
    return PersonsFiles(
        tuple(path for path in _files(root / LOG) if _is_of(writer_of(path), erased)),
        tuple(place for place in _folders(root / ATTEMPTS) if _attempt_of(place, erased, begun)),
        tuple(path for path in _files(root / REVIEWS) if _is_of(writer_of(path), erased)),
    )


def local_leftovers(attempts: Path, study: str, erased: Collection[str]) -> tuple[Path, ...]:
    """Return the attempts of a study below this machine's folder of attempts that are of these people."""
    found = []
    for place in _folders(attempts) if erased else []:
        header = _header(place)
        if header is not None and header.study == study and _is_of(header.participant or "", erased):
            found.append(place)
    return tuple(found)


def delete(found: PersonsFiles) -> Erasure:
    """Delete the found files of a study's folder."""
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
    """Raise `StudyError` if one of these attempts is open."""
    for place in found:
        if is_open(place):
            raise StudyError(
                f"Attempt {place.name} is open in another window or process, so it can't be deleted.",
                hint="Close it there, then run the command again.",
            )


def delete_local(found: Collection[Path]) -> tuple[str, ...]:
    """Delete attempts of this machine with the heads of their journals, and return their ids."""
    for place in found:
        remove_head(place)
        shutil.rmtree(place)
    return tuple(place.name for place in found)


def _is_of(writer: str, erased: Collection[str]) -> bool:
    return person_sha256(name_in(writer)) in erased


def _attempt_of(place: Path, erased: Collection[str], begun: Collection[str]) -> bool:
    """Whether a published attempt is of one of these people: by its header, by who published it, or by the
    log.
    """
    header, note = _header(place), read_note(place)
    return (
        (header is not None and _is_of(header.participant or "", erased))
        or (note is not None and _is_of(note.writer, erased))
        or _identity(place) in begun
    )


def _identity(place: Path) -> str:
    """Return the id of an attempt from the name of its folder, even while it is being published."""
    return place.name.removeprefix(".").removesuffix(".tmp").partition(CONFLICT)[0]


def _header(place: Path) -> AttemptStarted | None:
    event = first_event(place / JOURNAL)
    return event.data if event is not None and isinstance(event.data, AttemptStarted) else None


def _files(folder: Path) -> list[Path]:
    """Return the logs in a folder, and their torn-off lines."""
    logs = folder.glob("*.jsonl") if folder.is_dir() else ()
    return sorted({*logs, *folder.glob(torn_path(Path("*.jsonl")).name)})


def _folders(folder: Path) -> Iterator[Path]:
    for place in sorted(folder.iterdir()) if folder.is_dir() else []:
        if place.is_dir() and place.name != HEADS:
            yield place
