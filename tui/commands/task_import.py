"""`gistpoint task import breakpoint`: turns records of the public data set into tasks, or refuses or postpones them."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from gistpoint import __version__
from gistpoint.core.errors import CancelledError, EnvironmentBuildError, SourceError, UserError, cause
from gistpoint.core.generation.breakpoint.importing import (
    DATA_SET,
    RecordSources,
    RefusedRecordError,
    import_record,
    read_sources,
)
from gistpoint.core.generation.breakpoint.records import BreakpointRecord, Damage, read_records
from gistpoint.core.generation.intake import Intake, NoTaskError, take_in, with_test_map_if_it_ends
from gistpoint.core.generation.settings import SourceSpec
from gistpoint.core.locations import Locations
from gistpoint.core.ports import Runner
from gistpoint.core.tasks.documents import TASK_FILE
from gistpoint.object_graph import build_runner
from gistpoint.sessions.imports import ImportLedger, PendingRecord
from gistpoint.tui.commands.arguments import add_isolation, counted, isolation_of
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.output import print_json, print_table
from gistpoint.tui.commands.progress import LongWork, long_work

MOST_BYTES = 512 << 20
_ELSEWHERE = "If the repository is elsewhere, say where with --sources."


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """The outcome of a record: `imported`, `marked`, `here already`, `refused`, `damaged` or `waits`."""

    line: int
    function: str
    outcome: str
    reason: str = ""
    """One of a closed list if the record is refused."""
    detail: str = ""
    task: str = ""


def import_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint task import`."""
    parser.description = (
        "Makes tasks of the public data set's records: each repository is fetched, its suite run three times, and "
        "every record proven on it. A record whose repository can't be had is kept, and tried again by the next call. "
        "Exit code 1 if a record was refused or waits."
    )
    parser.add_argument("data_set", choices=["breakpoint"], help="whose form the records have")
    parser.add_argument("file", nargs="?", metavar="FILE", help="JSON or JSON lines; without it, those that wait")
    parser.add_argument(
        "--sources", metavar="FILE.toml", help="where repositories are to be had, and what their suites need"
    )
    parser.add_argument("--only", metavar="TEXT", help="records whose repository, file or function holds this text")
    parser.add_argument("--pending", action="store_true", help="list the records that wait for their repository")
    parser.add_argument(
        "--min-failing", type=counted, default=5, metavar="N", help="failing tests a task needs (default: 5)"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_isolation(parser)
    return import_records


def import_records(options: argparse.Namespace) -> int:
    """Import the records that are not in the store; print a row per record. Negative if one was refused or waits."""
    ledger = ImportLedger(Locations.of_user().imports / f"{options.data_set}.json")
    if options.pending:
        return _listed(options, ledger)
    sources = _sources(options.sources)
    records, outcomes = _records(options, ledger)
    stopped: CancelledError | None = None
    try:
        with long_work(
            quiet=getattr(options, "json", False),
            kept="The outcomes so far are kept: the same command goes on from there.",
        ) as work:
            Importer(ledger, sources, options, work, outcomes).all(records)
    except CancelledError as error:
        stopped = error
    code = _report(options, outcomes)
    if stopped is not None:
        raise stopped
    return code


@dataclass
class Importer:
    """Imports records, one repository after the other; each outcome is written to disk at once."""

    ledger: ImportLedger
    sources: RecordSources
    options: argparse.Namespace
    work: LongWork
    outcomes: list[ImportOutcome]
    _runner: list[Runner] = field(default_factory=list)

    def all(self, records: Iterable[BreakpointRecord]) -> None:
        """Import the records in the order of their repositories."""
        imported, tasks = self.ledger.read().imported, Locations.of_user().tasks
        groups: dict[str, list[BreakpointRecord]] = {}
        for record in records:
            known = imported.get(record.id, "")
            if known and (tasks / known / TASK_FILE).is_file():
                self._note(record, "here already", task=known)
            else:
                groups.setdefault(record.place, []).append(record)
        for group in groups.values():
            self._repository(group)

    def _repository(self, group: list[BreakpointRecord]) -> None:
        self.work.progress.line(f"{group[0].place}: {len(group)} {'record' if len(group) == 1 else 'records'}")
        with tempfile.TemporaryDirectory(prefix="gistpoint-import-") as scratch:
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
        from gistpoint.sandbox.pools import SandboxHarness

        runner, run = self._running(), self.work.run
        harness = SandboxHarness.on(runner.backend)
        repository = harness.fetch(spec, scratch, run)
        intake = take_in(repository, runner, max_seconds=spec.max_suite_seconds, run=run)
        return with_test_map_if_it_ends(intake, harness.mapper(spec.max_suite_seconds), run=run)

    def _running(self) -> Runner:
        if not self._runner:
            self._runner.append(build_runner(isolation_of(self.options)))
        return self._runner[0]

    def _record(self, record: BreakpointRecord, intake: Intake) -> None:
        try:
            made = import_record(
                record, intake, self._running(), Locations.of_user().tasks, min_failing=self.options.min_failing,
                provenance={"gistpoint": __version__}, run=self.work.run,
            )  # fmt: skip
        except (RefusedRecordError, NoTaskError) as refusal:
            self._refuse(record, refusal.reason.value, refusal.message)
            return
        self.ledger.settle(imported={record.id: made.task.id})
        failing = f"{len(made.task.brief.failing)} tests fail"
        if not made.marked:
            self._note(record, "imported", task=made.task.id, detail=failing)
            return
        costs = "cost an attempt" if made.task.rules.refused_costs_attempt else "cost no attempt"
        detail = f"{failing}; it was made here before, and keeps its rules: refused submissions {costs}"
        self._note(record, "marked", task=made.task.id, detail=detail)

    def _refuse(self, record: BreakpointRecord, reason: str, detail: str) -> None:
        self.ledger.settle(refused=[record.id])
        self._note(record, "refused", reason, detail)

    def _wait(self, group: list[BreakpointRecord], reason: str) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self.ledger.wait(
            PendingRecord(
                record.id, record.url, record.commit, f"{record.path}::{record.function}", record.line, reason, now,
                record.text,
            )
            for record in group
        )  # fmt: skip
        for record in group:
            self._note(record, "waits", "repository_not_here", reason)

    def _note(
        self, record: BreakpointRecord, outcome: str, reason: str = "", detail: str = "", *, task: str = ""
    ) -> None:
        function = f"{record.path}::{record.function}"
        self.outcomes.append(ImportOutcome(record.line, function, outcome, reason, detail, task))
        self.work.progress.line(f"  line {record.line}, {function}: {outcome}{f', {detail}' if detail else ''}")


def _sources(name: str | None) -> RecordSources:
    if name is None:
        return RecordSources()
    try:
        return read_sources(Path(name).read_text(encoding="utf-8"), Path(name).name)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{name} can't be read: {cause(error)}.", hint="--sources takes a TOML file.") from error


def _records(options: argparse.Namespace, ledger: ImportLedger) -> tuple[list[BreakpointRecord], list[ImportOutcome]]:
    """Return the valid records among the requested ones, and the outcomes of the damaged ones."""
    if options.file is None:
        waiting = ledger.read().pending.values()
        items = [item for pending in waiting for item in read_records(pending.text.encode("utf-8", "surrogateescape"))]
    else:
        items = list(read_records(_read(Path(options.file))))
        if not any(isinstance(item, BreakpointRecord) for item in items):
            why = f" Line {items[0].line}: {items[0].reason}" if items and isinstance(items[0], Damage) else ""
            raise UserError(f"{options.file} holds no record of the data set.{why}")
    damaged = [
        ImportOutcome(item.line, "", "damaged", "damaged", item.reason) for item in items if isinstance(item, Damage)
    ]
    wanted = options.only or ""
    records = [
        item
        for item in items
        if isinstance(item, BreakpointRecord) and wanted in f"{item.url} {item.path}::{item.function}"
    ]
    return records, damaged


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UserError(f"{path} is larger than {MOST_BYTES >> 20} MiB.")
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}.") from error


