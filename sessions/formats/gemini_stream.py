"""The output of Gemini CLI's `--output-format stream-json`: an event per line, after `output/types.ts`."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.calls import edits_of, kind_of
from gistpoint.sessions.formats.google_parts import google_call
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun, unknown_step
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, RunCall, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_str,
    as_text,
    dumped,
    first,
    is_naive,
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
        if kind != "tool_use" and (kind != "message" or event.get("role") == "user"):
            self._reply = None
            return step_count
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

    def said_by_user(self, record: dict[str, Json]) -> str:
        is_user = record.get("type") == "message" and record.get("role") == "user"
        return as_text(record.get("content")) if is_user else ""

    def header(self) -> Run:
        for record in () if self._begun else self.probe.lines:
            self._learn(as_str(record.get("type")), record)
        stats = as_dict(self._result.get("stats"))
        milliseconds = as_float(stats.get("duration_ms"))
        return Run(
            self.format, id=as_str(self._begun.get("session_id")), task=self.request,
            model=as_str(self._begun.get("model")), agent="gemini-cli", exit_status=as_str(self._result.get("status")),
            tokens=Tokens(*(as_int(stats.get(name)) for name in ("input_tokens", "output_tokens", "cached"))),
            started=when(self._begun.get("timestamp")),
            duration_s=milliseconds / 1000 if milliseconds is not None else None, derived=frozenset({"task"}),
        )  # fmt: skip

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        events = [as_dict(raw.value) for raw in raws]
        kind = as_str(events[0].get("type"))
        if kind in _REPLY and events[0].get("role") != "user":
            return _reply_step(index, raws, events)
        return _other_step(index, raws, events[0], kind)


def _reply_step(index: int, raws: Sequence[Raw], events: list[dict[str, Json]]) -> Step:
    calls = tuple(_call(event) for event in events if event.get("type") == "tool_use")
    results = tuple(_result(event) for event in events if event.get("type") == "tool_result")
    times = [at for at in (when(event.get("timestamp")) for event in events) if at is not None]
    alone = events[0].get("type") == "tool_result"
    flags = {"error"} if any(result.is_error for result in results) else set[str]()
    return Step(
        index, Actor.ENVIRONMENT if alone else Actor.AGENT, StepKind.TOOL if alone else kind_of(calls), raws[0].range,
        tuple(raw.range for raw in raws), label=as_str(events[0].get("type")),
        text="".join(as_str(event.get("content")) for event in events if event.get("type") == "message"),
        calls=calls, results=results, started=min(times, default=None), ended=max(times, default=None),
        naive=is_naive(events[0].get("timestamp")), edits=edits_of(calls),
        flags=frozenset(flags | ({"unpaired"} if alone else set())), derived=frozenset({"kind", "ended"}),
    )  # fmt: skip


def _call(event: dict[str, Json]) -> RunCall:
    return google_call({"id": event.get("tool_id"), "name": event.get("tool_name"), "args": event.get("parameters")})


def _result(event: dict[str, Json]) -> Result:
    failure = as_dict(event.get("error"))
    text = joined(dict.fromkeys([as_text(event.get("output")), as_text(failure.get("message"))]))
    return Result(as_str(event.get("tool_id")), text, True if failure or event.get("status") == "error" else None)


def _other_step(index: int, raws: Sequence[Raw], event: dict[str, Json], kind: str) -> Step:
    failure = as_dict(event.get("error"))
    actor, step_kind = Actor.SYSTEM, StepKind.STATE
    text = dumped({key: value for key, value in event.items() if key not in ("type", "timestamp")})
    if kind == "message":
        actor, step_kind, text = (
            Actor.USER,
            StepKind.TASK if index < 3 else StepKind.MESSAGE,
            as_text(event.get("content")),
        )
    elif kind == "error":
        step_kind = StepKind.NOTE if event.get("severity") == "warning" else StepKind.ERROR
        text = as_text(event.get("message"))
    elif kind == "result":
        step_kind = StepKind.ERROR if failure or event.get("status") == "error" else StepKind.END
        text = joined([as_text(first(failure, "message")), dumped(event.get("stats"))])
    elif kind != "init":
        return unknown_step(index, raws, kind or "record", dumped(raws[0].value))
    return Step(
        index, actor, step_kind, raws[0].range, tuple(raw.range for raw in raws), label=kind, text=text,
        started=when(event.get("timestamp")), naive=is_naive(event.get("timestamp")),
        flags=frozenset({"error"} if step_kind is StepKind.ERROR else ()), derived=frozenset({"kind"}),
    )  # fmt: skip


class GeminiStream(SingleRun):
    """Recognised by an event that opens a session, or by calls with `tool_name` and `tool_id`."""

    name = "gemini-stream"
    unique_ids = True
    texts_in_records = False  # a text is in as many records as it came in
    not_shown: Sequence[NotShown] = (NotShown(("content",), "pieces of a reply, which the step has joined"),
                                     NotShown(("status", "severity"), "how a call or the run ended"))  # fmt: skip

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
        """Open the output."""
        return _Reader(probe)


FORMAT = GeminiStream()
