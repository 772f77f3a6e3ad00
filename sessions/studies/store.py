"""The folder of a study as its store: a log with a file for each writer, and the published journals.

Each file has only one writer, `NAME@MACHINE`, so that the folder can be shared, synchronised or merged by
hand without locks.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.logs import AppendLog, NoLocksError, line_hash, read_log, wait_for
from gistpoint.core.operations import in_time
from gistpoint.core.ports import TimeSource
from gistpoint.core.study.ledger import Ledger, person_sha256
from gistpoint.core.study.operations import (
    ERASED,
    FORMAT,
    ORGANISER,
    VERSION,
    Erased,
    Fact,
    Planned,
    StudyError,
    StudyOperation,
    StudyOperationKind,
    writer_sha8,
)
from gistpoint.core.study.ports import Erasure, Publication, PublishedAttempt
from gistpoint.core.study.residue import residue_of
from gistpoint.sessions.annotations.side_files import Book, Codec, SideFileStore, read_side_file
from gistpoint.sessions.studies.erasing import ATTEMPTS, LOG, REVIEWS, PersonsFiles, delete, leftovers
from gistpoint.sessions.studies.help_gists import FOLDER as HELP
from gistpoint.sessions.studies.pseudonyms import PRIVATE
from gistpoint.sessions.studies.publishing import publish, published
from gistpoint.sessions.studies.writers import checked_code, name_in, writer_of

SUM = "sum"
"""The member of a line that contains the checksum of its operation."""
PREVIOUS = "prev"
"""The member with the hash of the previous line, which is not part of the operation (decision 165)."""


class StudyCodec(Codec[StudyOperation]):
    """Reads and writes the lines of a study's log, each linked to the line before it."""

    def decode(self, line: bytes) -> StudyOperation | None:
        """Return the operation in a line, without its link; None for a header.

        Raises ValueError, with a sentence, if the line is neither.
        """
        operation = super().decode(line)
        if operation is None or PREVIOUS not in operation.extra:
            return operation
        extra = {name: value for name, value in operation.extra.items() if name != PREVIOUS}
        return msgspec.structs.replace(operation, extra=extra)

    def encode_after(self, line: bytes, operation: StudyOperation) -> bytes:
        """Return the line of an operation that follows `line`, with its newline."""
        linked = {**operation.extra, PREVIOUS: link_to(line)}
        return self.encode(msgspec.structs.replace(operation, extra=linked))


def link_to(line: bytes) -> str:
    """Return the first 16 digits of a line's SHA-256, with which the next line is linked to it."""
    return line_hash(line)[:16]


CODEC = StudyCodec(FORMAT, VERSION, StudyOperation, "study's log", StudyError)

StudyBook = Book[StudyOperation, tuple[StudyOperation, ...]]
T = TypeVar("T")


def checksum(operation: StudyOperation) -> str:
    """Return the first 16 digits of an operation's SHA-256, which reveals any change to its line.

    The result is empty for an operation with values such as NaN, which only other programs can write.
    """
    members = (
        operation.op,
        operation.reviewer,
        operation.utc_ms,
        operation.subject,
        operation.kind,
        operation.data,
    )
    try:
        return sha256_of_json(members)[:16]
    except ValueError:
        return ""


def summed(operation: StudyOperation) -> StudyOperation:
    """Return an operation with its checksum, which is part of every copy of it."""
    if SUM in operation.extra:
        return operation
    return msgspec.structs.replace(operation, extra={**operation.extra, SUM: checksum(operation)})


