"""Published journals of a study, and what its reviewers said, kept equal between the folder and the team's store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.ports import PublishedAttempt
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.studies.erasing import REVIEWS
from gistpoint.sessions.studies.publishing import CONFLICT, PUBLISHED, PublishedNote, head_at, put
from gistpoint.sessions.studies.store import FolderStore
from gistpoint.sessions.team.study_lines import LineExchange, is_of
from gistpoint.sessions.team.study_tables import JournalRow, StudyTables


@dataclass(frozen=True, slots=True)
class JournalExchange:
    """The journals and reviews of a folder, and what one transaction sees of them in the store."""

    files: FolderStore
    tables: StudyTables

    def fetch(self) -> None:
        """Put the journals that are not here into the folder. Raises `StudyError` for one that is not what it was."""
        gone = self._erased()
        here = {(one.id, one.head, one.bytes) for one in self.files.attempts()}
        for row in self.tables.journals():
            note = _note(row)
            if (row.id, row.head, row.size) in here or is_of(note.writer, gone):
                continue
            journal = self.tables.journal(row.place)
            if not journal or head_at(journal, len(journal)) != row.head or not _is_name(row.id):
                raise StudyError(
                    f"The journal of attempt {row.id[:60]} in the team's store is not the one that was sent.",
                    hint="It was not taken. `gistpoint study audit` names all that differs.",
                )
            put(journal, note, row.id, self.files.published)

    def send(self) -> None:
        """Send the journals that the store lacks, and delete there those of people who were erased."""
        gone, rows = self._erased(), {row.place: row for row in self.tables.journals()}
        for row in list(rows.values()):
            if is_of(_note(row).writer, gone):
                self.tables.drop_journal(row.place)
                del rows[row.place]
        for one in self.files.attempts():
            known = [row for row in rows.values() if row.id == one.id]
            if not is_of(one.writer, gone) and all((row.head, row.size) != (one.head, one.bytes) for row in known):
                self._send(one, known)

    def _send(self, one: PublishedAttempt, known: list[JournalRow]) -> None:
        journal, note = one.journal.read_bytes(), (one.folder / PUBLISHED).read_bytes()
        place = f"{one.id}{CONFLICT}{one.head[:8]}" if any(row.place == one.id for row in known) else one.id
        row = JournalRow(place, one.id, head_at(journal, len(journal)), len(journal), note)
        shorter = next((old for old in known if head_at(journal, old.size) == old.head), None)
        if shorter is not None:
            self.tables.extend_journal(shorter, row, journal)
        elif not any(old.size > row.size and self.tables.journal(old.place).startswith(journal) for old in known):
            self.tables.add_journal(row, journal)

    def exchange_reviews(self) -> None:
        """Make the operations of reviewers those of both sides. Raises `StudyError` for one that is another there."""
        store, gone, there = self._reviews(), self._erased(), self.tables.review_lines()
        dropped = {writer for writer, _ in there.values() if is_of(writer, gone)}
        self.tables.drop_writers(REVIEWS, dropped)
        fetched = []
        for op, (writer, line) in there.items():
            operation, known = store.codec.decode(line), store.book.get(op)
            if operation is None or operation.op != op or (known is not None and known != operation):
                raise StudyError(
                    f"The review {op[:60]} of {writer} is another one in the team's store.",
                    hint="Nothing was overwritten: find out which was changed.",
                )
            if known is None and writer not in dropped:
                fetched.append(operation)
        store.append(fetched)
        for reviewer in store.book.reviewers:
            ours = [one for one in store.book.operations if one.reviewer == reviewer and one.op not in there]
            if ours and not is_of(reviewer, gone):
                self.tables.add_reviews(reviewer, [(one, store.codec.encode(one).rstrip(b"\n")) for one in ours])

    def differences(self) -> Iterator[str]:
        """Yield a sentence for each journal, and each review, in which the folder and the store differ."""
        there = set(self.tables.journal_digests().values())
        here = {(one.id, hashlib.sha256(one.journal.read_bytes()).hexdigest()) for one in self.files.attempts()}
        lost, unsent = ({identity for identity, _ in one} for one in (there - here, here - there))
        for identity in sorted(lost | unsent):
            how = "differs" if identity in lost & unsent else "is missing here"
            yield f"The journal of attempt {identity} {'is missing in the store' if identity not in lost else how}."
        reviews, book = self.tables.review_lines(), self._reviews().book
        for op in sorted(reviews.keys() ^ {one.op for one in book.operations}):
            yield f"The review {op} is missing {'here' if op in reviews else 'in the store'}."

    def _erased(self) -> set[str]:
        return LineExchange(self.files, self.tables).erased()

    def _reviews(self) -> ReviewStore:
        return ReviewStore(self.files.root / REVIEWS, self.files.clock)


def _note(row: JournalRow) -> PublishedNote:
    try:
        return msgspec.json.decode(row.note, type=PublishedNote)
    except ValueError:
        return PublishedNote(head=row.head, bytes=row.size)


def _is_name(identity: str) -> bool:
    """Whether an id from the store can be the name of a folder."""
    return bool(identity) and identity.replace("-", "").replace("_", "").isalnum()
