"""Sessions of Cursor's agent: its transcripts, and its command line's `--output-format stream-json`.

Calls of a transcript have no ids, so results answer the calls in their order. The stream resembles Claude
Code's, but calls and results are `tool_call` records, and text may be printed first in pieces and then whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from gistpoint.sessions.formats.shared.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.formats.shared.message_parts import (
    Parts,
    is_call,
    is_result,
    merged,
    parts_of_message,
)
from gistpoint.sessions.records.building import (
    StepBuilder,
    Tally,
    any_error,
    any_failed,
    asking_kind,
    spoken_result,
)
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun, unknown_step
from gistpoint.sessions.records.model import (
    Actor,
    Json,
    NotShown,
    Result,
    Run,
    RunCall,
    Step,
    StepKind,
)
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, of_type, records_of, texts_of, times_of
from gistpoint.sessions.records.requests import headline
from gistpoint.sessions.records.usage import counted_within
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    compact,
    dumped,
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
            # Text after a call begins the next reply: the stream does not mark where a reply ends.
            if self._reply is None or self._called:
                self._reply, self._called = step_count, False
            return self._reply
        if kind == "tool_call":
            # A call has one record at its beginning and one at its end.
            self._called = True
            at = self._calls.get(
                as_str(record.get("call_id")), step_count if self._reply is None else self._reply
            )
            self._reply = at
            self._calls[as_str(record.get("call_id"))] = at
            return at
        self._reply = None
        return step_count

    def _message(self, record: dict[str, Json], step_count: int) -> int:
        """Return the step for a message in a transcript, in which calls may have no ids."""
        blocks = objects(as_dict(record.get("message")).get("content"))
        if record.get("role") == "assistant":
            for block in blocks:
                if is_call(as_str(block.get("type"))):
                    self._wait_for(as_str(block.get("id")), step_count)
            return step_count
        owners = [self._answered_by(block) for block in blocks if is_result(as_str(block.get("type")))]
        return next((owner for owner in owners if owner is not None), step_count)

    def _wait_for(self, identity: str, step: int) -> None:
        if identity:
            self._calls[identity] = step
        else:
            self._waiting.append(step)

    def _answered_by(self, block: dict[str, Json]) -> int | None:
        known = self._calls.pop(as_str(block.get("tool_use_id")), None)
        # A result may name a call that has no id in the transcript, but results are in the order of the
        # calls.
        return self._waiting.popleft() if known is None and self._waiting else known

    def _learn(self, record: dict[str, Json]) -> None:
        self._tally.add_time(when(record.get("timestamp_ms")))
        if record.get("type") == "system" and not self._opening:
            self._opening = record
        if record.get("type") == "result":
            self._ending = record

    def header(self) -> Run:
        if not self._opening:
            self._opening = next(
                (record for record in self.probe.lines if record.get("type") == "system"), {}
            )
        opening, ending, tally = Record(self._opening), Record(self._ending), self._tally
        usage = ending.inner("usage")
        return Run(
            self.format,
            "stream" if opening else "transcript",
            id=opening.word("session_id"),
            task=headline(self._first_request()),
            model=opening.word("model"),
            agent="Cursor",
            exit_status=ending.word("subtype"),
            tokens=counted_within(
                usage.whole("inputTokens"),
                usage.whole("outputTokens"),
                read=usage.whole("cacheReadTokens"),
                written=usage.whole("cacheWriteTokens"),
            ),
            started=tally.started,
            duration_s=ending.seconds_of_ms("duration_ms"),
            extra=opening.kept("cwd"),
        )

    def _first_request(self) -> str:
        """Return the user's first request; empty if there is none."""
        lines = map(Record, self.probe.lines)
        asked = next((line for line in lines if "user" in (line.get("role"), line.get("type"))), Record())
        return _text_of(asked)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        records = records_of(raws)
        if records[0].has("role"):
            return _turn(index, raws, records)
        if of_type(records, "assistant", "thinking", "tool_call"):
            return _streamed(index, raws, records)
        return _other(index, raws, records[0])


def _parts(record: Record) -> Parts:
    return parts_of_message(record.get("message", "content"))


def _text_of(record: Record) -> str:
    return _parts(record).text if record.has("message") else ""


def _turn(index: int, raws: Sequence[Raw], records: list[Record]) -> Step:
    """Return the step for a message in a transcript, with the results of its calls."""
    head, *answers = map(_parts, records)
    role = records[0].word("role")
    if role != "assistant":
        kind = StepKind.TOOL if head.results else asking_kind(index, 2)
        builder = (
            StepBuilder(index, raws, Actor.USER, kind, role).text(head.combined_text).results(head.results)
        )
        return builder.flag_if(head.results, "unpaired").derived("kind").build()
    whole = merged([head, *answers])
    known = {call.id for call in head.calls if call.id}
    # Only the results have ids: each call gets the id of its result, in order.
    unasked = iter([result.call_id for result in whole.results if result.call_id not in known])
    calls = tuple(call if call.id else replace(call, id=next(unasked, "")) for call in head.calls)
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "assistant")
        .thought(*head.thought)
        .text(head.text)
        .calls(calls)
        .results([*whole.results, *spoken_result(merged(answers).text)])
        .edits(edits_of(calls))
        .flag_if(any_error(whole.results), "error")
        .derived("kind", "calls.id")
        .build()
    )


