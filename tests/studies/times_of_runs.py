"""Adds up the times of recorded runs from the raw records, and compares them with what gistpoint measures.

Usage: python tests/studies/times_of_runs.py FILE_OR_FOLDER…    exit code 1 if a figure differs

A line per run: its format, and the seconds of the model and of tools, each as measured by gistpoint and,
after a slash, as counted directly, with ✘ where they differ by more than 50 ms. The counts in `COUNTERS` use
no reader. Files of formats without a counter, and runs without times, are left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from gistpoint.core.errors import UserError
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.times import times_of

TOLERANCE_S = 0.05
"""For a step with several calls, the direct count subtracts the durations that are recorded."""


class Counted(NamedTuple):
    """Seconds of the model and of tools."""

    model: float
    tools: float


def at(text: Any) -> float:
    """Return a time in seconds, whether it is written as ISO 8601 or in milliseconds."""
    if isinstance(text, int | float):
        return text / 1000
    return datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()


class Turn(NamedTuple):
    """An event: a user's message, a reply or a result, and the time when it ended."""

    what: str
    time: float


def by_turns(turns: list[Turn]) -> Counted:
    """Add up the times from inputs to replies, and from replies to the last of the results after them."""
    model = tools = 0.0
    last: Turn | None = None
    for what, group in groupby(turns, key=lambda turn: turn.what):
        items = list(group)
        if last is not None:
            if what == "reply":
                model += items[-1].time - last.time
            elif what == "result" and last.what == "reply":
                tools += items[-1].time - last.time
        last = items[-1]
    return Counted(model, tools)


def claude_code(path: Path) -> Counted:
    """Count sessions of Claude Code, subtracting the difference of recorded duration and waiting time."""
    turns, less = [], 0.0
    for record in map(json.loads, path.read_text("utf-8").splitlines()):
        content = record.get("message", {}).get("content", [])
        results = isinstance(content, list) and [
            item for item in content if item.get("type") == "tool_result"
        ]
        kind = {"assistant": "reply", "user": "result" if results else "user"}.get(record.get("type"))
        if not kind or record.get("isMeta"):
            continue
        outcome = record.get("toolUseResult")
        took = outcome.get("durationMs") if isinstance(outcome, dict) else None
        if took is not None and turns[-1].what == "reply":
            less += max(0.0, at(record["timestamp"]) - turns[-1].time - took / 1000)
        turns.append(Turn(kind, at(record["timestamp"])))
    found = by_turns(turns)
    return found._replace(tools=found.tools - less)


def pi(path: Path) -> Counted:
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    messages = [record for record in records if record.get("type") == "message"]
    model = tools = 0.0
    for number, record in enumerate(messages):
        message = record["message"]
        if message["role"] != "assistant":
            continue
        model += at(record["timestamp"]) - at(message["timestamp"])
        after = messages[number + 1 :]
        results = [item for item in after if item["message"]["role"] != "toolResult"]
        end = after.index(results[0]) if results else len(after)
        if end:
            tools += at(after[end - 1]["timestamp"]) - at(record["timestamp"])
    return Counted(model, tools)


def gemini_cli(path: Path) -> Counted:
    turns = []
    for message in json.loads(path.read_text("utf-8"))["messages"]:
        kind = {"user": "user", "gemini": "reply", "model": "reply"}.get(message["type"])
        if kind:
            turns.append(Turn(kind, at(message["timestamp"])))
            ends = [at(call["timestamp"]) for call in message.get("toolCalls", ())]
            turns += [Turn("result", max(ends))] if ends else []
    return by_turns(turns)


def opencode(path: Path) -> Counted:
    model = tools = 0.0
    for message in json.loads(path.read_text("utf-8"))["messages"]:
        info = message["info"]
        if info["role"] != "assistant":
            continue
        runs = [part["state"]["time"] for part in message["parts"] if part["type"] == "tool"]
        spoken = [part["time"]["end"] for part in message["parts"] if part["type"] in ("text", "reasoning")]
        replied = max([*spoken, min(run["start"] for run in runs)]) if runs else info["time"]["completed"]
        model += (replied - info["time"]["created"]) / 1000
        tools += sum(run["end"] - run["start"] for run in runs) / 1000
    return Counted(model, tools)


def codex(path: Path) -> Counted:
    """Count old sessions, in which a call's duration is in its output, as a JSON string."""
    model = tools = 0.0
    ready: float | None = None
    for record in map(json.loads, path.read_text("utf-8").splitlines()):
        payload, kind, time = record.get("payload", {}), record["type"], at(record["timestamp"])
        if kind == "event_msg" and payload["type"] == "user_message":
            ready = time
        elif kind == "response_item" and payload["type"] == "function_call_output":
            tools += json.loads(payload["output"])["metadata"]["duration_seconds"]
            ready = time
        elif kind == "response_item" and payload.get("role") != "user":
            if ready is not None:
                model += time - ready
            ready = time
    return Counted(model, tools)


def sample_of_inspect(path: Path, name: str) -> Counted:
    """Count a sample in Inspect's JSON, named by its id and epoch."""
    samples = json.loads(path.read_text("utf-8"))["samples"]
    sample = next(item for item in samples if name == f"{item['id']}_epoch_{item['epoch']}")
    found = Counted(0.0, 0.0)
    for event in sample["events"]:
        if event["event"] in ("model", "tool") and event.get("completed"):
            seconds = at(event["completed"]) - at(event["timestamp"])
            if event["event"] == "model":
                found = found._replace(model=found.model + seconds)
            else:
                worked = event.get("working_time")
                found = found._replace(tools=found.tools + (seconds if worked is None else worked))
    return found


COUNTERS: dict[str, Callable[[Path], Counted]] = {
    "claude-code": claude_code,
    "codex": codex,
    "gemini-cli": gemini_cli,
    "opencode": opencode,
    "pi": pi,
}


def compared(paths: list[str]) -> Iterator[tuple[str, str, Counted, Counted]]:
    """Yield, for each run, the format, the name, gistpoint's measurement and the direct count."""
    for listed in list_runs(paths):
        if listed.header is None:
            continue
        path, _, id = listed.name.partition("#")
        count = COUNTERS.get(listed.header.format)
        try:
            if listed.header.format == "inspect" and path.endswith(".json"):
                expected = sample_of_inspect(Path(path), id)
            elif count is not None and not id:
                expected = count(Path(path))
            else:
                continue
            times = times_of(open_run(listed.name, known=listed.format))
        except (UserError, KeyError, ValueError, TypeError, StopIteration):
            continue  # a file in a form that the count does not know
        if times.is_known:
            yield (
                listed.header.format,
                listed.name,
                Counted(times.replies.total, times.tools_total),
                expected,
            )


def main(paths: list[str]) -> int:
    """Print the comparison; return 1 if a figure differs."""
    differs = False
    for format, name, found, expected in compared(paths):
        cells = []
        for one, other in zip(found, expected, strict=True):
            is_equal = abs(one - other) <= TOLERANCE_S
            differs = differs or not is_equal
            cells.append(f"{one:10.2f} / {other:10.2f} {' ' if is_equal else '✘'}")
        print(f"{format:12} {name[-50:]:50} model {cells[0]} tools {cells[1]}")
    return 1 if differs else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
