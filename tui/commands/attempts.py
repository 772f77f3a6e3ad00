"""`gistpoint attempt`: show, accept, reject and export attempts."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gistpoint.core.attempts.clock import ClockActivity
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.confirming import confirmation_lines, confirmation_words
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.readable import duration, stamp
from gistpoint.core.requests import Request
from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.agentruns.scaffolding import LOGS
from gistpoint.sessions.annotations.keys import attempt_key
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.annotations.reviews import RunVerdictGiven
from gistpoint.sessions.annotations.settling import verdicts
from gistpoint.sessions.attempt_outcomes import (
    ATTEMPT_WRITERS,
    AcceptPass,
    RejectPass,
    accept_pass,
    attempt_row,
    reject_pass,
)
from gistpoint.sessions.attempt_summary import (
    AttemptSummary,
    actor_words,
    hidden_words,
    outcome,
    score_words,
)
from gistpoint.sessions.exports.registry import NAMES, exporter
from gistpoint.sessions.heads import HeadOrigin
from gistpoint.tui.commands.arguments import JSON
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import print_json, print_table, write_whole
from gistpoint.tui.commands.stores import attempt_store, task_titles


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowAttempt(Request):
    """A request to print an attempt."""

    attempt: str
    json: bool = False


def show(request: ShowAttempt) -> int:
    """Print an attempt. Return 1 if its journal is damaged."""
    summary = attempt_store().summary(request.attempt)
    reviews = verdicts(_reviews().book, attempt_key(summary.attempt_id))
    if request.json:
        print_json("gistpoint.attempt/1", _attempt_values(summary, reviews))
        return NEGATIVE if summary.problem else DONE
    if summary.withheld:
        print_table(["what", "value"], [*_first_rows(summary), *_time_rows(summary.state)])
        print(hidden_words(summary))
        return NEGATIVE if summary.problem else DONE
    calls = summary.state.calls
    print_table(["what", "value"], [*_attempt_rows(summary, reviews), *_log_rows(summary)])
    print_table(
        ["call", "tool", "refused", "answer begins"],
        [
            [
                call.call_id,
                call.tool,
                "yes" if call.refused else "",
                (call.text or "").partition("\n")[0][:80],
            ]
            for call in calls
        ],
    )
    return NEGATIVE if summary.problem else DONE


def _attempt_values(summary: AttemptSummary, reviews: Sequence[RunVerdictGiven]) -> dict[str, Any]:
    state = summary.state
    calls = [
        {
            "call_id": call.call_id,
            "tool": call.tool,
            "arguments": dict(call.arguments),
            "refused": call.refused,
            "text": call.text,
        }
        for call in state.calls
    ]
    review_rows = [
        {
            "reviewer": review.reviewer,
            "verdict": review.verdict.value,
            "reasons": [*map(str, review.reasons)],
            "why": review.note,
        }
        for review in reviews
    ]
    submitted = [
        {
            "number": submission.number,
            "passed": submission.solved,
            "solved": submission.solved and not submission.doubts and not summary.problem,
            "score": submission.score,
            "suspicious": [*submission.doubts],
            "flags": [*submission.flags],
        }
        for submission in state.submissions
    ]
    more = {"reviews": review_rows, "submitted": submitted, "calls": calls, "notes": state.notes}
    if summary.withheld:
        more = dict.fromkeys(more)
    return {**attempt_row(summary), **more}


def _first_rows(summary: AttemptSummary) -> list[list[str]]:
    return [
        ["attempt", summary.attempt_id],
        ["task", summary.task_id[:12]],
        ["title", task_titles()(summary.task_id)],
        *(
            [["branch", f"of {summary.branch}: another machine continued the attempt"]]
            if summary.branch
            else []
        ),
        ["actor", actor_words(summary)],
        ["role", summary.role],
        ["participant", summary.participant or "–"],
        ["started", stamp(summary.started_utc_ms)],
        ["outcome", outcome(summary)],
        ["record", _record(summary)],
    ]


def _time_rows(state: AttemptState) -> list[list[str]]:
    times = [[activity.value, duration(state.clock.of(activity))] for activity in ClockActivity]
    return [*times, ["active", duration(state.clock.active)]]


def _attempt_rows(summary: AttemptSummary, reviews: Sequence[RunVerdictGiven]) -> list[list[str]]:
    state = summary.state
    return [
        *_first_rows(summary),
        *([["suspicious", ", ".join(state.suspicious)]] if state.suspicious else []),
        *_confirmation_rows(state),
        *([["flags", ", ".join(state.last.flags)]] if state.last is not None and state.last.flags else []),
        *[["reviewed", f"{given.reviewer}: {_verdict_words(given)}"] for given in reviews],
        *_time_rows(state),
        ["tool uses left", f"{state.remaining.tool_uses} of {state.budgets.tool_uses}"],
        ["submissions left", f"{state.remaining.submissions} of {state.budgets.submissions}"],
        ["last score", score_words(state.last)],
        ["best score", score_words(state.best)],
        *[
            [f"gist: {key}", json.dumps(value)]
            for key, value in state.header.extra.get("gist_settings", {}).items()
        ],
    ]


def _log_rows(summary: AttemptSummary) -> list[list[str]]:
    """Return the rows for the lease, the scaffold, and the logs that the scaffold has written."""
    solver = summary.state.header.solver or {}
    rows = [[name, str(solver[name])] for name in ("lease",) if name in solver]
    scaffold = solver.get("scaffold")
    if isinstance(scaffold, Mapping):
        rows.append(["framework", f"{scaffold.get('name')} {scaffold.get('version')}"])
        folder = Locations.of_user().attempts / summary.attempt_id / LOGS
        logs = sorted(folder.iterdir()) if folder.is_dir() else []
        rows += [["its own log", str(path)] for path in logs if path.suffix in (".json", ".jsonl")]
    return rows


def _confirmation_rows(state: AttemptState) -> list[list[str]]:
    """Return the rows for the confirmation of a pass, and for marks in its text that no longer matter."""
    if state.confirmation is None:
        words = confirmation_words(state)
        return [["confirmation", words]] if words else []
    notes = [mark for mark in state.marks if mark not in state.suspicious]
    rows = [["confirmation", line] for line in confirmation_lines(state.confirmation)]
    return [*rows, ["seen in its text", ", ".join(notes)]] if notes else rows


def _record(summary: AttemptSummary) -> str:
    if summary.problem:
        return f"damaged, for reading only: {summary.problem}"
    if summary.kept is None:
        return "intact; its head was not kept here: the attempt was made elsewhere, or by an earlier version"
    if summary.kept.origin is HeadOrigin.UNSIGNED:
        return "intact; its head was kept before heads were authenticated, so anybody could have written it"
    if summary.kept.origin is HeadOrigin.OTHER:
        return "intact; its head was kept by another machine, so it can't be checked here"
    if not summary.witnessed:
        return f"intact; its head is kept here from event {summary.kept.since} on"
    return "intact; its head was kept here from the start"


def accept(request: AcceptPass) -> int:
    """Record that a pass was read and counts. Return the exit code."""
    return _print_settled(accept_pass(attempt_store(), _reviews(), request))


def reject(request: RejectPass) -> int:
    """Record that a pass was read and does not count. Return the exit code."""
    return _print_settled(reject_pass(attempt_store(), _reviews(), request))


def _print_settled(summary: AttemptSummary) -> int:
    others = " Reviewers do not agree." if summary.accepted is None else ""
    print(f"{summary.attempt_id}: {outcome(summary)}.{others}")
    return DONE


def _reviews() -> ReviewStore:
    return ReviewStore(Locations.of_user().reviews, SystemTime())


def _verdict_words(given: RunVerdictGiven) -> str:
    reasons = f" ({', '.join(given.reasons)})" if given.reasons else ""
    return f"{given.verdict.value.replace('_', ' ')}{reasons}{': ' + given.note if given.note else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportAttempts(Request):
    """A request to export the named attempts, or all if none is named."""

    attempts: tuple[str, ...] = ()
    to: str
    output: str | None = None


def export(request: ExportAttempts) -> int:
    """Export attempts. Return 1 if one of them is damaged; it is exported nevertheless.

    Raises `UserError` if there are none, or if they don't suit the format or the output.
    """
    store = attempt_store()
    chosen = [store.summary(name) for name in dict.fromkeys(request.attempts)] or list(store.summaries())
    if not chosen:
        raise UserError("There are no attempts yet.")
    if (write := ATTEMPT_WRITERS.get(request.to)) is None:
        return _as_run(request, chosen)
    data = write(store, chosen)
    if request.output is not None:
        write_whole(path_of(request.output), [data])
        for summary in chosen:
            problem = f"  {summary.problem}" if summary.problem else ""
            print(
                f"{summary.attempt_id}  {plural(summary.state.events, 'event')}  head {summary.head}{problem}"
            )
    elif request.to == "archive":
        raise UserError("An archive can't be printed on a terminal.", hint="Name a file with -o PATH.")
    else:
        sys.stdout.write(data.decode("utf-8"))
    return NEGATIVE if any(summary.problem for summary in chosen) else DONE


def _as_run(request: ExportAttempts, chosen: Sequence[AttemptSummary]) -> int:
    from gistpoint.tui.commands.runs import ConvertRun, convert

    if request.to in NAMES and len(chosen) > 1:
        raise UserError(
            f"{request.to} takes a single attempt, but {len(chosen)} are selected.", hint="Name one of them."
        )
    exporter(request.to, also=ATTEMPT_WRITERS)
    summary = chosen[0]
    code = convert(ConvertRun(recorded=summary.attempt_id, to=request.to, output=request.output))
    if summary.problem:
        print(f"gistpoint: {summary.attempt_id} is damaged. {visible_line(summary.problem)}", file=sys.stderr)
    return NEGATIVE if summary.problem else code


_ATTEMPT = argument("ATTEMPT", "id or its beginning")
_SETTLED = OptionTable(
    {
        "attempt": _ATTEMPT,
        "why": option("what you saw in the pass", metavar="TEXT"),
        "reviewer": option("who read it (default: the login)", metavar="NAME"),
    }
)
SHOW = CliCommand(ShowAttempt, show, {"attempt": _ATTEMPT, "json": JSON})
ACCEPT = CliCommand(
    AcceptPass,
    accept,
    _SETTLED,
    about="Writes a review which records that you have read the attempt's pass and that it was earned.",
)
REJECT = CliCommand(
    RejectPass,
    reject,
    _SETTLED,
    about=(
        "Writes a review which records that you have read the attempt's pass and that it does not count"
        " as solved."
    ),
)
EXPORT = CliCommand(
    ExportAttempts,
    export,
    {
        "attempts": argument("ATTEMPT", "ids or their beginnings (default: all)"),
        "to": option(
            f"{', '.join(ATTEMPT_WRITERS)}; for a single attempt also {', '.join(NAMES)}", metavar="FORMAT"
        ),
        "output": option("the file to write", "-o", "--output", metavar="PATH"),
    },
    about=(
        "Without -o a table goes to standard output. The exit code is 1 if an attempt is damaged; it is still"
        " written."
    ),
)
