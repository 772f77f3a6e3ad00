"""Side files: a folder with an append log (`core/logs`) of operations for each person.

Reviews, validations and readings share this code and differ only in their `Codec` (decision 69).

An unreadable line is skipped and reported, but never removed. A last line torn by a crash is reported, and
moved to another file at the next write.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.errors import UserError
from gistpoint.core.logs import AppendLog, LogKind, read_log, wait_for
from gistpoint.core.operations import LATEST_MS, LONGEST_NAME, Op, Operation, in_time, is_reviewer
from gistpoint.core.ports import TimeSource
from gistpoint.core.text import shortened


class CommentData(msgspec.Struct, frozen=True):
    """The data of a comment."""

    text: str = ""


class DeleteData(msgspec.Struct, frozen=True):
    """The data of an operation that withdraws the operation whose uuid is `target`."""

    target: str


@dataclass(frozen=True, slots=True)
class Codec(Generic[Op]):
    """Reads and writes the operations of one kind of side file: a header, then one object per line."""

    name: str
    version: int
    operation: type[Op]
    what: str
    """The word for an annotation in messages, such as `review` or `validation`."""
    error: type[UserError]
    as_text: Mapping[str, Callable[[str], object]] = field(default_factory=dict)
    """The members that are written with `str`, and the functions that parse them."""
    kinds: frozenset[str] = frozenset()
    """The kinds of operations that this version reads; empty if it does not distinguish any."""

    @property
    def header(self) -> bytes:
        """The first line of a file."""
        return json.dumps({"format": self.name, "version": self.version}).encode() + b"\n"

    @property
    def log(self) -> LogKind:
        """The kind of append log to which the files belong."""
        return LogKind(self.name, self.version, self.header, self.error)

    def encode(self, operation: Op) -> bytes:
        """Return the line of an operation, with its newline."""
        line = msgspec.to_builtins(operation)
        extra = line.pop("extra", {})
        for name in self.as_text:
            if name in line:
                line[name] = str(getattr(operation, name))
        return json.dumps(extra | line, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"

    def decode(self, line: bytes) -> Op | None:
        """Return the operation in a line; None for a header.

        Raises ValueError, with a sentence, if the line is neither.
        """
        try:
            return self._decoded(json.loads(line))
        except RecursionError as error:
            raise ValueError("It is nested too deeply.") from error

    def _decoded(self, value: Any) -> Op | None:
        if not isinstance(value, dict):
            raise ValueError("It is not an object.")
        if "format" in value and "op" not in value:
            version = value.get("version")
            if value["format"] != self.name or type(version) is not int or version > self.version:
                raise ValueError(f"It is not version {self.version} of {self.name}.")
            return None
        names = frozenset(self.operation.__struct_encode_fields__) - {"extra"}
        known = {name: item for name, item in value.items() if name in names}
        for name, parse in self.as_text.items():
            text = known.get(name)
            if isinstance(text, str):
                known[name] = parse(text)
            elif text is not None:
                raise ValueError(f"Its {name} is not a string.")
        extra = {name: item for name, item in value.items() if name not in names}
        return msgspec.convert(known | {"extra": extra}, decodable(self.operation))

    def name_of(self, name: str, person: str) -> str:
        """Return a name without leading and trailing spaces.

        Raises the codec's error if it is invalid; `person` is the word for its owner, such as `reviewer`.
        """
        if not is_reviewer(name.strip()):
            raise self.error(
                f"The name of the {person} can't be used.",
                hint=f"Choose a pseudonym of at most {LONGEST_NAME} characters.",
            )
        return name.strip()


State = TypeVar("State")


class Book(Generic[Op, State]):
    """A set of operations, in any order, and the resulting state for each subject and person."""

    def __init__(
        self, fold: Callable[[str, str, Iterable[Op]], State], operations: Iterable[Op] = ()
    ) -> None:
        """`fold` returns the state for a subject, a person, and the person's operations on the subject."""
        self._fold = fold
        self._operations: dict[str, Op] = {}
        self._places: dict[tuple[str, str], dict[str, Op]] = {}
        self._people: dict[str, set[str]] = {}
        """The people with operations on each subject."""
        self._folded: dict[tuple[str, str], State] = {}
        self._latest: dict[str, int] = {}
        for operation in operations:
            self.add(operation)

    def add(self, operation: Op) -> bool:
        """Add an operation; return False if its uuid is already known."""
        if operation.op in self._operations:
            return False
        self._operations[operation.op] = operation
        place = (operation.subject, operation.reviewer)
        self._places.setdefault(place, {})[operation.op] = operation
        self._people.setdefault(operation.subject, set()).add(operation.reviewer)
        self._folded.pop(place, None)
        self._latest[operation.reviewer] = max(self.latest_ms(operation.reviewer), operation.utc_ms)
        return True

    def latest_ms(self, reviewer: str) -> int:
        """Return the time of a person's last operation in milliseconds since 1970; 0 if there is none."""
        return self._latest.get(reviewer, 0)

    def get(self, op: str) -> Op | None:
        """Return the operation with this uuid; None if there is none."""
        return self._operations.get(op)

    @property
    def operations(self) -> tuple[Op, ...]:
        """All operations, by time."""
        return tuple(sorted(self._operations.values(), key=in_time))

    @property
    def reviewers(self) -> tuple[str, ...]:
        """The names of all people with operations, sorted."""
        return tuple(sorted({reviewer for _, reviewer in self._places}))

    def reviewers_of(self, subject: str) -> tuple[str, ...]:
        """Return the names of all people with operations on a subject, sorted."""
        return tuple(sorted(self._people.get(subject, ())))

    @property
    def subjects(self) -> tuple[str, ...]:
        """The subjects of all operations, sorted."""
        return tuple(sorted(self._people))

    def state(self, subject: str, reviewer: str) -> State:
        """Return the state that results from a person's operations on a subject, even if there are none."""
        place = (subject, reviewer)
        if place not in self._folded:
            self._folded[place] = self._fold(subject, reviewer, self._places.get(place, {}).values())
        return self._folded[place]

    def states(self) -> Iterator[State]:
        """Yield all states, sorted by subject and person."""
        for subject, reviewer in sorted(self._places):
            yield self.state(subject, reviewer)


