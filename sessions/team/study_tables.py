"""The rows of one study in a team's store: lines of its log, published journals, what reviewers said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import and_, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from gistpoint.core.operations import Operation
from gistpoint.core.study.operations import ERASED, StudyOperationKind
from gistpoint.sessions.studies.erasing import LOG, REVIEWS
from gistpoint.sessions.team.schema import study_attempts, study_lines

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

T = TypeVar("T")
_ROWS = 500
"""Rows of one statement at most: PostgreSQL takes 65,535 parameters."""
_BEYOND = text(
    "SELECT there.writer, there.number, there.line FROM study_op AS there "
    "JOIN unnest(CAST(:writers AS text[]), CAST(:counts AS int[])) AS here(writer, lines) "
    "ON there.writer = here.writer AND there.number > here.lines "
    "WHERE there.study = :study AND there.folder = 'log' ORDER BY there.writer, there.number"
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of the log as it stands in its file, without its end, and the operation in it, if it is one."""

    number: int
    line: bytes
    operation: Operation | None


@dataclass(frozen=True, slots=True)
class JournalRow:
    """A published journal as the store lists it."""

    place: str
    id: str
    head: str
    size: int
    note: bytes


@dataclass(frozen=True, slots=True)
class StudyTables:
    """What one transaction reads and writes of a study."""

    connection: Connection
    study: str

    def _of(self, folder: str) -> ColumnElement[bool]:
        return and_(study_lines.c.study == self.study, study_lines.c.folder == folder)

    # The log

    def heads(self) -> dict[str, int]:
        """Return the number of the last line of each writer."""
        asked = select(study_lines.c.writer, func.max(study_lines.c.number)).where(self._of(LOG))
        return {row[0]: row[1] for row in self.connection.execute(asked.group_by(study_lines.c.writer))}

    def beyond(self, counts: Mapping[str, int]) -> Iterator[tuple[str, int, bytes]]:
        """Yield writer, number and line of what follows the first lines of writers, in order."""
        given = {"study": self.study, "writers": list(counts), "counts": list(counts.values())}
        for writer, number, line in self.connection.execute(_BEYOND, given):
            yield writer, number, bytes(line)

    def digests(self, writers: Collection[str] | None = None) -> dict[str, tuple[int, str]]:
        """Return of each writer, or of some, how many lines there are, and the sha256 of them, joined by line ends."""
        joined = text("encode(sha256(string_agg(line, '\\x0a'::bytea ORDER BY number)), 'hex')")
        asked = select(study_lines.c.writer, func.count(), joined).where(self._of(LOG)).group_by(study_lines.c.writer)
        if writers is not None:
            asked = asked.where(study_lines.c.writer.in_(writers))
        return {writer: (count, digest) for writer, count, digest in self.connection.execute(asked)}

    def erased(self) -> Iterator[bytes]:
        """Yield the lines that say who was erased."""
        asked = select(study_lines.c.line).where(self._of(LOG), study_lines.c.subject == ERASED)
        for (line,) in self.connection.execute(asked):
            yield bytes(line)

    def add(self, writer: str, lines: Sequence[LogLine], *, first: bool = False) -> int | None:
        """Add lines of a writer; return the number of one that is another there already, None if there is none.

        A second beginning of an assignment is kept and does not hold it; with `first` it raises `IntegrityError`.
        """
        taken = set() if first else self._taken(lines)
        for some in _parts(lines):
            rows = [self._row(LOG, writer, found.number, found.line, found.operation, taken) for found in some]
            adding = insert(study_lines).values(rows).on_conflict_do_nothing(index_elements=study_lines.primary_key)
            added = set(self.connection.execute(adding.returning(study_lines.c.number)).scalars())
            known = {found.number: found.line for found in some if found.number not in added}
            if known:
                at = and_(self._of(LOG), study_lines.c.writer == writer, study_lines.c.number.in_(known))
                for number, line in self.connection.execute(select(study_lines.c.number, study_lines.c.line).where(at)):
                    if bytes(line) != known[number]:
                        return int(number)
            for found in some:
                if found.operation is not None and found.operation.kind == StudyOperationKind.DELETE:
                    self._free(found.operation.text("target"))
        return None

    def _taken(self, lines: Iterable[LogLine]) -> set[str]:
        """Return which of the assignments that lines begin are begun already."""
        begun = [found.operation for found in lines if found.operation is not None and _begins(found.operation)]
        wanted = [_plain(one.text("assignment")) for one in begun]
        if not wanted:
            return set()
        at = and_(self._of(LOG), study_lines.c.kind == StudyOperationKind.BEGUN.value)
        asked = select(study_lines.c.assignment).where(at, study_lines.c.assignment.in_(wanted))
        return {str(one) for one in self.connection.execute(asked).scalars()}

    def _free(self, op: str) -> None:
        """Let an assignment be begun again whose beginning was taken back."""
        at = and_(self._of(LOG), study_lines.c.op == _plain(op))
        self.connection.execute(update(study_lines).where(at).values(assignment=None))

    def opened(self) -> set[str]:
        """Return the uuids of the operations that open the study."""
        at = and_(self._of(LOG), study_lines.c.kind == StudyOperationKind.OPENED.value)
        return {str(op) for op in self.connection.execute(select(study_lines.c.op).where(at)).scalars()}

    def drop_writers(self, folder: str, writers: Collection[str]) -> None:
        """Delete all lines of writers."""
        if writers:
            at = and_(self._of(folder), study_lines.c.writer.in_(writers))
            self.connection.execute(study_lines.delete().where(at))

    def _row(
        self, folder: str, writer: str, number: int, line: bytes, operation: Operation | None, taken: Collection[str]
    ) -> dict[str, Any]:
        row: dict[str, Any] = {"study": self.study, "folder": folder, "writer": writer, "number": number, "line": line}
        row |= dict.fromkeys(("op", "utc_ms", "subject", "kind", "assignment"))
        if operation is not None:
            row |= {"op": _plain(operation.op), "subject": _plain(operation.subject), "kind": _plain(operation.kind)}
            row["utc_ms"] = operation.utc_ms
            assignment = _plain(operation.text("assignment")) if _begins(operation) else ""
            row["assignment"] = assignment if assignment and assignment not in taken else None
        return row

    # Reviews: a reviewer may write on several machines, so that their operations are a set

    def review_lines(self) -> dict[str, tuple[str, bytes]]:
        """Return writer and line of each operation of reviewers."""
        asked = select(study_lines.c.op, study_lines.c.writer, study_lines.c.line).where(self._of(REVIEWS))
        return {op: (writer, bytes(line)) for op, writer, line in self.connection.execute(asked)}

    def add_reviews(self, writer: str, lines: Iterable[tuple[Operation, bytes]]) -> None:
        """Add operations of a reviewer; those that another machine adds at this moment are added at the next call."""
        at = and_(self._of(REVIEWS), study_lines.c.writer == writer)
        last = self.connection.execute(select(func.coalesce(func.max(study_lines.c.number), 0)).where(at)).scalar_one()
        numbered = list(enumerate(lines, int(last) + 1))
        for some in _parts(numbered):
            rows = [self._row(REVIEWS, writer, number, line, operation, ()) for number, (operation, line) in some]
            self.connection.execute(insert(study_lines).values(rows).on_conflict_do_nothing())

    # Published journals

    def journals(self) -> list[JournalRow]:
        """List the published journals."""
        table = study_attempts.c
        asked = select(table.place, table.id, table.head, func.octet_length(table.journal), table.note)
        rows = self.connection.execute(asked.where(table.study == self.study).order_by(table.place))
        return [JournalRow(place, identity, head, size, bytes(note)) for place, identity, head, size, note in rows]

    def journal(self, place: str) -> bytes:
        """Return a published journal, empty if it is gone."""
        asked = select(study_attempts.c.journal).where(self._at(place))
        return bytes(self.connection.execute(asked).scalar() or b"")

    def journal_digests(self) -> dict[str, tuple[str, str]]:
        """Return the attempt's id and the sha256 of each published journal, by its place."""
        table = study_attempts.c
        asked = select(table.place, table.id, text("encode(sha256(journal), 'hex')")).where(table.study == self.study)
        return {place: (identity, digest) for place, identity, digest in self.connection.execute(asked)}

    def add_journal(self, row: JournalRow, journal: bytes) -> None:
        """Keep a journal, unless its place is taken."""
        values = {"place": row.place, "id": row.id, "head": row.head, "journal": journal, "note": row.note}
        self.connection.execute(insert(study_attempts).values(study=self.study, **values).on_conflict_do_nothing())

    def extend_journal(self, before: JournalRow, row: JournalRow, journal: bytes) -> None:
        """Replace a journal by one that extends it, unless somebody else was faster."""
        at = and_(self._at(before.place), study_attempts.c.head == before.head)
        values = {"head": row.head, "journal": journal, "note": row.note}
        self.connection.execute(update(study_attempts).where(at).values(**values))

    def drop_journal(self, place: str) -> None:
        """Delete a journal."""
        self.connection.execute(study_attempts.delete().where(self._at(place)))

    def _at(self, place: str) -> ColumnElement[bool]:
        return and_(study_attempts.c.study == self.study, study_attempts.c.place == place)


def _begins(operation: Operation) -> bool:
    return operation.kind == StudyOperationKind.BEGUN


def _plain(value: str) -> str:
    """Return a text as a column can hold it: without lone surrogates and zeros."""
    return value.encode("utf-8", "replace").decode().replace("\0", "?")


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _ROWS):
        yield items[start : start + _ROWS]
