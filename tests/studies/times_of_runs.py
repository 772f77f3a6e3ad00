"""Adds up the times of recorded runs from the raw records, and compares them with what gistpoint measures.

Usage: python tests/studies/times_of_runs.py FILE_OR_FOLDER…    exit code 1 if a figure differs

A line per run: its format, and the seconds of the model, of tools, of the user, of neither, and of the whole
run, each as gistpoint measures them and, after a slash, as a direct count gives them, with ✘ where they differ
by more than 50 ms. The counters in `COUNTERS` use no reader: they list spans, and each moment between two
neighbouring ends of spans is given to the first part that covers it. Files that no counter can read, and runs
without times, are left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from gistpoint.core.errors import UserError
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.times import times_of

TOLERANCE_S = 0.05
"""For a step with several calls, the direct count subtracts the durations that are recorded."""


PARTS = ("model", "tools", "user")
"""The parts of a run's time; of those at the same moment, the first counts."""


class Counted(NamedTuple):
    """The seconds of each part of a run, and of the whole run."""

    model: float
    tools: float
    user: float
    unknown: float
    whole: float


class Span(NamedTuple):
    """A span of time of one part; a part not in `PARTS` only shows that the run was in progress."""

    part: str
    start: float
    end: float


def divided(spans: list[Span]) -> Counted:
    """Return the seconds of each part; a moment counts for the first of `PARTS` whose span covers it."""
    ends = sorted({at for span in spans for at in (span.start, span.end)})
    found = dict.fromkeys((*PARTS, "unknown"), 0.0)
    for start, end in pairwise(ends):
        middle = (start + end) / 2
        there = {span.part for span in spans if span.start <= middle <= span.end}
        found[next((part for part in PARTS if part in there), "unknown")] += end - start
    return Counted(*found.values(), whole=ends[-1] - ends[0] if ends else 0.0)


def at(text: Any) -> float:
    """Return a time in seconds since 1970, from a string in ISO 8601 or a number of milliseconds."""
    if isinstance(text, int | float):
        return text / 1000
    return datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()


def moments(times: Iterable[float]) -> list[Span]:
    """Return a span without length for each time at which something was recorded."""
    return [Span("recorded", time, time) for time in times]


class Turn(NamedTuple):
    """An event: a user's message, a reply or a result, the time when it ended, and how long it took."""

    what: str
    time: float
    took: float | None = None


def by_turns(turns: list[Turn]) -> list[Span]:
    """Return the spans from inputs to replies, from replies to results, and from these to a user's message."""
    spans: list[Span] = []
    last: Turn | None = None
    for what, group in groupby(turns, key=lambda turn: turn.what):
        items = list(group)
        end = items[-1].time
        if last is not None and what == "reply":
            spans.append(Span("model", last.time, end))
        elif last is not None and what == "result" and last.what == "reply":
            took = [item.took for item in items if item.took is not None]
            known = last.time + sum(took)
            spans.append(Span("tools", last.time, min(known, end) if len(took) == len(items) else end))
        elif last is not None and what == "user" and last.what != "user":
            spans.append(Span("user", last.time, max(end, last.time)))
        last = items[-1]
    return spans


def claude_code(path: Path) -> list[Span]:
    """Return the spans of a Claude Code session; a recorded duration replaces the wait for a result."""
    turns = []
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    for record in records:
        content = record.get("message", {}).get("content", [])
        results = isinstance(content, list) and [
            item for item in content if item.get("type") == "tool_result"
        ]
        kind = {"assistant": "reply", "user": "result" if results else "user"}.get(record.get("type"))
        if not kind or record.get("isMeta"):
            continue
        outcome = record.get("toolUseResult")
        took = outcome.get("durationMs") if isinstance(outcome, dict) else None
        turns.append(Turn(kind, at(record["timestamp"]), None if took is None else took / 1000))
    return by_turns(turns) + moments(at(record["timestamp"]) for record in records if "timestamp" in record)


def pi(path: Path) -> list[Span]:
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    messages = [record for record in records if record.get("type") == "message"]
    spans = moments(at(record["timestamp"]) for record in records if "timestamp" in record)
    for number, record in enumerate(messages):
        message = record["message"]
        ended = at(record["timestamp"])
        if message["role"] == "user" and number:
            spans.append(Span("user", at(messages[number - 1]["timestamp"]), ended))
        if message["role"] != "assistant":
            continue
        spans.append(Span("model", at(message["timestamp"]), ended))
        after = messages[number + 1 :]
        results = [item for item in after if item["message"]["role"] != "toolResult"]
        end = after.index(results[0]) if results else len(after)
        if end:
            spans.append(Span("tools", ended, at(after[end - 1]["timestamp"])))
    return spans


