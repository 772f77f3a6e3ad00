"""Keeps a study's folder on this machine equal to the team's store: its log, journals and reviews.

A line of the log is identified by its writer and its number in the writer's file. Lines that only one side
has are added on the other; a line that differs is a conflict, and is never overwritten. Data of erased people
are deleted from the store, and neither sent nor fetched.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from gistpoint.core.locations import read_regular
from gistpoint.core.logs import line_hash, sync_file, sync_folder, wait_for
from gistpoint.core.study.ledger import Ledger, person_sha256
from gistpoint.core.study.operations import (
    ERASED,
    Erased,
    StudyError,
    StudyOperation,
    StudyOperationKind,
    TakenBack,
)
from gistpoint.core.study.ports import PublishedAttempt
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.studies.erasing import ATTEMPTS, LOG, REVIEWS
from gistpoint.sessions.studies.publishing import CONFLICT, PublishedNote, head_at, put
from gistpoint.sessions.studies.store import FolderStore
from gistpoint.sessions.studies.writers import name_in, writer_of
from gistpoint.sessions.team.annotations import exchange
from gistpoint.sessions.team.replication import (
    StoreHead,
    StoreLine,
    add,
    digests,
    drop,
    hashes,
    heads,
    lines_beyond,
    serialise,
    uuids,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

PENDING_CLAIMS = ".in-doubt"
"""The folder within a study's folder that names operations that are void unless the store has them."""
_LOOK = "`gistpoint study audit` names everything that differs; find out which side was changed."
_ERASED = text("SELECT line FROM lines WHERE file = :file AND subject = :erased")
_OPENED = text("SELECT op FROM lines WHERE file = :file AND kind = :opened")
_BEGUN = text(
    "SELECT assignment FROM lines WHERE file = :file AND kind = :begun AND assignment = ANY(:wanted)"
)
_FREE = text("UPDATE lines_of_studies SET assignment = NULL WHERE file = :file AND op = ANY(:ops)")


