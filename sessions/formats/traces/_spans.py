"""Traces of observability tools: spans of models, tools and agents, in a different form for each exporter.

Each call to a model repeats the preceding conversation: messages that were not sent or received earlier
become separate steps before the step of the reply. A tool's span is part of the step of its call.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, TypeAlias

from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.formats.shared.divided_records import DividedReader
from gistpoint.sessions.formats.shared.message_parts import merged, parts_of_message
from gistpoint.sessions.formats.shared.messages import actor_of, parts_of_reply, role_of
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob
from gistpoint.sessions.records.building import StepBuilder, Tally, any_error, duration, error_if
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunNames, RunReader, no_such_run
from gistpoint.sessions.records.loading import load_record
from gistpoint.sessions.records.model import Actor, Json, Result, RunCall, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.scanning import RawRecord, guarded
from gistpoint.sessions.records.values import (
    as_dict,
    as_int,
    as_list,
    as_str,
    as_text,
    compact,
    first,
    first_known,
    joined,
    objects,
)

_TRACE_ID = re.compile(rb'"(?:traceId|trace_id)"\s*:\s*"([^"\\]{1,200})"')
_OVERLAP = 256
_Named: TypeAlias = tuple[Raw, dict[str, Json]]
"""A part of a record, and its name."""
SpanKind = Literal["model", "tool", "agent", "other"]


@dataclass(slots=True)
class TraceSpan:
    """One span, whichever exporter wrote it; its messages have the form of chat APIs."""

    id: str
    parent: str = ""
    kind: SpanKind = "other"
    name: str = ""
    started: float | None = None
    ended: float | None = None
    asked: list[dict[str, Json]] = field(default_factory=list)
    replied: list[dict[str, Json]] = field(default_factory=list)
    call: RunCall | None = None
    output: str = ""
    text: str = ""
    """The input and the output of a span that is neither a model's nor a tool's."""
    tokens: Tokens = field(default_factory=Tokens)
    cost: float | None = None
    model: str = ""
    error: str = ""


@dataclass(slots=True)
class _Known:
    """The facts about a span from the first pass: its records, its order in time, its kind and its parent."""

    places: list[tuple[int, int]]
    order: tuple[float, int]
    kind: SpanKind
    parent: str


class TraceReader(DividedReader):
    """Yields the spans of a trace in the order in which they began."""

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._spans: dict[str, _Known] = {}
        self._wrappers: set[str] = set()
        self._known_messages: Counter[str] = Counter()
        self._calls: dict[str, int] = {}
        self._unanswered: list[RunCall] = []
        self._answered: set[str] = set()
        self._first_reply: int | None = None
        self.tally = Tally()
        self.outermost_cost: float | None = None
        """The cost that the outermost span records for all spans within it; None if it records none."""
        self.ending = ""

    @abstractmethod
    def span_records(self) -> Iterator[RawRecord]:
        """Yield the records of the trace's spans, in the order of the file."""

    @abstractmethod
    def span(self, values: Sequence[dict[str, Json]]) -> TraceSpan:
        """Return the span that one or several records describe, whether they are decoded or not."""

    @abstractmethod
    def decoded(self, value: Json) -> Json:
        """Return a record of a span as a step shows it; a decoded record is returned unchanged."""

    def parts(self, fields: Json) -> Iterable[dict[str, Json]]:
        return ()

    def records(self) -> Iterator[RawRecord]:
        """Yield the parts of the spans in the order in which the spans began.

        A first pass over the file determines this order.
        """
        for count, record in enumerate(map(self.checked, self.span_records())):
            if record.damage:
                yield record
            else:
                self._add_record(record, count)
        models = [id for id, known in self._spans.items() if known.kind == "model"]
        self._wrappers = {above for id in models for above in self._enclosing(id)}
        for id in sorted(self._spans, key=lambda id: self._spans[id].order):
            yield from self._parts_of_span(self._spans[id])

    def _add_record(self, record: RawRecord, count: int) -> None:
        """Add a record to the span that it describes.

        A span that was written when it opened is written again at its end.
        """
        span = self.span([as_dict(record.fields)])
        order = (float("inf") if span.started is None else span.started, count)
        known = self._spans.get(span.id)
        if known is None:
            self._spans[span.id] = _Known([(record.start, record.end)], order, span.kind, span.parent)
            return
        known.places.append((record.start, record.end))
        known.order = min(known.order, order)
        known.kind = span.kind if known.kind == "other" else known.kind

    def _parts_of_span(self, known: _Known) -> Iterator[RawRecord]:
        values = [as_dict(load_record(self.probe.blob, *place)[0]) for place in known.places]
        span = self._settled(self.span(values))
        self._learn(span)
        asking = next((number for number, value in enumerate(values) if self.span([value]).asked), 0)
        for name in self._names(span):
            if name["part"] in ("message", "result"):
                yield RawRecord(*known.places[asking], name)
                continue
            for number, (start, end) in enumerate(known.places):
                yield RawRecord(start, end, {**name, "joins": number > 0})

    def _enclosing(self, id: str) -> Iterator[str]:
        """Yield the ids of the spans that enclose a span."""
        seen: set[str] = {id}
        above = self._spans[id].parent
        while above in self._spans and above not in seen:
            yield above
            seen.add(above)
            above = self._spans[above].parent

    def _settled(self, span: TraceSpan) -> TraceSpan:
        """Return the span; a model's span that encloses other models' spans gets another kind.

        Such a span repeats their messages and tokens, which would otherwise count twice.
        """
        if span.kind == "model" and span.id in self._wrappers:
            span.kind, span.tokens, span.cost = "other", Tokens(), None
            span.text = ""
        return span

    def _learn(self, span: TraceSpan) -> None:
        self.tally.add_time(span.started)
        self.tally.add_time(span.ended)
        if span.kind == "model":
            self.tally.add_usage(span.tokens, span.cost)
            self.tally.add_model(span.model)
        elif not span.parent:
            self.outermost_cost = span.cost
        if span.error:
            self.ending = "error"

    def _names(self, span: TraceSpan) -> Iterator[dict[str, Json]]:
        """Yield the names of the parts of a span: one for each new message, and one for the span itself."""
        head: dict[str, Json] = {"span": span.id}
        if span.kind == "model":
            yield from self._new_messages(span, head)
            calls: list[RunCall] = []
            for message in span.replied:
                self._known_messages[_key(message)] += 1
                calls += parts_of_reply(message).calls
            self._unanswered += calls
            yield {**head, "part": "reply", "calls": [call.id for call in calls]}
        elif span.kind == "tool" and span.call is not None:
            # Not every exporter records the id of the call in a tool's span.
            made = self._call_run_by(span.call)
            self._answered |= {span.call.id, made} - {""}
            self._unanswered = [call for call in self._unanswered if call.id != made]
            yield {**head, "part": "tool", "call": made or None}
        else:
            yield {**head, "part": "span"}

    def _new_messages(self, span: TraceSpan, head: dict[str, Json]) -> Iterator[dict[str, Json]]:
        """Yield the names of messages that were sent to a model and that no earlier span contains.

        A message that occurs more often than in earlier spans is new at each additional occurrence.
        """
        counted = Counter[str]()
        for number, message in enumerate(span.asked):
            answered = _answered(message)
            if answered:
                if not answered <= self._answered:
                    self._answered |= answered
                    yield {**head, "part": "result", "number": number, "calls": list(answered)}
                continue
            key = _key(message)
            counted[key] += 1
            if counted[key] > self._known_messages[key]:
                self._known_messages[key] += 1
                yield {**head, "part": "message", "number": number}

    def _call_run_by(self, call: RunCall) -> str:
        """Return the id of the call that a tool's span runs: its own id, or that of an open call to the tool.

        Of several open calls, the first counts. The id is empty if no reply made such a call.
        """
        if call.id and call.id in self._calls:
            return call.id
        for made in self._unanswered:
            if made.tool == call.tool:
                return made.id
        return ""

    def owner(self, name: dict[str, Json], step_count: int) -> int:
        part, of_call = name.get("part"), self._calls.get(as_str(name.get("call")))
        if name.get("joins"):
            # Later records of a span belong to the step of its first one.
            return of_call if part == "tool" and of_call is not None else step_count - 1
        ids = [as_str(id) for id in as_list(name.get("calls"))]
        if part == "result":
            return next((self._calls[id] for id in ids if id in self._calls), step_count)
        if part == "tool":
            return step_count if of_call is None else of_call
        if part == "reply" and self._first_reply is None:
            self._first_reply = step_count
        self._calls.update(dict.fromkeys(ids, step_count))
        return step_count

    def part_of(self, value: Json, name: dict[str, Json]) -> Json:
        if name.get("part") not in ("message", "result"):
            return self.decoded(value)
        # Decoded again, because a step keeps only the number of its message.
        asked = self.span([as_dict(value)]).asked
        number = as_int(name.get("number")) or 0
        return {"message": asked[number]} if number < len(asked) else {}

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        names = self.names(index)[: len(raws)]
        if names[0].get("part") in ("message", "result"):
            return self._message(index, raws)
        pairs = list(zip(raws, names, strict=True))
        own = [as_dict(raw.value) for raw, name in pairs if name.get("part") in ("reply", "span")]
        if not own:
            return self._of_tools(index, raws, pairs)
        span = self._settled(self.span(own))
        if span.kind == "model":
            return self._of_model(index, raws, pairs, span)
        return self._enclosing_step(index, raws, span)

    def _of_model(self, index: int, raws: Sequence[Raw], pairs: list[_Named], span: TraceSpan) -> Step:
        """Return the step of a model's reply, with its calls' spans and the results sent to it later."""
        parts = merged(map(parts_of_reply, span.replied))
        work = _Work(calls=parts.calls, times=[span.started, span.ended])
        self._add_tools(work, pairs)
        kind = StepKind.ERROR if span.error and not work.calls else kind_of(tuple(work.calls))
        return (
            work.builder(index, raws, kind, span.name)
            .thought(*parts.thought)
            .text(parts.text, span.error)
            .replied([span.ended], asked=span.started)
            .spent(span.tokens, span.cost)
            .model(span.model)
            .flag_if(span.error or any_error(work.results), "error")
            .flag_if(self._is_side(span), "side")
            .id(span.id)
            .build()
        )

    def _of_tools(self, index: int, raws: Sequence[Raw], pairs: list[_Named]) -> Step:
        """Return the step of the spans of tools that no reply in the trace called."""
        work = _Work()
        self._add_tools(work, pairs)
        builder = work.builder(index, raws, kind_of(tuple(work.calls)), "tool")
        return builder.flag_if(any_error(work.results), "error").build()

    def _enclosing_step(self, index: int, raws: Sequence[Raw], span: TraceSpan) -> Step:
        """Return the step of an enclosing span, without its end: inner spans account for the duration."""
        kind = StepKind.DELEGATE if span.kind == "agent" else StepKind.STATE
        return (
            StepBuilder(index, raws, Actor.SYSTEM, StepKind.ERROR if span.error else kind, span.name)
            .text(span.text, span.error)
            .over([first_known((span.started, span.ended))])
            .model(span.model)
            .flag_if(span.error, "error")
            .flag_if(self._is_side(span), "side")
            .derived("kind")
            .id(span.id)
            .build()
        )

    def _is_side(self, span: TraceSpan) -> bool:
        """Return whether a tool ran the agent that the span belongs to."""
        around = self._enclosing(span.id) if span.id in self._spans else ()
        return any(self._spans[id].kind == "tool" for id in around)

    def _add_tools(self, work: _Work, pairs: list[_Named]) -> None:
        tools: dict[str, list[dict[str, Json]]] = {}
        call_ids: dict[str, str] = {}
        for raw, name in pairs:
            span = as_str(name.get("span"))
            call_ids[span] = as_str(name.get("call"))
            if name.get("part") == "result":
                work.results += _results(as_dict(as_dict(raw.value).get("message")))
            elif name.get("part") == "tool":
                tools.setdefault(span, []).append(as_dict(raw.value))
        for identity, values in tools.items():
            work.add(self.span(values), call_ids[identity])

    def _message(self, index: int, raws: Sequence[Raw]) -> Step:
        """Return the step of a message that was sent to a model and is not an earlier reply."""
        message = as_dict(as_dict(raws[0].value).get("message"))
        role = role_of(message)
        parts = parts_of_message(message.get("content"))
        results = _results(message) if _answered(message) else []
        kind = _ROLE_KINDS.get(role, StepKind.TOOL if results else StepKind.CONTEXT)
        before_reply = self._first_reply is None or index < self._first_reply
        if before_reply and role == "user":
            kind = StepKind.TASK
        # A reply that is not from a span of the trace was copied from another conversation.
        actor = Actor.ENVIRONMENT if kind is StepKind.CONTEXT else actor_of(role)
        return (
            StepBuilder(index, raws, actor, kind, role or "message")
            .thought(*parts.thought)
            .text("" if results else parts.text)
            .calls(parts_of_reply(message).calls if role == "assistant" else ())
            .results(results)
            .flag_if(results, "unpaired")
            .derived("kind")
            .build()
        )


