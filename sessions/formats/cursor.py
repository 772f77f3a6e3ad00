"""Sessions of Cursor's agent: its transcripts, and what its command line prints with `--output-format stream-json`.

A call of a transcript has no id, so results answer the calls in their order. The stream resembles Claude Code's, but
calls and results are `tool_call` records, and a text may be printed in pieces first and then whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from gistpoint.sessions.formats.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.formats.messages import is_call, is_result, parts_of_message
from gistpoint.sessions.records.building import StepBuilder, Tally, any_error, any_failed, asking_kind
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun, unknown_step
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, RunCall, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.requests import headline
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_str,
    as_text,
    compact,
    dumped,
    first,
    in_seconds,
    joined,
    objects,
    when,
)


class _Reader(RunReader):
    format = "cursor"
    in_lines = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._calls: dict[str, int] = {}
        self._waiting: deque[int] = deque()
        self._reply: int | None = None
        self._called = False
        self._opening: dict[str, Json] = {}
        self._ending: dict[str, Json] = {}
        self._tally = Tally()

    def place(self, fields: Json, step_count: int) -> int:
        record = as_dict(fields)
        if "role" in record:
            return self._message(record, step_count)
        self._learn(record)
        kind = as_str(record.get("type"))
        if kind in ("assistant", "thinking"):
            if self._reply is None or self._called:
                self._reply, self._called = step_count, False
            return self._reply
        if kind == "tool_call":
            self._called = True
            at = self._calls.get(as_str(record.get("call_id")), step_count if self._reply is None else self._reply)
            self._reply = at
            self._calls[as_str(record.get("call_id"))] = at
            return at
        self._reply = None
        return step_count

    def _message(self, record: dict[str, Json], step_count: int) -> int:
        blocks = objects(as_dict(record.get("message")).get("content"))
        if record.get("role") == "assistant":
            for block in blocks:
                if is_call(as_str(block.get("type"))):
                    identity = as_str(block.get("id"))
                    if identity:
                        self._calls[identity] = step_count
                    else:
                        self._waiting.append(step_count)
            return step_count
        owners: list[int | None] = []
        for block in blocks:
            if is_result(as_str(block.get("type"))):
                known = self._calls.pop(as_str(block.get("tool_use_id")), None)
                owners.append(self._waiting.popleft() if known is None and self._waiting else known)
        return next((owner for owner in owners if owner is not None), step_count)

    def _learn(self, record: dict[str, Json]) -> None:
        self._tally.see(when(record.get("timestamp_ms")))
        if record.get("type") == "system" and not self._opening:
            self._opening = record
        if record.get("type") == "result":
            self._ending = record

    def header(self) -> Run:
        if not self._opening:
            self._opening = next((record for record in self.probe.lines if record.get("type") == "system"), {})
        spent = as_float(self._ending.get("duration_ms"))
        usage = as_dict(self._ending.get("usage"))
        read = as_int(usage.get("cacheReadTokens"))
        return Run(
            self.format,
            "stream" if self._opening else "transcript",
            id=as_str(self._opening.get("session_id")),
            task=headline(self._asked()),
            model=as_str(self._opening.get("model")),
            agent="Cursor",
            exit_status=as_str(self._ending.get("subtype")),
            tokens=Tokens(as_int(usage.get("inputTokens")), as_int(usage.get("outputTokens")), read),
            started=self._tally.started,
            duration_s=in_seconds(spent),
            extra={"cwd": self._opening["cwd"]} if self._opening.get("cwd") else {},
        )

    def _asked(self) -> str:
        """Return the first question."""
        asked = [line for line in self.probe.lines if "user" in (line.get("role"), line.get("type"))]
        parts = [parts_of_message(as_dict(line.get("message")).get("content")) for line in asked[:1]]
        return joined(text for part in parts for text in part.texts)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        records = [as_dict(raw.value) for raw in raws]
        kinds = {as_str(record.get("type")) for record in records}
        if "role" in records[0]:
            return _turn(index, raws, records)
        if kinds & {"assistant", "thinking", "tool_call"}:
            return _streamed(index, raws, records)
        return _other(index, raws, records[0])


def _turn(index: int, raws: Sequence[Raw], records: list[dict[str, Json]]) -> Step:
    """Return the step of a message of a transcript, with the results of its calls."""
    parts = [parts_of_message(as_dict(record.get("message")).get("content")) for record in records]
    if records[0].get("role") != "assistant":
        kind = StepKind.TOOL if parts[0].results else asking_kind(index, 2)
        return (
            StepBuilder(index, raws, Actor.USER, kind, as_str(records[0].get("role")))
            .text(*parts[0].texts, *parts[0].thought)
            .results(parts[0].results)
            .flag_if(parts[0].results, "unpaired")
            .derived("kind")
            .build()
        )
    results = [result for part in parts for result in part.results]
    known = {call.id for call in parts[0].calls if call.id}
    unasked = iter([result.call_id for result in results if result.call_id not in known])
    calls = tuple(call if call.id else replace(call, id=next(unasked, "")) for call in parts[0].calls)
    spoken = joined(text for part in parts[1:] for text in part.texts)
    failed = any_error(results)
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "assistant")
        .thought(*parts[0].thought)
        .text(*parts[0].texts)
        .calls(calls)
        .results((*results, *([Result("", spoken)] if spoken else [])))
        .edits(edits_of(calls))
        .flag_if(failed, "error")
        .derived("kind", "calls.id")
        .build()
    )


def _streamed(index: int, raws: Sequence[Raw], records: list[dict[str, Json]]) -> Step:
    """Return the step of a reply of the stream: pieces of a text are joined, a text that repeats them is left out."""
    said, thought = "", ""
    calls: dict[str, RunCall] = {}
    results: list[Result] = []
    diffs: list[str] = []
    for record in records:
        kind = as_str(record.get("type"))
        if kind == "assistant":
            text = joined(parts_of_message(as_dict(record.get("message")).get("content")).texts)
            said += "" if text.strip() == said.strip() and said else text
        elif kind == "thinking":
            thought += as_text(record.get("text"))
        else:
            name, body = _tool(record)
            identity = as_str(record.get("call_id"))
            arguments = body.get("args", body.get("arguments"))
            if arguments is not None or identity not in calls:
                calls[identity] = call_of_function({"id": identity, "name": name, "arguments": arguments})
            if record.get("subtype") == "completed":
                results.append(_result(identity, as_dict(body.get("result"))))
                diffs.append(as_text(as_dict(as_dict(body.get("result")).get("success")).get("diffString")))
    times = [when(record.get("timestamp_ms")) for record in records]
    failed = any_failed(results)
    made = tuple(calls.values())
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(made), "assistant")
        .thought(thought)
        .text(said)
        .calls(made)
        .results(results)
        .edits(edits_of(made))
        .diffs(diffs)
        .over(times)
        .flag_if(failed, "error")
        .derived("kind", "ended")
        .build()
    )


def _tool(record: dict[str, Json]) -> tuple[str, dict[str, Json]]:
    """Return the name and the body of a call, in each of the forms that a record has."""
    holder = as_dict(record.get("tool_call"))
    case = as_dict(holder.get("tool"))
    if case.get("case"):
        return as_str(case["case"]).removesuffix("ToolCall"), as_dict(case.get("value"))
    function = as_dict(holder.get("function"))
    if function:
        return as_str(function.get("name")), {**function, **{key: holder[key] for key in ("result",) if key in holder}}
    name = next((key for key in holder if key.endswith("ToolCall")), next(iter(holder), "tool"))
    body = as_dict(holder.get(name))
    inner = as_dict(body.get("args"))
    if name == "mcpToolCall" and inner.get("toolName"):
        return as_str(inner["toolName"]), body
    return name.removesuffix("ToolCall"), body


def _result(identity: str, outcome: dict[str, Json]) -> Result:
    """Return a result: under `success`, else under the name of what went wrong."""
    key = next((key for key, value in outcome.items() if isinstance(value, dict | str)), "")
    inner = as_dict(outcome.get(key))
    shown = [
        as_text(inner.get(name)) for name in ("content", "output", "stdout", "stderr", "message", "reason", "error")
    ]
    text = joined(shown) or as_text(outcome.get(key)) or compact(outcome)
    return Result(identity, text, None if key in ("", "success") else True, as_int(inner.get("exitCode")))


def _other(index: int, raws: Sequence[Raw], record: dict[str, Json]) -> Step:
    kind = as_str(record.get("type"))
    if kind not in ("user", "system", "result"):
        return unknown_step(index, raws, kind or "record", dumped(raws[0].value))
    failed = kind == "result" and bool(record.get("is_error"))
    text = joined(parts_of_message(as_dict(record.get("message")).get("content")).texts) if "message" in record else ""
    shown = {
        "user": (Actor.USER, asking_kind(index)),
        "result": (Actor.ENVIRONMENT, StepKind.END),
    }.get(kind, (Actor.SYSTEM, StepKind.STATE))
    return (
        StepBuilder(index, raws, shown[0], shown[1], joined([kind, as_str(record.get("subtype"))], " "))
        .text(text or as_text(first(record, "result", "error")) or compact(record))
        .span(when(record.get("timestamp_ms")))
        .flag_if(failed, "error")
        .derived("kind")
        .build()
    )


class Cursor(SingleRun):
    """Recognised by lines with a role and a `message`, or by a stream's `tool_call` records or its way to log in."""

    name = "cursor"
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("subtype", "apiKeySource", "permissionMode"), "what kind of a record it is, and how the program ran"),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        for record in probe.lines[:30]:
            if record.get("type") == "tool_call" and isinstance(record.get("tool_call"), dict):
                return 1.0
            if record.get("type") == "system" and "apiKeySource" in record and "tools" not in record:
                return 1.0
            if "role" in record and "type" not in record and "content" in as_dict(record.get("message")):
                return 0.9
        return 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the session."""
        return _Reader(probe)


FORMAT = Cursor()
