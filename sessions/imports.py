"""Turns the records of a public data set into tasks, and stores those whose repository is unavailable."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from gistpoint import __version__
from gistpoint.core.confirmation.model import Controls
from gistpoint.core.errors import EnvironmentBuildError, SourceError, TaskError, UserError, cause
from gistpoint.core.generation.breakpoint.importing import (
    RecordSources,
    RefusedRecordError,
    import_record,
    read_sources,
)
from gistpoint.core.generation.breakpoint.records import BreakpointRecord, Damage, read_records
from gistpoint.core.generation.context import FetchingHarness
from gistpoint.core.generation.intake import Intake, NoTaskError, take_in, with_test_map_if_it_ends
from gistpoint.core.generation.settings import SourceSpec
from gistpoint.core.locations import read_regular
from gistpoint.core.logs import replace_file
from gistpoint.core.ports import Runner
from gistpoint.core.requests import LOCAL, Count, Request
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.documents import TASK_FILE
from gistpoint.core.tasks.fields import Fields
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.text import failing_in_words
from gistpoint.core.unfinished import scratch_folder

FORMAT, VERSION = "gistpoint.imports", 1


@dataclass(frozen=True, slots=True)
class PendingRecord:
    """A valid record whose repository was not available."""

    id: str
    url: str
    commit: str
    function: str
    """`path::name`, as in the record."""
    line: int
    """The line of the data set's file at which the record begins, counted from 1."""
    reason: str
    tried: str
    """The time of the last try: UTC, ISO 8601."""
    text: str
    """The record verbatim from the data set."""


@dataclass(frozen=True, slots=True)
class Imports:
    """The records of one data set, by id: the task ids of imported records, and the pending records."""

    imported: Mapping[str, str]
    pending: Mapping[str, PendingRecord]