_ROLE_KINDS = {"system": StepKind.SYSTEM, "developer": StepKind.SYSTEM, "user": StepKind.MESSAGE}


@dataclass(slots=True)
class _Work:
    """The calls, results and times that a step of a reply takes from the spans of tools."""

    calls: list[RunCall] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)

    def add(self, tool: TraceSpan, call_id: str) -> None:
        """Add the span of a tool, which runs the call with the id `call_id` if the reply has it."""
        call = next((call for call in self.calls if call.id and call.id == call_id), None) or tool.call
        if call is not None and call not in self.calls:
            self.calls.append(call)
        text = joined([tool.output, tool.error])
        if text or tool.ended is not None:
            spent = duration(tool.started, tool.ended)
            self.results.append(Result(call.id if call else "", text, error_if(tool.error), None, spent))
        self.times += [tool.started, tool.ended]

    def builder(self, index: int, raws: Sequence[Raw], kind: StepKind, label: str) -> StepBuilder:
        """Return the builder of a step with the calls, the results and the times."""
        made = tuple(self.calls)
        builder = (
            StepBuilder(index, raws, Actor.AGENT, kind, label)
            .calls(made)
            .results(_without_repeats(self.results))
        )
        begun = min((at for at in self.times if at is not None), default=None)
        # Without a model's span, there was no reply to wait for.
        return builder.edits(edits_of(made)).over(self.times).replied([begun], asked=begun).derived("kind")


