"""Reads spans of OpenTelemetry, as OTLP in JSON or one span per line, in any convention for models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeAlias

from gistpoint.core.text import whole_number
from gistpoint.sessions.formats.shared.calls import call_of_function
from gistpoint.sessions.formats.shared.message_parts import Parts, parts_of_message
from gistpoint.sessions.formats.shared.messages import role_of
from gistpoint.sessions.formats.traces._spans import SpanKind, TraceFormat, TraceReader, TraceSpan, shown_text
from gistpoint.sessions.records.model import CutText, Json, NotShown, Run, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, records_in
from gistpoint.sessions.records.scanning import (
    CutOffError,
    DamagedError,
    RawRecord,
    Scanner,
    array_records,
    guarded,
    lines,
    members,
)
from gistpoint.sessions.records.usage import counted_within
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    first,
    is_deep,
    joined,
    objects,
    when,
)

_FIRST_SPANS = 12
"""The number of spans in which the user's request is searched for."""
_PATH = ("resourceSpans", "scopeSpans", "spans")
_KINDS: dict[str, SpanKind] = {
    "llm": "model",
    "chat": "model",
    "text_completion": "model",
    "generate_content": "model",
    "completion": "model",
    "tool": "tool",
    "execute_tool": "tool",
    "agent": "agent",
    "invoke_agent": "agent",
    "create_agent": "agent",
    "workflow": "agent",
    "invoke_workflow": "agent",
}


class _Reader(TraceReader):
    format = "otel"

    def __init__(self, probe: FileProbe, trace: str) -> None:
        super().__init__(probe)
        self._trace = trace

    def span_records(self) -> Iterator[RawRecord]:
        for record in guarded(spans_in(self.probe), self.probe.blob, self.warnings):
            if record.damage or not self._trace or _trace_of(as_dict(record.fields)) == self._trace:
                yield record

    def decoded(self, value: Json) -> Json:
        span = as_dict(value)
        if span.get("decoded"):
            return value
        events = [
            {**event, "attributes": _attributes(event.get("attributes"))}
            for event in objects(span.get("events"))
        ]
        more: dict[str, Json] = {"events": list[Json](events)} if events else {}
        return {**span, **more, "attributes": _attributes(span.get("attributes")), "decoded": True}

    def span(self, values: Sequence[dict[str, Json]]) -> TraceSpan:
        value = Record(self.decoded(values[0]))
        attributes = value.inner("attributes")
        found = TraceSpan(
            as_str(value.first("spanId", "span_id") or value.get("context", "span_id")),
            value.first_word("parentSpanId", "parent_id", "parent_span_id"),
            _kind(attributes, value.word("name")),
            value.word("name"),
            _time(value.first("startTimeUnixNano", "start_time")),
            _time(value.first("endTimeUnixNano", "end_time")),
            error=_error(value),
        )
        if found.kind == "model":
            _fill_model(found, attributes, value.objects("events"))
        elif found.kind == "tool":
            _fill_tool(found, attributes)
        else:
            given = [shown_text(attributes.get(key, "value")) for key in ("input", "output")]
            given += [shown_text(attributes.get("traceloop", "entity", key)) for key in ("input", "output")]
            found.text = joined(given)
        return found

    def early_user_texts(self) -> Iterator[str]:
        for record in islice(guarded(spans_in(self.probe), self.probe.blob, []), _FIRST_SPANS):
            if record.damage or is_deep(record.fields):
                continue
            fields = as_dict(record.fields)
            if fields and self._trace in ("", _trace_of(fields)):
                asked = self.span([fields]).asked
                yield from (_parts(message).text for message in asked if role_of(message) == "user")

    def header(self) -> Run:
        return Run(
            self.format,
            id=self._trace,
            task=self.request,
            model=self.tally.model,
            exit_status=self.ending,
            tokens=self.tally.tokens,
            cost=self.tally.cost,
            started=self.tally.started,
            duration_s=self.tally.duration_s,
            extra={"models": [*self.tally.models]} if len(self.tally.models) > 1 else {},
            derived=frozenset({"task", "tokens", "cost", "exit_status"}),
        )


