"""The report on a replay for printing, sending and storing: the outcomes of the calls, and the verdicts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.logs import AppendLog, LogKind, read_log, wait_for
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.sessions.replay.recorded import recorded_calls
from gistpoint.sessions.replay.replaying import (
    Replay,
    ReplayedCall,
    ReplayedVerdict,
    Sameness,
    recorded_verdict,
)
from gistpoint.sessions.runs.document import RunDocument

NEGATIVE = frozenset({Sameness.DIFFERS.value, Sameness.COULD_NOT_RUN.value})
"""The outcomes of calls that count as failures of a replay."""
NEARLY = "same*"
"""The word for a result that is the same except for times, addresses and folders."""


class ReplayedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A repeated call."""

    step: int
    number: int
    tool: str
    arguments: dict[str, Any] | None
    result: str
    """The value of a `Sameness`."""
    exact: bool
    reason: str = ""
    diff: str = ""

    @classmethod
    def of(cls, replayed: ReplayedCall) -> ReplayedRow:
        """Return the row of a repeated call."""
        call = replayed.call
        return cls(
            step=call.step,
            number=call.number,
            tool=call.tool,
            arguments=None if call.arguments is None else dict(call.arguments),
            result=replayed.sameness.value,
            exact=replayed.exact,
            reason=replayed.reason,
            diff=replayed.diff,
        )

    @property
    def word(self) -> str:
        """The outcome of the call, in a word or two."""
        return NEARLY if self.result == Sameness.SAME and not self.exact else self.result


class VerdictRow(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict as it is printed."""

    solved: bool | None
    result: str | None
    suspicious: tuple[str, ...]
    score: float | None

    @classmethod
    def of(cls, verdict: ReplayedVerdict) -> VerdictRow:
        """Return the row of a verdict."""
        result = None if verdict.result is None else verdict.result.value
        return cls(
            solved=verdict.solved, result=result, suspicious=tuple(verdict.suspicious), score=verdict.score
        )


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report on the replay of one run."""

    run: str
    task: str
    backend: str
    budgets: dict[str, int | None]
    notes: tuple[str, ...]
    calls: tuple[ReplayedRow, ...]
    then: VerdictRow
    now: VerdictRow
    same_verdict: bool

    @property
    def same(self) -> bool:
        """Whether every call could be made, no result differs, and the verdict is the same."""
        return self.same_verdict and not any(row.result in NEGATIVE for row in self.calls)

    @property
    def words(self) -> str:
        """The number of calls with each outcome, in words."""
        counts = Counter(row.word for row in self.calls)
        found = [
            f"{counts[word]} {word}"
            for word in (Sameness.SAME.value, NEARLY, *list(Sameness)[1:])
            if counts[word]
        ]
        return ", ".join(found) or "nothing to repeat"

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**msgspec.to_builtins(self), "same": self.same}


def report_of(
    replay: Replay,
    name: str,
    *,
    run: RunContext = UNATTENDED,
    on_call: Callable[[ReplayedCall], None] | None = None,
) -> ReplayReport:
    """Replay a run and return the report; `on_call` receives each call.

    Raises `CancelledError` if cancelled.
    """
    rows = []
    for replayed in replay.calls(run=run):
        rows.append(ReplayedRow.of(replayed))
        if on_call is not None:
            on_call(replayed)
    budgets = replay.attempt.state.budgets
    return ReplayReport(
        run=name,
        task=replay.judge.task.id,
        backend=replay.judge.backend.name,
        budgets={"tool_uses": budgets.tool_uses, "submissions": budgets.submissions},
        notes=(*replay.notes, *replay.document.warnings),
        calls=tuple(rows),
        then=VerdictRow.of(replay.verdict_then()),
        now=VerdictRow.of(replay.verdict_now()),
        same_verdict=replay.same_verdict(),
    )


