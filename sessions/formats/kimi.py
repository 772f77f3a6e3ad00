"""Sessions of Kimi Code CLI: `wire.jsonl`, the events of an agent, in which a reply arrives in pieces.

A step of the agent's loop is a reply of the model: its thoughts, its text, its calls and their results. Other
events that change the conversation are separate steps; events that only trace requests are states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats.shared.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.records.building import StepBuilder, Tally, any_error, asking_kind
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.model import (
    Actor,
    Json,
    NotShown,
    Result,
    Run,
    RunCall,
    Step,
    StepKind,
    Tokens,
)
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, of_type, records_of, texts_of, times_of
from gistpoint.sessions.records.requests import headline
from gistpoint.sessions.records.usage import counted_apart
from gistpoint.sessions.records.values import as_dict, as_str, as_text, compact, joined

_EVENT = "context.append_loop_event"
_MESSAGE = "context.append_message"
_PROMPTS = frozenset({"turn.prompt", "turn.steer"})
_BOOKKEEPING = ("type", "time")


class _Reader(RunReader):
    format = "kimi"
    in_lines = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._replies: dict[str, int] = {}
        self._reply: int | None = None
        self._tally = Tally()
        self._asked = ""

    def place(self, fields: Json, step_count: int) -> int:
        record = Record(fields)
        self._learn(record)
        event = record.inner("event")
        if record.get("type") != _EVENT:
            # Approvals and usage are recorded between the pieces of a reply, and belong to it.
            joins = record.word("type").startswith(("usage.", "permission.")) and self._reply is not None
            return self._reply if joins and self._reply is not None else step_count
        of_step = event.word("stepUuid") or event.word("uuid")
        if event.get("type") == "tool.result" and self._reply is not None:
            return self._replies.get(event.word("parentUuid"), self._reply)
        step = self._replies.setdefault(of_step, step_count)
        self._replies[event.word("uuid")] = self._reply = step
        return step

    def _learn(self, record: Record) -> None:
        self._tally.add_time(record.time("time"))
        match record.get("type"):
            case "usage.record":
                self._tally.add_usage(_tokens(record.inner("usage")))
            case "llm.request":
                self._tally.add_model(record.word("model"))
            case "turn.prompt":
                self._asked = self._asked or record.text("input")

    def header(self) -> Run:
        lines = self.probe.first_lines()
        settings = [line for line in lines if line.get("type") == "config.update"]
        named = next(iter(of_type(lines, "llm.request")), Record()).word("model")
        asked = self._asked or next((line.text("input") for line in of_type(lines, "turn.prompt")), "")
        folder = next((line.word("cwd") for line in settings if line.has("cwd")), "")
        return Run(
            self.format,
            next((line.word("protocol_version") for line in of_type(lines, "metadata")), ""),
            task=headline(asked),
            model=self._tally.model or named,
            agent="Kimi",
            tokens=self._tally.tokens,
            started=self._tally.started,
            duration_s=self._tally.duration_s,
            extra={"cwd": folder} if folder else {},
            derived=frozenset({"task", "tokens", "duration_s"}),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        records = records_of(raws)
        if records[0].get("type") == _EVENT:
            return _reply(index, raws, records)
        return _other(index, raws, records[0])


def _tokens(usage: Record) -> Tokens:
    """Return a reply's tokens, the prompt's including cached ones."""
    return counted_apart(
        usage.whole("inputOther"),
        usage.whole("output"),
        read=usage.whole("inputCacheRead"),
        written=usage.whole("inputCacheCreation"),
    )


def _times(records: list[Record], *events: str) -> Iterator[float | None]:
    """Yield the times of the records with events of certain types, None if unknown."""
    return (record.time("time") for record in records if record.get("event", "type") in events)


def _reply(index: int, raws: Sequence[Raw], records: list[Record]) -> Step:
    events = [record.inner("event") for record in records]
    parts = [event.inner("part") for event in of_type(events, "content.part")]
    calls = tuple(map(_call, of_type(events, "tool.call")))
    results = list(map(_result, of_type(events, "tool.result")))
    ended = next(iter(of_type(events, "step.end")), Record())
    other = [
        record.without(*_BOOKKEEPING) for record in records if record.word("type").startswith("permission.")
    ]
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "step")
        .thought(*texts_of(of_type(parts, "think"), "think"))
        .text(*(as_text([part.members]) for part in parts if part.get("type") != "think"))
        .calls(calls)
        .results(results)
        .edits(edits_of(calls))
        .over(times_of(records, "time"))
        .replied(
            _times(records, "content.part", "tool.call"), asked=next(_times(records, "step.begin"), None)
        )
        .spent(_tokens(ended.inner("usage")))
        .state({"approvals": list(map(compact, other))} if other else {})
        .flag_if(any_error(results), "error")
        .derived("kind", "ended")
        .id(ended.word("messageId"))
        .build()
    )


def _call(event: Record) -> RunCall:
    call: dict[str, Json] = {"id": event.get("toolCallId"), "name": event.get("name")}
    return call_of_function({**call, "arguments": event.get("args")})


def _result(event: Record) -> Result:
    result = event.inner("result")
    text = joined([result.text("output"), result.text("message")])
    return Result(event.word("toolCallId"), text, result.truth("isError"))


def _other(index: int, raws: Sequence[Raw], record: Record) -> Step:
    kind_name = record.word("type")
    content, actor, kind = "", Actor.SYSTEM, StepKind.STATE
    if kind_name in _PROMPTS:
        content, actor, kind = record.text("input"), Actor.USER, asking_kind(index, 10)
    elif kind_name == _MESSAGE:
        message = record.inner("message")
        actor = Actor.USER if message.get("role") == "user" else Actor.ENVIRONMENT
        content, kind = message.text("content"), StepKind.NOTE
    elif kind_name == "context.apply_compaction":
        content, kind = record.text("summary"), StepKind.CONTEXT
    text = content or compact(as_dict(record.without(*_BOOKKEEPING)))
    return (
        StepBuilder(index, raws, actor, kind, as_str(kind_name))
        .text(text)
        .over([record.time("time")])
        .build()
    )


class Kimi(SingleRun):
    """Recognised by a `metadata` line with a version of the protocol, or by events of an agent's loop."""

    name = "kimi"
    not_shown: Sequence[NotShown] = (
        NotShown(("event.display", "event.description"), "how the window showed a call"),
        NotShown(
            ("event.uuid", "event.stepUuid", "event.parentUuid", "event.turnId", "event.finishReason"),
            "how the pieces of a reply belong together",
        ),
        NotShown(("usage", "usageScope", "model"), "counts of a request; the header and the steps have them"),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        lines = probe.first_lines(40)
        if any(line.has_all("protocol_version", "created_at") for line in of_type(lines, "metadata")):
            return 1.0
        events = [line for line in of_type(lines, _EVENT) if line.inner("event").has("type")]
        return 0.95 if events else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the session."""
        return _Reader(probe)


FORMAT = Kimi()