def _parts(message: dict[str, Json]) -> Parts:
    return parts_of_message(message.get("content"))


def spans_in(probe: FileProbe) -> Iterator[RawRecord]:
    """Yield the spans of a file, in the order of the file. Raises `UnreadableError` at damaged text."""
    blob = probe.blob
    if "resourceSpans" not in probe.opening.members:
        yield from array_records(blob, probe.start, None) if probe.array else lines(blob, probe.start)
        return
    # A file contains one such object, one in each line, or an array of them.
    scanner = Scanner(blob, probe.start)
    if scanner.peek() == "[":
        yield from _each(scanner, _PATH)
        return
    while scanner.peek().strip("\0"):
        yield from _below(scanner, _PATH)


def _below(scanner: Scanner, path: Sequence[str]) -> Iterator[RawRecord]:
    """Yield the elements at the end of a path through arrays, from the object at the scanner's position."""
    for key, _, _, _ in members(scanner, lambda _: True):
        if key != path[0] or scanner.peek() != "[":
            scanner.skip()
        elif len(path) == 1:
            yield from scanner.elements()
        else:
            yield from _each(scanner, path[1:])


def _each(scanner: Scanner, path: Sequence[str]) -> Iterator[RawRecord]:
    scanner.take("[")
    if scanner.take("]"):
        return
    while True:
        yield from _below(scanner, path)
        if scanner.take("]"):
            return
        if not scanner.take(","):
            raise DamagedError(scanner.position) if scanner.peek() else CutOffError(scanner.position)


def _trace_of(span: dict[str, Json]) -> str:
    return as_str(first(span, "traceId", "trace_id") or as_dict(span.get("context")).get("trace_id"))


def _attributes(value: Json) -> dict[str, Json]:
    """Return attributes as an object: keys with dots are nested, and numbered keys become lists."""
    if isinstance(value, list):
        value = {as_str(item.get("key")): _value(item.get("value")) for item in objects(value)}
    tree: dict[str, Json] = {}
    for key, item in as_dict(value).items():
        *outer, last = key.split(".")
        at = tree
        for name in outer:
            at = _branch(at, name)
        known = at.get(last)
        if isinstance(known, dict) and not isinstance(item, dict):
            known[""] = item
        else:
            at[last] = _parsed(item)
    return as_dict(_listed(tree))


def _branch(at: dict[str, Json], name: str) -> dict[str, Json]:
    """Return the object below a name; a value that is already there is kept under the empty key.

    This happens if both `a` and `a.b` are attributes.
    """
    known = at.get(name)
    inner: dict[str, Json] = known if isinstance(known, dict) else {} if known is None else {"": known}
    at[name] = inner
    return inner


