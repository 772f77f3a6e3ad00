"""`gistpoint attempt list`, `show`, `accept`, `reject` and `export`."""

from __future__ import annotations

import argparse
import csv
import getpass
import io
import json
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gistpoint import __version__
from gistpoint.core.attempts.clock import ClockActivity, SystemTime
from gistpoint.core.attempts.state import AttemptResult, Submission, solved_words
from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.readable import duration, stamp
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.annotations.keys import attempt_key
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.reviews import RunVerdictGiven
from gistpoint.sessions.annotations.settling import accept_attempt, reject_attempt, verdicts
from gistpoint.sessions.attempts import AttemptStore, AttemptSummary
from gistpoint.sessions.exports.registry import NAMES, exporter
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.tasks import TaskStore
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.output import print_json, print_records, print_table, write_whole
from gistpoint.tui.tables import Column
from gistpoint.tui.titles import mode_words, title_of


def attempt_store() -> AttemptStore:
    """Return the user's attempts."""
    locations = Locations.of_user()
    return AttemptStore(locations.attempts, SystemTime(), __version__, locations.reviews)


def list_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint attempt list`."""
    parser.add_argument("--json", action="store_true", help="as JSON")
    return listing


def listing(options: argparse.Namespace) -> int:
    """Print the attempts, the newest first."""
    store = attempt_store()
    if options.json:
        print_json("gistpoint.attempts/1", attempt_rows(list(store.summaries())))
        return DONE
    summaries = list(store.outlines())
    if not summaries:
        print("There are no attempts yet. `gistpoint demo` begins one.")
        return DONE
    print_records(columns_of(stored_tasks()), summaries)
    print(f"{solved_words(summary.result for summary in summaries if summary.state.ended)}.")
    return DONE


def show_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint attempt show`."""
    parser.add_argument("attempt", metavar="ATTEMPT", help="id or its beginning")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return show


def show(options: argparse.Namespace) -> int:
    """Print one attempt; return 1 if its journal is damaged."""
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
        *([["branch", f"of {summary.branch}: another machine went on with the attempt"]] if summary.branch else []),
        ["actor", _actor(summary)],
        ["role", summary.role],
        ["participant", summary.participant or "–"],
        ["started", stamp(summary.started_utc_ms)],
        ["outcome", outcome(summary)],
        ["record", _record(summary)],
        *([["suspicious", ", ".join(state.suspicious)]] if state.suspicious else []),
        *([["flags", ", ".join(state.last.flags)]] if state.last is not None and state.last.flags else []),
        *[["reviewed", f"{given.reviewer}: {_verdict_words(given)}"] for given in reviews],
        *[[activity.value, duration(state.clock.of(activity), rounded=True)] for activity in ClockActivity],
        ["active", duration(state.clock.active, rounded=True)],
        ["tool uses left", f"{state.remaining.tool_uses} of {state.budgets.tool_uses}"],
        ["submissions left", f"{state.remaining.submissions} of {state.budgets.submissions}"],
        ["last score", _score(state.last)],
        ["best score", _score(state.best)],
        *[[f"gist: {key}", json.dumps(value)] for key, value in state.header.extra.get("gist_settings", {}).items()],
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


def accept_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint attempt accept`."""
    parser.description = "Writes a review: the attempt's pass was read and was earned."
    _add_settling(parser, why_needed=False)
    return accept


