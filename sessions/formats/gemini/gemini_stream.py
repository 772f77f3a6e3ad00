"""The output of Gemini CLI's `--output-format stream-json`: an event per line, as in `output/types.ts`."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.gemini.google_parts import google_call
from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.records.building import StepBuilder, any_error, asking_kind, error_if
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
from gistpoint.sessions.records.record import Record, of_type, records_of, times_of, words_of
from gistpoint.sessions.records.usage import counted_within
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    as_text,
    dumped,
    joined,
    when,
)

_REPLY = frozenset({"message", "tool_use", "tool_result"})


class _Reader(RunReader):
    format = "gemini-stream"
    in_lines = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._reply: int | None = None
        self._answered = False
        self._calls: dict[str, int] = {}
        self._begun: dict[str, Json] = {}
        self._result: dict[str, Json] = {}

    def place(self, fields: Json, step_count: int) -> int:
        event = as_dict(fields)
        kind = as_str(event.get("type"))
        self._learn(kind, event)
        if kind == "tool_result":
            self._answered = True
            return self._calls.get(as_str(event.get("tool_id")), step_count)
        if not _is_of_model(kind, event):
            self._reply = None
            return step_count
        # A call's answer ends a reply; further output of the model belongs to the next one.
        if self._reply is None or self._answered:
            self._reply, self._answered = step_count, False
        if kind == "tool_use":
            self._calls[as_str(event.get("tool_id"))] = self._reply
        return self._reply

    def _learn(self, kind: str, event: dict[str, Json]) -> None:
        if kind == "init":
            self._begun = event
        elif kind == "result":
            self._result = event

    def user_text(self, record: dict[str, Json]) -> str:
        is_user = record.get("type") == "message" and record.get("role") == "user"
        return as_text(record.get("content")) if is_user else ""

    def header(self) -> Run:
        for record in () if self._begun else self.probe.lines:
            self._learn(as_str(record.get("type")), record)
        stats = Record(self._result.get("stats"))
        return Run(
            self.format,
            id=as_str(self._begun.get("session_id")),
            task=self.request,
            model=as_str(self._begun.get("model")),
            agent="gemini-cli",
            exit_status=as_str(self._result.get("status")),
            tokens=counted_within(
                stats.whole("input_tokens"), stats.whole("output_tokens"), read=stats.whole("cached")
            ),
            started=when(self._begun.get("timestamp")),
            duration_s=stats.seconds_of_ms("duration_ms"),
            derived=frozenset({"task"}),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        events = records_of(raws)
        kind = events[0].word("type")
        if kind in _REPLY and events[0].get("role") != "user":
            return _reply_step(index, raws, events)
        return _other_step(index, raws, events[0], kind)


def _is_of_model(kind: str, event: dict[str, Json]) -> bool:
    return kind == "tool_use" or (kind == "message" and event.get("role") != "user")


def _reply_step(index: int, raws: Sequence[Raw], events: list[Record]) -> Step:
    calls = tuple(map(_call, of_type(events, "tool_use")))
    results = tuple(map(_result, of_type(events, "tool_result")))
    label = events[0].word("type")
    builder = StepBuilder(index, raws, Actor.AGENT, kind_of(calls), label)
    if label == "tool_result":
        builder = StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.TOOL, label).flag("unpaired")
    return (
        # A reply arrives in pieces, which may split a word, so nothing is put between them.
        builder.text("".join(words_of(of_type(events, "message"), "content")))
        .calls(calls)
        .results(results)
        .edits(edits_of(calls))
        .over(times_of(events, "timestamp"))
        .replied(times_of(of_type(events, "message", "tool_use"), "timestamp"))
        .naive(events[0].get("timestamp"))
        .flag_if(any_error(results), "error")
        .derived("kind", "ended")
        .build()
    )


def _call(event: Record) -> RunCall:
    return google_call(
        {"id": event.get("tool_id"), "name": event.get("tool_name"), "args": event.get("parameters")}
    )


def _has_failed(event: Record) -> bool:
    return bool(event.inner("error")) or event.get("status") == "error"


def _result(event: Record) -> Result:
    text = joined(dict.fromkeys([event.text("output"), event.text("error", "message")]))
    return Result(event.word("tool_id"), text, error_if(_has_failed(event)))


def _other_step(index: int, raws: Sequence[Raw], event: Record, kind: str) -> Step:
    actor, step_kind = Actor.SYSTEM, StepKind.STATE
    match kind:
        case "message":
            actor, step_kind, text = Actor.USER, asking_kind(index), event.text("content")
        case "error":
            step_kind = StepKind.NOTE if event.get("severity") == "warning" else StepKind.ERROR
            text = event.text("message")
        case "result":
            step_kind = StepKind.ERROR if _has_failed(event) else StepKind.END
            text = joined([as_text(event.inner("error").first("message")), dumped(event.get("stats"))])
        case "init":
            text = dumped(event.without("type", "timestamp"))
        case _:
            return unknown_step(index, raws, kind or "record", dumped(raws[0].value))
    return (
        StepBuilder(index, raws, actor, step_kind, kind)
        .text(text)
        .at(event.get("timestamp"))
        .flag_if(step_kind is StepKind.ERROR, "error")
        .derived("kind")
        .build()
    )


class GeminiStream(SingleRun):
    """Recognised by the event that opens a session, or by calls or results with a `tool_id`."""

    name = "gemini-stream"
    unique_ids = True
    texts_in_records = False  # text may be split over several records
    not_shown: Sequence[NotShown] = (
        NotShown(("content",), "pieces of a reply, which the step has joined"),
        NotShown(("status", "severity"), "how a call or the run ended"),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        for event in probe.lines[:20]:
            kind = as_str(event.get("type"))
            if kind == "init" and {"session_id", "model"} <= event.keys():
                return 0.95
            if kind in ("tool_use", "tool_result") and "tool_id" in event:
                return 0.95
        return 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the output."""
        return _Reader(probe)


FORMAT = GeminiStream()
