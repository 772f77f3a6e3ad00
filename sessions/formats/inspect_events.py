"""Inspect's events, put into turns and made into steps."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.blocks import parts_of_message
from gistpoint.sessions.formats.calls import edits_of, kind_of, kind_of_command
from gistpoint.sessions.formats.messages import Totals, message_step
from gistpoint.sessions.formats.values import (
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    compact,
    dumped,
    first,
    is_naive,
    joined,
    objects,
    total,
    when,
)
from gistpoint.sessions.runs.model import Actor, Call, Json, Result, Step, StepKind, Tokens
from gistpoint.sessions.runs.reader import Raw, unknown_step

_QUIET = frozenset({"state", "store", "span_begin", "span_end", "step", "checkpoint", "anchor", "sample_init"})
_KINDS = {
    "score": StepKind.SCORE, "score_edit": StepKind.SCORE, "error": StepKind.ERROR, "sample_limit": StepKind.END,
    "input": StepKind.MESSAGE, "approval": StepKind.NOTE, "info": StepKind.NOTE, "logger": StepKind.NOTE,
    "compaction": StepKind.CONTEXT, "branch": StepKind.CONTEXT, "interrupt": StepKind.PAUSE,
    "subtask": StepKind.DELEGATE,
}  # fmt: skip


class InspectTurns:
    """A reply of the model with the tool events of its calls, or messages that answer them; all else stands alone."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}
        self.totals = Totals()
        self.times: tuple[float, float] | None = None
        """When the first event began and the last one ended."""

    def place(self, fields: Json, step_count: int) -> int:
        """Return the step of the next event."""
        event = as_dict(fields)
        for at in (when(event.get("timestamp")), when(event.get("completed"))):
            if at is not None:
                self.times = (min(at, self.times[0]), max(at, self.times[1])) if self.times else (at, at)
        if event.get("event") == "model":
            self.totals.add(_tokens(event), as_float(_usage(event).get("total_cost")))
            for call in objects(_reply(event).get("tool_calls")):
                self._calls[as_str(call.get("id"))] = step_count
        elif event.get("event") == "tool":
            return self._calls.get(as_str(event.get("id")), step_count)
        elif event.get("role") == "tool" and "event" not in event:
            return self._calls.get(as_str(event.get("tool_call_id")), step_count)
        return step_count

    def answers(self, fields: Json) -> bool:
        """Whether a message is the result of a call that is in a step."""
        message = as_dict(fields)
        return message.get("role") == "tool" and as_str(message.get("tool_call_id")) in self._calls


def _usage(event: dict[str, Json]) -> dict[str, Json]:
    return as_dict(as_dict(event.get("output")).get("usage"))


def _tokens(event: dict[str, Json]) -> Tokens:
    usage = _usage(event)
    cached = as_int(usage.get("input_tokens_cache_read"))
    return Tokens(
        total([as_int(usage.get("input_tokens")), cached]) if "input_tokens" in usage else None,
        as_int(usage.get("output_tokens")),
        cached,
        as_int(usage.get("reasoning_tokens")),
    )


def _reply(event: dict[str, Json]) -> dict[str, Json]:
    choices = as_list(as_dict(event.get("output")).get("choices"))
    return as_dict(as_dict(choices[0] if choices else None).get("message"))


def event_step(index: int, raws: Sequence[Raw]) -> Step:
    """Return the step of a turn; of a plain message where a sample has no events."""
    events = [as_dict(raw.value) for raw in raws]
    head = events[0]
    name = as_str(head.get("event"))
    if not name:
        return message_step(index, raws)
    if name in ("model", "tool"):
        return _turn(index, raws, events)
    started = when(head.get("timestamp"))
    ranges = tuple(raw.range for raw in raws)
    if name == "sandbox":
        return _sandbox(index, raws, head)
    if name in _QUIET:
        sample = as_dict(head.get("sample"))
        kind = StepKind.TASK if name == "sample_init" else StepKind.STATE
        text = _conversation(sample.get("input")) if sample else _label(head)
        return Step(index, Actor.USER if sample else Actor.SYSTEM, kind, raws[0].range, ranges, label=name, text=text,
                    started=started, id=as_str(head.get("uuid")))  # fmt: skip
    if name not in _KINDS:
        return unknown_step(index, raws, name, dumped(raws[0].value))
    shown = first(head, "score", "error", "message", "data", "input", "limit", "decision")
    text = (
        as_text(as_dict(shown).get("message") or shown)
        if not isinstance(shown, dict) or "message" in shown
        else dumped(shown)
    )
    return Step(
        index, Actor.USER if name == "input" else Actor.ENVIRONMENT, _KINDS[name], raws[0].range, ranges, label=name,
        text=text or dumped(raws[0].value), started=started, flags=frozenset({"error"} if name == "error" else ()),
        id=as_str(head.get("uuid")),
    )  # fmt: skip


