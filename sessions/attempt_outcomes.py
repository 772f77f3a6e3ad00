"""The outcomes of attempts as rows, tables and archives, and rulings on passes that require review."""

from __future__ import annotations

import io
import json
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gistpoint.core.attempts.clock import ClockActivity
from gistpoint.core.attempts.state import AttemptResult, AttemptState, Standing
from gistpoint.core.csv_text import csv_line
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.confirming import confirmation_row, standing
from gistpoint.core.locations import read_regular
from gistpoint.core.login import login_name
from gistpoint.core.readable import utc_datetime
from gistpoint.core.requests import Request
from gistpoint.sessions.annotations.keys import attempt_key
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.settling import accept_attempt, reject_attempt, verdicts
from gistpoint.sessions.attempt_summary import HIDDEN, AttemptSummary, outcome, require_shown
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.journal import JOURNAL


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptPass(Request):
    """A request to count a pass that a reviewer considers legitimate."""

    attempt: str
    why: str = ""
    reviewer: str = ""
    """The reviewer; empty for the login name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectPass(Request):
    """A request not to count a pass that a reviewer considers illegitimate."""

    attempt: str
    why: str
    reviewer: str = ""


def accept_pass(attempts: AttemptStore, reviews: ReviewStore, request: AcceptPass) -> AttemptSummary:
    """Record that a suspicious pass, or one with a verdict, was earned, and return the updated attempt.

    Raises `UserError` if the attempt has no such pass, or if its outcome is hidden.
    """
    summary = _passed(attempts, request.attempt)
    if not summary.state.suspicious and not verdicts(reviews.book, attempt_key(summary.attempt_id)):
        raise UserError(
            f"There is nothing to settle: {summary.attempt_id} is solved, and its pass is not suspicious.",
            hint="`gistpoint attempt reject` records that it was not earned; nothing was written.",
        )
    accept_attempt(Reviewer(reviews, request.reviewer or login_name()), summary.attempt_id, request.why)
    return attempts.summary(summary.attempt_id)


def reject_pass(attempts: AttemptStore, reviews: ReviewStore, request: RejectPass) -> AttemptSummary:
    """Record that a pass was not earned, and return the updated attempt.

    Raises `UserError` if there is no pass or no reason, or if the outcome is hidden.
    """
    if not request.why.strip():
        raise UserError("A rejection needs a reason.", hint="Add --why TEXT.")
    summary = _passed(attempts, request.attempt)
    reject_attempt(Reviewer(reviews, request.reviewer or login_name()), summary.attempt_id, request.why)
    return attempts.summary(summary.attempt_id)


def _passed(attempts: AttemptStore, attempt_id: str) -> AttemptSummary:
    summary = attempts.summary(attempt_id)
    require_shown(summary)
    if summary.problem or not summary.state.solved:
        raise UserError(f"{summary.attempt_id} has no pass to settle; its outcome is: {outcome(summary)}.")
    return summary


def _ended(summary: AttemptSummary, reason: str) -> str:
    """Return the outcome in words if the attempt has a pass that does not count, and otherwise `reason`."""
    unearned = summary.state.solved and summary.result is not AttemptResult.SOLVED
    return outcome(summary) if unearned else reason


def _started(summary: AttemptSummary) -> str:
    return utc_datetime(summary.started_utc_ms).isoformat(timespec="seconds")


def attempt_rows(summaries: Sequence[AttemptSummary]) -> dict[str, Any]:
    """Return attempts in the format of lists and exports, with counts of their results and confirmations."""
    results = Counter(summary.result for summary in summaries if not summary.withheld)
    return {
        "attempts": [attempt_row(summary) for summary in summaries],
        "solved": results[AttemptResult.SOLVED],
        "solved_to_be_read": results[AttemptResult.TO_BE_READ],
        "solved_by_tests": sum(summary.state.solved for summary in summaries if not summary.problem),
        "confirmation": dict(Counter(str(found) for found in standings(summaries) if found is not None)),
    }


def standings(summaries: Iterable[AttemptSummary]) -> list[Standing | None]:
    """Return the standing of each attempt's pass; None without a pass or with a damaged journal."""
    return [None if summary.problem else standing(summary.state) for summary in summaries]


