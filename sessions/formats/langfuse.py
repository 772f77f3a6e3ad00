"""Traces exported from Langfuse: observations of a trace, whose input and output may be JSON within a text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats._traces import SpanKind, TraceReader, TraceSpan, plain
from gistpoint.sessions.formats.calls import call_of_function
from gistpoint.sessions.records.format import SingleRun
from gistpoint.sessions.records.model import CutText, Json, NotShown, Run, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.scanning import RawRecord, guarded, object_records
from gistpoint.sessions.records.values import as_dict, as_float, as_int, as_str, as_text, first, is_deep, objects, when

_KINDS: dict[str, SpanKind] = {"GENERATION": "model", "TOOL": "tool", "AGENT": "agent"}


class _Reader(TraceReader):
    format = "langfuse"
    arrays = ("observations",)

    def found(self) -> Iterator[RawRecord]:
        blob = self.probe.blob
        return guarded(object_records(blob, self.probe.start, self.arrays, self.facts, None), blob, self.warnings)

    def decoded(self, value: Json) -> Json:
        fields = ("input", "output", "metadata")
        return {key: decoded_text(item) if key in fields else item for key, item in as_dict(value).items()}

    def span(self, values: Sequence[dict[str, Json]]) -> TraceSpan:
        value = as_dict(self.decoded(values[0]))
        given, back = value.get("input"), value.get("output")
        usage = {**as_dict(value.get("usage")), **as_dict(value.get("usageDetails"))}
        spent = as_dict(value.get("costDetails"))
        level, told = as_str(value.get("level")), as_text(value.get("statusMessage"))
        found = TraceSpan(
            as_str(value.get("id")),
            as_str(value.get("parentObservationId")),
            _KINDS.get(as_str(value.get("type")), "other"),
            as_str(value.get("name")),
            when(value.get("startTime")),
            when(value.get("endTime")),
            model=as_str(value.get("model")),
            cost=as_float(spent.get("total")) if "total" in spent else None,
            tokens=Tokens(
                as_int(first(usage, "input", "promptTokens")),
                as_int(first(usage, "output", "completionTokens")),
                as_int(first(usage, "input_cached_tokens", "cache_read_input_tokens")),
                as_int(first(usage, "output_reasoning_tokens", "reasoning_tokens")),
            ),
            error=(told or "error") if level == "ERROR" else "",
        )
        if found.kind == "model":
            found.asked, found.replied = asked_of(given), replied_of(back)
        elif found.kind == "tool":
            arguments = first(as_dict(given), "args", "arguments", "input") or given
            identity = as_str(first(as_dict(given), "id", "toolCallId", "tool_call_id"))
            found.call = call_of_function({"id": identity, "name": found.name, "arguments": arguments})
            found.output = plain(back)
        found.text = "\n".join(text for text in (plain(given), plain(back)) if text)
        return found

    def header(self) -> Run:
        trace = as_dict(self.fact("trace"))
        scores = {as_str(item.get("name")): item.get("value") for item in objects(trace.get("scores"))}
        extra: dict[str, Json] = {"scores": dict[str, Json](scores)} if scores else {}
        return Run(
            self.format,
            as_str(trace.get("version")),
            id=as_str(trace.get("id")),
            task=as_str(trace.get("name")),
            model=self.models[0] if self.models else "",
            exit_status=self.ending,
            tokens=self.totals.tokens,
            cost=self.totals.cost,
            started=self.times[0] if self.times else when(trace.get("timestamp")),
            duration_s=self.times[1] - self.times[0] if self.times else None,
            extra={**extra, **({"sessionId": trace["sessionId"]} if trace.get("sessionId") else {})},
            derived=frozenset({"tokens", "cost", "duration_s", "exit_status"}),
        )


def decoded_text(value: Json) -> Json:
    """Return the value that a text is as JSON, else the text."""
    if not isinstance(value, str) or isinstance(value, CutText) or value[:1] not in ("{", "[", '"'):
        return value
    try:
        found: Json = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value
    return decoded_text(found) if isinstance(found, str) else value if is_deep(found) else found


def asked_of(given: Json) -> list[dict[str, Json]]:
    """Return the messages that a model was sent: a list, an object with one and a system prompt, or a text."""
    holder = as_dict(given)
    listed = objects(given) or objects(first(holder, "messages", "input"))
    if listed and isinstance(given, dict):
        system = first(holder, "system", "instructions")
        prompt: dict[str, Json] = {"role": "system", "content": system}
        return [prompt, *listed] if system else listed
    if listed:
        return listed
    if "role" in holder:
        return [holder]
    return [] if given is None else [{"role": "user", "content": first(holder, "prompt", "text") or given}]


def replied_of(back: Json) -> list[dict[str, Json]]:
    """Return the messages of a reply."""
    if isinstance(back, list):
        if all(as_str(item.get("type")) for item in objects(back)) and not any(
            "role" in item for item in objects(back)
        ):
            return [{"role": "assistant", "content": back}]
        return objects(back)
    holder = as_dict(back)
    choices = [as_dict(item.get("message")) for item in objects(holder.get("choices"))]
    if choices:
        return choices
    if "role" in holder:
        return [holder]
    calls = first(holder, "toolCalls", "tool_calls")
    if calls or "text" in holder:
        return [{"role": "assistant", "content": holder.get("text"), "tool_calls": decoded_text(calls)}]
    return [] if back is None else [{"role": "assistant", "content": back}]


class Langfuse(SingleRun):
    """Recognised by a `trace` and its `observations`."""

    name = "langfuse"
    unique_ids = True
    words_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("input",), "what each call of a model sends again; a message that is new is a step of its own"),
        NotShown(
            ("metadata", "modelParameters", "promptName", "environment", "level", "projectId", "internalModel"),
            "settings, what the model could call, and counts of Langfuse; tokens and cost are shown",
        ),
        NotShown(("startTime", "endTime", "completionStartTime"), "times, which head the step"),
        NotShown(
            ("trace.input", "trace.output", "trace.metadata", "trace.environment", "trace.projectId"),
            "what the outermost observation was given and gave back, which is in the steps",
            of_run=True,
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        listed = isinstance(probe.object.get("observations"), list)
        return 1.0 if listed and ("trace" in probe.object or "traceId" in as_dict(_opening(probe))) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the trace."""
        return _Reader(probe)


def _opening(probe: FileProbe) -> Json:
    listed = objects(probe.object.get("observations"))
    return listed[0] if listed else None


FORMAT = Langfuse()