def gemini_cli(path: Path) -> list[Span]:
    session = json.loads(path.read_text("utf-8"))
    turns = []
    for message in session["messages"]:
        kind = {"user": "user", "gemini": "reply", "model": "reply"}.get(message["type"])
        if kind:
            turns.append(Turn(kind, at(message["timestamp"])))
            ends = [at(call["timestamp"]) for call in message.get("toolCalls", ())]
            turns += [Turn("result", max(ends))] if ends else []
    known = (session.get("startTime"), session.get("lastUpdated"))
    recorded = [at(time) for time in known if time] + [turn.time for turn in turns]
    return by_turns(turns) + moments([*recorded, *(at(m["timestamp"]) for m in session["messages"])])


def opencode(path: Path) -> list[Span]:
    session = json.loads(path.read_text("utf-8"))
    spans = []
    ended: float | None = None
    for message in session["messages"]:
        info = message["info"]
        time = info["time"]
        begun = at(time["created"])
        if info["role"] != "assistant":
            spans.append(Span("user", begun if ended is None else ended, begun))
            continue
        runs = [part["state"]["time"] for part in message["parts"] if part["type"] == "tool"]
        spoken = [part["time"]["end"] for part in message["parts"] if part["type"] in ("text", "reasoning")]
        replied = max([*spoken, min(run["start"] for run in runs)]) if runs else time["completed"]
        spans.append(Span("model", begun, at(replied)))
        spans += [Span("tools", at(run["start"]), at(run["end"])) for run in runs]
        ended = max(at(time["completed"]), *(span.end for span in spans[-1 - len(runs) :]))
        spans += moments([ended])
    return spans


def codex(path: Path) -> list[Span]:
    """Return the spans of an old Codex session, in which a call's output is JSON with its duration."""
    spans: list[Span] = []
    ready: float | None = None
    said: float | None = None
    for record in map(json.loads, path.read_bytes().splitlines()):
        payload, kind, time = record.get("payload", {}), record["type"], at(record["timestamp"])
        spans += moments([time])
        if kind == "event_msg" and payload["type"] == "user_message":
            spans += [] if ready is None else [Span("user", ready, time)]
            ready = time
        elif kind == "response_item" and payload["type"] == "function_call_output":
            took = json.loads(payload["output"])["metadata"]["duration_seconds"]
            spans += [] if said is None else [Span("tools", said, said + took)]
            ready = time
        elif kind == "response_item" and payload.get("role") != "user":
            spans += [] if ready is None else [Span("model", ready, time)]
            ready = said = time
    return spans


def sample_of_inspect(path: Path, name: str) -> Counted:
    """Count the times of a sample in Inspect's JSON, named by its id and epoch; the total is the log's."""
    samples = json.loads(path.read_text("utf-8"))["samples"]
    sample = next(item for item in samples if name == f"{item['id']}_epoch_{item['epoch']}")
    spans: list[Span] = []
    for event in sample["events"]:
        if event["event"] in ("model", "tool") and event.get("completed"):
            start, end = at(event["timestamp"]), at(event["completed"])
            worked = event.get("working_time")
            is_tool = event["event"] == "tool"
            spans.append(
                Span("tools" if is_tool else "model", start, start + worked if is_tool and worked else end)
            )
    found, whole = divided(spans), sample["total_time"]
    return found._replace(whole=whole, unknown=whole - found.model - found.tools)


COUNTERS: dict[str, Callable[[Path], list[Span]]] = {
    "claude-code": claude_code,
    "codex": codex,
    "gemini-cli": gemini_cli,
    "opencode": opencode,
    "pi": pi,
}


def compared(paths: list[str]) -> Iterator[tuple[str, str, Counted, Counted]]:
    """Yield the format, the name, gistpoint's measurement and the direct count of each run that has both."""
    for listed in list_runs(paths):
        if listed.header is None:
            continue
        path, _, id = listed.name.partition("#")
        count = COUNTERS.get(listed.header.format)
        try:
            if listed.header.format == "inspect" and path.endswith(".json"):
                expected = sample_of_inspect(Path(path), id)
            elif count is not None and not id:
                expected = divided(count(Path(path)))
            else:
                continue
            times = times_of(open_run(listed.name, known=listed.format))
        except (UserError, KeyError, ValueError, TypeError, StopIteration):
            continue  # a file in a form that the count does not know
        if times.is_known:
            parts = times.parts
            found = Counted(parts.model or 0.0, parts.tools or 0.0, parts.user, parts.unknown, parts.total)
            yield listed.header.format, listed.name, found, expected


def main(paths: list[str]) -> int:
    """Print the comparison; return 1 if a figure differs."""
    differs = False
    for format, name, found, expected in compared(paths):
        cells = []
        for one, other in zip(found, expected, strict=True):
            is_equal = abs(one - other) <= TOLERANCE_S
            differs = differs or not is_equal
            cells.append(f"{one:.2f} / {other:.2f}{'' if is_equal else ' ✘'}")
        words = ", ".join(map(" ".join, zip(Counted._fields, cells, strict=True)))
        print(f"{format:12} {name[-50:]:50} {words}")
    return 1 if differs else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
