"""Traces exported from Langfuse: observations, whose input and output may be JSON within a string."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats.shared.calls import call_of_function
from gistpoint.sessions.formats.traces._spans import SpanKind, TraceReader, TraceSpan, shown_text
from gistpoint.sessions.records.format import SingleRun
from gistpoint.sessions.records.model import CutText, Json, NotShown, Run, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, records_in
from gistpoint.sessions.records.scanning import RawRecord, guarded, object_records
from gistpoint.sessions.records.usage import counted_apart
from gistpoint.sessions.records.values import (
    as_dict,
    as_int,
    first_known,
    is_deep,
    joined,
    objects,
)

_KINDS: dict[str, SpanKind] = {"GENERATION": "model", "TOOL": "tool", "AGENT": "agent"}


class _Reader(TraceReader):
    format = "langfuse"
    arrays = ("observations",)

    def span_records(self) -> Iterator[RawRecord]:
        blob = self.probe.blob
        return guarded(
            object_records(blob, self.probe.start, self.arrays, self.facts, None), blob, self.warnings
        )

    def decoded(self, value: Json) -> Json:
        fields = ("input", "output", "metadata")
        return {key: decoded_text(item) if key in fields else item for key, item in as_dict(value).items()}

    def span(self, values: Sequence[dict[str, Json]]) -> TraceSpan:
        value = Record(self.decoded(values[0]))
        sent, reply = value.get("input"), value.get("output")
        # An observation may have `usage` and `usageDetails`; where they differ, the details count.
        usage = Record({**value.inner("usage").members, **value.inner("usageDetails").members})
        failed = value.word("level") == "ERROR"
        found = TraceSpan(
            value.word("id"),
            value.word("parentObservationId"),
            _KINDS.get(value.word("type"), "other"),
            value.word("name"),
            value.time("startTime"),
            value.time("endTime"),
            model=value.word("model"),
            cost=value.number("costDetails", "total"),
            tokens=_tokens(usage),
            error=(value.text("statusMessage") or "error") if failed else "",
            text=joined(map(shown_text, (sent, reply))),
        )
        if found.kind == "model":
            found.asked, found.replied = asked_of(sent), replied_of(reply)
        elif found.kind == "tool":
            call = Record(sent)
            arguments = call.first("args", "arguments", "input") or sent
            identity = call.first_word("id", "toolCallId", "tool_call_id")
            found.call = call_of_function({"id": identity, "name": found.name, "arguments": arguments})
            found.output = shown_text(reply)
        return found

    def header(self) -> Run:
        trace, tally = Record(self.fact("trace")), self.tally
        scores: dict[str, Json] = {item.word("name"): item.get("value") for item in trace.objects("scores")}
        return Run(
            self.format,
            trace.word("version"),
            id=trace.word("id"),
            task=trace.word("name"),
            model=tally.model,
            exit_status=self.ending,
            tokens=tally.tokens,
            cost=tally.cost,
            started=first_known((tally.started, trace.time("timestamp"))),
            duration_s=tally.duration_s,
            extra={**({"scores": scores} if scores else {}), **trace.kept("sessionId")},
            derived=frozenset({"tokens", "cost", "duration_s", "exit_status"}),
        )


def decoded_text(value: Json) -> Json:
    """Return the value of a string that is a JSON object, array or string; any other value unchanged."""
    if not isinstance(value, str) or isinstance(value, CutText):
        return value
    if value[:1] not in ("{", "[", '"'):
        return value
    try:
        found: Json = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value
    if isinstance(found, str):
        # Some clients encode a value twice.
        return decoded_text(found)
    return value if is_deep(found) else found


def asked_of(sent: Json) -> list[dict[str, Json]]:
    """Return the messages sent to a model, given as a list, an object with a list, one message or a string.

    They are empty if `sent` is None.
    """
    holder = Record(sent)
    listed = objects(sent) or objects(holder.first("messages", "input"))
    if listed:
        system = holder.first("system", "instructions")
        return [{"role": "system", "content": system}, *listed] if system else listed
    if holder.has("role"):
        return [holder.members]
    return [] if sent is None else [{"role": "user", "content": holder.first("prompt", "text") or sent}]


def replied_of(reply: Json) -> list[dict[str, Json]]:
    """Return the messages of a reply; empty if `reply` is None."""
    if isinstance(reply, list):
        items = records_in(reply)
        # Typed parts without a role are the content of one message, not messages.
        are_parts = all(item.word("type") for item in items) and not any(item.has("role") for item in items)
        return [{"role": "assistant", "content": reply}] if are_parts else objects(reply)
    holder = Record(reply)
    choices = [choice.inner("message").members for choice in holder.objects("choices")]
    if choices:
        return choices
    if holder.has("role"):
        return [holder.members]
    calls = holder.first("toolCalls", "tool_calls")
    if calls or holder.has("text"):
        return [{"role": "assistant", "content": holder.get("text"), "tool_calls": decoded_text(calls)}]
    return [] if reply is None else [{"role": "assistant", "content": reply}]


def _tokens(usage: Record) -> Tokens:
    """Return the tokens of an observation. Langfuse counts each token under one name only."""
    return counted_apart(
        as_int(usage.first("input", "promptTokens")),
        as_int(usage.first("output", "completionTokens")),
        read=as_int(usage.first(*_READ)),
        written=as_int(usage.first(*_WRITTEN)),
        reasoning=as_int(usage.first("output_reasoning_tokens", "reasoning_tokens")),
        whole=as_int(usage.first("total", "totalTokens")),
    )


_READ = ("input_cached_tokens", "cache_read_input_tokens", "input_cache_read")
_WRITTEN = ("cache_creation_input_tokens", "input_cache_creation", "input_cache_write")


class Langfuse(SingleRun):
    """Recognised by `observations` with a `trace` or `traceId`, or by the members of a Langfuse trace."""

    name = "langfuse"
    unique_ids = True
    words_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("input",), "the messages that each call to a model repeats; a new message is a separate step"
        ),
        NotShown(
            (
                "metadata",
                "modelParameters",
                "promptName",
                "environment",
                "level",
                "projectId",
                "internalModel",
            ),
            "settings, the tools offered to the model, and Langfuse's counts; tokens and cost are shown",
        ),
        NotShown(("startTime", "endTime", "completionStartTime"), "times, which head the step"),
        NotShown(
            ("trace.input", "trace.output", "trace.metadata", "trace.environment", "trace.projectId"),
            "the input and output of the outermost observation, which are in the steps",
            of_run=True,
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        whole = Record(probe.object)
        if not isinstance(whole.get("observations"), list):
            # A trace may be longer than the head of the file, so no observation is in it.
            trace = whole.inner("trace")
            return 0.95 if trace.has_all("id", "projectId") and trace.has("latency", "timestamp") else 0.0
        known = whole.has("trace") or any(item.has("traceId") for item in whole.objects("observations")[:1])
        return 1.0 if known else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the trace."""
        return _Reader(probe)


FORMAT = Langfuse()
