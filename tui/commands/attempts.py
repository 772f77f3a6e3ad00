"""`gistpoint attempt list`, `show`, `accept` and `reject`."""

from __future__ import annotations

import argparse
import getpass
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from gistpoint import __version__
from gistpoint.core.attempts.clock import Activity, SystemTime
from gistpoint.core.attempts.state import AttemptResult, Submission, solved_words
from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.sessions.attempts import AttemptStore, AttemptSummary
from gistpoint.sessions.reviews.keys import attempt_key
from gistpoint.sessions.reviews.reviewing import Reviewer, ReviewStore
from gistpoint.sessions.reviews.settling import accept_attempt, reject_attempt, verdicts
from gistpoint.sessions.reviews.state import VerdictGiven
from gistpoint.tui.cli import DONE, NEGATIVE
from gistpoint.tui.commands.output import duration, print_json, print_table
from gistpoint.tui.view_models import moment


def attempt_store() -> AttemptStore:
    """Return the user's attempts."""
    locations = Locations.of_user()
    return AttemptStore(locations.attempts, SystemTime(), __version__, locations.reviews)


def listing(options: argparse.Namespace) -> int:
    """Print the attempts, the newest first."""
    summaries = list(attempt_store().summaries())
    if options.json:
        print_json("gistpoint.attempts/1", attempt_rows(summaries))
        return DONE
    if not summaries:
        print("There are no attempts yet. `gistpoint demo` begins one.")
        return DONE
    print_table(
        [
            "attempt",
            "task",
            "mode",
            "actor",
            "role",
            "participant",
            "started",
            "active",
            "calls",
            "last",
            "best",
            "outcome",
        ],
        [
            [
                summary.attempt_id,
                summary.task_id[:12],
                summary.mode,
                summary.actor,
                summary.role,
                summary.participant or "–",
                moment(summary.started_utc_ms),
                duration(summary.state.clock.active),
                str(len(summary.state.calls)),
                _score(summary.state.last),
                _score(summary.state.best),
                summary.problem or outcome(summary),
            ]
            for summary in summaries
        ],
    )
    print(f"{solved_words(summary.result for summary in summaries if summary.state.ended)}.")
    return DONE


def show(options: argparse.Namespace) -> int:
    """Print one attempt; the exit code is 1 if its journal is damaged."""
    summary = attempt_store().summary(options.attempt)
    state = summary.state
    reviews = verdicts(_reviews().book, attempt_key(summary.attempt_id))
    if options.json:
        calls = [
            {"call_id": c.call_id, "tool": c.tool, "arguments": dict(c.arguments), "refused": c.refused, "text": c.text}
            for c in state.calls
        ]
        said = [
            {"reviewer": g.reviewer, "verdict": g.verdict.value, "reasons": [*map(str, g.reasons)], "why": g.note}
            for g in reviews
        ]
        submitted = [
            {
                "number": s.number,
                "passed": s.solved,
                "solved": s.solved and not s.suspicious and not summary.problem,
                "score": s.score,
                "suspicious": [*s.suspicious],
                "flags": [*s.flags],
            }
            for s in state.submissions
        ]
        more = {"reviews": said, "submitted": submitted, "calls": calls, "notes": state.notes}
        print_json("gistpoint.attempt/1", {**attempt_row(summary), **more})
        return NEGATIVE if summary.problem else DONE
    rows = [
        ["attempt", summary.attempt_id],
        ["task", summary.task_id[:12]],
        ["actor", summary.actor],
        ["role", summary.role],
        ["participant", summary.participant or "–"],
        ["started", moment(summary.started_utc_ms)],
        ["outcome", outcome(summary)],
        ["record", _record(summary)],
        *([["suspicious", ", ".join(state.suspicious)]] if state.suspicious else []),
        *([["flags", ", ".join(state.last.flags)]] if state.last is not None and state.last.flags else []),
        *[["reviewed", f"{given.reviewer}: {_said(given)}"] for given in reviews],
        *[[activity.value, duration(state.clock.of(activity))] for activity in Activity],
        ["active", duration(state.clock.active)],
        ["tool uses left", f"{state.remaining.tool_uses} of {state.budgets.tool_uses}"],
        ["submissions left", f"{state.remaining.submissions} of {state.budgets.submissions}"],
        ["last score", _score(state.last)],
        ["best score", _score(state.best)],
        *[[f"gist: {key}", json.dumps(value)] for key, value in state.header.get("gist_settings", {}).items()],
    ]
    print_table(["what", "value"], rows)
    print_table(
        ["call", "tool", "refused", "answer begins"],
        [[c.call_id, c.tool, "yes" if c.refused else "", (c.text or "").partition("\n")[0][:80]] for c in state.calls],
    )
    return NEGATIVE if summary.problem else DONE


