"""`gistpoint task import breakpoint`: turn records of the public data set into tasks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from gistpoint.core.errors import CancelledError
from gistpoint.core.generation.breakpoint.importing import DATA_SET
from gistpoint.core.generation.context import FetchingHarness
from gistpoint.core.locations import Locations
from gistpoint.core.ports import Runner
from gistpoint.core.requests import IsolationChoice
from gistpoint.object_graph import build_runner
from gistpoint.sessions.imports import Importer, ImportLedger, ImportOutcome, ImportRecords
from gistpoint.tui.commands.arguments import ISOLATION, JSON
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, argument, option
from gistpoint.tui.commands.output import print_json, print_table
from gistpoint.tui.commands.progress import long_work


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest(ImportRecords):
    """A request to import records; with `pending`, the records that wait are only listed."""

    pending: bool = False
    json: bool = False
    isolation: IsolationChoice = field(default_factory=IsolationChoice)


def import_records(request: ImportRequest) -> int:
    """Import the records that are not stored yet, and print a row for each.

    With `pending`, only list the records that wait. Return 1 if a record was refused or has to wait. Raises
    `CancelledError` if the work was stopped, after printing the outcomes so far.
    """
    locations = Locations.of_user()
    ledger = ImportLedger(locations.imports / f"{request.data_set}.json")
    if request.pending:
        return _print_pending(ledger, as_json=request.json)
    sources = request.record_sources()
    records, outcomes = request.records(ledger)

    def open_harness() -> tuple[Runner, FetchingHarness]:
        from gistpoint.sandbox.pools import SandboxHarness

        runner = build_runner(request.isolation)
        return runner, SandboxHarness.on(runner.backend)

    stopped: CancelledError | None = None
    kept = "The outcomes so far are kept: the same command continues from there."
    try:
        with long_work(quiet=request.json, kept=kept) as work:
            Importer(
                ledger, sources, locations.tasks, open_harness, outcomes, request.min_failing, work.run
            ).all(records)
    except CancelledError as error:
        stopped = error
    _print(outcomes, as_json=request.json)
    if stopped is not None:
        raise stopped
    return DONE if all(item.good for item in outcomes) else NEGATIVE


def _print(outcomes: list[ImportOutcome], *, as_json: bool) -> None:
    outcomes.sort(key=lambda item: item.line)
    if as_json:
        print_json(
            "gistpoint.import/1", {"data_set": DATA_SET, "records": [asdict(item) for item in outcomes]}
        )
    elif not outcomes:
        print("There are no records waiting for their repositories.")
    else:
        print_table(
            ["line", "function", "outcome", "reason", "task or detail"],
            [[str(item.line), item.function, item.outcome, item.reason, _detail(item)] for item in outcomes],
        )


def _detail(item: ImportOutcome) -> str:
    if item.outcome == "marked":
        return f"{item.task[:12]}: {item.detail}"
    return item.task[:12] or item.detail


def _print_pending(ledger: ImportLedger, *, as_json: bool) -> int:
    waiting = list(ledger.read().pending.values())
    if as_json:
        print_json(
            "gistpoint.pending/1", {"data_set": DATA_SET, "pending": [asdict(item) for item in waiting]}
        )
    elif not waiting:
        print("There are no records waiting for their repositories.")
    else:
        rows = [[item.url, item.commit[:12], item.function, item.tried, item.reason] for item in waiting]
        print_table(["repository", "commit", "function", "tried", "reason"], rows)
    return DONE


IMPORT = CliCommand(
    ImportRequest,
    import_records,
    {
        "data_set": argument("", "the data set whose format the records have"),
        "file": argument("FILE", "JSON or JSON lines; without it, the waiting records"),
        "sources": option(
            "TOML file with the locations of repositories, and what their suites need", metavar="FILE.toml"
        ),
        "only": option("only records whose repository, file or function contains this text", metavar="TEXT"),
        "pending": option("list the records whose repository is not available yet"),
        "min_failing": option("number of failing tests that a task needs (default: {default})", metavar="N"),
        "json": JSON,
        "isolation": ISOLATION,
    },
    about=(
        "Makes tasks of the public data set's records: each repository is fetched, its suite is run three"
        " times, and every record is proven on it. A record whose repository is not available is kept, and"
        " the next call tries it again. The exit code is 1 if a record was refused, is damaged or waits."
    ),
)
