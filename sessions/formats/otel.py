"""Spans of OpenTelemetry, as OTLP in JSON or a span in a line, with the attributes of any of the conventions in use.

Conventions: GenAI (`gen_ai.*`, with messages in attributes or in events), OpenInference (`llm.*`), OpenLLMetry
(`gen_ai.prompt.N`, `traceloop.*`) and the Vercel AI SDK (`ai.*`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from gistpoint.sessions.formats._traces import SpanKind, TraceFormat, TraceReader, TraceSpan, plain
from gistpoint.sessions.formats.calls import call_of_function
from gistpoint.sessions.formats.messages import parts_of_message, role_of
from gistpoint.sessions.records.model import CutText, Json, NotShown, Run, Tokens
from gistpoint.sessions.records.probe import FileProbe
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
"""Spans in which the user's request is looked for."""
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

    def found(self) -> Iterator[RawRecord]:
        for record in guarded(spans_in(self.probe), self.probe.blob, self.warnings):
            if record.damage or not self._trace or _trace_of(as_dict(record.fields)) == self._trace:
                yield record

    def decoded(self, value: Json) -> Json:
        span = as_dict(value)
        if span.get("decoded"):
            return value
        events = [
            {**event, "attributes": _attributes(event.get("attributes"))} for event in objects(span.get("events"))
        ]
        more: dict[str, Json] = {"events": list[Json](events)} if events else {}
        return {**span, **more, "attributes": _attributes(span.get("attributes")), "decoded": True}

    def span(self, values: Sequence[dict[str, Json]]) -> TraceSpan:
        value = as_dict(self.decoded(values[0]))
        attributes = as_dict(value.get("attributes"))
        context = as_dict(value.get("context"))
        found = TraceSpan(
            as_str(first(value, "spanId", "span_id") or context.get("span_id")),
            as_str(first(value, "parentSpanId", "parent_id", "parent_span_id")),
            _kind(attributes, as_str(value.get("name"))),
            as_str(value.get("name")),
            _time(first(value, "startTimeUnixNano", "start_time")),
            _time(first(value, "endTimeUnixNano", "end_time")),
            error=_error(value),
        )
        if found.kind == "model":
            _fill_model(found, attributes, objects(value.get("events")))
        elif found.kind == "tool":
            _fill_tool(found, attributes)
        else:
            given = [plain(as_dict(attributes.get(key)).get("value")) for key in ("input", "output")]
            entity = as_dict(as_dict(attributes.get("traceloop")).get("entity"))
            given += [plain(entity.get(key)) for key in ("input", "output")]
            found.text = joined(given)
        return found

    def asked(self) -> Iterator[str]:
        for record in islice(guarded(spans_in(self.probe), self.probe.blob, []), _FIRST_SPANS):
            fields = {} if record.damage or is_deep(record.fields) else as_dict(record.fields)
            if fields and self._trace in ("", _trace_of(fields)):
                for message in self.span([fields]).asked:
                    if role_of(message) == "user":
                        yield joined(parts_of_message(message.get("content")).texts)

    def header(self) -> Run:
        return Run(
            self.format,
            id=self._trace,
            task=self.request,
            model=self.models[0] if self.models else "",
            exit_status=self.ending,
            tokens=self.totals.tokens,
            cost=self.totals.cost,
            started=self.times[0] if self.times else None,
            duration_s=self.times[1] - self.times[0] if self.times else None,
            extra={"models": list(self.models)} if len(self.models) > 1 else {},
            derived=frozenset({"task", "tokens", "cost", "exit_status"}),
        )


def spans_in(probe: FileProbe) -> Iterator[RawRecord]:
    """Yield the spans of a file, in its order."""
    blob = probe.blob
    if "resourceSpans" not in as_dict((probe.array or probe.lines or [probe.object])[0]):
        yield from array_records(blob, probe.start, None) if probe.array else lines(blob, probe.start)
        return
    scanner = Scanner(blob, probe.start)
    if scanner.peek() == "[":
        yield from _each(scanner, _PATH)
        return
    while scanner.peek().strip("\0"):
        yield from _below(scanner, _PATH)


