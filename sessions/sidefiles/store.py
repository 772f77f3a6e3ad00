"""A folder of side files: one append-only JSONL of operations for each person.

A line that can't be read, such as a last one torn by a crash, is passed over and told; it is never removed.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Generic, Protocol, TypeVar, cast
from urllib.parse import quote

from gistpoint.core.errors import UserError
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.runs.model import Json

LONGEST_NAME = 60
_YEAR_9999 = 253_000_000_000_000


class Said(Protocol):
    """One act of a person about a subject; acts are never changed, only followed."""

    @property
    def op(self) -> str:
        """Its uuid."""
        ...

    @property
    def reviewer(self) -> str:
        """Who acted."""
        ...

    @property
    def utc_ms(self) -> int:
        """When, in milliseconds since the epoch."""
        ...

    @property
    def subject(self) -> str:
        """What it is about: the key of a run, the id of a task."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """The name and version of a side file."""

    name: str
    version: int

    @property
    def header(self) -> bytes:
        """The first line of a file."""
        return json.dumps({"format": self.name, "version": self.version}).encode() + b"\n"

    def read(self, line: bytes) -> dict[str, Json] | None:
        """Return the object on a line; None for a header. Raises ValueError, with a sentence, for anything else."""
        try:
            value: Json = json.loads(line)
        except RecursionError as error:
            raise ValueError("It is nested too deep.") from error
        if not isinstance(value, dict):
            raise ValueError("It is no object.")
        if "format" not in value or "op" in value:
            return value
        version = value.get("version")
        if value["format"] != self.name or type(version) is not int or version > self.version:
            raise ValueError(f"It is not version {self.version} of {self.name}.")
        return None


def is_reviewer(name: str) -> bool:
    """Whether a name can be a reviewer's: printable, without blanks at its ends, at most 60 characters."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()


def required(value: Mapping[str, Json], subject: str) -> tuple[str, str, int, str, str]:
    """Return op, reviewer, utc_ms, subject and kind. Raises ValueError where one is missing or can't be used."""
    texts = [value.get(name) for name in ("op", "reviewer", subject, "kind")]
    at = value.get("utc_ms")
    if not all(isinstance(text, str) and text for text in texts) or type(at) is not int or not 0 <= at < _YEAR_9999:
        raise ValueError(f"It lacks op, reviewer, {subject}, kind or utc_ms.")
    op, reviewer, about, kind = cast("list[str]", texts)
    if not is_reviewer(reviewer):
        raise ValueError("Its reviewer has no name that can be used.")
    return op, reviewer, at, about, kind


def others(value: Mapping[str, Json], known: Iterable[str]) -> dict[str, Json]:
    """Return the members that nobody here knows."""
    names = frozenset(known)
    return {name: item for name, item in value.items() if name not in names}


def write(value: Mapping[str, Json]) -> bytes:
    """Return the line of an object, with its newline."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


_SUFFIX = ".jsonl"
_sync = os.fsync if sys.platform == "darwin" else os.fdatasync


Op = TypeVar("Op", bound=Said)


class Operations(Protocol[Op]):
    """What a store needs of its book."""

    def add(self, operation: Op) -> bool:
        """Take in one more; False where one with its uuid is known already."""
        ...

    def get(self, op: str) -> Op | None:
        """Return the operation with a uuid."""
        ...

    def latest_ms(self, reviewer: str) -> int:
        """Return the time of a person's last operation, 0 where there is none."""
        ...


BookT = TypeVar("BookT", bound=Operations)  # type: ignore[type-arg]  # a bound can't name another variable


@dataclass(frozen=True, slots=True)
class Codec(Generic[Op]):
    """How operations of one kind are written, and what they are called where that fails."""

    header: bytes
    encode: Callable[[Op], bytes]
    decode: Callable[[bytes], Op | None]
    """None for a header; raises ValueError with a sentence."""
    name: str
    error: type[UserError]


@dataclass(frozen=True, slots=True)
class ReadOperations(Generic[Op]):
    """What a file of operations holds, and a line for each of its lines that can't be read."""

    operations: tuple[Op, ...]
    problems: tuple[str, ...] = ()


def read_side_file(path: Path, codec: Codec[Op]) -> ReadOperations[Op]:
    """Read a file of operations. Raises the codec's error where the file can't be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise codec.error(f"{path} can't be read: {error.strerror}.") from error
    operations: list[Op] = []
    problems: list[str] = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            operation = codec.decode(line)
        except ValueError as error:
            torn = number == len(lines)
            why = "was torn while it was written" if torn else f"is no operation: {error}"
            problems.append(f"{path.name}, line {number} {why}")
            continue
        if operation is not None:
            operations.append(operation)
    return ReadOperations(tuple(operations), tuple(problems))


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge took in."""

    added: int
    known: int
    """Operations that were here already."""
    problems: tuple[str, ...] = ()


