"""The lines of a study's log, kept equal between this machine's folder and the team's store.

A line has its number in its writer's file. What one side has beyond the other is added there; a line that is another
one is an alarm, and is overwritten nowhere.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from sqlalchemy.exc import IntegrityError

from gistpoint.core.logs import sync_file, sync_folder, wait_for
from gistpoint.core.study.ledger import Ledger, person_sha256
from gistpoint.core.study.operations import Erased, StudyError, StudyOperation, StudyOperationKind, TakenBack
from gistpoint.sessions.studies.erasing import LOG
from gistpoint.sessions.studies.store import FolderStore
from gistpoint.sessions.studies.writers import name_in, writer_of
from gistpoint.sessions.team.study_tables import LogLine, StudyTables

DOUBTS = ".in-doubt"
"""The folder of notes in a study's folder, by uuid: operations that hold only once the store has them."""
_LOOK = "`gistpoint study audit` names all that differs; find out which was changed."


@dataclass(frozen=True, slots=True)
class LineExchange:
    """The log of a folder, and what one transaction sees of it in the store."""

    files: FolderStore
    tables: StudyTables

    def erased(self) -> set[str]:
        """Return the hashes of the people who were erased, as this machine or the store knows it."""
        found = set(Ledger(self.files.operations()).erased)
        for line in self.tables.erased():
            with suppress(ValueError):
                operation = self.files.log.codec.decode(line)
                said = operation.read(Erased) if operation is not None else None
                found |= {said.person_sha256} if said is not None else set()
        return found

    def fetch(self) -> None:
        """Add to the files what the store has beyond them. Raises `StudyError` for a line that is another one."""
        log, heads, gone = self.files.log, self.tables.heads(), self.erased()
        here = {writer_of(path): path.read_bytes().count(b"\n") for path in log.files()}
        self._compare_own([writer for writer in heads if self._is_own(writer)])
        behind = {
            writer: here.get(writer, 0)
            for writer, last in heads.items()
            if last > here.get(writer, 0) and not is_of(writer, gone)
        }
        if not behind:
            return
        log.folder.mkdir(parents=True, exist_ok=True)
        for writer, found in groupby(self.tables.beyond(behind), key=lambda row: row[0]):
            self._take_in(writer, behind[writer], [(number, line) for _, number, line in found])
        sync_folder(log.folder)

    def _is_own(self, writer: str) -> bool:
        return writer.endswith(f"@{self.files.machine}")

    def _compare_own(self, writers: Collection[str]) -> None:
        """Compare this machine's lines: its folder may be an older copy, to which other lines were added since."""
        for writer, (count, digest) in self.tables.digests(writers).items() if writers else ():
            path = self.files.log.path_of(writer)
            lines = [found.line for found in self.lines_of(path)[:count]] if path.exists() else []
            if len(lines) == count and digest_of(lines) != digest:
                there = [line for _, _, line in self.tables.beyond({writer: 0})]
                number = next((n for n, pair in enumerate(zip(lines, there, strict=False), 1) if pair[0] != pair[1]), 0)
                raise self._alarm(writer, number)

    def _take_in(self, writer: str, known: int, rows: Sequence[tuple[int, bytes]]) -> None:
        """Add lines to a writer's file, which had `known` lines when they were asked for."""
        lines = [line for place, (number, line) in enumerate(rows, known + 1) if number == place]
        with locked(self.files.log.path_of(writer)) as file:
            data = os.pread(file, os.fstat(file).st_size, 0)
            whole = data.rfind(b"\n") + 1
            since = data[:whole].split(b"\n")[:-1][known:]
            for number, (ours, theirs) in enumerate(zip(since, lines, strict=False), known + 1):
                if ours != theirs:
                    raise self._alarm(writer, number)
            new = b"".join(line + b"\n" for line in lines[len(since) :])
            if not new:
                return
            if not new.startswith(data[whole:]):  # a line that was torn here may be completed, and nothing else
                raise self._alarm(writer, known + 1 + len(since))
            os.ftruncate(file, whole)
            with os.fdopen(file, "ab", closefd=False) as out:
                out.write(new)
            sync_file(file)

    def send(self, *, first: bool = False) -> None:
        """Send the lines that the store lacks, and delete there what is of people who were erased.

        Raises `StudyError` for a line that is another one there, and, where a beginning has to be the `first` of its
        assignment, for one that is not.
        """
        if not first:
            self.take_back()
        log, heads, gone = self.files.log, self.tables.heads(), self.erased()
        self.tables.drop_writers(LOG, [writer for writer in heads if is_of(writer, gone)])
        for path in log.files():
            writer = writer_of(path)
            if is_of(writer, gone) or log.path_of(writer) != path:
                continue
            new = self.lines_of(path)[heads.get(writer, 0) :]
            if new:
                self._add(writer, new, first=first)

    def _add(self, writer: str, lines: Sequence[LogLine], *, first: bool) -> None:
        try:
            with self.tables.connection.begin_nested():
                differing = self.tables.add(writer, lines, first=first)
        except IntegrityError as error:
            if "study_begun_once" in str(error):
                raise StudyError(
                    "This task was begun on another machine at this moment.",
                    hint="Go on there, or ask the organiser to return it.",
                ) from error
            if "study_op_once" in str(error):
                raise StudyError(
                    f"An operation of {writer} stands in the team's store already, in another file or line.",
                    hint="Nothing was overwritten. Look for a line that was copied in the folder's log.",
                ) from error
            raise
        if differing is not None:
            raise self._alarm(writer, differing)

    def take_back(self) -> None:
        """Take back the plans and beginnings that are in doubt, as far as the store does not have them.

        Nobody acted on them: who recorded them was told that they do not hold.
        """
        doubts, heads = list(doubted(self.files.root)), self.tables.heads()
        unsent = {
            found.operation.op: found.operation
            for path in (self.files.log.files() if doubts else ())
            for found in self.lines_of(path)[heads.get(writer_of(path), 0) :]
            if found.operation is not None
        }
        for doubt in doubts:
            one = unsent.get(doubt.name)
            if one is not None:
                writing = FolderStore(self.files.root, self.files.machine, self.files.clock)  # this may be a thread
                back = TakenBack(target=one.op)
                writing.record(name_in(one.reviewer), one.subject, StudyOperationKind.DELETE, back)
            doubt.unlink(missing_ok=True)

    def lines_of(self, path: Path) -> list[LogLine]:
        """Return the whole lines of a file."""
        found = []
        for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
            operation: StudyOperation | None = None
            with suppress(ValueError):
                operation = self.files.log.codec.decode(line) if line.strip() else None
            found.append(LogLine(number, line, operation))
        return found

    def _alarm(self, writer: str, number: int) -> StudyError:
        return StudyError(
            f"Line {number} of {writer} in the study's log is another one in the team's store.",
            hint=f"Nothing was overwritten. {_LOOK}",
        )

    def differences(self) -> Iterator[str]:
        """Yield a sentence for each line in which the folder and the store differ."""
        digests, gone = self.tables.digests(), self.erased()
        here = {writer_of(path): [found.line for found in self.lines_of(path)] for path in self.files.log.files()}
        for writer in sorted(digests.keys() | here.keys()):
            lines = here.get(writer, [])
            if is_of(writer, gone):
                yield f"Somebody who was erased has a file in the log, or in the store: {writer}."
                continue
            if digests.get(writer) == (len(lines), digest_of(lines)):
                continue
            there = {number: line for _, number, line in self.tables.beyond({writer: 0})}
            for number, line in enumerate(lines, 1):
                if there.get(number) != line:
                    yield f"Line {number} of {writer} {'differs' if number in there else 'is missing in the store'}."
            for number in sorted(number for number in there if number > len(lines)):
                yield f"Line {number} of {writer} is missing here."


def doubt(root: Path, operation: StudyOperation) -> Path:
    """Note, before an operation is written to its file, that it holds only once the store has it; return the note."""
    note = root / DOUBTS / operation.op
    note.parent.mkdir(exist_ok=True)
    note.touch()
    sync_folder(note.parent)
    return note


def doubted(root: Path) -> Iterator[Path]:
    """Yield the notes of operations of which nobody knows whether the store has them; each is named by the uuid."""
    folder = root / DOUBTS
    if folder.is_dir():
        yield from sorted(folder.iterdir())


def is_of(writer: str, people: Collection[str]) -> bool:
    """Whether a file is of one of some people, by the hashes of their codes."""
    return bool(people) and person_sha256(name_in(writer)) in people


def digest_of(lines: Sequence[bytes]) -> str:
    """Return the sha256 of lines as the store computes it."""
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Open a file of the log, which is made if it is not there, as who appends to it does."""
    with wait_for(path) as lock:
        yield lock.file