def _key(message: dict[str, Json]) -> str:
    """Return a string that identifies a message in every form in which a provider may repeat it."""
    parts = parts_of_reply(message)
    ids = [call.id for call in parts.calls if call.id]
    # Providers differ in the whitespace between the parts of a message.
    text = "".join("".join(parts.texts).split())
    return f"{role_of(message)} {ids or text}"


def _answered(message: dict[str, Json]) -> set[str]:
    """Return the ids of the calls that a message answers; the message's key is used for an unknown call."""
    results = parts_of_message(message.get("content")).results
    if role_of(message) == "tool" and not results:
        return {as_str(first(message, "tool_call_id", "toolCallId")) or _key(message)}
    return {result.call_id for result in results}


def _results(message: dict[str, Json]) -> list[Result]:
    parts = parts_of_message(message.get("content"))
    if parts.results:
        return parts.results
    failed = error_if(as_str(message.get("status")) == "error")
    return [
        Result(as_str(first(message, "tool_call_id", "toolCallId")), as_text(message.get("content")), failed)
    ]


def _without_repeats(results: list[Result]) -> Iterator[Result]:
    """Yield the results, except those sent to a model that the tool's own span contains too."""
    known: dict[str, str] = {}
    for result in results:
        if result.call_id and known.get(result.call_id) == result.text:
            continue
        known.setdefault(result.call_id, result.text)
        yield result