class ImportLedger:
    """The file in the data folder for one data set; every change is on disk when its method returns.

    Methods that change the file read it first, and raise `TaskError` if that is impossible.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Imports:
        """Return the content of the file, or empty imports if there is no file.

        Raises `TaskError` if the file can't be read, is damaged, has another format or comes from a newer
        gistpoint.
        """
        try:
            values = json.loads(read_regular(self.path))
        except FileNotFoundError:
            return Imports({}, {})
        except (OSError, ValueError, RecursionError) as error:
            raise TaskError(
                f"{self.path} can't be read: {error}.", hint="Correct it, or move it away."
            ) from error
        if not isinstance(values, dict):
            raise TaskError(f"{self.path} does not contain a table.", hint="Correct it, or move it away.")
        fields = Fields(values, str(self.path))
        if fields.get("format", str) != FORMAT or fields.get("version", int) > VERSION:
            raise TaskError(
                f"{self.path} has another format, or was written by a newer version of gistpoint.",
                hint="Install a newer one.",
            )
        pending = fields.get("pending", tuple[PendingRecord, ...])
        return Imports(fields.get("imported", dict[str, str]), {item.id: item for item in pending})

    def settle(self, *, imported: Mapping[str, str] | None = None, refused: Iterable[str] = ()) -> None:
        """Record that records were imported or permanently refused, so that they are no longer pending."""
        known = self.read()
        gone = {*(imported or {}), *refused}
        waiting = {id: item for id, item in known.pending.items() if id not in gone}
        self._write(Imports({**known.imported, **(imported or {})}, waiting))

    def wait(self, records: Iterable[PendingRecord]) -> None:
        """Store records as pending; a record that is pending already gets the new reason."""
        known = self.read()
        self._write(replace(known, pending={**known.pending, **{item.id: item for item in records}}))

    def _write(self, imports: Imports) -> None:
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "imported": dict(imports.imported),
            "pending": [asdict(item) for item in imports.pending.values()],
        }
        text = json.dumps(document, indent=1, ensure_ascii=True) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self.path, text.encode("ascii"), mode=0o600)


MOST_BYTES = 512 << 20
_ELSEWHERE = "If the repository is elsewhere, give its location with --sources."


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRecords(Request):
    """A request to import records of a data set."""

    data_set: Literal["breakpoint"]
    file: Annotated[str | None, LOCAL] = None
    """The file of records; None for those that are pending."""
    sources: Annotated[str | None, LOCAL] = None
    """The file with the locations of repositories and the requirements of their suites."""
    only: str | None = None
    """A string that the repository, file or function must contain."""
    min_failing: Count = 5

    def record_sources(self) -> RecordSources:
        """Return the locations of repositories; without a file, there are none.

        Raises `UserError` if the file can't be read.
        """
        if self.sources is None:
            return RecordSources()
        path = Path(self.sources)
        try:
            return read_sources(path.read_text(encoding="utf-8"), path.name)
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f"{self.sources} can't be read: {cause(error)}.", hint="--sources requires a TOML file."
            ) from error

    def records(self, ledger: ImportLedger) -> tuple[list[BreakpointRecord], list[ImportOutcome]]:
        """Return the requested records that are valid, and an outcome for each damaged one.

        Raises `UserError` if the file or the ledger can't be read, or if the file contains no valid record.
        """
        items = _waiting(ledger) if self.file is None else list(read_records(_bytes_of(Path(self.file))))
        damaged = [item for item in items if isinstance(item, Damage)]
        valid = [item for item in items if isinstance(item, BreakpointRecord)]
        if self.file is not None and not valid:
            why = f" Line {damaged[0].line}: {damaged[0].reason}" if damaged else ""
            raise UserError(f"{self.file} does not contain any records of the data set.{why}")
        outcomes = [ImportOutcome(item.line, "", "damaged", "damaged", item.reason) for item in damaged]
        part = self.only or ""
        return [item for item in valid if part in f"{item.url} {_function(item)}"], outcomes


def _waiting(ledger: ImportLedger) -> list[BreakpointRecord | Damage]:
    """Return the pending records, and the damage of those that can no longer be read."""
    texts = (pending.text.encode("utf-8", "surrogateescape") for pending in ledger.read().pending.values())
    return [item for text in texts for item in read_records(text)]


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """The outcome of a record: `imported`, `marked`, `here already`, `refused`, `damaged` or `waits`."""

    line: int
    function: str
    outcome: str
    reason: str = ""
    """The reason why there is no task, from a fixed set of codes; empty if there is one."""
    detail: str = ""
    task: str = ""

    @property
    def good(self) -> bool:
        """Whether a task of the record exists."""
        return self.outcome not in ("refused", "damaged", "waits")


@dataclass
class Importer:
    """Imports records, one repository after another; each outcome is written to disk at once."""

    ledger: ImportLedger
    sources: RecordSources
    tasks: Path
    """The folder of the tasks."""
    open_harness: Callable[[], tuple[Runner, FetchingHarness]]
    """Returns a runner and a harness; called once, before the first repository is fetched."""
    outcomes: list[ImportOutcome]
    min_failing: int = 5
    run: RunContext = field(default=UNATTENDED)

    def all(self, records: Iterable[BreakpointRecord]) -> None:
        """Import the records that have no task yet, grouped by repository, and add an outcome for each.

        Raises `CancelledError` if cancelled, and `UserError` if the ledger can't be read.
        """
        imported = self.ledger.read().imported
        groups: dict[str, list[BreakpointRecord]] = {}
        for record in records:
            known = imported.get(record.id, "")
            if known and (self.tasks / known / TASK_FILE).is_file():
                self._note(record, "here already", task=known)
            else:
                groups.setdefault(record.place, []).append(record)
        for group in groups.values():
            self._repository(group)

    def _repository(self, group: list[BreakpointRecord]) -> None:
        self.run.note(f"{group[0].place}: {len(group)} {'record' if len(group) == 1 else 'records'}")
        with scratch_folder("import") as scratch:
            try:
                spec = self.sources.spec_of(group[0])
                intake = self._taken_in(spec, Path(scratch))
            except SourceError as error:
                self._wait(group, f"{error.message} {_ELSEWHERE}")
                return
            except EnvironmentBuildError as error:
                self._wait(group, str(error))
                return
            except NoTaskError as refusal:
                for record in group:
                    self._refuse(record, refusal.reason.value, refusal.message)
                return
            for record in group:
                self._record(record, intake)

    def _taken_in(self, spec: SourceSpec, scratch: Path) -> Intake:
        runner, harness = self._opened
        repository = harness.fetch(spec, scratch, self.run)
        intake = take_in(repository, runner, max_seconds=spec.max_suite_seconds, run=self.run)
        return with_test_map_if_it_ends(intake, harness.mapper(spec.max_suite_seconds), run=self.run)

    @cached_property
    def _opened(self) -> tuple[Runner, FetchingHarness]:
        return self.open_harness()

    def _controls_of(self, task: Task, answer: Answer) -> Controls | None:
        confirmer = self._opened[1].confirmer()
        return (
            None
            if confirmer is None
            else confirmer.control(task, answer, measured_here=True, run=self.run.quiet)
        )

    def _record(self, record: BreakpointRecord, intake: Intake) -> None:
        try:
            made = import_record(
                record,
                intake,
                self._opened[0],
                self.tasks,
                min_failing=self.min_failing,
                provenance={"gistpoint": __version__},
                controls_of=self._controls_of,
                run=self.run,
            )
        except (RefusedRecordError, NoTaskError) as refusal:
            self._refuse(record, refusal.reason.value, refusal.message)
            return
        self.ledger.settle(imported={record.id: made.task.id})
        failing = failing_in_words(len(made.task.brief.failing))
        if not made.marked:
            self._note(record, "imported", task=made.task.id, detail=failing)
            return
        costs = "count" if made.task.rules.refused_costs_attempt else "do not count"
        detail = f"{failing}; it was made here before, and keeps its rules: refused submissions {costs}"
        self._note(record, "marked", task=made.task.id, detail=detail)

    def _refuse(self, record: BreakpointRecord, reason: str, detail: str) -> None:
        self.ledger.settle(refused=[record.id])
        self._note(record, "refused", reason, detail)

    def _wait(self, group: list[BreakpointRecord], reason: str) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self.ledger.wait(_pending(record, reason, now) for record in group)
        for record in group:
            self._note(record, "waits", "repository_not_here", reason)

    def _note(
        self, record: BreakpointRecord, outcome: str, reason: str = "", detail: str = "", *, task: str = ""
    ) -> None:
        function = _function(record)
        self.outcomes.append(ImportOutcome(record.line, function, outcome, reason, detail, task))
        self.run.note(f"  line {record.line}, {function}: {outcome}{f', {detail}' if detail else ''}")


def _pending(record: BreakpointRecord, reason: str, now: str) -> PendingRecord:
    return PendingRecord(
        record.id, record.url, record.commit, _function(record), record.line, reason, now, record.text
    )


def _function(record: BreakpointRecord) -> str:
    return f"{record.path}::{record.function}"


def _bytes_of(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UserError(f"{path} is larger than {MOST_BYTES >> 20} MiB.")
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}.") from error
