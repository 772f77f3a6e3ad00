"""Runs an isolated process that has collected the suite, and exchanges requests and records with it."""

from __future__ import annotations

import ast
import base64
import contextlib
import json
import os
import queue
import re
import select
import signal
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from gistpoint.core.code.index import Definition, DefinitionKind, FileIndex, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.snippet import Snippet, read_snippet
from gistpoint.core.code.source_text import SourceText
from gistpoint.core.code.splice import replace_definition, spliced_text
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import CancelledError
from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import ProbeFailure, ProbeReport
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Environment, Invocation, Stop
from gistpoint.sandbox.layout import MountPaths, lay_out, run_folder
from gistpoint.sandbox.limits import RunLimits
from gistpoint.sandbox.sealing import NOTHING_SECRET, packed
from gistpoint.sandbox.testruns import invoke_pytest, pytest_control, tools_of
from gistpoint.sandbox.verdict import (
    ForgedRecordError,
    ItemsRecord,
    ReportRecord,
    RunRecord,
    SuiteRecord,
    TestRecord,
    fold,
)

_NEAR = 0.8
"""The share of its memory limit above which a process that died is assumed to have run out of memory."""


class _Warm(ReportRecord, tag="warm"):
    """The suite is collected, and the process waits for requests."""


class _Unfit(ReportRecord, tag="unfit"):
    text: str


class _Broken(ReportRecord, tag="broken"):
    text: str


class _Done(ReportRecord, tag="done"):
    """The tests of a probe have been run: all of them, or until enough did not pass."""


class _End(ReportRecord, tag="end"):
    """The process of a probe has ended."""

    exit: int
    late: bool
    memory: int
    """The largest memory use of the process, in bytes."""


WarmRecord = SuiteRecord | _Warm | _Unfit | _Broken | _Done | _End
"""The records of `payload/warm_plugin.py`."""


@dataclass
class ProbeTally:
    """The results of one probe's tests as they arrive.

    `unfit` is why the probe is unusable; it is empty if the probe is usable.
    """

    ids: list[str]
    lines: Sequence[LineSpan] = ()
    failed: dict[str, ProbeFailure] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    ran: int = 0
    unfit: str = ""
    in_flight: str = ""
    done: bool = False
    end: _End | None = None

    def take(self, records: Iterable[WarmRecord]) -> ProbeTally:
        """Take all records of a probe, and return this tally."""
        for record in records:
            match record:
                case RunRecord():
                    self.in_flight = self._id(record)
                case TestRecord():
                    self._take_test(record)
                case _Unfit() | _Broken():
                    self.unfit = record.text
                case _Done():
                    self.done = True
                case _End():
                    self.end = record
        return self

    def _id(self, record: RunRecord | TestRecord) -> str:
        return self.ids[record.i] if isinstance(record.i, int) else record.i

    def _take_test(self, record: TestRecord) -> None:
        id = self._id(record)
        self.in_flight = ""
        self.ran += 1
        try:
            outcome, raised = fold(id, record.reports)
        except ForgedRecordError as error:
            self.unfit = str(error)
            return
        # Several tests may share an id: any failure counts, and a call's failure replaces a fixture's.
        if outcome is Outcome.FAILED:
            self.failed[id] = read_failure(record.text, self.lines, raised=raised or "")
        elif outcome is not Outcome.PASSED:
            self.failed.setdefault(id, read_failure(record.text, self.lines))
        elif id not in self.failed:
            self.passed.add(id)

    def report(self, bounds: Bounds) -> ProbeReport:
        """Return the report of a usable probe."""
        status, reason = self._status(bounds)
        return ProbeReport(status, self.failed, self.ran, reason=reason)

    def _status(self, bounds: Bounds) -> tuple[RunStatus, str]:
        assert self.end is not None, "the end is the last record of a probe"
        exit_code, during = self.end.exit, f" during {self.in_flight}" if self.in_flight else ""
        if self.end.late or exit_code == -signal.SIGXCPU:
            return (
                RunStatus.TIMED_OUT,
                f"The tests were stopped{during}: they took far longer than on the original.",
            )
        hungry = next((id for id, failure in self.failed.items() if failure.error_type == "MemoryError"), "")
        if self.done and exit_code == 0 and not hungry:
            return RunStatus.FINISHED, ""
        if hungry or exit_code == -signal.SIGKILL or self.end.memory > _NEAR * bounds.memory:
            during = f" during {hungry}" if hungry else during
            return RunStatus.OUT_OF_MEMORY, f"The tests needed more than {bounds.memory >> 20} MiB{during}."
        return RunStatus.CRASHED, f"The process ended with status {exit_code}{during}."