BookT = TypeVar("BookT", bound=Book[Any, Any])
_SUFFIX = ".jsonl"
_MOST_PROBLEMS = 100
"""The maximum number of unreadable lines, and of repeated uuids, of a file that are reported one by one."""
_LONGEST_NAMED_UUID = 100
_MOST_UNREAD = 10_000
"""The number of unreadable lines after which reading stops, because the file must be something else."""


@dataclass(frozen=True, slots=True)
class ReadOperations(Generic[Op]):
    """The operations of a file, and its problems as sentences."""

    operations: tuple[Op, ...]
    lines: int
    """The number of whole lines, including the header."""
    problems: tuple[str, ...] = ()


def read_side_file(path: Path, codec: Codec[Op]) -> ReadOperations[Op]:
    """Return the operations in a file, and its problems; invalid lines are skipped.

    After more than `_MOST_UNREAD` invalid lines, nothing else is read. Raises the codec's error if the file
    can't be read or is too new.
    """
    try:
        content = read_log(path, codec.log)
    except OSError as error:
        raise codec.error(f"{path} can't be read: {error.strerror}.") from error
    operations: list[Op] = []
    problems: list[str] = []
    unread = 0
    for number, line in enumerate(content.lines, 1):
        if not line.strip():
            continue
        try:
            operation = codec.decode(line)
        except ValueError as error:
            unread += 1
            if unread > _MOST_UNREAD:
                problems.append(f"{path.name} is not a {codec.what}: nothing from line {number} on was read")
                break
            if unread <= _MOST_PROBLEMS:
                problems.append(f"{path.name}, line {number} is not an operation: {error}")
            continue
        if operation is not None:
            operations.append(operation)
    if _MOST_PROBLEMS < unread <= _MOST_UNREAD:
        problems.append(f"{path.name}: {unread - _MOST_PROBLEMS:,} more lines are not operations")
    if content.torn:
        problems.append(f"{path.name}, line {len(content.lines) + 1} was cut off while it was being written")
    return ReadOperations(tuple(operations), len(content.lines), tuple(problems))


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The result of a merge."""

    added: int
    known: int
    """The number of operations that were already known."""
    problems: tuple[str, ...] = ()
    by: Mapping[str, int] = field(default_factory=dict)
    """The number of added operations by person; anybody can write any name into a file."""


def file_name_of(person: str) -> str:
    """Return a name for a person's file or folder, whatever characters the person's name contains.

    A long name is shortened and made unique with a hash, because a non-Latin character may become six or more
    characters, and file systems allow at most 255.
    """
    name = quote(person, safe=" @+-_").replace(".", "%2E")
    if len(name) <= _LONGEST_FILE_NAME:
        return name
    return f"{name[:_LONGEST_FILE_NAME]}~{sha256(person.encode()).hexdigest()[:16]}"


_LONGEST_FILE_NAME = 200
_DAY_MS = 86_400_000


class SideFileStore(Generic[Op, BookT]):
    """The side files in a folder: all are read, and each operation is appended to its author's file."""

    def __init__(
        self, folder: Path, clock: TimeSource, codec: Codec[Op], new_book: Callable[[], BookT]
    ) -> None:
        """Read the files; the folder is created at the first write."""
        self.folder = folder
        self._clock = clock
        self.codec = codec
        self._new_book = new_book
        self._lock = Lock()
        self._last_ms: dict[str, int] = {}
        self.book: BookT = new_book()
        self.problems: tuple[str, ...] = ()
        """The problems of the files as sentences: lines that could not be read, and repeated uuids."""
        self.lines: dict[Path, int] = {}
        """The number of whole lines that were read from each file."""
        self.reload()

    def reload(self) -> None:
        """Read the files again, because others may have written to them.

        If two different operations have the same uuid, the first one counts and a problem reports the other:
        in a shared folder, anybody could hide another person's operation by repeating its uuid. Raises the
        codec's error if a file can't be read or is too new.
        """
        book, problems, lines = self._new_book(), list[str](), dict[Path, int]()
        for path in self.files():
            found = read_side_file(path, self.codec)
            problems += found.problems
            lines[path] = found.lines
            repeated = [
                operation.op
                for operation in found.operations
                if not book.add(operation) and book.get(operation.op) != operation
            ]
            for uuid in repeated[:_MOST_PROBLEMS]:
                name = shortened(uuid, _LONGEST_NAMED_UUID)
                problems.append(f"{path.name}: {name} is also the uuid of a different operation")
            if len(repeated) > _MOST_PROBLEMS:
                more = len(repeated) - _MOST_PROBLEMS
                problems.append(f"{path.name}: {more:,} more uuids are also those of different operations")
        self.book, self.problems, self.lines = book, tuple(problems), lines

    def files(self) -> list[Path]:
        """Return the side files of all people."""
        return list(_files([self.folder])) if self.folder.is_dir() else []

    def path_of(self, reviewer: str) -> Path:
        """Return the path of a person's file."""
        return self.folder / f"{file_name_of(reviewer)}{_SUFFIX}"

    def append(self, operations: Iterable[Op], *, durable: bool = True) -> int:
        """Write the operations that are not known yet, and return their number; `durable` syncs the files.

        Raises the codec's error if a file can't be written.
        """
        added = 0
        with self._lock:
            by_reviewer: dict[str, list[Op]] = {}
            for operation in operations:
                if self.book.get(operation.op) is None:
                    by_reviewer.setdefault(operation.reviewer, []).append(operation)
            for reviewer, new in by_reviewer.items():
                unique = list({operation.op: operation for operation in new}.values())
                self._write(self.path_of(reviewer), unique, durable=durable)
                added += sum(self.book.add(operation) for operation in unique)
        return added

    def merge(self, paths: Iterable[Path]) -> MergeResult:
        """Add the operations in files, or in folders of files, whose uuids are not known yet.

        If two different operations have the same uuid, the local one is kept and a problem reports it. For a
        file without any operation, such as an export, only the first problem and an explanation are reported,
        not one problem per line. Operations of unknown kinds are added too, for newer versions, and a problem
        names their kinds. Operations that are dated more than a day from now are left out, since they would
        override everything that their person does until then. Raises the codec's error if a file can't be
        read or written.
        """
        added = known = 0
        by: Counter[str] = Counter()
        latest = self._clock.utc_ms() + _DAY_MS
        problems: list[str] = []
        for path in _files(paths):
            found = read_side_file(path, self.codec)
            if found.problems and not found.operations:
                problems.append(found.problems[0])
                problems.append(
                    f"{path.name} does not contain any operations. Only the files in the folder"
                    f" {self.folder.name} in a data folder (`gistpoint admin paths`) can be merged, not an"
                    " export."
                )
            else:
                problems += found.problems
            problems += _unread_kinds(path.name, found.operations, self.codec.kinds)
            operations = [operation for operation in found.operations if operation.utc_ms <= latest]
            if len(operations) < len(found.operations):
                problems.append(
                    f"{path.name}: {len(found.operations) - len(operations):,} operations are left out, since"
                    " they are dated later than tomorrow by the clock of this machine"
                )
            for operation in operations:
                here = self.book.get(operation.op)
                if here is not None and here != operation:
                    problems.append(
                        f"{path.name}: {operation.op} is a different operation here; the local one is kept"
                    )
            new = {one.op: one.reviewer for one in operations if self.book.get(one.op) is None}
            count = self.append(operations)
            by.update(new.values())
            added += count
            known += len(operations) - count
        return MergeResult(added, known, tuple(problems), by)

    def lines_of(self, operations: Sequence[Op], log: AppendLog) -> list[bytes]:
        """Return the lines of operations that are appended to `log`, each with its newline."""
        return [self.codec.encode(operation) for operation in operations]

    def next_ms(self, reviewer: str) -> int:
        """Return a time in ms since 1970 for a person's next operation, later than that of the last one."""
        with self._lock:
            last = max(self._last_ms.get(reviewer, 0), self.book.latest_ms(reviewer))
            # A line with a later time would be unreadable.
            self._last_ms[reviewer] = min(max(self._clock.utc_ms(), last + 1), LATEST_MS - 1)
            return self._last_ms[reviewer]

    def _write(self, path: Path, operations: Sequence[Op], *, durable: bool) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with AppendLog(path, self.codec.log, wait_for(path)) as log:
                try:
                    log.append(b"".join(self.lines_of(operations, log)), durable=durable)
                except OSError:
                    log.remove_if_empty()
                    raise
        except OSError as error:
            raise self.codec.error(
                f"The {self.codec.what} can't be saved in {path}: {error.strerror}.",
                hint="Free some space, or make the folder writable.",
            ) from error


def _unread_kinds(name: str, operations: Iterable[Operation], kinds: Collection[str]) -> tuple[str, ...]:
    """Return one problem that names the kinds that this version does not read; empty if there are none."""
    unread = Counter(operation.kind for operation in operations if kinds and operation.kind not in kinds)
    if not unread:
        return ()
    named = ", ".join(f"{kind} ({count})" for kind, count in sorted(unread.items()))
    return (f"{name}: kept, but not read, since this version of gistpoint does not know the kind: {named}",)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.glob(f"*{_SUFFIX}"))
        else:
            yield path
