"""Reads the records of a run of an entrypoint; contradictory records make the run invalid (decision 23)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gistpoint.core.entrypoints.runs import DOCTEST, CommandRun, Isolation, Operand, Raised, TestRun, TestsRun
from gistpoint.core.outcomes import RunStatus
from gistpoint.sandbox.backends.base import Ended, Stop
from gistpoint.sandbox.sealing import RunSecret
from gistpoint.sandbox.verdict import Conclusion, Transcript

Notes = Iterable[Mapping[str, object]]
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""The errors that records of another shape raise; `OverflowError` is raised for `Infinity` as an integer."""
STOPPED: Mapping[Stop, tuple[RunStatus, str]] = {
    Stop.EXITED: (RunStatus.FINISHED, ""),
    Stop.TIMED_OUT: (RunStatus.TIMED_OUT, "It was stopped at its time limit."),
    Stop.OUT_OF_MEMORY: (RunStatus.OUT_OF_MEMORY, "It was stopped at its memory limit."),
    Stop.TOO_MUCH_DISK: (RunStatus.CRASHED, "It was stopped at its limit of files."),
    Stop.TOO_MANY_RESULTS: (RunStatus.INVALID, "It wrote more on its result pipe than any honest run would."),
    Stop.CANCELLED: (RunStatus.CANCELLED, "It was stopped at your request."),
    Stop.NOT_STARTED: (RunStatus.HARNESS_FAILED, "The isolation could not be started."),
}
"""The status of a run, and the reason for it, by why its command is no longer running."""


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run, the reason for its status, and its measurements."""

    run: TestsRun | CommandRun
    reason: str
    lines: frozenset[int]
    trace: Mapping[str, Any] | None
    defined: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """For each test, the file that contains its code, relative to the root of the run, and the first line."""
    began: bool = True
    """Whether the harness reported that it began, before it read anything of the tested code."""


class TestsTranscript:
    """The records of a run of tests."""

    __test__ = False

    def __init__(self) -> None:
        secret = RunSecret.new()
        self.order = secret.order()
        self.suite = Transcript(secret)

    def feed(self, line: bytes) -> None:
        """Take one line."""
        self.suite.feed(line)

    def conclude(self, ended: Ended) -> ObservedRun:
        """Judge the records in view of how the process ended, and return the run."""
        notes = self.suite.notes
        reported = [note for note in notes if note.get("kind") == "outcome"]
        # Only for tests that also have a sealed record, because a note alone proves nothing.
        outcomes = [
            note for note in reported if isinstance(note.get("id"), str) and note["id"] in self.suite.results
        ]
        conclusion = self._conclusion(ended, outcomes)
        is_valid = conclusion.status is not RunStatus.INVALID
        errors = self.suite.collection_errors
        run = TestsRun(
            status=conclusion.status,
            tests=self._tests(outcomes) if is_valid else {},
            collection_error=Raised("", errors[0].message) if errors else None,
            isolation=isolation_of(notes),
        )
        defined = dict[str, tuple[str, int]]()
        for note in outcomes:
            place = _place(note)
            if place is not None:
                defined[_name(note)] = place
        return ObservedRun(
            run, conclusion.reason, lines_of(notes), trace_of(notes), defined, self.suite.began
        )

    def _conclusion(self, ended: Ended, outcomes: list[dict[str, object]]) -> Conclusion:
        """Return the result of the run, which is invalid if pytest was tampered with (decision 23)."""
        tampered = next(
            (str(note.get("what")) for note in self.suite.notes if note.get("kind") == "tampered"), ""
        )
        if tampered:
            return Conclusion(RunStatus.INVALID, f"pytest was tampered with: {tampered}.")
        ids = {note.get("id") for note in outcomes}
        if len(ids) != len(outcomes):
            return Conclusion(RunStatus.INVALID, "A test was reported more than once.")
        if ended.stop is not Stop.EXITED:
            return Conclusion(*STOPPED[ended.stop])
        conclusion = self.suite.conclude(ended.exit_code)
        # A run that crashed may have been in the middle of a note.
        odd = odd_note(self.suite.notes) if conclusion.status is RunStatus.FINISHED else ""
        return Conclusion(RunStatus.INVALID, odd) if odd else conclusion

    def _tests(self, outcomes: list[dict[str, object]]) -> dict[str, TestRun]:
        details = {str(note["id"]): note for note in outcomes}
        tests: dict[str, TestRun] = {}
        for id, result in self.suite.results.items():
            note = details.get(id, {})
            fixed = note.get("fixed")
            # The outcome is the suite's, which is sealed; the note only adds details (decision 23).
            tests[_name({"id": id, **note})] = TestRun(
                result.outcome,
                str(note.get("stdout", "")),
                str(note.get("stderr", "")),
                raised_in(note),
                str(note.get("phase", "")),
                fixed if isinstance(fixed, str) and fixed else None,
            )
        return tests


def _name(note: Mapping[str, object]) -> str:
    """Return the id of a test; a doctest's id omits its module, which has another name in a gist."""
    id = str(note["id"])
    doctest = note.get("doctest")
    if isinstance(doctest, str):
        return f"{id.partition('::')[0]}::{DOCTEST}{doctest}"
    return id