@dataclass(frozen=True, slots=True)
class StudyExchange:
    """Exchanges the data of a study with the store within one transaction."""

    files: FolderStore
    connection: Connection
    study: str

    def _file(self, folder: str) -> str:
        return f"studies/{self.study}/{folder}"

    def _heads(self, folder: str) -> dict[str, StoreHead]:
        return {writer: head for (_, writer), head in heads(self.connection, [self._file(folder)]).items()}

    def _drop(self, folder: str, writers: Collection[str]) -> None:
        drop(self.connection, self._file(folder), writers)

    def erased(self) -> set[str]:
        """Return the hashes of people who were erased according to this machine or the store."""
        found = set(Ledger(self.files.operations()).erased)
        asked = {"file": self._file(LOG), "erased": ERASED}
        for line in self.connection.scalars(_ERASED, asked):
            with suppress(ValueError):
                operation = self.files.log.codec.decode(bytes(line))
                fact = operation.read(Erased) if operation is not None else None
                if fact is not None:
                    found.add(fact.person_sha256)
        return found

    # The log

    def fetch_log(self) -> None:
        """Add the store's new lines to the files. Raises `StudyError` for a line that differs."""
        log, there, gone = self.files.log, self._heads(LOG), self.erased()
        here = {writer_of(path): read_regular(path, links=False).count(b"\n") for path in log.files()}
        self._compare_own([writer for writer in there if writer.endswith(f"@{self.files.machine}")])
        behind = {
            writer: here.get(writer, 0)
            for writer, last in there.items()
            if last.number > here.get(writer, 0) and not is_of(writer, gone)
        }
        if not behind:
            return
        log.folder.mkdir(parents=True, exist_ok=True)
        for writer, found in groupby(self._beyond(LOG, behind, there), attrgetter("writer")):
            self._take_in(writer, behind[writer], list(found))
        sync_folder(log.folder)

    def _beyond(
        self, folder: str, known: Mapping[str, int], last: Mapping[str, StoreHead]
    ) -> Iterator[StoreLine]:
        file = self._file(folder)
        numbers = {(file, writer): last[writer].number for writer in known}
        return lines_beyond(
            self.connection, {(file, writer): count for writer, count in known.items()}, numbers
        )

    def _compare_own(self, writers: Collection[str]) -> None:
        """Compare this machine's own lines, which differ if the folder was restored from an older copy.

        Raises `StudyError` for a line that differs.
        """
        for writer, (count, digest) in digests(self.connection, self._file(LOG), writers).items():
            path = self.files.log.path_of(writer)
            lines = lines_in(path)[:count]
            if len(lines) == count and digest_of(lines) != digest:
                for number, line in self._differing(writer, lines):
                    if line is not None:
                        raise self._conflict(writer, number, lines[number - 1], line)

    def _differing(self, writer: str, lines: Sequence[bytes]) -> Iterator[tuple[int, bytes | None]]:
        """Yield the number of each line that differs from the store's, and the store's line or None."""
        there = {line.number: line.data for line in self._all(LOG, writer)}
        for number, line in enumerate(lines, 1):
            if there.get(number) != line:
                yield number, there.get(number)

    def _all(self, folder: str, writer: str) -> Iterator[StoreLine]:
        source = (self._file(folder), writer)
        return lines_beyond(self.connection, {source: 0}, {source: 1})

    def _take_in(self, writer: str, known: int, rows: Sequence[StoreLine]) -> None:
        """Add the store's lines to a writer's file, which had `known` lines when they were requested.

        Raises `StudyError` for a line that differs.
        """
        lines = [row.data for place, row in enumerate(rows, known + 1) if row.number == place]
        with locked(self.files.log.path_of(writer)) as file:
            data = os.pread(file, os.fstat(file).st_size, 0)
            whole = data.rfind(b"\n") + 1
            since = data[:whole].split(b"\n")[:-1][known:]
            for number, (own, stored) in enumerate(zip(since, lines, strict=False), known + 1):
                if own != stored:
                    raise self._conflict(writer, number, own, stored)
            new = b"".join(line + b"\n" for line in lines[len(since) :])
            if not new:
                return
            # The new lines must complete the line that was torn here.
            if not new.startswith(data[whole:]):
                raise self._conflict(writer, known + 1 + len(since), data[whole:], lines[len(since)])
            os.ftruncate(file, whole)
            with os.fdopen(file, "ab", closefd=False) as out:
                out.write(new)
            sync_file(file)

    def send_log(self, *, first: bool = False) -> None:
        """Send the lines missing from the store, and delete lines of erased people there.

        Unless `first`, pending plans and starts are withdrawn first (`take_back`). Raises `StudyError`
        for a line that differs, and with `first` for the start of an assignment that has already begun.
        """
        if not first:
            self.take_back()
        log, there, gone = self.files.log, self._heads(LOG), self.erased()
        self._drop(LOG, [writer for writer in there if is_of(writer, gone)])
        new: list[tuple[StoreLine, StudyOperation | None]] = []
        for path in log.files():
            writer = writer_of(path)
            if not is_of(writer, gone) and log.path_of(writer) == path:
                new += self._lines(path, there.get(writer))
        if new:
            self._add(new, first=first)

    def _lines(
        self, path: Path, after: StoreHead | None
    ) -> Iterator[tuple[StoreLine, StudyOperation | None]]:
        """Yield the lines of a file after the store's last one, each with its operation if it is one."""
        known = after.number if after is not None else 0
        for number, line in enumerate(lines_in(path)[known:], known + 1):
            found = StoreLine(self._file(LOG), writer_of(path), number, line, self.files.machine)
            operation = self._decoded(line)
            yield (found if operation is None else _indexed(found, operation)), operation

    def _decoded(self, line: bytes) -> StudyOperation | None:
        with suppress(ValueError):
            return self.files.log.codec.decode(line) if line.strip() else None
        return None

    def _add(self, new: Sequence[tuple[StoreLine, StudyOperation | None]], *, first: bool) -> None:
        """Add lines to the store; a second start of an assignment is stored without claiming it.

        With `first` it is refused. A withdrawn start frees its assignment, which can be started again. Raises
        `StudyError` for a refused line, and for one that differs from the store's.
        """
        file, lines = self._file(LOG), [line for line, _ in new]
        deletions = [one for _, one in new if one is not None and one.kind == StudyOperationKind.DELETE]
        freed = {_plain(one.text("target")) for one in deletions}
        if not first:
            wanted = [line.assignment for line in lines if line.assignment]
            asked = {"file": file, "begun": StudyOperationKind.BEGUN.value, "wanted": wanted}
            taken = set(self.connection.scalars(_BEGUN, asked)) if wanted else set()
            lines = list(_claiming_once(lines, taken, freed))
        try:
            differing = add(self.connection, lines)
        except IntegrityError as error:
            raise _refusal(error, lines) from error
        if differing:
            mine = differing[0]
            there = next((one.data for one in self._all(LOG, mine.writer) if one.number == mine.number), b"")
            raise self._conflict(mine.writer, mine.number, mine.data, there)
        if freed:
            self.connection.execute(_FREE, {"file": file, "ops": sorted(freed)})

    def take_back(self) -> None:
        """Withdraw pending plans and starts that the store does not contain.

        Nobody has acted on them, because recording them failed with an error. The notes of all pending
        operations are deleted.
        """
        claims = list(pending_claims(self.files.root))
        if not claims:
            return
        there, unsent = self._heads(LOG), dict[str, StudyOperation]()
        for path in self.files.log.files():
            found = self._lines(path, there.get(writer_of(path)))
            unsent |= {one.op: one for _, one in found if one is not None}
        for claim in claims:
            one = unsent.get(claim.name)
            if one is not None:
                # This may run in a thread, which must not use the store of another thread.
                writing = FolderStore(self.files.root, self.files.machine, self.files.clock)
                back = TakenBack(target=one.op)
                writing.record(name_in(one.reviewer), one.subject, StudyOperationKind.DELETE, back)
            claim.unlink(missing_ok=True)

    def _conflict(self, writer: str, number: int, here: bytes, there: bytes) -> StudyError:
        return StudyError(
            f"Line {number} of {writer} in the study's log differs from the team's store:"
            f" {self._copies(writer, here, there)}.",
            hint=f"Nothing was overwritten. {_LOOK}",
        )

    def _copies(self, writer: str, here: bytes, there: bytes) -> str:
        file = self.files.log.path_of(writer).relative_to(self.files.root)
        return f"{_both_copies(line_hash(here), line_hash(there))} (file {file})"

    # Published journals, each in a separate place

    def fetch_journals(self) -> None:
        """Add the missing journals to the folder. Raises `StudyError` for a journal that was changed."""
        gone, there = self.erased(), self._heads(ATTEMPTS)
        here = {(one.id, one.head) for one in self.files.attempts()}
        wanted = {
            place: 0
            for place, head in there.items()
            if (_identity(place), head.sha256) not in here and not is_of(head.subject, gone)
        }
        for place, lines in groupby(self._beyond(ATTEMPTS, wanted, there), attrgetter("writer")):
            journal, head = b"".join(line.data + b"\n" for line in lines), there[place]
            if head_at(journal, len(journal)) != head.sha256 or not _is_name(_identity(place)):
                raise StudyError(
                    f"The journal of attempt {_identity(place)[:60]} in the team's store is not the one that"
                    " was sent.",
                    hint="It was not fetched. `gistpoint study audit` names everything that differs.",
                )
            note = PublishedNote(head=head.sha256, bytes=len(journal), writer=head.subject)
            put(journal, note, _identity(place), self.files.published)

    def send_journals(self) -> None:
        """Send the journals missing from the store, and delete journals of erased people there."""
        serialise(self.connection, self._file(ATTEMPTS))  # two journals must not be mixed in one place
        gone, there = self.erased(), self._heads(ATTEMPTS)
        self._drop(ATTEMPTS, [place for place, head in there.items() if is_of(head.subject, gone)])
        known = {(_identity(place), head.sha256) for place, head in there.items()}
        mine = [
            one
            for one in self.files.attempts()
            if (one.id, one.head) not in known and not is_of(one.writer, gone)
        ]
        ids = {one.id for one in mine}
        kept = hashes(
            self.connection, [(self._file(ATTEMPTS), place) for place in there if _identity(place) in ids]
        )
        places = {place: [sha256 for _, sha256, _ in found] for (_, place), found in kept.items()}
        add(self.connection, chain.from_iterable(self._unsent(one, places) for one in mine))

    def _unsent(self, one: PublishedAttempt, places: dict[str, list[str]]) -> Iterator[StoreLine]:
        """Yield the lines of a journal that are missing from its place in the store.

        `places` are the hashes of the lines in the store, by place, to which the yielded lines are added. A
        journal that continues none of them gets a new place.
        """
        lines = lines_in(one.journal)
        own = [line_hash(line) for line in lines]
        named = f"{one.id}{CONFLICT}{one.head[:8]}" if one.id in places else one.id
        fitting = (
            place
            for place, there in places.items()
            if (_identity(place), there[: len(own)]) == (one.id, own[: len(there)])
        )
        place = next(fitting, named)
        after = len(places.get(place, ()))
        places[place] = [*places.get(place, ()), *own[after:]]
        machine = one.writer.rpartition("@")[2]
        for number, line in enumerate(lines[after:], after + 1):
            yield StoreLine(self._file(ATTEMPTS), place, number, line, machine, subject=one.writer)

    # Reviews

    def exchange_reviews(self) -> None:
        """Merge the reviews of both sides, and delete those of erased people from the store.

        Raises `StudyError` for an operation that is invalid or differs.
        """
        file, gone = self._file(REVIEWS), self.erased()
        there = uuids(self.connection, [file])
        self._drop(REVIEWS, {writer for writer, _ in there.values() if is_of(writer, gone)})
        store = self._reviews()
        done = exchange(
            self.connection, {file: store}, self.files.machine, lambda person: _is_person(person, gone)
        )
        for place, conflict in done.conflicts.items():
            how = conflict.words or _both_copies(conflict.here, conflict.there)
            raise StudyError(
                f"The review {place[1][:60]} of {name_in(there[place][0])} differs from the one in the"
                f" team's store: {how.rstrip('.')}.",
                hint="Nothing was overwritten: find out which side was changed.",
            )

    def _reviews(self) -> ReviewStore:
        return ReviewStore(self.files.root / REVIEWS, self.files.clock)

    # Comparing

    def differences(self) -> Iterator[str]:
        """Yield a sentence for each line, journal and review in which the folder and the store differ."""
        there, gone = digests(self.connection, self._file(LOG)), self.erased()
        here = {writer_of(path): lines_in(path) for path in self.files.log.files()}
        for writer in sorted(there.keys() | here.keys()):
            lines = here.get(writer, [])
            if is_of(writer, gone):
                yield f"Somebody who was erased still has a file in the log or in the store: {writer}."
            elif there.get(writer) != (len(lines), digest_of(lines)):
                for number, line in self._differing(writer, lines):
                    how = "is missing in the store"
                    if line is not None:
                        how = f"differs: {self._copies(writer, lines[number - 1], line)}"
                    yield f"Line {number} of {writer} {how}."
                for row in self._all(LOG, writer):
                    if row.number > len(lines):
                        yield f"Line {row.number} of {writer} is missing here."
        yield from self._journal_differences()
        kept = {op for _, op in uuids(self.connection, [self._file(REVIEWS)])}
        for op in sorted(kept ^ {one.op for one in self._reviews().book.operations}):
            yield f"The review {op} is missing {'here' if op in kept else 'in the store'}."

    def _journal_differences(self) -> Iterator[str]:
        kept = digests(self.connection, self._file(ATTEMPTS))
        there = {(_identity(place), digest) for place, (_, digest) in kept.items()}
        here = {(one.id, digest_of(lines_in(one.journal))) for one in self.files.attempts()}
        lost, unsent = dict(there - here), dict(here - there)
        for identity in sorted(lost.keys() | unsent.keys()):
            if identity in lost and identity in unsent:
                how = f"differs: {_both_copies(unsent[identity], lost[identity])}"
            else:
                how = "is missing here" if identity in lost else "is missing in the store"
            yield f"The journal of attempt {identity} {how}."