@dataclass(frozen=True, slots=True)
class Swap:
    """A function that gets new code; a nested function is replaced together with its outermost function."""

    path: str
    line: int
    """The line of the original file on which the function's code starts, with its first decorator, if any."""
    name: str
    source: str
    """The source of a module that defines only this function, on its lines in the corrupted file."""


@dataclass(frozen=True, slots=True)
class Move:
    """A shift of the code after a function that has become longer or shorter."""

    path: str
    below: int
    """The function's last line in the original file."""
    lines: int
    """The number of lines by which the function is longer; negative if it is shorter."""


@dataclass(frozen=True, slots=True)
class Order:
    """Corrupted functions, prepared for one tree."""

    files: Mapping[str, bytes]
    swaps: tuple[Swap, ...]
    moves: tuple[Move, ...]
    lines: tuple[LineSpan, ...]
    """The lines of the corrupted functions in the new files."""
    unfit: str = ""
    """Why swapping the code is not enough; empty if it is enough."""


_ENTRIES = (
    re.compile(r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d{1,9}): in ", re.MULTILINE),  # pytest's short style
    re.compile(r'^  File "(?P<path>[^"\n]*)", line (?P<line>\d{1,9}), in ', re.MULTILINE),  # Python's own
)
_PLACE = re.compile(r"^[^\n]*?:\d+: ")
_TYPE = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?=:|$)")
_EXPECTATIONS = frozenset({"AssertionError", "Failed"})  # pytest.raises and pytest.fail raise `Failed`


@dataclass(frozen=True, slots=True)
class LineSpan:
    """The lines `first` to `last` of a file, both included, counted from 1."""

    path: str
    first: int
    last: int

    def holds(self, path: str, line: int) -> bool:
        """Whether a line of a file is one of these lines."""
        return path == self.path and self.first <= line <= self.last


def read_failure(message: str, corrupted: Iterable[LineSpan] = (), *, raised: str = "") -> ProbeFailure:
    """Return the failure that the text of `TestResult.message` describes.

    `corrupted` are the lines of the corrupted functions; `raised` is the name of the exception, if it is
    already known.
    """
    error_type = raised or _type_of(message)
    places = [(match["path"], int(match["line"])) for entry in _ENTRIES for match in entry.finditer(message)]
    return ProbeFailure(
        message=message,
        assertion=error_type in _EXPECTATIONS,
        through_target=any(span.holds(path, line) for span in corrupted for path, line in places),
        error_type=error_type,
    )


def _type_of(message: str) -> str:
    """Return the name of the exception in the first line, after the location; empty if there is none."""
    first = message.partition("\n")[0]
    place = _PLACE.match(first)
    if place is None:
        return ""
    text = first[place.end() :]
    if text.startswith("assert"):
        return "AssertionError"
    found = _TYPE.match(text)
    return found["type"].rpartition(".")[2] if found else ""


FileParts = tuple[bytes, list[Swap], list[Move], list[LineSpan]]
"""The parts of an order for one file: its new content, swaps and moves, and the targets' lines."""