def reject_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint attempt reject`."""
    parser.description = "Writes a review: the attempt's pass was read and does not count as solved."
    _add_settling(parser, why_needed=True)
    return reject


def _add_settling(parser: argparse.ArgumentParser, *, why_needed: bool) -> None:
    parser.add_argument("attempt", metavar="ATTEMPT", help="id or its beginning")
    parser.add_argument("--why", required=why_needed, default="", metavar="TEXT", help="what was seen in it")
    parser.add_argument("--reviewer", default="", metavar="NAME", help="who read it (default: the login)")


def accept(options: argparse.Namespace) -> int:
    """Count a pass that is suspicious, or that a reviewer has rejected."""
    summary = _passed(options.attempt)
    if not summary.state.suspicious and not verdicts(_reviews().book, attempt_key(summary.attempt_id)):
        raise UserError(
            f"There is nothing to settle: {summary.attempt_id} is solved, and its pass is not suspicious.",
            hint="`gistpoint attempt reject` says that it was not earned; nothing was written.",
        )
    accept_attempt(_reviewer(options), summary.attempt_id, options.why)
    return _settled(summary.attempt_id)


def reject(options: argparse.Namespace) -> int:
    """Record that a pass was not earned."""
    if not options.why.strip():
        raise UserError("A rejection needs a reason.", hint="Add --why TEXT.")
    summary = _passed(options.attempt)
    reject_attempt(_reviewer(options), summary.attempt_id, options.why)
    return _settled(summary.attempt_id)


def _passed(attempt_id: str) -> AttemptSummary:
    summary = attempt_store().summary(attempt_id)
    if summary.problem or not summary.state.solved:
        raise UserError(f"{summary.attempt_id} has no pass to settle; its outcome is: {outcome(summary)}.")
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


def _verdict_words(given: RunVerdictGiven) -> str:
    reasons = f" ({', '.join(given.reasons)})" if given.reasons else ""
    return f"{given.verdict.value.replace('_', ' ')}{reasons}{': ' + given.note if given.note else ''}"


def outcome(summary: AttemptSummary) -> str:
    """Return how an attempt ended, or that it has not ended; a pass that does not count is marked."""
    ending = summary.state.ending
    if summary.problem:
        return "damaged"
    if ending is None:
        return "open in another window or process" if summary.open else "unfinished"
    if summary.state.solved and summary.result is not AttemptResult.SOLVED:
        return summary.result.value if summary.result.passes else "solved, rejected"
    return f"{ending.reason} ({ending.code})" if ending.code else ending.reason


def _ended(summary: AttemptSummary, reason: str) -> str:
    """Return why an attempt ended; a pass that does not count is not called solved."""
    unearned = summary.state.solved and summary.result is not AttemptResult.SOLVED
    return outcome(summary) if unearned else reason


def _started(summary: AttemptSummary) -> str:
    return datetime.fromtimestamp(summary.started_utc_ms / 1000, UTC).isoformat(timespec="seconds")


def attempt_rows(summaries: Sequence[AttemptSummary]) -> dict[str, Any]:
    """Return attempts as lists and exports have them, and the numbers of those solved and of those to be read."""
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
        "drivers": list(state.drivers),
        "mixed": state.mixed,
        "branch": summary.branch,
    }


def _actor(summary: AttemptSummary) -> str:
    """Return who made an attempt; one that a person and a model both worked on counts as neither's."""
    drivers = summary.state.drivers
    return f"{', '.join(drivers)} (mixed)" if summary.state.mixed else summary.actor


def stored_tasks() -> dict[str, Task]:
    """Return the tasks of the user and of the demo by id."""
    locations = Locations.of_user()
    found = TaskStore(locations.tasks, demo=locations.demo).tasks()
    return {task.id: task for task in found if isinstance(task, Task)}


def _outcome_in_list(attempt: AttemptSummary) -> str:
    words = attempt.problem or outcome(attempt)
    return f"{words}, branch of {attempt.branch}" if attempt.branch else words


def columns_of(tasks: Mapping[str, Task]) -> tuple[Column[AttemptSummary], ...]:
    """Return the columns of `gistpoint attempt list`; a task that is gone stands there by its id."""

    def titled(attempt: AttemptSummary) -> str:
        task = tasks.get(attempt.task_id)
        return attempt.task_id[:12] if task is None else title_of(task)

    def mode(attempt: AttemptSummary) -> str:
        task = tasks.get(attempt.task_id)
        return attempt.mode if task is None else mode_words(task)

    return (
        Column("attempt", lambda attempt: attempt.attempt_id),
        Column("task", titled),
        Column("mode", mode),
        Column("actor", _actor),
        Column("role", lambda attempt: attempt.role),
        Column("participant", lambda attempt: attempt.participant or "–"),
        Column("started", lambda attempt: stamp(attempt.started_utc_ms)),
        Column("active", lambda attempt: duration(attempt.state.clock.active, rounded=True)),
        Column("calls", lambda attempt: str(attempt.calls)),
        Column("last", lambda attempt: _score(attempt.state.last)),
        Column("best", lambda attempt: _score(attempt.state.best)),
        Column("outcome", _outcome_in_list),
    )


def export_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint attempt export`."""
    parser.description = (
        "Without -o a table goes to standard output. The exit code is 1 if an attempt is damaged; it is "
        "written all the same."
    )
    parser.add_argument("attempts", nargs="*", metavar="ATTEMPT", help="ids or their beginnings (default: all)")
    parser.add_argument(
        "--to", required=True, metavar="FORMAT", help=f"{', '.join(_WRITERS)}; of one also {', '.join(NAMES)}"
    )
    parser.add_argument("-o", "--output", metavar="PATH", help="the file to write")
    return export


def export(options: argparse.Namespace) -> int:
    """Write attempts, all of them if none is named; return 1 if one is damaged, which is still written."""
    store = attempt_store()
    chosen = [store.summary(name) for name in dict.fromkeys(options.attempts)] or list(store.summaries())
    if not chosen:
        raise UserError("There are no attempts yet.")
    if (write := _WRITERS.get(options.to)) is None:
        return _as_run(options, chosen)
    data = write(store, chosen)
    if options.output is not None:
        write_whole(Path(options.output), [data])
        for summary in chosen:
            problem = f"  {summary.problem}" if summary.problem else ""
            print(f"{summary.attempt_id}  {summary.state.events} events  head {summary.head}{problem}")
    elif options.to == "archive":
        raise UserError("An archive can't be printed on a terminal.", hint="Name a file with -o PATH.")
    else:
        sys.stdout.write(data.decode("utf-8"))
    return NEGATIVE if any(summary.problem for summary in chosen) else DONE


def _as_run(options: argparse.Namespace, chosen: Sequence[AttemptSummary]) -> int:
    from gistpoint.tui.commands.runs import convert

    if options.to in NAMES and len(chosen) > 1:
        raise UserError(f"{options.to} holds one attempt, and these are {len(chosen)}.", hint="Name one of them.")
    exporter(options.to)
    return convert(argparse.Namespace(recorded=chosen[0].attempt_id, to=options.to, output=options.output, read_as=""))


def _table(store: AttemptStore, chosen: Sequence[AttemptSummary]) -> bytes:
    rows = [dict(_flat(attempt_row(summary))) for summary in chosen]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


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
    """Pack the journals reproducibly, whole lines only; heads prove something only on this machine and are left out."""
    import zstandard

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for summary in sorted(chosen, key=lambda summary: summary.attempt_id):
            data = (store.folder(summary.attempt_id) / JOURNAL).read_bytes()
            info = tarfile.TarInfo(f"{summary.attempt_id}/{JOURNAL}")
            data = data[: data.rfind(b"\n") + 1]
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    return zstandard.ZstdCompressor(level=10).compress(buffer.getvalue())


_WRITERS: Mapping[str, Callable[[AttemptStore, Sequence[AttemptSummary]], bytes]] = {
    "csv": _table,
    "json": _json,
    "archive": _archive,
}