def _listed(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    inner = {key: _listed(item) for key, item in value.items()}
    # OpenInference and OpenLLMetry write a list as numbered attributes, one for each element.
    if inner and all(key.isdecimal() and len(key) < 7 for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner


def _value(value: Json) -> Json:
    """Return the value of an OTLP attribute: an object whose only key is the type of its value."""
    holder = as_dict(value)
    if not holder:
        return value
    kind, item = next(iter(holder.items()))
    listed = objects(as_dict(item).get("values"))
    match kind:
        case "arrayValue":
            return [_value(one) for one in as_list(as_dict(item).get("values"))]
        case "kvlistValue":
            return {as_str(one.get("key")): _value(one.get("value")) for one in listed}
        case "intValue":
            # JSON numbers can't hold every 64-bit integer, so OTLP writes integers as strings.
            number = whole_number(item.removeprefix("-")) if isinstance(item, str) else None
            if number is not None:
                return -number if as_str(item).startswith("-") else number
    return item


def _parsed(value: Json) -> Json:
    """Return the object or list in a JSON string; any other value unchanged."""
    if not isinstance(value, str) or isinstance(value, CutText):
        return value
    if value[:1] not in ("{", "["):
        return value
    try:
        found: Json = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value
    return found if isinstance(found, dict | list) and not is_deep(found) else value


_KIND_PATHS = (
    ("openinference", "span", "kind"),
    ("gen_ai", "operation", "name"),
    ("traceloop", "span", "kind"),
    ("llm", "request", "type"),
)
"""The attribute in which each convention names the kind of a span."""


def _kind(attributes: Record, name: str) -> SpanKind:
    for path in _KIND_PATHS:
        kind = _KINDS.get(attributes.word(*path).lower())
        if kind is not None:
            return kind
    # The AI SDK names the kind in an attribute that has nested attributes.
    operation = as_str(attributes.get("ai", "operationId", "") or attributes.get("ai", "operationId")) or name
    if operation == "ai.toolCall":
        return "tool"
    if operation.startswith("ai."):
        return "model" if ".do" in operation else "agent"
    return "model" if attributes.get("gen_ai", "request", "model") else "other"


def _time(value: Json) -> float | None:
    if isinstance(value, str) and value.isdecimal():
        nanoseconds = whole_number(value)
        return None if nanoseconds is None else when(nanoseconds / 1e9)
    number = as_float(value)
    # A number of this size can only be in nanoseconds.
    if number is not None and number > 1e17:
        return when(number / 1e9)
    return when(value)


def _error(value: Record) -> str:
    status = value.inner("status")
    code = as_str(status.first("code", "status_code") or value.get("status_code"))
    if code not in ("2", "STATUS_CODE_ERROR", "ERROR"):
        return ""
    raised = [event.inner("attributes", "exception") for event in value.objects("events")]
    message = as_text(status.first("message", "description") or value.get("status_message"))
    return joined([message, *(joined(one.texts("type", "message"), ": ") for one in raised)]) or "error"


def _fill_model(found: TraceSpan, attributes: Record, events: list[Record]) -> None:
    """Read the messages, tokens and cost of a model's span, from any convention's attributes."""
    found.asked, found.replied = _messages_in(attributes)
    for event in events:
        _add_event(found, event)
    sent, reply = attributes.get("input", "value"), attributes.get("output", "value")
    if sent is not None and not found.asked:
        found.asked = objects(as_dict(sent).get("messages")) or [{"role": "user", "content": sent}]
    if reply is not None and not found.replied:
        choices = [choice.inner("message").members for choice in Record(reply).objects("choices")]
        found.replied = choices or [{"role": "assistant", "content": as_dict(reply).get("content", reply)}]
    found.tokens = _tokens(attributes)
    found.cost = attributes.number("llm", "cost", "total")
    models = (attributes.get(*path) for path in _MODEL_PATHS)
    found.model = as_str(next(filter(None, models), None))


_MODEL_PATHS = (
    ("llm", "model_name"),
    ("gen_ai", "response", "model"),
    ("gen_ai", "request", "model"),
    ("ai", "model", "id"),
)


def _messages_in(attributes: Record) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    """Return the messages sent to a model, and the messages of its reply, from a span's attributes."""
    asked = [_inferred(item.inner("message").members) for item in attributes.objects("llm", "input_messages")]
    replied = [
        _inferred(item.inner("message").members) for item in attributes.objects("llm", "output_messages")
    ]
    gen = attributes.inner("gen_ai")
    system = gen.get("system_instructions")
    if system:
        asked.append(_of_parts({"role": "system", "parts": system}))
    asked += map(_of_parts, objects(gen.get("input", "messages")))
    replied += map(_of_parts, objects(gen.get("output", "messages")))
    asked += map(_chat, objects(gen.get("prompt")))
    replied += map(_chat, objects(gen.get("completion")))
    asked += objects(attributes.get("ai", "prompt", "messages"))
    response = attributes.inner("ai", "response")
    if response.get("text") or response.get("toolCalls"):
        made = list[Json](map(_vercel_call, response.objects("toolCalls")))
        replied.append({"role": "assistant", "content": response.get("text"), "tool_calls": made})
    return asked, replied


def _vercel_call(item: Record) -> dict[str, Json]:
    return {
        "id": item.get("toolCallId"),
        "name": item.get("toolName"),
        "arguments": item.first("input", "args"),
    }


def _add_event(found: TraceSpan, event: Record) -> None:
    """Add the message in an event of the span, as in the first version of the GenAI convention."""
    name = event.word("name")
    facts = event.inner("attributes")
    body = {**facts.members, **facts.inner("gen_ai", "event").members, **event.inner("body").members}
    if name == "gen_ai.choice":
        found.replied.append(_chat({"role": "assistant", **as_dict(body.get("message") or body)}))
    elif name.startswith("gen_ai.") and name.endswith(".message"):
        role = "tool" if name == "gen_ai.tool.message" else name[7:].partition(".")[0]
        found.asked.append(_chat({"role": role, "tool_call_id": body.get("id"), **body}))


def _tokens(attributes: Record) -> Tokens:
    counts, usage = attributes.inner("llm", "token_count"), attributes.inner("gen_ai", "usage")
    read = usage.first("cache_read_input_tokens") or usage.get("cache_read", "input_tokens")
    written = usage.first("cache_creation_input_tokens") or usage.get("cache_creation", "input_tokens")
    return counted_within(
        _count(counts.get("prompt")) or as_int(usage.first("input_tokens", "prompt_tokens")),
        _count(counts.get("completion")) or as_int(usage.first("output_tokens", "completion_tokens")),
        read=counts.whole("prompt_details", "cache_read") or as_int(read),
        written=counts.whole("prompt_details", "cache_write") or as_int(written),
        reasoning=counts.whole("completion_details", "reasoning"),
        whole=_count(counts.get("total")) or as_int(usage.get("total_tokens")),
    )


def _count(value: Json) -> int | None:
    return as_int(value.get("") if isinstance(value, dict) else value)


def _inferred(message: dict[str, Json]) -> dict[str, Json]:
    """Return a message of OpenInference in the form of chat APIs."""
    record = Record(message)
    parts: list[Json] = []
    for item in record.objects("contents"):
        part = item.inner("message_content")
        address = {"image_url": part.get("image", "image", "url")} if part.get("type") == "image" else {}
        parts.append({**part.members, **address})
    calls: list[Json] = [item.inner("tool_call").members for item in record.objects("tool_calls")]
    return {**message, "content": message.get("content", parts), "tool_calls": calls}


def _of_parts(message: dict[str, Json]) -> dict[str, Json]:
    """Return a message of the GenAI convention, which has typed parts, in the form of chat APIs."""
    content_parts: list[Json] = []
    calls: list[Json] = []
    answers: list[Json] = []
    for part in records_in(message.get("parts")):
        content = part.get("content")
        match part.word("type"):
            case "tool_call":
                calls.append(
                    {"id": part.get("id"), "name": part.get("name"), "arguments": part.get("arguments")}
                )
            case "tool_call_response":
                response = part.first("response", "result")
                answers.append({"type": "tool_result", "tool_use_id": part.get("id"), "content": response})
            case "reasoning" | "thinking":
                content_parts.append({"type": "thinking", "thinking": content})
            case "text":
                content_parts.append({"type": "text", "text": content})
            case _:
                content_parts.append(part.members)
    return {**Record(message).without("parts"), "content": [*content_parts, *answers], "tool_calls": calls}


def _chat(message: dict[str, Json]) -> dict[str, Json]:
    """Return a message without null members, in which content that is JSON within a string is decoded."""
    return {
        key: _parsed(value) if key == "content" else value
        for key, value in message.items()
        if value is not None
    }


def _fill_tool(found: TraceSpan, attributes: Record) -> None:
    """Read the call and the result of a tool's span."""
    arguments = _first_of(attributes, _ARGUMENT_PATHS)
    identity, name = _first_of(attributes, _ID_PATHS), _first_of(attributes, _NAME_PATHS)
    # A tool's span may have no arguments; the call then has none, rather than an empty object.
    call = call_of_function(
        {"id": as_str(identity), "name": as_str(name) or found.name, "arguments": arguments}
    )
    found.call = call if arguments is not None else replace(call, arguments="")
    found.output = as_text(_first_of(attributes, _RESULT_PATHS))


_Paths: TypeAlias = Sequence[tuple[str, ...]]
_ARGUMENT_PATHS: _Paths = (
    ("gen_ai", "tool", "call", "arguments"),
    ("ai", "toolCall", "args"),
    ("tool", "parameters"),
    ("input", "value"),
    ("traceloop", "entity", "input"),
)
"""The attributes with a call's arguments, type-preserving ones first."""
_RESULT_PATHS: _Paths = (
    ("gen_ai", "tool", "call", "result"),
    ("ai", "toolCall", "result"),
    ("output", "value"),
    ("traceloop", "entity", "output"),
)
_ID_PATHS: _Paths = (
    ("tool", "id"),
    ("gen_ai", "tool", "call", "id"),
    ("tool_call", "id"),
    ("ai", "toolCall", "id"),
)
_NAME_PATHS: _Paths = (
    ("tool", "name"),
    ("gen_ai", "tool", "name"),
    ("ai", "toolCall", "name"),
    ("traceloop", "entity", "name"),
)


def _first_of(attributes: Record, paths: _Paths) -> Json:
    """Return the first value at these paths that is neither missing nor empty; None if there is none."""
    found = (attributes.get(*path) for path in paths)
    return next((value for value in found if value not in (None, "", [], {})), None)


class Otel(TraceFormat):
    """Recognised by `resourceSpans`, or by spans with ids, a name and attributes."""

    name = "otel"
    words_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            (
                "attributes.llm.input_messages",
                "attributes.gen_ai.input",
                "attributes.gen_ai.system_instructions",
                "attributes.gen_ai.prompt",
                "attributes.ai.prompt",
                "attributes.input",
                "attributes.llm.prompts",
            ),
            "the messages that each call to a model repeats; a new message is a separate step",
        ),
        NotShown(
            ("attributes.output", "attributes.ai.response", "attributes.gen_ai.completion"),
            "the provider's own form of a reply or a result that is in the step",
        ),
        NotShown(
            (
                "attributes.llm.tools",
                "attributes.gen_ai.tool.definitions",
                "attributes.llm.invocation_parameters",
                "attributes.llm.request",
                "attributes.gen_ai.request",
                "attributes.ai.settings",
            ),
            "settings of the request, and the tools offered to the model",
        ),
        NotShown(
            (
                "attributes.openinference",
                "attributes.llm.system",
                "attributes.llm.provider",
                "status.code",
                "status.status_code",
                "flags",
                "startTimeUnixNano",
                "endTimeUnixNano",
                "start_time",
                "end_time",
                "attributes.gen_ai.system",
                "attributes.gen_ai.provider",
                "attributes.gen_ai.operation",
                "context",
            ),
            "what kind of span it is, and whose model",
        ),
        NotShown(
            ("resource", "scope", "schemaUrl"),
            "the program and the library that recorded a span",
            of_run=True,
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        opening = probe.opening
        if opening.has("resourceSpans"):
            return 1.0
        is_span = opening.inner("context").has("span_id") or opening.has_all("traceId", "spanId")
        return 1.0 if is_span and opening.has_all("attributes", "name") else 0.0

    def spans(self, probe: FileProbe) -> Iterator[RawRecord]:
        """Yield the spans of all traces in a file."""
        return spans_in(probe)

    def trace_of(self, fields: Json) -> str:
        """Return the id of the trace that a span belongs to; empty if the span names none."""
        return _trace_of(as_dict(fields))

    def reader(self, probe: FileProbe, trace: str) -> _Reader:
        """Return a reader of a trace, or of all spans if `trace` is empty."""
        return _Reader(probe, trace)


FORMAT = Otel()