def _label(head: dict[str, Json]) -> str:
    named = " ".join(
        part for part in (as_str(head.get("action")), as_str(head.get("type")), as_str(head.get("name"))) if part
    )
    return named or dumped(first(head, "changes", "id"))


def _conversation(value: Json) -> str:
    if isinstance(value, list):
        return joined((as_text(as_dict(message).get("content")) for message in value), "\n\n")
    return as_text(value)


def _sandbox(index: int, raws: Sequence[Raw], head: dict[str, Json]) -> Step:
    command = as_str(first(head, "cmd", "file"))
    shown: dict[str, Json] = {key: head[key] for key in ("cmd", "file", "input", "options") if head.get(key)}
    started, ended = when(head.get("timestamp")), when(head.get("completed"))
    duration = ended - started if started is not None and ended is not None else None
    code = as_int(head.get("result"))
    call = Call("", f"sandbox.{as_str(head.get('action'))}", command, shown)
    return Step(
        index, Actor.ENVIRONMENT, kind_of_command(command) if head.get("cmd") else StepKind.STATE, raws[0].range,
        tuple(raw.range for raw in raws), label="sandbox", calls=(call,),
        results=(Result("", as_text(head.get("output")), None, code, duration),), started=started, ended=ended,
        flags=frozenset({"error"} if code else ()), derived=frozenset({"kind", "results.duration_s"}),
        id=as_str(head.get("uuid")),
    )  # fmt: skip


def _turn(index: int, raws: Sequence[Raw], events: list[dict[str, Json]]) -> Step:
    model = next((event for event in events if event.get("event") == "model"), {})
    tools = [event for event in events if event.get("event") == "tool"]
    answers = [event for event in events if "event" not in event]
    reply, output = _reply(model), as_dict(model.get("output"))
    parts = parts_of_message(reply.get("content"))
    calls = (*parts.calls, *(_call(item) for item in objects(reply.get("tool_calls"))))
    calls = calls or tuple(_call(event) for event in tools)
    results = (*parts.results, *(_result(event) for event in tools), *(answer(message) for message in answers))
    times = [at for event in events for at in (when(event.get("completed")),) if at is not None]
    failed = bool(model.get("error")) or any(result.is_error for result in results)
    role = as_str(model.get("role"))
    return Step(
        index, Actor.AGENT, kind_of(calls), raws[0].range, tuple(raw.range for raw in raws),
        label=" ".join(part for part in (as_str(events[0].get("event")), role) if part), thought=joined(parts.thought),
        text=joined([*parts.said, as_text(first(model, "error"))]), calls=calls, results=results,
        started=when(events[0].get("timestamp")), ended=max(times, default=None),
        naive=is_naive(events[0].get("timestamp")), tokens=_tokens(model),
        cost=as_float(_usage(model).get("total_cost")),
        model=as_str(first(output, "model") or model.get("model")),
        edits=edits_of(calls), flags=frozenset({"error"} if failed else ()), derived=frozenset({"kind"}),
        id=as_str(events[0].get("uuid")),
    )  # fmt: skip


def answer(message: dict[str, Json]) -> Result:
    """Return the result of a call as the model was given it, where its tool has no event or another result."""
    error = message.get("error")
    text = joined(dict.fromkeys([as_text(message.get("content")), as_text(first(as_dict(error), "message") or error)]))
    return Result(as_str(message.get("tool_call_id")), text, True if error else None)


def _call(item: dict[str, Json]) -> Call:
    arguments = item.get("arguments")
    function = item.get("function")
    name = as_str(function) or as_str(as_dict(function).get("name"))
    return Call(as_str(item.get("id")), name, arguments if isinstance(arguments, str) else compact(arguments),
                arguments if isinstance(arguments, dict) else None)  # fmt: skip


def _result(event: dict[str, Json]) -> Result:
    error = event.get("error")
    started, ended = when(event.get("timestamp")), when(event.get("completed"))
    duration = as_float(event.get("working_time"))
    if duration is None and started is not None and ended is not None:
        duration = ended - started
    text = joined([as_text(event.get("result")), as_text(first(as_dict(error), "message") or error)])
    return Result(as_str(event.get("id")), text, True if error or event.get("failed") else None, None, duration)