class TraceFormat(Format):
    """A format whose files contain the spans of one or more traces, each of which is a run."""

    @abstractmethod
    def spans(self, probe: FileProbe) -> Iterator[RawRecord]:
        """Yield the spans of all traces in a file."""

    @abstractmethod
    def trace_of(self, fields: Json) -> str:
        """Return the id of the trace that a span belongs to."""

    @abstractmethod
    def reader(self, probe: FileProbe, trace: str) -> RunReader:
        """Return a reader of a trace, or of all spans if `trace` is empty."""

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the traces; if there is only one, its id is empty."""
        traces = self._traces(probe)
        for id, trace in traces.items():
            yield RunEntry(id if len(traces) > 1 else "", self.reader(probe, trace).header())

    def open(self, probe: FileProbe, id: str) -> RunReader:
        """Return a reader of a trace by its id, or of all spans if `id` is empty.

        Raises `RunFileError` if there is no such trace.
        """
        if not id:
            return self.reader(probe, "")
        trace = self._traces(probe).get(id)
        if trace is None:
            raise no_such_run(probe, id)
        return self.reader(probe, trace)

    def _traces(self, probe: FileProbe) -> dict[str, str]:
        """Return a file's trace ids by run id; the run id of a long trace id is a shortened form of it."""
        names = RunNames()
        found = guarded(self.spans(probe), probe.blob, [])
        traces = traces_in(probe.blob, probe.start, found, self.trace_of)
        return {names.name(trace): trace for trace in traces}


def traces_in(
    blob: Blob, start: int, spans: Iterator[RawRecord], trace_of: Callable[[Json], str]
) -> list[str]:
    """Return the ids of the traces in a file, in the order of the file.

    Most files contain one trace, which a search in the bytes finds much faster than decoding the spans.
    """
    seen: set[bytes] = set()
    at, kept = start, b""
    while len(seen) < 2 and (chunk := blob.read(at, limits.CHUNK)):
        seen |= set(_TRACE_ID.findall(kept + chunk))
        kept = chunk[-_OVERLAP:]
        at += len(chunk)
    if len(seen) == 1:
        return [trace for record in islice(spans, 1) for trace in [trace_of(record.fields)]]
    return list(dict.fromkeys(trace_of(record.fields) for record in spans if not record.damage))


def shown_text(value: Json) -> str:
    """Return an input or output of a span as text; empty for a conversation, which models' spans contain."""
    if isinstance(value, str):
        return value
    holds_messages = "messages" in as_dict(value) or any("role" in item for item in objects(value)[:1])
    return "" if value is None or holds_messages else compact(value)