def fault_in_report(report: ReplayReport, document: RunDocument, *, name: str, task: str) -> str:
    """Return, in a few words, why a report from another machine can't be about a run; empty if it can.

    The report must name the run, its task and its recorded verdict, and contain only calls of the run, none
    of them twice, and at least one if the run has any.
    """
    if (report.run, report.task) != (name, task):
        return "its report is about another run or another task"
    recorded = {(call.step, call.number): call.tool for call in recorded_calls(document, is_own=True)}
    reported = [(row.step, row.number) for row in report.calls]
    if any(recorded.get((row.step, row.number)) != row.tool for row in report.calls):
        return "its report has calls that the run does not have"
    if len(reported) != len(set(reported)) or (recorded and not reported):
        return "its report does not have the calls of the run"
    document.build()
    if report.then != VerdictRow.of(recorded_verdict(document)):
        return "its report has a recorded verdict that differs from the run's"
    return ""


_SCHEMA = "gistpoint.replay/1"
_REPORTS = LogKind("gistpoint.replay")


@dataclass
class ReplayBatch:
    """Runs to replay, their reports and problems so far, and the file that stores the reports."""

    names: list[str]
    output: Path | None
    print_line: Callable[[str], None]
    tell: Callable[[str], None] = lambda sentence: None
    """Receives the reason why a run can't be replayed."""
    reports: dict[str, ReplayReport] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = _stored_reports(self.output) if self.output is not None else {}
        self.reports = {name: kept[name] for name in self.names if name in kept}

    @property
    def left(self) -> list[str]:
        """The runs that have neither a report nor a problem so far."""
        return [name for name in self.names if name not in self.reports and name not in self.problems]

    def take(self, name: str, report: ReplayReport) -> None:
        """Store the report on a run, and print its line. Raises `UserError` if the file can't be written."""
        if self.output is not None:
            line = json.dumps({"schema": _SCHEMA, **report.as_json()}, ensure_ascii=True) + "\n"
            try:
                self.output.touch()  # so that other users may read it, unlike gistpoint's own files
                with AppendLog(self.output, _REPORTS, wait_for(self.output)) as log:
                    log.append(line.encode("ascii"))
            except OSError as error:
                raise UserError(f"{self.output} can't be written: {error.strerror}.") from error
        self.reports[name] = report
        self.print_line(_line(name, report))

    def fail(self, name: str, problem: str) -> None:
        """Record why a run can't be replayed, and pass the reason to `tell`."""
        self.problems[name] = problem
        self.tell(f"{name}: {problem}")

    def as_json(self) -> dict[str, Any]:
        """Return the reports and problems as JSON values, under `runs` and `problems`."""
        runs = [self.reports[name].as_json() for name in self.names if name in self.reports]
        return {
            "runs": runs,
            "problems": [{"run": name, "problem": problem} for name, problem in self.problems.items()],
        }


def replay_each(
    batch: ReplayBatch, replay: Callable[[str], Replay], begin: Callable[[str], None], run: RunContext
) -> None:
    """Replay the remaining runs one after another; `replay` returns the replay of the run with a name.

    `begin` receives each name. If a run can't be replayed, the batch records why and continues with the next.
    Raises `CancelledError` when cancelled.
    """
    for name in batch.left:
        begin(name)
        try:
            report = report_of(replay(name), name, run=run.quiet)
        except CancelledError:
            raise
        except UserError as error:
            batch.fail(name, str(error))
        else:
            batch.take(name, report)


def _line(name: str, report: ReplayReport) -> str:
    """Return the result of a run's replay in one line."""
    verdict = (
        "" if report.same_verdict else f"; outcome then {_verdict(report.then)}, now {_verdict(report.now)}"
    )
    return f"{name}  {'same' if report.same else 'NOT the same'}  {report.words}{verdict}"


def _verdict(verdict: VerdictRow) -> str:
    score = "" if verdict.score is None else f", score {verdict.score:.3f}"
    return f"{verdict.result or 'not recorded'}{score}"


def _stored_reports(path: Path) -> dict[str, ReplayReport]:
    """Return the reports in a file, by run; empty if there is no file.

    Raises `UserError` if it can't be read or is invalid.
    """
    try:
        found = [
            msgspec.json.decode(line, type=decodable(ReplayReport)) for line in read_log(path, _REPORTS).lines
        ]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path} has lines that are not reports about replays: {error}.",
            hint="Name another file with -o.",
        ) from error
    return {report.run: report for report in found}