def opened_in(connection: Connection, study: str) -> set[str]:
    """Return the uuids of the operations in the store that opened a study."""
    asked = {"file": f"studies/{study}/{LOG}", "opened": StudyOperationKind.OPENED.value}
    return set(connection.scalars(_OPENED, asked))


def _indexed(line: StoreLine, one: StudyOperation) -> StoreLine:
    """Return a line with its indexed members set from its operation, `one`."""
    assignment = one.text("assignment") if one.kind == StudyOperationKind.BEGUN else ""
    return replace(
        line,
        op=_plain(one.op),
        utc_ms=one.utc_ms,
        subject=_plain(one.subject),
        kind=_plain(one.kind),
        assignment=_plain(assignment) or None,
    )


def _claiming_once(
    lines: Sequence[StoreLine], taken: set[str], freed: Collection[str]
) -> Iterator[StoreLine]:
    """Yield the lines; only the first start of an assignment keeps the assignment's id."""
    for line in lines:
        if line.assignment in taken or line.op in freed:
            yield replace(line, assignment=None)
        else:
            taken |= {line.assignment} if line.assignment else set()
            yield line


def _refusal(error: IntegrityError, lines: Sequence[StoreLine]) -> StudyError:
    """Return the error for lines that an index of the store refuses; raise `error` for other causes."""
    if "beginning_once" in str(error):
        return StudyError(
            "This task has just been begun on another machine.",
            hint="Continue there, or ask the organiser to return it.",
        )
    if "operation_once" not in str(error):
        raise error
    writer = next((line.writer for line in lines if line.op and line.op in str(error.orig)), "a writer")
    return StudyError(
        f"An operation of {writer} is already in the team's store, in another file or line.",
        hint="Nothing was overwritten. Look in the folder's log for a line that was copied.",
    )