def _record(summary: AttemptSummary) -> str:
    if summary.problem:
        return f"damaged, for reading only: {summary.problem}"
    if summary.kept is None:
        return "whole; its head was not kept here: made elsewhere, or by an earlier version"
    if not summary.witnessed:
        return f"whole; its head is kept here from event {summary.kept.since} on"
    return "whole; its head was kept here from the start"


def _score(submission: Submission | None) -> str:
    return "–" if submission is None else f"{submission.score or 0:.3f}"


def accept(options: argparse.Namespace) -> int:
    """Let a pass count that does not by itself, or that a reviewer has said not to count."""
    summary = _passed(options.attempt)
    if not summary.state.suspicious and not verdicts(_reviews().book, attempt_key(summary.attempt_id)):
        raise UserError(
            f"There is nothing to settle: {summary.attempt_id} is solved, and its pass is not suspicious.",
            hint="`gistpoint attempt reject` says that it was not earned; nothing was written.",
        )
    accept_attempt(_reviewer(options), summary.attempt_id, options.why)
    return _settled(summary.attempt_id)


def reject(options: argparse.Namespace) -> int:
    """Say that a pass was not earned."""
    if not options.why.strip():
        raise UserError("A rejection says why.", hint="Add --why TEXT.")
    summary = _passed(options.attempt)
    reject_attempt(_reviewer(options), summary.attempt_id, options.why)
    return _settled(summary.attempt_id)


def _passed(attempt_id: str) -> AttemptSummary:
    summary = attempt_store().summary(attempt_id)
    if summary.problem or not summary.state.solved:
        raise UserError(f"{summary.attempt_id} has no pass to settle: it came to: {outcome(summary)}.")
    return summary


def _settled(attempt_id: str) -> int:
    summary = attempt_store().summary(attempt_id)
    others = " Reviewers do not agree." if summary.accepted is None else ""
    print(f"{summary.attempt_id}: {outcome(summary)}.{others}")
    return DONE


def _reviews() -> ReviewStore:
    return ReviewStore(Locations.of_user().reviews, SystemTime())


def _reviewer(options: argparse.Namespace) -> Reviewer:
    return Reviewer(_reviews(), options.reviewer or getpass.getuser())


def _said(given: VerdictGiven) -> str:
    reasons = f" ({', '.join(given.reasons)})" if given.reasons else ""
    return f"{given.verdict.value.replace('_', ' ')}{reasons}{': ' + given.note if given.note else ''}"


def outcome(summary: AttemptSummary) -> str:
    """Return how an attempt ended, or that it has not; a pass that does not count says so."""
    ending = summary.state.ending
    if summary.problem:
        return "damaged"
    if ending is None:
        return "open in another window or process" if summary.open else "unfinished"
    if summary.state.solved and summary.result is not AttemptResult.SOLVED:
        return summary.result.value if summary.result.passes else "solved, rejected"
    return f"{ending.reason} ({ending.code})" if ending.code else ending.reason


def _ended(summary: AttemptSummary, reason: str) -> str:
    """Return why an attempt ended, so that nobody takes a pass for solved that does not count."""
    unearned = summary.state.solved and summary.result is not AttemptResult.SOLVED
    return outcome(summary) if unearned else reason


def _started(summary: AttemptSummary) -> str:
    return datetime.fromtimestamp(summary.started_utc_ms / 1000, UTC).isoformat(timespec="seconds")


def attempt_rows(summaries: Sequence[AttemptSummary]) -> dict[str, Any]:
    """Return attempts as lists and exports have them, with how many count as solved and how many are to be read."""
    results = Counter(summary.result for summary in summaries)
    return {
        "attempts": [attempt_row(summary) for summary in summaries],
        "solved": results[AttemptResult.SOLVED],
        "solved_to_be_read": results[AttemptResult.TO_BE_READ],
    }


def attempt_row(summary: AttemptSummary) -> dict[str, Any]:
    """Return an attempt as lists and exports have it; its keys are stable."""
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
        "score": None if last is None else last.score,
        "best_score": None if best is None else best.score,
        "milliseconds": {activity.value: state.clock.of(activity) for activity in Activity},
        "active_ms": state.clock.active,
        "asleep_ms": state.clock.asleep,
        "budgets": asdict(state.budgets),
        "tool_uses_left": state.remaining.tool_uses,
        "submissions_left": state.remaining.submissions,
        "calls": len(state.calls),
        "submissions": len(state.submissions),
        "gist_settings": state.header.get("gist_settings"),
        "comforts": dict(state.comforts),
        "problem": summary.problem,
        "events": state.events,
        "head": summary.head,
        "head_kept": summary.witnessed,
    }