def _below(scanner: Scanner, path: Sequence[str]) -> Iterator[RawRecord]:
    """Yield the elements at the end of a path of arrays, from the object at the position."""
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
    """Return attributes as an object: keys with dots are nested, those with numbers are lists."""
    if isinstance(value, list):
        value = {as_str(item.get("key")): _value(item.get("value")) for item in objects(value)}
    tree: dict[str, Json] = {}
    for key, item in as_dict(value).items():
        at, names = tree, key.split(".")
        for name in names[:-1]:
            old = at.get(name)
            inner: dict[str, Json] = as_dict(old) if isinstance(old, dict) or old is None else {"": old}
            at[name] = inner
            at = inner
        known = at.get(names[-1])
        if isinstance(known, dict) and not isinstance(item, dict):
            known[""] = item
        else:
            at[names[-1]] = _parsed(item)
    return as_dict(_listed(tree))


def _listed(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    inner = {key: _listed(item) for key, item in value.items()}
    if inner and all(key.isdecimal() and len(key) < 7 for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner


def _value(value: Json) -> Json:
    """Return the value of an attribute of OTLP."""
    holder = as_dict(value)
    for key, item in holder.items():
        if key == "arrayValue":
            return [_value(one) for one in as_list(as_dict(item).get("values"))]
        if key == "kvlistValue":
            return {as_str(one.get("key")): _value(one.get("value")) for one in objects(as_dict(item).get("values"))}
        if key == "intValue":
            return int(item) if isinstance(item, str) and item.lstrip("-").isdecimal() and len(item) < 20 else item
        return item
    return value if not holder else None


def _parsed(value: Json) -> Json:
    """Return the object or list that a text is as JSON, else the value."""
    if not isinstance(value, str) or isinstance(value, CutText) or value[:1] not in ("{", "["):
        return value
    try:
        found: Json = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value
    return found if isinstance(found, dict | list) and not is_deep(found) else value


def _kind(attributes: dict[str, Json], name: str) -> SpanKind:
    named = [
        as_dict(as_dict(attributes.get("openinference")).get("span")).get("kind"),
        as_dict(as_dict(attributes.get("gen_ai")).get("operation")).get("name"),
        as_dict(as_dict(attributes.get("traceloop")).get("span")).get("kind"),
        as_dict(as_dict(attributes.get("llm")).get("request")).get("type"),
    ]
    for value in named:
        kind = _KINDS.get(as_str(value).lower())
        if kind is not None:
            return kind
    operation = (
        as_str(
            as_dict(as_dict(attributes.get("ai")).get("operationId")).get("")
            or as_dict(attributes.get("ai")).get("operationId")
        )
        or name
    )
    if operation.startswith("ai."):
        return "tool" if operation == "ai.toolCall" else "model" if ".do" in operation else "agent"
    if as_dict(as_dict(attributes.get("gen_ai")).get("request")).get("model"):
        return "model"
    return "other"


def _time(value: Json) -> float | None:
    if isinstance(value, str) and value.isdecimal():
        return when(int(value) / 1e9) if len(value) < 20 else None
    number = as_float(value)
    return when(number / 1e9 if number is not None and number > 1e17 else value)


def _error(value: dict[str, Json]) -> str:
    status = as_dict(value.get("status"))
    code = as_str(first(status, "code", "status_code") or value.get("status_code"))
    raised = [as_dict(as_dict(event.get("attributes")).get("exception")) for event in objects(value.get("events"))]
    told = as_text(first(status, "message", "description") or value.get("status_message"))
    told = joined([told, *(joined([as_text(item.get("type")), as_text(item.get("message"))], ": ") for item in raised)])
    return (told or "error") if code in ("2", "STATUS_CODE_ERROR", "ERROR") else ""


def _fill_model(found: TraceSpan, attributes: dict[str, Json], events: list[dict[str, Json]]) -> None:
    """Read the messages, tokens and cost of a model's span."""
    llm, gen, ai = (as_dict(attributes.get(key)) for key in ("llm", "gen_ai", "ai"))
    asked = [_inferred(as_dict(item.get("message"))) for item in objects(llm.get("input_messages"))]
    replied = [_inferred(as_dict(item.get("message"))) for item in objects(llm.get("output_messages"))]
    told = gen.get("system_instructions")
    asked += [_of_parts({"role": "system", "parts": told})] if told else []
    asked += [_of_parts(item) for item in objects(as_dict(gen.get("input")).get("messages"))]
    replied += [_of_parts(item) for item in objects(as_dict(gen.get("output")).get("messages"))]
    asked += [_chat(item) for item in objects(gen.get("prompt"))]
    replied += [_chat(item) for item in objects(gen.get("completion"))]
    asked += objects(as_dict(ai.get("prompt")).get("messages"))
    response = as_dict(ai.get("response"))
    if response.get("text") or response.get("toolCalls"):
        made: list[Json] = [
            {"id": item.get("toolCallId"), "name": item.get("toolName"), "arguments": first(item, "input", "args")}
            for item in objects(response.get("toolCalls"))
        ]
        replied.append({"role": "assistant", "content": response.get("text"), "tool_calls": made})
    for event in events:
        name = as_str(event.get("name"))
        told = as_dict(event.get("attributes"))
        body = {**told, **as_dict(as_dict(told.get("gen_ai")).get("event")), **as_dict(event.get("body"))}
        role = {"gen_ai.tool.message": "tool", "gen_ai.choice": "assistant"}.get(name, name[7:].partition(".")[0])
        if name == "gen_ai.choice":
            replied.append(_chat({"role": role, **as_dict(body.get("message") or body)}))
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            asked.append(_chat({"role": role, "tool_call_id": body.get("id"), **body}))
    given, back = (as_dict(attributes.get(key)).get("value") for key in ("input", "output"))
    if not asked and given is not None:
        asked = objects(as_dict(given).get("messages")) or [{"role": "user", "content": given}]
    if not replied and back is not None:
        choices = [as_dict(item.get("message")) for item in objects(as_dict(back).get("choices"))]
        replied = choices or [{"role": "assistant", "content": as_dict(back).get("content", back)}]
    found.asked, found.replied = asked, replied
    counts, usage = as_dict(llm.get("token_count")), as_dict(gen.get("usage"))
    found.tokens = Tokens(
        _count(counts.get("prompt")) or as_int(first(usage, "input_tokens", "prompt_tokens")),
        _count(counts.get("completion")) or as_int(first(usage, "output_tokens", "completion_tokens")),
        as_int(as_dict(counts.get("prompt_details")).get("cache_read"))
        or as_int(first(usage, "cache_read_input_tokens") or as_dict(usage.get("cache_read")).get("input_tokens")),
        as_int(as_dict(counts.get("completion_details")).get("reasoning")),
    )
    found.cost = as_float(as_dict(llm.get("cost")).get("total"))
    found.model = as_str(
        llm.get("model_name")
        or as_dict(gen.get("response")).get("model")
        or as_dict(gen.get("request")).get("model")
        or as_dict(ai.get("model")).get("id")
    )


def _count(value: Json) -> int | None:
    return as_int(as_dict(value).get("") if isinstance(value, dict) else value)


def _inferred(message: dict[str, Json]) -> dict[str, Json]:
    """Return a message of OpenInference as one of a chat."""
    contents = [as_dict(item.get("message_content")) for item in objects(message.get("contents"))]
    parts: list[Json] = [
        {**item, "image_url": as_dict(as_dict(item.get("image")).get("image")).get("url")}
        if item.get("type") == "image"
        else item
        for item in contents
    ]
    calls: list[Json] = [as_dict(item.get("tool_call")) for item in objects(message.get("tool_calls"))]
    return {**message, "content": message.get("content", parts), "tool_calls": calls}


def _of_parts(message: dict[str, Json]) -> dict[str, Json]:
    """Return a message of the GenAI convention, with typed parts, as one of a chat."""
    texts: list[Json] = []
    calls: list[Json] = []
    answers: list[dict[str, Json]] = []
    for part in objects(message.get("parts")):
        kind = as_str(part.get("type"))
        if kind == "tool_call":
            calls.append({"id": part.get("id"), "name": part.get("name"), "arguments": part.get("arguments")})
        elif kind == "tool_call_response":
            answers.append(
                {"type": "tool_result", "tool_use_id": part.get("id"), "content": first(part, "response", "result")}
            )
        elif kind in ("reasoning", "thinking"):
            texts.append({"type": "thinking", "thinking": part.get("content")})
        elif kind == "text":
            texts.append({"type": "text", "text": part.get("content")})
        else:
            texts.append(part)
    return {
        **{key: value for key, value in message.items() if key != "parts"},
        "content": list[Json]([*texts, *answers]),
        "tool_calls": calls,
    }


def _chat(message: dict[str, Json]) -> dict[str, Json]:
    """Return a message whose content may be JSON within a text."""
    return {key: _parsed(value) if key == "content" else value for key, value in message.items() if value is not None}


def _fill_tool(found: TraceSpan, attributes: dict[str, Json]) -> None:
    """Read the call and the result of a tool's span."""
    tool, gen = as_dict(attributes.get("tool")), as_dict(as_dict(attributes.get("gen_ai")).get("tool"))
    vercel = as_dict(as_dict(attributes.get("ai")).get("toolCall"))
    entity = as_dict(as_dict(attributes.get("traceloop")).get("entity"))
    inner = as_dict(gen.get("call"))
    given, back = (as_dict(attributes.get(key)).get("value") for key in ("input", "output"))
    arguments = first(
        {
            "a": inner.get("arguments"),
            "b": vercel.get("args"),
            "c": tool.get("parameters"),
            "d": given,
            "e": entity.get("input"),
        },
        "a",
        "b",
        "c",
        "d",
        "e",
    )
    result = first(
        {"a": inner.get("result"), "b": vercel.get("result"), "c": back, "d": entity.get("output")}, "a", "b", "c", "d"
    )
    identity = as_str(
        first(tool, "id")
        or inner.get("id")
        or as_dict(as_dict(attributes.get("tool_call"))).get("id")
        or vercel.get("id")
    )
    name = as_str(tool.get("name") or gen.get("name") or vercel.get("name") or entity.get("name")) or found.name
    call = call_of_function({"id": identity, "name": name, "arguments": arguments})
    found.call = call if arguments is not None else replace(call, arguments="")
    found.output = as_text(result)


class Otel(TraceFormat):
    """Recognised by `resourceSpans`, or by spans with a context and attributes."""

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
            "what each call of a model sends again; a message that is new is a step of its own",
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
            "settings of the request, and what the model could call",
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
        NotShown(("resource", "scope", "schemaUrl"), "the program and the library that recorded a span", of_run=True),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        opening = as_dict((probe.array or probe.lines or [probe.object])[0])
        if "resourceSpans" in opening:
            return 1.0
        is_span = "span_id" in as_dict(opening.get("context")) or {"traceId", "spanId"} <= opening.keys()
        return 1.0 if is_span and {"attributes", "name"} <= opening.keys() else 0.0

    def spans(self, probe: FileProbe) -> Iterator[RawRecord]:
        """Yield the spans of a file, of whatever trace."""
        return spans_in(probe)

    def trace_of(self, fields: Json) -> str:
        """Return the id of the trace that a span belongs to."""
        return _trace_of(as_dict(fields))

    def reader(self, probe: FileProbe, trace: str) -> _Reader:
        """Open a trace."""
        return _Reader(probe, trace)


FORMAT = Otel()