class Orders:
    """Makes orders for one tree, reading each file only once."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        self._indices: dict[str, FileIndex] = {}

    def make(self, targets: Iterable[Target]) -> Order:
        """Return the order for `targets`. Raises `CodeError` if a target does not fit its file."""
        by_file: dict[str, list[Target]] = {}
        for target in targets:
            by_file.setdefault(target.path, []).append(target)
        files: dict[str, bytes] = {}
        swaps: list[Swap] = []
        moves: list[Move] = []
        lines: list[LineSpan] = []
        unfit = ""
        for path, found in by_file.items():
            index = self._index(path)
            snippets = [_snippet(index.get(target.qualname), target) for target in found]
            # Files are made even if the order is unfit, because a fresh run needs the lines.
            for target, snippet in zip(found, snippets, strict=True):
                unfit = unfit or _beyond_code(index.get(target.qualname), snippet)
            make = _parts_of_one if len(found) == 1 else _parts_of_several
            files[path], own_swaps, own_moves, own_lines = make(index, found, snippets)
            swaps += own_swaps
            moves += own_moves
            lines += own_lines
        return Order(files, tuple(dict.fromkeys(swaps)), tuple(dict.fromkeys(moves)), tuple(lines), unfit)

    def _index(self, path: str) -> FileIndex:
        if path not in self._indices:
            if not self._tree.is_file(path):
                raise CodeError(f"There is no file {path} in the source.")
            self._indices[path] = index_source(path, self._tree.read(path))
        return self._indices[path]


def _snippet(definition: Definition, target: Target) -> Snippet:
    snippet = read_snippet(target.corrupted)
    if (snippet.definition.name, snippet.definition.kind.sort) != (definition.name, definition.kind.sort):
        raise CodeError(f"The corrupted code of {target.name} defines {snippet.definition.name}.")
    return snippet


def _beyond_code(definition: Definition, new: Snippet) -> str:
    """Return what differs besides the code, in words; empty if nothing does.

    Parameters and decorators are compared, because Python evaluates them when it defines the function. A new
    source without decorators keeps the old ones. A class always differs.
    """
    # A fork swaps the code of existing functions, whose defaults and decorators have already been evaluated.
    old = read_snippet(definition.dedented).node
    if isinstance(old, ast.ClassDef) or isinstance(new.node, ast.ClassDef):
        return f"{definition.ref} is a class"
    if ast.dump(old.args) != ast.dump(new.node.args):
        return f"the parameters of {definition.ref} differ"
    decorators = new.node.decorator_list
    if decorators and [ast.dump(node) for node in decorators] != [
        ast.dump(node) for node in old.decorator_list
    ]:
        return f"the decorators of {definition.ref} differ"
    return ""


def _parts_of_one(index: FileIndex, targets: list[Target], snippets: list[Snippet]) -> FileParts:
    """Return the parts for one function, without parsing its file again, because that would take too long."""
    definition = index.get(targets[0].qualname)
    keep = not snippets[0].node.decorator_list or len(snippets[0].node.decorator_list) == len(
        definition.decorators
    )
    text = spliced_text(index, definition, snippets[0], keep_decorators=keep)
    document = SourceText.of(index.path, text)
    more = len(document.line_starts) - len(index.document.line_starts)
    unit = _outermost_function(index, definition)
    source = _source(document, unit, _classes(index, unit), unit.start_line, unit.end_line + more)
    swap = Swap(index.path, unit.start_line, unit.ref.plain, source)
    lines = LineSpan(index.path, definition.start_line, definition.end_line + more)
    moves = [Move(index.path, unit.end_line, more)] if more else []
    return index.document.encode(text), [swap], moves, [lines]


def _parts_of_several(index: FileIndex, targets: list[Target], snippets: list[Snippet]) -> FileParts:
    # Applied one after the other, because each replacement moves positions.
    after, data = index, b""
    for target in targets:
        data = replace_definition(after, after.get(target.qualname), target.corrupted)
        after = index_source(index.path, data)
    swaps, moves, lines = [], [], []
    for target in targets:
        unit = _outermost_function(index, index.get(target.qualname))
        new_unit = after.get(unit.qualname)
        source = _source(
            after.document, new_unit, _classes(index, unit), new_unit.start_line, new_unit.end_line
        )
        swaps.append(Swap(index.path, unit.start_line, unit.ref.plain, source))
        more = (new_unit.end_line - new_unit.start_line) - (unit.end_line - unit.start_line)
        moves += [Move(index.path, unit.end_line, more)] if more else []
        own = after.get(target.qualname)
        lines.append(LineSpan(index.path, own.start_line, own.end_line))
    return data, swaps, moves, lines


def _enclosing(index: FileIndex, definition: Definition) -> list[Definition]:
    """Return the definitions around a definition, outermost first."""
    around: list[Definition] = []
    while definition.parent is not None:
        definition = index.get(definition.parent)
        around.insert(0, definition)
    return around


def _outermost_function(index: FileIndex, definition: Definition) -> Definition:
    """Return the outermost function around a definition, which can be compiled alone.

    If there is none, it is the definition itself.
    """
    return next(
        (d for d in [*_enclosing(index, definition), definition] if d.kind is not DefinitionKind.CLASS),
        definition,
    )


def _classes(index: FileIndex, unit: Definition) -> list[str]:
    return [definition.name for definition in _enclosing(index, unit)]


def _source(document: SourceText, unit: Definition, classes: list[str], first: int, last: int) -> str:
    """Return a module with a function's lines at their positions, below the headers of its classes.

    An indented function without classes is below an `if`.
    """
    # The positions make tracebacks show the right lines; the classes make `__class__` cells and mangled names
    # the same as in the file.
    indentation = unit.indentation
    headers = [f"{indentation[:depth]}class {name}:\n" for depth, name in enumerate(classes)]
    if indentation and not headers:
        headers = ["if 1:\n"]
    body = document.text[document.line_starts[first - 1] : document.line_range(last)[1]]
    return "\n" * (first - 1 - len(headers)) + "".join(headers) + body + "\n"


_FILES = {
    "gistpoint_warm.py": "warm_plugin.py",
    "gistpoint_results.py": "results_plugin.py",
    "gistpoint_code_swap.py": "code_swap.py",
    "gistpoint_pristine.py": "pristine.py",
}
_LIFE_S = 7 * 86400.0
_RESULTS = 1 << 40
_TICK_S = 0.05
_GRACE_S = 10.0
_ENDING_S = 30.0


class ServerGoneError(Exception):
    """The warm process has ended or is unusable; `ended` describes its end, None if that is unknown."""

    def __init__(self, ended: Ended | None, message: str = "The warm process does not answer.") -> None:
        gone = "" if ended is None else f"The warm process has ended: {ended.stop}. {ended.reason}".strip()
        super().__init__(gone or message)
        self.ended = ended


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one candidate: `wall` in seconds, `memory` in bytes beyond those of the warm process."""

    wall: float
    memory: int
    patience: Mapping[str, float] = field(default_factory=dict)
    """For each test file, the seconds of processor time after which a test counts as hanging.

    A test may sleep for one and a half times as long.
    """