_OUTCOME = frozenset(
    {
        "solved",
        "suspicious",
        "score",
        "best_score",
        "submissions_left",
        "submissions",
        *confirmation_row(AttemptState()),
    }
)
"""The cells that are empty if the outcome is unknown or hidden."""
_ALWAYS = frozenset({"attempt_id", "result", "milliseconds", "problem", "events", "head", "branch"})
"""The cells that are known even if an attempt's journal does not contain its start."""


def attempt_row(summary: AttemptSummary) -> dict[str, Any]:
    """Return an attempt in the format of lists and exports: a dictionary whose keys never change.

    Values that are hidden, or unknown because the journal is damaged, are None; `result` gives the reason.
    """
    row, state = _whole_row(summary), summary.state
    if not (summary.problem or summary.withheld):
        return row
    empty = set(_OUTCOME)
    if summary.withheld:
        empty.add("calls")
    if not state.started:
        empty = set(row) - _ALWAYS
        row["milliseconds"] = dict.fromkeys(row["milliseconds"])
    return {**row, **dict.fromkeys(empty), "result": HIDDEN if summary.withheld else outcome(summary)}


def _whole_row(summary: AttemptSummary) -> dict[str, Any]:
    state = summary.state
    last, best = state.last, state.best
    return {
        "attempt_id": summary.attempt_id,
        "task_id": summary.task_id,
        "mode": summary.mode,
        "actor": summary.actor,
        "role": summary.role,
        "participant": summary.participant,
        "started": _started(summary),
        "ended": None if state.ending is None else _ended(summary, state.ending.reason),
        "solved": summary.result is AttemptResult.SOLVED,
        "result": summary.result.value,
        "suspicious": list(state.suspicious),
        **confirmation_row(state),
        "score": None if last is None else last.score,
        "best_score": None if best is None else best.score,
        "milliseconds": {activity.value: state.clock.of(activity) for activity in ClockActivity},
        "active_ms": state.clock.active,
        "asleep_ms": state.clock.asleep,
        "budgets": asdict(state.budgets),
        "tool_uses_left": state.remaining.tool_uses,
        "submissions_left": state.remaining.submissions,
        "calls": len(state.calls),
        "submissions": len(state.submissions),
        "gist_settings": state.header.extra.get("gist_settings"),
        "comforts": dict(state.affordances),
        "problem": summary.problem,
        "events": state.events,
        "head": summary.head,
        "head_kept": summary.witnessed,
        "head_kept_by": None if summary.kept is None else summary.kept.origin.value,
        "drivers": list(state.drivers),
        "mixed": state.mixed,
        "branch": summary.branch,
    }


def _table(store: AttemptStore, chosen: Sequence[AttemptSummary]) -> bytes:
    rows = [dict(_flat(attempt_row(summary))) for summary in chosen]
    columns = list(rows[0])
    lines: list[list[Any]] = [columns, *([row.get(column) for column in columns] for row in rows)]
    return "".join(map(csv_line, lines)).encode("utf-8", "backslashreplace")


def _flat(row: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in row.items():
        if name == "milliseconds":
            found += [(f"{activity}_ms", ms) for activity, ms in value.items()]
        else:
            found.append((name, json.dumps(value) if isinstance(value, dict | list) else value))
    return found


def _json(store: AttemptStore, chosen: Sequence[AttemptSummary]) -> bytes:
    document = {"schema": "gistpoint.attempts/1", **attempt_rows(chosen)}
    return (json.dumps(document, indent=1) + "\n").encode("ascii")


def _archive(store: AttemptStore, chosen: Sequence[AttemptSummary]) -> bytes:
    """Return a reproducible archive of the whole lines of journals.

    Heads are omitted because they are useless elsewhere. Unreadable journals are also omitted; the attempt's
    problem contains the reason. Raises `UserError` if the outcome of an attempt is hidden.
    """
    import zstandard

    for summary in chosen:
        require_shown(summary)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for summary in sorted(chosen, key=lambda summary: summary.attempt_id):
            try:
                data = read_regular(store.folder(summary.attempt_id) / JOURNAL)
            except OSError:
                if summary.problem:
                    continue
                raise
            info = tarfile.TarInfo(f"{summary.attempt_id}/{JOURNAL}")
            data = data[: data.rfind(b"\n") + 1]
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    return zstandard.ZstdCompressor(level=10).compress(buffer.getvalue())


ATTEMPT_WRITERS: Mapping[str, Callable[[AttemptStore, Sequence[AttemptSummary]], bytes]] = {
    "csv": _table,
    "json": _json,
    "archive": _archive,
}
"""The functions that write attempts, by the name of their format."""
