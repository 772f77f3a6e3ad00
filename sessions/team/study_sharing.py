"""Shares studies through a team's store: organisers share them, and other machines fetch them by id."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import select

from gistpoint.core.errors import UserError, did_you_mean
from gistpoint.core.locations import Locations
from gistpoint.core.ports import TimeSource
from gistpoint.core.study.operations import StudyError, StudyOpened
from gistpoint.core.study.reading import FILE as STUDY_FILE
from gistpoint.core.study.reading import read_study
from gistpoint.core.trees import sha256_of
from gistpoint.core.unfinished import mark
from gistpoint.sessions.machine import machine_of
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.store import FolderStore
from gistpoint.sessions.team.address import StoreAddress, UnreachableError
from gistpoint.sessions.team.blobs import get_blobs, put_blobs, whole_blob
from gistpoint.sessions.team.connecting import engine_of, reaching, require_schema, revision_of
from gistpoint.sessions.team.schema import studies
from gistpoint.sessions.team.study_archive import files_of, files_sha256, pack, unpack
from gistpoint.sessions.team.study_exchange import opened_in
from gistpoint.sessions.team.study_note import STUDIES, TeamNote, read_note, write_note
from gistpoint.sessions.team.study_store import TeamStudyStore

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class SharedStudy:
    """The result of sharing a study."""

    address: StoreAddress
    files: int
    """The number of files in the declaration."""
    new: bool
    """Whether the store did not contain the study until now."""
    replaced: bool
    """Whether the store contained another declaration of the study."""


def open_team_study(root: Path, note: TeamNote, locations: Locations, clock: TimeSource) -> StudyFolder:
    """Return the folder of a copy of a team's study, after updating it if the store answers.

    Raises `UserError` if the folder can't be used or contradicts its note.
    """
    if note.fetched:
        with suppress(UnreachableError):
            note = _refreshed(root, note)
    study = StudyFolder(root, locations, clock, lambda files: store_of(files, note))
    if study.study.id != note.study:
        raise StudyError(
            f"study.toml has the id {study.study.id!r}, but the folder is shared as {note.study!r}.",
            hint="Put the id back: a study keeps its id.",
        )
    study.reload()
    return study


def store_of(files: FolderStore, note: TeamNote) -> TeamStudyStore:
    """Return the store of which a folder is a copy."""
    return TeamStudyStore(files, note.study, note.address)


def damaged_declarations(connection: Connection, address: StoreAddress) -> Iterator[tuple[str, str]]:
    """Yield the id of each study whose declaration in the store is damaged, and describe the damage."""
    for name in connection.scalars(
        select(studies.c.id).where(studies.c.archive_sha256 != "").order_by(studies.c.id)
    ):
        with tempfile.TemporaryDirectory() as scratch:
            try:
                with _unpacked(connection, name, address, Path(scratch)):
                    pass
            except UserError as error:
                yield name, error.message


def fetched_studies(
    address: StoreAddress, locations: Locations, clock: TimeSource
) -> Iterator[TeamStudyStore]:
    """Yield the store of each study that was fetched from an address; it is closed afterwards.

    Raises `StudyError` if the note in a study's folder can't be read.
    """
    for root in sorted((locations.data / STUDIES).glob("*/")):
        note = read_note(root)
        if note is None or str(note.address) != str(address):
            continue
        copy = store_of(FolderStore(root, machine_of(locations.data), clock), note)
        try:
            yield copy
        finally:
            copy.close()


def share(study: StudyFolder, address: StoreAddress) -> SharedStudy:
    """Put a study or its changed declaration into a store, and make the folder a copy of it.

    To use the folder as a copy, open it again. Raises `UserError` if the store contains another study with
    its id, or can't be used.
    """
    note, files = read_note(study.root), files_of(study)
    found = files_sha256(files)
    with tempfile.TemporaryDirectory() as scratch, _connected(address) as connection:
        archive = Path(scratch) / "study.tar.zst"
        pack(files, archive)
        row = connection.execute(
            select(studies).where(studies.c.id == study.study.id).with_for_update()
        ).one_or_none()
        if row is not None:
            known = row.files_sha256 == found
            there = opened_in(connection, study.study.id)
            here = {fact.op for fact in study.ledger.study.all(StudyOpened)}
            copied = known and not (there and here and there.isdisjoint(here))
            _require_same(study, note, address, known=known, copied=copied)
        if row is None or row.files_sha256 != found:
            values = {
                "files_sha256": found,
                "archive_sha256": put_blobs(connection, [archive], secret=True)[0],
            }
            if row is None:
                connection.execute(studies.insert().values(id=study.study.id, **values))
            else:
                connection.execute(studies.update().where(studies.c.id == row.id).values(**values))
        elif sha256_of(archive) == row.archive_sha256:
            put_blobs(connection, [archive], secret=True)  # this restores pieces that the store has lost
    write_note(study.root, TeamNote(study=study.study.id, store=address.url, files_sha256=found))
    return SharedStudy(address, len(files), row is None, row is not None and row.files_sha256 != found)


def _require_same(
    study: StudyFolder, note: TeamNote | None, address: StoreAddress, *, known: bool, copied: bool
) -> None:
    """Raise `StudyError` if the folder must not replace the store's study with this id.

    This is the case if the store's study is a different one, or if the folder's declaration was changed
    without an amendment.
    """
    is_noted = note is not None and (note.study, note.address) == (study.study.id, address)
    if not is_noted and not copied:
        raise StudyError(
            f"The store {address} has another study with the id {study.study.id!r}.",
            hint="Give yours another id in study.toml; `gistpoint study progress ID` shows the other.",
        )
    if not known and study.ledger.opened is not None and study.ledger.protocol != study.protocol:
        raise StudyError(
            "The declaration was changed after it was put in force, so participants would be asked"
            " to consent to a different one.",
            hint="`gistpoint study amend DIR --why '...'` puts it in force, and shares it.",
        )


def fetch(name: str, address: StoreAddress, locations: Locations) -> Path:
    """Fetch the study with an id into the data folder, and return its folder.

    Raises `UserError` if the store can't be used or does not contain the study.
    """
    place = locations.data / STUDIES / name
    place.parent.mkdir(parents=True, exist_ok=True)
    with (
        _connected(address) as connection,
        _unpacked(connection, name, address, place.parent) as (folder, found),
    ):
        write_note(folder, TeamNote(study=name, store=address.url, files_sha256=found, fetched=True))
        with suppress(OSError):  # another process has fetched it first
            folder.rename(place)
    return place


def _refreshed(root: Path, note: TeamNote) -> TeamNote:
    """Replace the declaration in a fetched folder if another one was shared, and return the current note."""
    with _connected(note.address, prompt=True) as connection:
        asked = select(studies.c.files_sha256).where(studies.c.id == note.study)
        if connection.execute(asked).scalar() in (None, note.files_sha256):
            return note
        with _unpacked(connection, note.study, note.address, root.parent) as (folder, found):
            # The declaration comes last, so that it is never newer than the files that it names.
            for entry in sorted(folder.iterdir(), key=lambda path: (path.is_file(), path.name == STUDY_FILE)):
                old = root / entry.name
                if old.is_dir() and not old.is_symlink():
                    shutil.rmtree(old)
                entry.replace(old)
        fresh = TeamNote(study=note.study, store=note.store, files_sha256=found, fetched=True)
        write_note(root, fresh)
        return fresh


@contextmanager
def _unpacked(
    connection: Connection, name: str, address: StoreAddress, folder: Path
) -> Iterator[tuple[Path, str]]:
    """Unpack a study's declaration into a temporary folder, and yield the folder and the hash of its files.

    Raises `UserError` if the store does not contain the study, or its archive is damaged.
    """
    row = connection.execute(select(studies).where(studies.c.id == name)).one_or_none()
    if row is None:
        known = sorted(connection.execute(select(studies.c.id)).scalars())
        hint = (
            f"It has {', '.join(known[:10])}."
            if known
            else "It has no studies: `gistpoint study share DIR` puts one there."
        )
        raise StudyError(f"The store {address} has no study {name!r}.{did_you_mean(name, known)}", hint=hint)
    with tempfile.TemporaryDirectory(prefix=f".fetching-{mark()}-", dir=folder) as scratch:
        folder = Path(scratch) / "study"
        get_blobs(connection, [row.archive_sha256], Path(scratch), streamed=True)
        folder.mkdir()
        archive = whole_blob(Path(scratch), row.archive_sha256)
        if files_sha256(unpack(archive, folder)) != row.files_sha256 or read_study(folder).id != name:
            raise StudyError(
                f"The study {name!r} in the store {address} is not what was shared.",
                hint="Somebody who has its folder must share it again.",
            )
        yield folder, row.files_sha256


@contextmanager
def _connected(address: StoreAddress, *, prompt: bool = False) -> Iterator[Connection]:
    """Connect to a store for one transaction; `prompt` is as in `engine_of`.

    Raises `TeamStoreError` for a schema of another revision.
    """
    engine = engine_of(address, prompt=prompt)
    try:
        with reaching(address), engine.begin() as connection:
            require_schema(revision_of(connection))
            yield connection
    finally:
        engine.dispose()