def _streamed(index: int, raws: Sequence[Raw], records: list[Record]) -> Step:
    """Return the step for a reply in the stream, without text that repeats the preceding pieces."""
    text = ""
    calls: dict[str, RunCall] = {}
    results: list[Result] = []
    diffs: list[str] = []
    for record in records:
        kind = record.word("type")
        if kind == "assistant":
            piece = _text_of(record)
            repeats = text and piece.strip() == text.strip()
            text += "" if repeats else piece
        elif kind == "tool_call":
            name, body = _tool(record)
            identity = record.word("call_id")
            arguments = body.get("args") if body.has("args") else body.get("arguments")
            # The last record of a call may omit the arguments, which the first one has.
            if arguments is not None or identity not in calls:
                calls[identity] = call_of_function({"id": identity, "name": name, "arguments": arguments})
            if record.get("subtype") == "completed":
                results.append(_result(identity, body.inner("result")))
                diffs.append(body.text("result", "success", "diffString"))
    made = tuple(calls.values())
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(made), "assistant")
        .thought("".join(texts_of(of_type(records, "thinking"), "text")))
        .text(text)
        .calls(made)
        .results(results)
        .edits(edits_of(made))
        .diffs(diffs)
        .over(times_of(records, "timestamp_ms"))
        .replied(record.time("timestamp_ms") for record in records if record.get("subtype") != "completed")
        .flag_if(any_failed(results), "error")
        .derived("kind", "ended")
        .build()
    )


def _tool(record: Record) -> tuple[str, Record]:
    """Return the name and the body of a call, from any of the forms of its record."""
    holder = record.inner("tool_call")
    case, function = holder.inner("tool"), holder.inner("function")
    if case.get("case"):
        return case.word("case").removesuffix("ToolCall"), case.inner("value")
    if function:
        result = {key: holder.get(key) for key in ("result",) if holder.has(key)}
        return function.word("name"), Record({**function.members, **result})
    name = next(
        (key for key in holder.members if key.endswith("ToolCall")), next(iter(holder.members), "tool")
    )
    body = holder.inner(name)
    # All tools of MCP servers have the same name here: their own names are among the arguments.
    if name == "mcpToolCall" and body.get("args", "toolName"):
        return body.word("args", "toolName"), body
    return name.removesuffix("ToolCall"), body


def _result(identity: str, outcome: Record) -> Result:
    """Return a call's result, which its outcome contains under `success` or under the name of a failure."""
    key = next((key for key, value in outcome.members.items() if isinstance(value, dict | str)), "")
    inner = outcome.inner(key)
    shown = joined(inner.texts("content", "output", "stdout", "stderr", "message", "reason", "error"))
    text = shown or outcome.text(key) or compact(outcome.members)
    return Result(identity, text, None if key in ("", "success") else True, inner.whole("exitCode"))


def _other(index: int, raws: Sequence[Raw], record: Record) -> Step:
    kind = record.word("type")
    shown = {
        "user": (Actor.USER, asking_kind(index)),
        "result": (Actor.ENVIRONMENT, StepKind.END),
        "system": (Actor.SYSTEM, StepKind.STATE),
    }.get(kind)
    if shown is None:
        return unknown_step(index, raws, kind or "record", dumped(raws[0].value))
    return (
        StepBuilder(index, raws, *shown, joined([kind, record.word("subtype")], " "))
        .text(_text_of(record) or record.first_text("result", "error") or compact(record.members))
        .span(record.time("timestamp_ms"))
        .flag_if(kind == "result" and record.get("is_error"), "error")
        .derived("kind")
        .build()
    )


class Cursor(SingleRun):
    """Recognised by lines with a role and a `message`, or by a stream's `tool_call` and `system` records."""

    name = "cursor"
    words_in_records = True
    parted_by = (b"thinking",)  # a thought may be split over several records
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("subtype", "apiKeySource", "permissionMode"),
            "what kind of a record it is, and how the program ran",
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        return max(map(_likeness, probe.first_lines(30)), default=0.0)

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the session."""
        return _Reader(probe)


def _likeness(record: Record) -> float:
    kind = record.get("type")
    if kind == "tool_call" and isinstance(record.get("tool_call"), dict):
        return 1.0
    # Claude Code's stream opens with a system record too, but one that lists the tools.
    if kind == "system" and record.has("apiKeySource") and not record.has("tools"):
        return 1.0
    is_message = record.has("role") and not record.has("type")
    return 0.9 if is_message and record.inner("message").has("content") else 0.0


FORMAT = Cursor()
