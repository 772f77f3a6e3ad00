"""`gistpoint task import breakpoint`: records of the public data set made into tasks, or refused, or kept waiting."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from gistpoint import __version__
from gistpoint.core.errors import EnvironmentBuildError, SourceError, UserError
from gistpoint.core.generation.breakpoint.importing import (
    DATA_SET,
    RecordSources,
    RefusedRecordError,
    import_record,
    read_sources,
)
from gistpoint.core.generation.breakpoint.records import Damage, Record, read_records
from gistpoint.core.generation.campaign.settings import SourceSpec
from gistpoint.core.generation.intake import Intake, NoTaskError, take_in
from gistpoint.core.locations import Locations
from gistpoint.core.ports import Runner
from gistpoint.core.tasks.folder import TASK_FILE
from gistpoint.sessions.imports import ImportLedger, PendingRecord
from gistpoint.tui.cli import DONE, NEGATIVE, build_runner
from gistpoint.tui.commands.output import ProgressLine, print_json, print_table
from gistpoint.tui.commands.test_maps import recorded

MOST_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a record: `imported`, `here already`, `refused`, `damaged` or `waits`."""

    line: int
    function: str
    outcome: str
    reason: str = ""
    """One of a closed list where it is refused."""
    detail: str = ""
    task: str = ""


def import_records(options: argparse.Namespace) -> int:
    """Import what is not here yet; prints a row a record. Negative where one was refused or waits."""
    ledger = ImportLedger(Locations.of_user().imports / f"{options.data_set}.json")
    if options.pending:
        return _listed(options, ledger)
    if options.min_failing < 1:
        raise UserError("--min-failing must be 1 or more.")
    sources = _sources(options.sources)
    records, outcomes = _records(options, ledger)
    with ProgressLine() as progress:
        importer = Importer(ledger, sources, options, progress, outcomes)
        importer.all(records)
    return _told(options, outcomes)


@dataclass
class Importer:
    """Imports records, a repository after the other; what is settled is on the disk at once."""

    ledger: ImportLedger
    sources: RecordSources
    options: argparse.Namespace
    progress: ProgressLine
    outcomes: list[Outcome]
    _runner: list[Runner] = field(default_factory=list)

    def all(self, records: Iterable[Record]) -> None:
        """Import the records in the order of their repositories."""
        imported, tasks = self.ledger.read().imported, Locations.of_user().tasks
        groups: dict[str, list[Record]] = {}
        for record in records:
            known = imported.get(record.id, "")
            if known and (tasks / known / TASK_FILE).is_file():
                self._note(record, "here already", task=known)
            else:
                groups.setdefault(record.place, []).append(record)
        for group in groups.values():
            self._repository(group)

    def _repository(self, group: list[Record]) -> None:
        self.progress.line(f"{group[0].place}: {len(group)} {'record' if len(group) == 1 else 'records'}")
        with tempfile.TemporaryDirectory(prefix="gistpoint-import-") as scratch:
            try:
                spec = self.sources.spec_of(group[0])
                intake = self._taken_in(spec, Path(scratch))
            except (SourceError, EnvironmentBuildError) as error:
                self._wait(group, str(error))
                return
            except NoTaskError as refusal:
                for record in group:
                    self._refuse(record, refusal.reason.value, refusal.message)
                return
            for record in group:
                self._record(record, intake)

    def _taken_in(self, spec: SourceSpec, scratch: Path) -> Intake:
        from gistpoint.sandbox.environments.sources import fetch_repository

        progress, cache, runner = self.progress, Locations.of_user().cache, self._running()
        repository = fetch_repository(
            spec, scratch, cache, isolation=runner.backend, on_line=progress.line, on_detail=progress.detail
        )
        return recorded(take_in(repository, runner, on_progress=progress.making), runner, progress)

    def _running(self) -> Runner:
        if not self._runner:
            self._runner.append(build_runner(self.options))
        return self._runner[0]

    def _record(self, record: Record, intake: Intake) -> None:
        try:
            task = import_record(
                record, intake, self._running(), Locations.of_user().tasks, min_failing=self.options.min_failing,
                provenance={"gistpoint": __version__}, on_progress=self.progress.making,
            )  # fmt: skip
        except (RefusedRecordError, NoTaskError) as refusal:
            self._refuse(record, refusal.reason.value, refusal.message)
            return
        self.ledger.settle(imported={record.id: task.id})
        self._note(record, "imported", task=task.id, detail=f"{len(task.brief.failing)} tests fail")

    def _refuse(self, record: Record, reason: str, detail: str) -> None:
        self.ledger.settle(refused=[record.id])
        self._note(record, "refused", reason, detail)

    def _wait(self, group: list[Record], reason: str) -> None:
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

    def _note(self, record: Record, outcome: str, reason: str = "", detail: str = "", *, task: str = "") -> None:
        function = f"{record.path}::{record.function}"
        self.outcomes.append(Outcome(record.line, function, outcome, reason, detail, task))
        self.progress.line(f"  line {record.line}, {function}: {outcome}{f', {detail}' if detail else ''}")


def _sources(name: str | None) -> RecordSources:
    if name is None:
        return RecordSources()
    try:
        return read_sources(Path(name).read_text(encoding="utf-8"), Path(name).name)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{name} can't be read: {error}.", hint="--sources takes a TOML file.") from error


def _records(options: argparse.Namespace, ledger: ImportLedger) -> tuple[list[Record], list[Outcome]]:
    """Return the sound records that are asked for, and what is said of the damaged ones."""
    if options.file is None:
        waiting = ledger.read().pending.values()
        items = [item for pending in waiting for item in read_records(pending.text.encode("utf-8", "surrogateescape"))]
    else:
        items = list(read_records(_read(Path(options.file))))
        if not any(isinstance(item, Record) for item in items):
            why = f" Line {items[0].line}: {items[0].reason}" if items and isinstance(items[0], Damage) else ""
            raise UserError(f"{options.file} holds no record of the data set.{why}")
    damaged = [Outcome(item.line, "", "damaged", "damaged", item.reason) for item in items if isinstance(item, Damage)]
    wanted = options.only or ""
    records = [
        item for item in items if isinstance(item, Record) and wanted in f"{item.url} {item.path}::{item.function}"
    ]
    return records, damaged


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UserError(f"{path} is larger than {MOST_BYTES >> 20} MiB.")
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}.") from error


def _told(options: argparse.Namespace, outcomes: list[Outcome]) -> int:
    outcomes.sort(key=lambda item: item.line)
    if options.json:
        print_json("gistpoint.import/1", {"data_set": DATA_SET, "records": [asdict(item) for item in outcomes]})
    elif not outcomes:
        print("No record waits for its repository.")
    else:
        print_table(
            ["line", "function", "outcome", "reason", "task or detail"],
            [
                [str(item.line), item.function, item.outcome, item.reason, item.task[:12] or item.detail]
                for item in outcomes
            ],
        )
    return NEGATIVE if any(item.outcome in ("refused", "damaged", "waits") for item in outcomes) else DONE


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
