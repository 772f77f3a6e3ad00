"""The report on a replay: what became of each call, and the verdict then and now, as it is printed, sent and kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.sessions.replay.recorded import recorded_calls
from gistpoint.sessions.replay.replaying import Replay, ReplayedCall, ReplayedVerdict, Sameness, recorded_verdict
from gistpoint.sessions.runs.document import RunDocument

NEGATIVE = frozenset({Sameness.DIFFERS.value, Sameness.COULD_NOT_RUN.value})
"""What became of a call whose replay is not a success."""
NEARLY = "same*"
"""The word for a result that is the same but for times, addresses and folders."""


class ReplayedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was made again."""

    step: int
    number: int
    tool: str
    arguments: dict[str, Any] | None
    result: str
    """A `Sameness`."""
    exact: bool
    reason: str = ""
    diff: str = ""

    @classmethod
    def of(cls, replayed: ReplayedCall) -> ReplayedRow:
        """Return the row of a call."""
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
        """What became of it, in a word or two."""
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
        return cls(solved=verdict.solved, result=result, suspicious=tuple(verdict.suspicious), score=verdict.score)


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report on one run."""

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
        """Whether nothing differs: every call could be made, no result differs, and the verdict is the same."""
        return self.same_verdict and not any(row.result in NEGATIVE for row in self.calls)

    @property
    def words(self) -> str:
        """How many calls became what."""
        counts = Counter(row.word for row in self.calls)
        found = [
            f"{counts[word]} {word}" for word in (Sameness.SAME.value, NEARLY, *list(Sameness)[1:]) if counts[word]
        ]
        return ", ".join(found) or "nothing to make again"

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**msgspec.to_builtins(self), "same": self.same}


def report_of(
    replay: Replay, name: str, *, run: RunContext = UNATTENDED, on_call: Callable[[ReplayedCall], None] | None = None
) -> ReplayReport:
    """Replay a run whole and return the report; `on_call` is given each call. Raises `CancelledError`."""
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
    """Return why a report from elsewhere can't be that on a run, in a few words; empty if it can.

    It has to name the run, its task and its recorded verdict, and to have calls of the run alone, each once.
    """
    if (report.run, report.task) != (name, task):
        return "its report is on another run or another task"
    recorded = {(call.step, call.number): call.tool for call in recorded_calls(document, ours=True)}
    reported = [(row.step, row.number) for row in report.calls]
    if any(recorded.get((row.step, row.number)) != row.tool for row in report.calls):
        return "its report has calls that the run does not have"
    if len(reported) != len(set(reported)) or (recorded and not reported):
        return "its report does not have the calls of the run"
    document.build()
    if report.then != VerdictRow.of(recorded_verdict(document)):
        return "its report has another recorded verdict than the run"
    return ""
