"""`gistpoint replay` of many runs: here one after the other, or on a cluster; a line each, and a file that goes on."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gistpoint.core.attempts.identity import MODEL, PERSON
from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.locations import path_of
from gistpoint.core.logs import AppendLog, LogKind, read_log, wait_for
from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.replay.reporting import ReplayReport, VerdictRow, report_of
from gistpoint.tui.commands.arguments import isolation_of
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.output import print_json, print_text
from gistpoint.tui.commands.progress import LongWork, long_work
from gistpoint.tui.commands.runs import open_named
from gistpoint.tui.object_graph import build_services
from gistpoint.tui.services import Services

_SCHEMA = "gistpoint.replay/1"
_REPORTS = LogKind("gistpoint.replay")


@dataclass
class ReplayBatch:
    """Runs to replay, what became of them so far, and the file that keeps it."""

    names: list[str]
    output: Path | None
    print_line: Callable[[str], None]
    reports: dict[str, ReplayReport] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = _kept(self.output) if self.output is not None else {}
        self.reports = {name: kept[name] for name in self.names if name in kept}

    @property
    def left(self) -> list[str]:
        """The runs of which nothing is known yet."""
        return [name for name in self.names if name not in self.reports and name not in self.problems]

    def take(self, name: str, report: ReplayReport) -> None:
        """Keep the report on a run, and print its line. Raises `UserError` if the file can't be written."""
        if self.output is not None:
            line = json.dumps({"schema": _SCHEMA, **report.as_json()}, ensure_ascii=True) + "\n"
            try:
                self.output.touch()  # others may read it, unlike what gistpoint keeps for itself
                with AppendLog(self.output, _REPORTS, wait_for(self.output)) as log:
                    log.append(line.encode("ascii"))
            except OSError as error:
                raise UserError(f"{self.output} can't be written: {error.strerror}.") from error
        self.reports[name] = report
        self.print_line(_line(name, report))

    def fail(self, name: str, problem: str) -> None:
        """Note why a run can't be replayed."""
        self.problems[name] = problem
        _tell(f"{name}: {problem}")

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        runs = [self.reports[name].as_json() for name in self.names if name in self.reports]
        return {"runs": runs, "problems": [{"run": name, "problem": told} for name, told in self.problems.items()]}


def replay_many(options: argparse.Namespace) -> int:
    """Replay the named runs, or all ended attempts of the store; return 1 if one differs or could not be replayed."""
    services = build_services(isolation_of(options))
    names = _ended(services) if options.all else [*dict.fromkeys(options.recorded)]
    output = path_of(options.output) if options.output else None
    kept = f"The reports so far are in {output}: the same command goes on." if output else "-o FILE keeps reports."
    with long_work(quiet=getattr(options, "json", False), kept=kept) as work:

        def print_line(line: str) -> None:
            if not options.json:
                work.progress.detail("")
                print_text(line)

        batch = ReplayBatch(names, output, print_line)
        work.progress.stage(f"replaying {len(batch.left)} of {plural(len(names), 'run')}")
        if options.cluster:
            _on_cluster(options, services, batch, work)
        else:
            _here(options, services, batch, work)
    same = sum(report.same for report in batch.reports.values())
    if options.json:
        print_json("gistpoint.replays/1", batch.as_json())
    else:
        differ = len(batch.reports) - same
        print_text(
            f"{plural(len(names), 'run')}: {same} the same, {differ} not the same, {len(batch.problems)} not replayed"
        )
    return DONE if same == len(names) else NEGATIVE


def _ended(services: Services) -> list[str]:
    """Return the ids of all attempts that a solver has ended, the oldest first."""
    found = [
        summary.attempt_id
        for summary in services.attempts.outlines()
        if summary.actor in (PERSON, MODEL) and summary.state.ended and not summary.problem
    ]
    return found[::-1]


def _here(options: argparse.Namespace, services: Services, batch: ReplayBatch, work: LongWork) -> None:
    for name in batch.left:
        work.progress.count(len(batch.names) - len(batch.left), len(batch.names), name)
        try:
            replay = services.replay_of(open_named(name), name, options.task or "")
            report = report_of(replay, name, run=work.run.quiet)
        except CancelledError:
            raise
        except UserError as error:
            batch.fail(name, str(error))
        else:
            batch.take(name, report)


def _on_cluster(options: argparse.Namespace, services: Services, batch: ReplayBatch, work: LongWork) -> None:
    from gistpoint.tui.cluster_replays import ReplaysElsewhere
    from gistpoint.tui.cluster_runs import crew_at, work_tools

    def tick() -> None:
        work.progress.count(len(batch.names) - len(batch.left), len(batch.names))

    with crew_at(options.cluster, _tell) as crew:
        replays = ReplaysElsewhere(services, work_tools(options), batch.take, batch.fail)
        replays.carry_out(crew, batch.left, tick)
        if crew.interrupts:
            work.cancel.cancel()
            work.cancel.check()


def _tell(sentence: str) -> None:
    print(f"gistpoint: {visible_line(sentence)}", file=sys.stderr, flush=True)


def _line(name: str, report: ReplayReport) -> str:
    """Return what became of a run in a line."""
    verdict = "" if report.same_verdict else f"; verdict then {_verdict(report.then)}, now {_verdict(report.now)}"
    return f"{name}  {'same' if report.same else 'NOT the same'}  {report.words}{verdict}"


def _verdict(verdict: VerdictRow) -> str:
    score = "" if verdict.score is None else f", score {verdict.score:.3f}"
    return f"{verdict.result or 'not recorded'}{score}"


def _kept(path: Path) -> dict[str, ReplayReport]:
    """Return the reports in a file, by run. Raises `UserError`."""
    try:
        found = [msgspec.json.decode(line, type=ReplayReport) for line in read_log(path, _REPORTS).lines]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}.") from error
    except msgspec.MsgspecError as error:
        raise UserError(
            f"{path} has lines that are no reports on replays: {error}.", hint="Name another file with -o."
        ) from error
    return {report.run: report for report in found}