class SideFileStore(Generic[Op, BookT]):
    """The side files in a folder: everybody's are read, each operation is added to its author's."""

    def __init__(self, folder: Path, clock: TimeSource, codec: Codec[Op], new_book: Callable[[], BookT]) -> None:
        """Read what is there; the folder is made when something is written."""
        self.folder = folder
        self._clock = clock
        self._codec = codec
        self._new_book = new_book
        self._lock = Lock()
        self._last_ms: dict[str, int] = {}
        self.book: BookT = new_book()
        self.problems: tuple[str, ...] = ()
        """Lines that could not be read."""
        self.reload()

    def reload(self) -> None:
        """Read the files again, because somebody else may have written to them."""
        book, problems = self._new_book(), list[str]()
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")) if self.folder.is_dir() else []:
            found = read_side_file(path, self._codec)
            problems += found.problems
            for operation in found.operations:
                book.add(operation)
        self.book, self.problems = book, tuple(problems)

    def path_of(self, reviewer: str) -> Path:
        """Return the file of a reviewer."""
        return self.folder / f"{quote(reviewer, safe=' @+-_').replace('.', '%2E')}{_SUFFIX}"

    def append(self, operations: Iterable[Op], *, durable: bool = True) -> int:
        """Write operations that are not known yet and return how many; with `durable` they are on the disk then."""
        added = 0
        with self._lock:
            by_reviewer: dict[str, list[Op]] = {}
            for operation in operations:
                if self.book.get(operation.op) is None:
                    by_reviewer.setdefault(operation.reviewer, []).append(operation)
            for reviewer, new in by_reviewer.items():
                unique = list({operation.op: operation for operation in new}.values())
                self._write(self.path_of(reviewer), b"".join(map(self._codec.encode, unique)), durable=durable)
                added += sum(self.book.add(operation) for operation in unique)
        return added

    def merge(self, paths: Iterable[Path]) -> Merged:
        """Take in files, or folders of files, that others wrote: the union, by uuid.

        Where one uuid stands for two different operations, the one that is here stays, and a problem names it.
        """
        added = known = 0
        problems: list[str] = []
        for path in _files(paths):
            found = read_side_file(path, self._codec)
            problems += found.problems
            for operation in found.operations:
                here = self.book.get(operation.op)
                if here is not None and here != operation:
                    problems.append(f"{path.name}: {operation.op} is another operation here; ours stays")
            count = self.append(found.operations)
            added += count
            known += len(found.operations) - count
        return Merged(added, known, tuple(problems))

    def next_ms(self, reviewer: str) -> int:
        """Return the time of a reviewer's next operation: later than that of all before, whatever the clock says."""
        with self._lock:
            last = max(self._last_ms.get(reviewer, 0), self.book.latest_ms(reviewer))
            self._last_ms[reviewer] = max(self._clock.utc_ms(), last + 1)
            return self._last_ms[reviewer]

    def _write(self, path: Path, lines: bytes, *, durable: bool) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                size = os.fstat(file).st_size
                start = self._codec.header if not size else b"" if os.pread(file, 1, size - 1) == b"\n" else b"\n"
                _write_whole(file, start + lines, size)
                if durable:
                    _sync(file)
            finally:
                os.close(file)
            if durable and not size:
                _sync_folder(self.folder)
        except OSError as error:
            raise self._codec.error(
                f"The {self._codec.name} can't be kept in {path}: {error.strerror}.",
                hint="Free some space or mend the folder.",
            ) from error


def _write_whole(file: int, data: bytes, size: int) -> None:
    """Write all or nothing: a full disk must not leave half a line."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(file, view) :]
    except OSError:
        os.ftruncate(file, size)
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.glob(f"*{_SUFFIX}"))
        else:
            yield path


State = TypeVar("State")


class Book(Generic[Op, State]):
    """A set of operations. What they amount to depends on the set, not on its order."""

    def __init__(self, fold: Callable[[str, str, Iterable[Op]], State], operations: Iterable[Op] = ()) -> None:
        """`fold` takes a subject, a person and that person's operations on it."""
        self._fold = fold
        self._operations: dict[str, Op] = {}
        self._places: dict[tuple[str, str], dict[str, Op]] = {}
        self._folded: dict[tuple[str, str], State] = {}
        self._latest: dict[str, int] = {}
        for operation in operations:
            self.add(operation)

    def add(self, operation: Op) -> bool:
        """Take in one more; False where one with its uuid is known already."""
        if operation.op in self._operations:
            return False
        self._operations[operation.op] = operation
        place = (operation.subject, operation.reviewer)
        self._places.setdefault(place, {})[operation.op] = operation
        self._folded.pop(place, None)
        self._latest[operation.reviewer] = max(self.latest_ms(operation.reviewer), operation.utc_ms)
        return True

    def latest_ms(self, reviewer: str) -> int:
        """Return the time of a person's last operation, 0 where there is none."""
        return self._latest.get(reviewer, 0)

    def get(self, op: str) -> Op | None:
        """Return the operation with a uuid."""
        return self._operations.get(op)

    @property
    def operations(self) -> tuple[Op, ...]:
        """Every operation, in the order of their times."""
        return tuple(sorted(self._operations.values(), key=in_time))

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Everybody who has said something."""
        return tuple(sorted({reviewer for _, reviewer in self._places}))

    @property
    def subjects(self) -> tuple[str, ...]:
        """Everything that something was said about."""
        return tuple(sorted({subject for subject, _ in self._places}))

    def state(self, subject: str, reviewer: str) -> State:
        """Return what a person has said about a subject, which may be nothing."""
        place = (subject, reviewer)
        if place not in self._folded:
            self._folded[place] = self._fold(subject, reviewer, self._places.get(place, {}).values())
        return self._folded[place]

    def states(self) -> Iterator[State]:
        """Yield what was said, by subject and person."""
        for subject, reviewer in sorted(self._places):
            yield self.state(subject, reviewer)


def in_time(operation: Said) -> tuple[int, str]:
    """Return what operations are ordered by."""
    return operation.utc_ms, operation.op