class StudyLog(SideFileStore[StudyOperation, StudyBook]):
    """The log of a study: all files are read, and each operation is appended to its writer's file."""

    def __init__(self, folder: Path, clock: TimeSource) -> None:
        """Read the files; the folder is created at the first write."""
        super().__init__(
            folder, clock, CODEC, lambda: Book(lambda subject, writer, operations: tuple(operations))
        )

    def lines_of(self, operations: Sequence[StudyOperation], log: AppendLog) -> list[bytes]:
        """Return the lines of operations, the first of which is linked to the last line of `log`."""
        lines, last = list[bytes](), log.last_line()
        for operation in operations:
            last = CODEC.encode_after(last, operation)
            lines.append(last)
        return lines

    def basis(self) -> dict[str, int]:
        """Return the number of whole lines read from each file, by the hash of the file's writer."""
        return {writer_sha8(writer_of(path)): lines for path, lines in self.lines.items()}

    def append(self, operations: Iterable[StudyOperation], *, durable: bool = True) -> int:
        """Write the operations that are not known yet, with their checksums, and return their number.

        They are synced to disk if `durable`.
        """
        new = [summed(operation) for operation in operations]
        added = super().append(new, durable=durable)
        for path in {self.path_of(operation.reviewer) for operation in new} if added else ():
            self._read_again(path, added)
        return added

    def _read_again(self, path: Path, added: int) -> None:
        """Count the lines of a file after writing to it, and read those that another process has written."""
        lines = len(read_log(path, self.codec.log).lines)
        if lines != self.lines.get(path, 1) + added:
            found = read_side_file(path, self.codec)
            lines = found.lines
            for operation in found.operations:
                self.book.add(operation)
        self.lines[path] = lines

    def places_of(self, code: str) -> dict[str, tuple[str, int]]:
        """Return the place of each operation in a person's files, by the operation's id.

        A place is the hash of the writer and the number of the line, counted from 1.
        """
        found: dict[str, tuple[str, int]] = {}
        for path in self.files():
            if name_in(writer_of(path)) != code:
                continue
            for number, line in enumerate(read_log(path, self.codec.log).lines, 1):
                operation = self._decoded(line)
                if operation is not None:
                    found.setdefault(operation.op, (writer_sha8(writer_of(path)), number))
        return found

    def at(self, basis: Mapping[str, int]) -> tuple[StudyOperation, ...]:
        """Return the operations in the first lines of each file: as many as `basis` counts for its writer."""
        found: dict[str, StudyOperation] = {}
        for path in self.files():
            count = basis.get(writer_sha8(writer_of(path)), 0)
            for line in read_log(path, self.codec.log).lines[:count]:
                operation = self._decoded(line)
                if operation is not None:
                    found.setdefault(operation.op, operation)  # the first one counts, as in `Book.add`
        return tuple(sorted(found.values(), key=in_time))

    def _decoded(self, line: bytes) -> StudyOperation | None:
        try:
            return self.codec.decode(line) if line.strip() else None
        except ValueError:
            return None


def refuse_links(root: Path) -> None:
    """Raise `StudyError` if a folder that gistpoint uses in a study's folder is a link.

    Otherwise, anybody who shares the folder could make gistpoint read and write in other folders.
    """
    for name in (LOG, ATTEMPTS, REVIEWS, HELP, PRIVATE):
        if (root / name).is_symlink():
            raise StudyError(
                f"{name} in the study's folder is a link, which may lead to any of your folders.",
                hint="Replace it with the folder itself.",
            )