def note_claim(root: Path, operation: StudyOperation) -> Path:
    """Write a note that an operation, not yet written, is void unless the store has it; return its path."""
    note = root / PENDING_CLAIMS / operation.op
    note.parent.mkdir(exist_ok=True)
    note.touch()
    sync_folder(note.parent)
    return note


def pending_claims(root: Path) -> Iterator[Path]:
    """Yield the notes of operations that may be missing from the store; their names are the uuids."""
    folder = root / PENDING_CLAIMS
    if folder.is_dir():
        yield from sorted(folder.iterdir())


def is_of(writer: str, people: Collection[str]) -> bool:
    """Return whether a writer is one of `people`, given by the hashes of their codes."""
    return _is_person(name_in(writer), people)


def _is_person(name: str, people: Collection[str]) -> bool:
    return bool(people) and person_sha256(name) in people


def lines_in(path: Path) -> list[bytes]:
    """Return the whole lines of a file, without newlines; empty if the file is missing."""
    with suppress(FileNotFoundError):
        return read_regular(path, links=False).split(b"\n")[:-1]
    return []


def _both_copies(here: str, there: str) -> str:
    """Return a description of two differing copies, by their SHA-256."""
    return f"the copy in this folder has {here[:12]}, that in the team's store has {there[:12]}"


def digest_of(lines: Sequence[bytes]) -> str:
    """Return the SHA-256 of lines joined by newlines, as the store computes it."""
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Open and lock a file of the log, and yield its descriptor; a missing file is created."""
    with wait_for(path) as lock:
        yield lock.file


def _plain(value: str) -> str:
    """Return text without lone surrogates and NUL characters, which columns can't contain."""
    return value.encode("utf-8", "replace").decode().replace("\0", "?")


def _identity(place: str) -> str:
    """Return the id of the attempt whose journal is at a place."""
    return place.partition(CONFLICT)[0]


def _is_name(identity: str) -> bool:
    """Return whether an id from the store can be the name of a folder."""
    return bool(identity) and identity.replace("-", "").replace("_", "").isalnum()