class WarmSuite:
    """The collected suite of one tree, in an isolated process; this object is not thread-safe."""

    def __init__(
        self,
        backend: Backend,
        environment: Environment,
        tree: SourceTree,
        pins: EnvironmentPins,
        limits: RunLimits,
    ) -> None:
        self._backend = backend
        self._environment = environment
        self._tree = tree
        self._pins = pins
        self._limits = replace(limits, results=_RESULTS)
        self._reading, self._writing = os.pipe()
        # A process that hangs reads nothing; a blocking write would then hang this process too.
        os.set_blocking(self._writing, False)
        self._records: queue.SimpleQueue[WarmRecord | None] = queue.SimpleQueue()
        self._cancel = CancelToken()
        self._ended: Ended | None = None
        self._thread = threading.Thread(target=self._serve, name="warm-suite", daemon=True)
        self.ids: list[str] = []

    def start(self, timeout_s: float, cancel: CancelToken) -> None:
        """Start the process, and wait until the suite is collected.

        Raises `ServerGoneError` if that fails or takes longer than `timeout_s` seconds, and `CancelledError`
        if stopped.
        """
        self._thread.start()
        for record in self._received(time.monotonic() + timeout_s, cancel):
            match record:
                case ItemsRecord(ids=ids):
                    self.ids += ids
                case _Unfit(text=text):
                    raise ServerGoneError(None, text)
                case _Warm():
                    return

    def ask(
        self,
        order: Order | None,
        tests: Collection[str],
        bounds: Bounds,
        *,
        stop_after: int | None = None,
        backwards: bool = False,
        cancel: CancelToken = NEVER,
    ) -> Iterator[WarmRecord]:
        """Yield the records of `tests` on `order`, or on the original if that is None; `end` comes last.

        After `stop_after` tests that did not pass, no further test is run; `backwards` reverses the order of
        the tests. Raises `ServerGoneError` if the process has ended or does not answer in time, and
        `CancelledError` if stopped; after either, the process is unusable.
        """
        wanted = frozenset(tests)
        numbers = [number for number, id in enumerate(self.ids) if id in wanted]
        if backwards:
            numbers.reverse()
        request = {
            "files": {path: base64.b64encode(data).decode() for path, data in order.files.items()}
            if order
            else {},
            "swaps": [[swap.path, swap.line, swap.name, swap.source] for swap in order.swaps]
            if order
            else [],
            "moves": [[move.path, move.below, move.lines] for move in order.moves] if order else [],
            "select": numbers,
            "patience": [bounds.patience.get(self.ids[n].partition("::")[0], bounds.wall) for n in numbers],
            "stop_after": stop_after or len(self.ids) + 1,
            "wall": bounds.wall,
            "memory": bounds.memory,
        }
        self._send(json.dumps(request).encode() + b"\n")
        for record in self._received(time.monotonic() + bounds.wall + _GRACE_S, cancel):
            yield record
            if isinstance(record, _End):
                return

    def close(self) -> None:
        """End the process with all of its children, and wait up to 30 seconds until they are gone."""
        self._cancel.cancel()
        if self._thread.ident is not None:
            self._thread.join(_ENDING_S)
        # Only after the thread that writes to the pipe has ended, because a closed descriptor may be reused.
        for descriptor in (self._reading, self._writing):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._reading = self._writing = -1

    def _send(self, data: bytes) -> None:
        while data:
            if self._ended is not None:
                raise ServerGoneError(self._ended)
            if select.select([], [self._writing], [], _TICK_S)[1]:
                with contextlib.suppress(BlockingIOError):
                    data = data[os.write(self._writing, data) :]

    def _received(self, deadline: float, cancel: CancelToken) -> Iterator[WarmRecord]:
        while True:
            try:
                record = self._records.get(timeout=_TICK_S)
            except queue.Empty:
                if time.monotonic() > deadline:
                    raise ServerGoneError(None) from None
            else:
                if record is None:
                    raise ServerGoneError(self._ended)
                yield record
            if cancel.cancelled:
                raise CancelledError("Stopped at your request.")

    def _serve(self) -> None:
        try:
            with run_folder() as base:
                lay_out(self._tree, base / "tree")
                program = pytest_control(base / "control", self._pins, _FILES)
                self._send(packed(NOTHING_SECRET.order()))

                def invocation(places: MountPaths) -> Invocation:
                    return invoke_pytest(places, self._pins, program, "gistpoint_warm.py")

                command = Command(
                    tree=base / "tree",
                    environment=self._environment,
                    invocation=invocation,
                    timeout_s=_LIFE_S,
                    folders={"control": base / "control"},
                    limits=self._limits,
                    requests=self._reading,
                    shows=tools_of(self._pins, self._environment),
                )
                self._ended = self._backend.run(command, on_line=self._take, cancel=self._cancel)
        except Exception as error:  # passed on to the thread that waits for an answer
            self._ended = Ended(Stop.NOT_STARTED, None, "", 0.0, reason=str(error))
        finally:
            # Even after an error, because the other thread would otherwise wait for a record until its
            # deadline.
            self._records.put(None)

    def _take(self, line: bytes) -> None:
        self._records.put(msgspec.convert(json.loads(line), decodable(WarmRecord)))