class FolderStore:
    """A folder as the store of a study; see `StudyStore`."""

    def __init__(self, root: Path, machine: str, clock: TimeSource) -> None:
        """`machine` is the result of `machine_of`.

        Raises `StudyError` if a folder that gistpoint uses in the study's folder is a link.
        """
        self.root, self.machine, self.clock = root, machine, clock
        refuse_links(root)
        self.log = StudyLog(root / LOG, clock)

    @property
    def away(self) -> str:
        """An empty string, because the folder can always be reached."""
        return ""

    def reload(self) -> None:
        """Read the log again, because others may have written to it."""
        self.log.reload()

    def exclusively(self, act: Callable[[], T]) -> T:
        """Read the log again, call `act` and return its result, one process on this machine at a time."""
        with self.alone():
            self.reload()
            return act()

    @contextmanager
    def alone(self, *, writing: bool = True) -> Iterator[None]:
        """Lock the log's folder against other processes on this machine; unless `writing`, share the lock."""
        self.log.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            with suppress(NoLocksError):  # concurrent plans are merely less balanced
                held.enter_context(wait_for(os.open(self.log.folder, os.O_RDONLY), shared=not writing))
            yield

    def send(self) -> None:
        """Do nothing, because everybody with the folder already has all data."""

    def send_soon(self) -> None:
        """Do nothing, because everybody with the folder already has all data."""

    def differences(self) -> Iterator[str]:
        """Yield nothing, because there is no other copy to differ from."""
        yield from ()

    def operations(self) -> tuple[StudyOperation, ...]:
        """Return all operations in chronological order."""
        return self.log.book.operations

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each unreadable line of the log."""
        return self.log.problems

    def basis(self) -> dict[str, int]:
        """Return the number of lines that were read from each writer, by the writer's hash (8 digits)."""
        return self.log.basis()

    def operations_at(self, basis: Mapping[str, int]) -> tuple[StudyOperation, ...]:
        """Return the operations in the lines that `basis` counts for each writer, in chronological order."""
        return self.log.at(basis)

    def append(self, operations: Iterable[StudyOperation]) -> int:
        """Write the operations that are not known yet, synced to the disk, and return their number."""
        return self.log.append(operations)

    def writer(self, name: str) -> str:
        """Return the writer of facts that this machine records about a participant, or as the organiser.

        Raises `StudyError` if the code is invalid.
        """
        return f"{name if name == ORGANISER else checked_code(name)}@{self.machine}"

    def record(
        self, name: str, subject: str, kind: StudyOperationKind, data: Fact | None = None
    ) -> StudyOperation:
        """Append an operation with the current time to a participant's or the organiser's file; return it.

        It is synced to the disk on return.
        """
        operation = self.operation(name, subject, kind, data)
        self.append([operation])
        return operation

    def operation(
        self, name: str, subject: str, kind: StudyOperationKind, data: Fact | None = None
    ) -> StudyOperation:
        """Return an operation with the current time, without writing it."""
        writer = self.writer(name)
        members = msgspec.to_builtins(data) if data is not None else {}
        for about in Fact.__struct_fields__:
            members.pop(about, None)
        now = self.log.next_ms(writer)
        return summed(StudyOperation(str(uuid.uuid4()), writer, now, subject, kind.value, members))

    @property
    def published(self) -> Path:
        """The folder of published journals."""
        return self.root / ATTEMPTS

    def publish(self, folder: Path) -> Publication:
        """Publish the current journal in an attempt's folder; return the outcome.

        Raises `StudyError` if the journal names no participant, or if the copy can't be written.
        """
        return publish(folder, self.published, self.machine)

    def attempts(self) -> Iterator[PublishedAttempt]:
        """Yield the published journals, oldest first."""
        yield from published(self.published)

    def attempt(self, identity: str) -> PublishedAttempt | None:
        """Return the published journal of an attempt; None if there is none."""
        return next((attempt for attempt in self.attempts() if attempt.id == identity), None)

    def erase(self, code: str) -> Erasure:
        """Delete all files of a person, and return what was deleted.

        The hash of the code is recorded first, so that copies that reappear are deleted too. Raises
        `StudyError` if the code is invalid.
        """
        who = person_sha256(checked_code(code))
        ledger = Ledger(self.operations())
        if ledger.is_erased(code):
            return self.sweep()
        person = ledger.person(code)
        ends = Counter(end.end for end in person.finished.values())
        begun = frozenset(fact.attempt for facts in person.begun.values() for fact in facts)
        if unfinished := len(begun - person.finished.keys()):
            ends[UNFINISHED] = unfinished
        found = leftovers(self.root, {who}, begun)
        places = self.log.places_of(code)
        bases = [plan.basis for _, one in ledger.people.items() for plan in one.facts.all(Planned)]
        erased = Erased(
            person_sha256=who,
            counts=dict(ends),
            logs=_logs(found),
            residue=residue_of(person, places, bases),
            covered={log: lines for log, lines in self.basis().items() if log in _logs(found)},
        )
        self._record_erasure(erased)
        erasure = delete(found)
        self.reload()
        return erasure

    def sweep(self) -> Erasure:
        """Delete reappeared data of erased people, and return what was deleted."""
        erased = Ledger(self.operations()).erased
        found = leftovers(self.root, erased.keys())
        if not found.paths:
            return Erasure()
        for who, known in erased.items():
            logs = _logs(leftovers(self.root, {who}))
            if new := set(logs) - set(known.logs):
                every = tuple(sorted(new | set(known.logs)))
                self._record_erasure(msgspec.structs.replace(known, logs=every))
        erasure = delete(found)
        self.reload()
        return erasure

    def _record_erasure(self, erased: Erased) -> None:
        self.record(ORGANISER, ERASED, StudyOperationKind.ERASED, erased)


UNFINISHED = "unfinished"
"""The key of attempts without an end in the counts of an erased person's attempts."""


def _logs(found: PersonsFiles) -> tuple[str, ...]:
    return tuple(sorted({writer_sha8(writer_of(path)) for path in found.logs}))