def _place(note: Mapping[str, object]) -> tuple[str, int] | None:
    match note.get("at"):
        case [str(path), int(line)]:
            return path, line
        case _:
            return None


@dataclass
class ProgramTranscript:
    """The records of a program that is not a test, written by its parent process."""

    order: ClassVar[Mapping[str, object]] = {}

    notes: list[dict[str, object]] = field(default_factory=list)
    streams: dict[str, str] = field(default_factory=lambda: {"stdout": "", "stderr": ""})
    files: dict[str, str] = field(default_factory=dict)
    status: int | None = None
    forged: str = ""
    _number: int = 0

    def feed(self, line: bytes) -> None:
        """Take one line; one that is not a record, or is out of order, sets `forged`."""
        try:
            record = json.loads(line)
            self._take(record)
        except _UNREADABLE:
            self.forged = self.forged or "A line of the result pipe is not a record."

    def _take(self, record: dict[str, Any]) -> None:
        self._number += 1
        # Numbered without a gap, with none after the last, so that an added or missing record is detected.
        if record["n"] != self._number or self.status is not None:
            raise ValueError
        match record["e"]:
            case "note":
                self.notes.append(record)
            case "stream":
                self.streams[record["name"]] += str(record["part"])
            case "file":
                if record["sha256"]:
                    self.files[str(record["path"])] = str(record["sha256"])
            case "finish":
                self.status = int(record["exit"])
            case _:
                raise ValueError

    def conclude(self, ended: Ended) -> ObservedRun:
        """Judge the records in view of how the processes ended, and return the run."""
        conclusion = self._conclusion(ended)
        ends = [note for note in self.notes if note.get("kind") == "end"]
        run = CommandRun(
            status=conclusion.status,
            exit_status=self.status or 0,
            stdout=self.streams["stdout"],
            stderr=self.streams["stderr"],
            raised=raised_in(ends[0]) if len(ends) == 1 else None,
            isolation=isolation_of(self.notes),
            files=self.files,
        )
        began = any(note.get("kind") == "begin" for note in self.notes)
        return ObservedRun(run, conclusion.reason, lines_of(self.notes), trace_of(self.notes), began=began)

    def _conclusion(self, ended: Ended) -> Conclusion:
        """Return the result of the run, in which the report, its end and the exit status must agree."""
        if ended.stop is not Stop.EXITED:
            return Conclusion(*STOPPED[ended.stop])
        ends = [note for note in self.notes if note.get("kind") == "end"]
        if self.forged:
            return Conclusion(RunStatus.INVALID, self.forged)
        if len(ends) > 1:
            return Conclusion(RunStatus.INVALID, "The program reported its end more than once.")
        if self.status is None:
            return Conclusion(
                RunStatus.CRASHED, f"The run ended with status {ended.exit_code} before its report."
            )
        if self.status < 0:
            return Conclusion(RunStatus.CRASHED, f"The program was ended by signal {-self.status}.")
        if not ends:
            return Conclusion(
                RunStatus.CRASHED, f"The program exited with status {self.status} before its end."
            )
        # Python exits with 1 after an exception; with another status, this exception did not end the program.
        if raised_in(ends[0]) is not None and self.status != 1:
            reason = f"The program reported an exception and exited with status {self.status}."
            return Conclusion(RunStatus.INVALID, reason)
        # Unlike this run, one that crashed may have been in the middle of a note.
        odd = odd_note(self.notes)
        return Conclusion(RunStatus.INVALID, odd) if odd else Conclusion(RunStatus.FINISHED)