def _report(options: argparse.Namespace, outcomes: list[ImportOutcome]) -> int:
    outcomes.sort(key=lambda item: item.line)
    if options.json:
        print_json("gistpoint.import/1", {"data_set": DATA_SET, "records": [asdict(item) for item in outcomes]})
    elif not outcomes:
        print("No record waits for its repository.")
    else:
        print_table(
            ["line", "function", "outcome", "reason", "task or detail"],
            [[str(item.line), item.function, item.outcome, item.reason, _told(item)] for item in outcomes],
        )
    return NEGATIVE if any(item.outcome in ("refused", "damaged", "waits") for item in outcomes) else DONE


def _told(item: ImportOutcome) -> str:
    if item.outcome == "marked":
        return f"{item.task[:12]}: {item.detail}"
    return item.task[:12] or item.detail


def _listed(options: argparse.Namespace, ledger: ImportLedger) -> int:
    waiting = list(ledger.read().pending.values())
    if options.json:
        print_json("gistpoint.pending/1", {"data_set": DATA_SET, "pending": [asdict(item) for item in waiting]})
    elif not waiting:
        print("No record waits for its repository.")
    else:
        rows = [[item.url, item.commit[:12], item.function, item.tried, item.reason] for item in waiting]
        print_table(["repository", "commit", "function", "tried", "reason"], rows)
    return DONE
