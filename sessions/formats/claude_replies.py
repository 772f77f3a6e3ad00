"""The replies of Claude Code: their records, in sessions and in its output, put together with what tools told it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gistpoint.sessions.formats.calls import edits_of, kind_of
from gistpoint.sessions.formats.messages import parts_of_message, stopped
from gistpoint.sessions.records.building import StepBuilder, any_error
from gistpoint.sessions.records.format import Raw
from gistpoint.sessions.records.model import Actor, FileEdit, Json, Result, Step, StepKind, Tokens
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_str,
    as_text,
    first,
    in_seconds,
    joined,
    objects,
    total,
    when,
)


def tokens_of(usage: dict[str, Json]) -> Tokens:
    """Return the tokens of a reply; the prompt's include those from a cache."""
    cached = as_int(usage.get("cache_read_input_tokens"))
    prompt = total([as_int(usage.get("input_tokens")), cached, as_int(usage.get("cache_creation_input_tokens"))])
    return Tokens(prompt, as_int(usage.get("output_tokens")), cached)


def reply_step(index: int, raws: Sequence[Raw], records: list[dict[str, Json]], replies: list[dict[str, Json]]) -> Step:
    """Return the step of a reply: `replies` are those of its records that the model wrote."""
    messages = [as_dict(record.get("message")) for record in replies]
    parts = [parts_of_message(message.get("content")) for message in messages]
    calls = tuple(call for part in parts for call in part.calls)
    answers = [record for record in records if record.get("type") != "assistant"]
    results = [result for part in parts for result in part.results]
    results += [result for record in answers for result in _results(record)]
    rich = [as_dict(record.get("toolUseResult")) for record in answers]
    times = [when(record.get("timestamp")) for record in records]
    broken = any(record.get("isApiErrorMessage") for record in replies)
    flags = {"error"} if broken or any_error(results) else set[str]()
    flags |= stopped(messages)
    if replies[0].get("isSidechain"):
        flags.add("side")
    diffs = [diff for diff in (_diff(item) for item in rich) if diff]
    edits = tuple(edit for item in rich for edit in _edits(item)) or edits_of(calls)
    usage = as_dict(messages[-1].get("usage"))
    return (
        StepBuilder(index, raws, Actor.AGENT, StepKind.ERROR if broken else kind_of(calls), "assistant")
        .thought(*(text for part in parts for text in part.thought))
        .text(*(text for part in parts for text in part.texts))
        .calls(calls)
        .results(results)
        .edits(edits)
        .diffs(diffs)
        .over(times)
        .naive(replies[0].get("timestamp"))
        .spent(tokens_of(usage) if usage else Tokens())
        .model(as_str(messages[0].get("model")))
        .state({"cwd": replies[0]["cwd"]} if replies[0].get("cwd") else {})
        .flag(*flags)
        .derived("kind", "ended")
        .links(f"agent-{as_str(item['agentId'])}.jsonl" for item in rich if item.get("agentId"))
        .id(as_str(first(messages[0], "id") or replies[0].get("uuid")))
        .build()
    )


def _results(record: dict[str, Json]) -> list[Result]:
    """Return the results in a user's record; other text in it is a result without a call."""
    parts = parts_of_message(as_dict(record.get("message")).get("content"))
    duration = as_float(first(as_dict(record.get("toolUseResult")), "durationMs", "totalDurationMs"))
    seconds = in_seconds(duration)
    spoken = joined([*parts.texts, *parts.thought])
    return [
        *(replace(result, duration_s=seconds) for result in parts.results),
        *([Result("", spoken)] if spoken else []),
    ]


def _diff(rich: dict[str, Json]) -> str:
    """Return a recorded `structuredPatch` as a unified diff."""
    path = as_str(rich.get("filePath"))
    hunks = objects(rich.get("structuredPatch"))
    if not path or not hunks:
        return ""
    shown = [f"--- a/{path.lstrip('/')}", f"+++ b/{path.lstrip('/')}"]
    for hunk in hunks:
        place = [as_int(hunk.get(key)) or 0 for key in ("oldStart", "oldLines", "newStart", "newLines")]
        shown.append(f"@@ -{place[0]},{place[1]} +{place[2]},{place[3]} @@")
        lines = hunk.get("lines")
        shown += [as_text(line) for line in lines] if isinstance(lines, list) else []
    return "\n".join(shown) + "\n"


def _edits(rich: dict[str, Json]) -> list[FileEdit]:
    path = as_str(rich.get("filePath"))
    if path and isinstance(rich.get("newString"), str):
        return [FileEdit(path, as_text(rich.get("oldString")), as_text(rich["newString"]))]
    if path and rich.get("type") in ("create", "update") and isinstance(rich.get("content"), str):
        return [FileEdit(path, None, as_text(rich["content"]))]
    return []