_LISTS = (
    "modules",
    "functions",
    "made_elsewhere",
    "made",
    "processes",
    "stand_ins",
    "equals",
    "lines",
)
"""The notes that are lists in every honest run."""


def odd_note(notes: Notes) -> str:
    """Return a sentence about a note that no honest run has written; empty if there is none."""
    reported = {str(note.get("kind")) for note in notes}
    for kind in _LISTS:
        if kind in reported and not isinstance(_joined(notes, kind), list):
            return f"The program's report of its {kind} is not of the right form."
    if len(_pairs(notes, "stand_ins")) != len(_list(notes, "stand_ins")):
        return "The program's report of its stand_ins is not of the right form."
    return ""


def raised_in(note: Mapping[str, object]) -> Raised | None:
    """Return the exception that a note reports; None if there is none in a valid form."""
    match note.get("raised"):
        case [str(kind), str(message)]:
            return Raised(kind, message)
        case _:
            return None


def isolation_of(notes: Notes) -> Isolation:
    """Return what the guards and the watch reported."""
    events: dict[str, list[str]] = {}
    for note in notes:
        if note.get("kind") == "event":
            events.setdefault(str(note.get("what")), []).append(str(note.get("name")))
    return Isolation(
        refused_imports=tuple(dict.fromkeys(events.get("import", ()))),
        original_reads=tuple(events.get("read", ())),
        network=tuple(events.get("network", ())),
        own_modules=_strings(notes, "modules"),
        made_functions=_strings(notes, "functions"),
        made_elsewhere=_strings(notes, "made_elsewhere"),
        made_here=_strings(notes, "made"),
        processes=_strings(notes, "processes"),
        stand_ins=_pairs(notes, "stand_ins"),
        equal_to_all=_strings(notes, "equals"),
        operands=_operands(notes, "operands"),
        classes=_operands(notes, "classes") or (),
    )


def _operands(notes: Notes, kind: str) -> tuple[Operand, ...] | None:
    """Return the classes that were reported; None if there is no report, or if it is invalid."""
    rows = _joined(notes, kind)
    if not isinstance(rows, list):
        return None
    try:
        return tuple(map(_operand, rows))
    except _UNREADABLE:
        return None


def _operand(row: Mapping[str, Any]) -> Operand:
    specials = row.get("specials", ())
    return Operand(
        tuple(str(name) for name in row["names"]),
        tuple((str(name), str(how), int(line)) for name, how, line in specials),
        str(row.get("wild", "")),
        replaced=row.get("replaced") is True,
    )


def _strings(notes: Notes, kind: str) -> tuple[str, ...]:
    return tuple(str(name) for name in _list(notes, kind))


def _pairs(notes: Notes, kind: str) -> tuple[tuple[str, str], ...]:
    pairs = (item for item in _list(notes, kind) if isinstance(item, list) and len(item) == 2)
    return tuple((str(first), str(second)) for first, second in pairs)


def _list(notes: Notes, kind: str) -> list[Any]:
    """Return the elements of a list that was reported; empty if there is none, or if it is not a list."""
    found = _joined(notes, kind)
    return found if isinstance(found, list) else []


def lines_of(notes: Notes) -> frozenset[int]:
    """Return the numbers of the executed lines that were reported."""
    return frozenset(line for line in _list(notes, "lines") if isinstance(line, int))


def trace_of(notes: Notes) -> Mapping[str, Any] | None:
    """Return the trace that was reported; None if there is none, or if it is not a JSON object."""
    found = _joined(notes, "trace")
    return found if isinstance(found, dict) else None


def _joined(notes: Notes, kind: str) -> Any:
    """Return the value of a note that may have arrived in parts; None if the value is missing or not JSON."""
    text = "".join(str(note.get("part", "")) for note in notes if note.get("kind") == kind)
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
