"""Groups Inspect's events into turns, converts them to steps, and finds the messages that no event has.

Every call of a model repeats the conversation before it. `Inputs` finds the messages in it other than the replies and
results that have their own events: a system prompt, a user's message between turns, a prompt that a solver rewrote.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gistpoint.sessions.formats.calls import edits_of, kind_of, kind_of_command
from gistpoint.sessions.formats.messages import Parts, message_step, parts_of_message
from gistpoint.sessions.records.building import StepBuilder, Tally, any_error
from gistpoint.sessions.records.format import Raw, unknown_step
from gistpoint.sessions.records.model import Actor, Json, Noted, Result, RunCall, Step, StepKind, Tokens
from gistpoint.sessions.records.scanning import RawRecord
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    compact,
    dumped,
    first,
    joined,
    objects,
    recoded,
    total,
    when,
)

_QUIET = frozenset({"state", "store", "span_begin", "span_end", "step", "checkpoint", "anchor", "sample_init"})
_KINDS = {
    "score": StepKind.SCORE,
    "score_edit": StepKind.SCORE,
    "error": StepKind.ERROR,
    "sample_limit": StepKind.END,
    "input": StepKind.MESSAGE,
    "approval": StepKind.NOTE,
    "info": StepKind.NOTE,
    "logger": StepKind.NOTE,
    "compaction": StepKind.CONTEXT,
    "branch": StepKind.CONTEXT,
    "interrupt": StepKind.PAUSE,
    "subtask": StepKind.DELEGATE,
}


class InspectTurns:
    """Groups a reply of the model with the tool events of its calls, or with the messages that answer them."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}
        self.totals = Tally()
        self.times: tuple[float, float] | None = None
        """When the first event began and the last one ended."""

    def place(self, fields: Json, step_count: int) -> int:
        """Return the step of the next event."""
        event = as_dict(fields)
        for at in (when(event.get("timestamp")), when(event.get("completed"))):
            if at is not None:
                self.times = (min(at, self.times[0]), max(at, self.times[1])) if self.times else (at, at)
        if event.get("event") == "model":
            self.totals.spend(_tokens(event), as_float(_usage(event).get("total_cost")))
            for call in objects(_reply(event).get("tool_calls")):
                self._calls[as_str(call.get("id"))] = step_count
        elif event.get("event") == "tool":
            return self._calls.get(as_str(event.get("id")), step_count)
        elif event.get("role") == "tool" and "event" not in event:
            return self._calls.get(as_str(event.get("tool_call_id")), step_count)
        return step_count

    def answers(self, fields: Json) -> bool:
        """Whether a message is the result of a call in an existing step."""
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
    """Return the step of a turn, or of a plain message if a sample has no events."""
    events = [as_dict(raw.value) for raw in raws]
    head = events[0]
    name = as_str(head.get("event"))
    if not name:
        return message_step(index, raws)
    if name in ("model", "tool"):
        return _turn(index, raws, events)
    started = when(head.get("timestamp"))
    if name == "sandbox":
        return _sandbox(index, raws, head)
    if name in _QUIET:
        sample = as_dict(head.get("sample"))
        kind = StepKind.TASK if name == "sample_init" else StepKind.STATE
        text = _conversation(sample.get("input")) if sample else _label(head)
        return (
            StepBuilder(index, raws, Actor.USER if sample else Actor.SYSTEM, kind, name)
            .text(text)
            .span(started)
            .id(as_str(head.get("uuid")))
            .build()
        )
    if name not in _KINDS:
        return unknown_step(index, raws, name, dumped(raws[0].value))
    shown = first(head, "score", "error", "message", "data", "input", "limit", "decision")
    text = (
        as_text(as_dict(shown).get("message") or shown)
        if not isinstance(shown, dict) or "message" in shown
        else dumped(shown)
    )
    return (
        StepBuilder(index, raws, Actor.USER if name == "input" else Actor.ENVIRONMENT, _KINDS[name], name)
        .text(text or dumped(raws[0].value))
        .span(started)
        .flag_if(name == "error", "error")
        .id(as_str(head.get("uuid")))
        .build()
    )


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
    call = RunCall("", f"sandbox.{as_str(head.get('action'))}", command, shown)
    return (
        StepBuilder(
            index, raws, Actor.ENVIRONMENT, kind_of_command(command) if head.get("cmd") else StepKind.STATE, "sandbox"
        )
        .calls((call,))
        .results((Result("", as_text(head.get("output")), None, code, duration),))
        .span(started, ended)
        .flag_if(code, "error")
        .derived("kind", "results.duration_s")
        .id(as_str(head.get("uuid")))
        .build()
    )


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
    failed = bool(model.get("error")) or any_error(results)
    role = as_str(model.get("role"))
    return (
        StepBuilder(
            index,
            raws,
            Actor.AGENT,
            kind_of(calls),
            " ".join(part for part in (as_str(events[0].get("event")), role) if part),
        )
        .thought(*parts.thought)
        .text(*parts.texts, as_text(first(model, "error")))
        .calls(calls)
        .results(results)
        .edits(edits_of(calls))
        .span(when(events[0].get("timestamp")), max(times, default=None))
        .naive(events[0].get("timestamp"))
        .spent(_tokens(model), as_float(_usage(model).get("total_cost")))
        .model(as_str(first(output, "model") or model.get("model")))
        .flag_if(failed, "error")
        .derived("kind")
        .id(as_str(events[0].get("uuid")))
        .also(_said_first(model, parts))
        .build()
    )


def _said_first(model: dict[str, Json], shown: Parts) -> tuple[Noted, ...]:
    """Return what the provider's reply says if a solver has put something else in its place, such as an answer."""
    response = as_dict(as_dict(model.get("call")).get("response"))
    messages = [as_dict(choice.get("message")) for choice in objects(response.get("choices"))] or [response]
    texts = joined(text for message in messages for text in parts_of_message(message.get("content")).texts)
    known = joined([*shown.texts, *shown.thought])
    return (Noted("call.response", texts),) if texts.strip() and texts.strip() not in known else ()


def answer(message: dict[str, Json]) -> Result:
    """Return the result of a call as passed to the model, if its tool has no event or another result."""
    error = message.get("error")
    text = joined(dict.fromkeys([as_text(message.get("content")), as_text(first(as_dict(error), "message") or error)]))
    return Result(as_str(message.get("tool_call_id")), text, True if error else None)


def _call(item: dict[str, Json]) -> RunCall:
    arguments = item.get("arguments")
    function = item.get("function")
    name = as_str(function) or as_str(as_dict(function).get("name"))
    return RunCall(
        as_str(item.get("id")),
        name,
        arguments if isinstance(arguments, str) else compact(arguments),
        arguments if isinstance(arguments, dict) else None,
    )


def _result(event: dict[str, Json]) -> Result:
    error = event.get("error")
    started, ended = when(event.get("timestamp")), when(event.get("completed"))
    duration = as_float(event.get("working_time"))
    if duration is None and started is not None and ended is not None:
        duration = ended - started
    text = joined([as_text(event.get("result")), as_text(first(as_dict(error), "message") or error)])
    return Result(as_str(event.get("id")), text, True if error or event.get("failed") else None, None, duration)


_KEPT = 2
"""The number of conversations whose last input is remembered: agents that take turns have one each."""


@dataclass(slots=True)
class _Conversation:
    """The last input of an agent, and how often each message occurs in it."""

    messages: list[Json] = field(default_factory=list)
    counts: Counter[bytes] = field(default_factory=Counter)


class Inputs:
    """Remembers which messages have become steps, by their content: their ids may be new with every call."""

    def __init__(self, completed: Callable[[Json], Json]) -> None:
        """`completed` replaces the references in a value by what they refer to."""
        self._complete = completed
        self._heard: Counter[bytes] = Counter()
        self._results: dict[str, set[bytes]] = {}
        self._conversations: list[_Conversation] = []
        self._places: dict[bytes, int] = {}
        self._seen = _Ranges()

    def _completed(self, value: Json) -> Json:
        return self._complete(recoded(value))

    def note(self, event: dict[str, Json]) -> None:
        """Record an event that is a step, or part of one."""
        kind = event.get("event")
        if kind == "model":
            for choice in objects(as_dict(event.get("output")).get("choices")):
                self._heard[self._digest(as_dict(choice.get("message")))] += 1
        elif kind == "tool":
            texts = (event.get("result"), first(as_dict(event.get("error")), "message"))
            self._results.setdefault(as_str(event.get("id")), set()).update(self._texts(texts))
        elif kind == "sample_init":
            given = self._completed(as_dict(event.get("sample")).get("input"))
            asked: list[dict[str, Json]] = [{"role": "user", "content": given}]
            for message in asked if isinstance(given, str) else objects(given):
                self._heard[self._digest(message)] += 1

    def new_in(self, messages: list[Json]) -> list[int]:
        """Return the positions of the messages of an input that are in no step; they count as known from now on."""
        known, shared = self._nearest(messages)
        counts = Counter(known.counts) if shared == len(known.messages) else Counter[bytes]()
        begin = shared if counts or not shared else 0
        found: list[int] = []
        for place in range(begin, len(messages)):
            if self._is_new(as_dict(messages[place]), counts):
                found.append(place)
        known.messages, known.counts = messages, counts
        return found

    def new_records(self, records: Iterable[RawRecord]) -> Iterator[RawRecord]:
        """Yield those records of a conversation, one at a time, whose messages are in no step."""
        counts = Counter[bytes]()
        for record in records:
            if self._is_new(as_dict(record.fields), counts):
                yield record

    def new_among(self, ranges: Json, size: int, message_at: Callable[[int], Json]) -> list[int]:
        """Return the same for an input given as ranges of a pool of `size` messages, by their numbers in the pool."""
        pairs = [[as_int(number) or 0 for number in as_list(span)] for span in as_list(ranges)]
        spans = [(max(0, pair[0]), min(size, pair[1])) for pair in pairs if len(pair) == 2]
        found: list[int] = []
        for number in self._seen.add(spans):
            message = as_dict(message_at(number))
            if message.get("role") == "tool":
                new = self._is_new_result(message)
            else:
                message_digest = self._digest(message)
                before = self._places.get(message_digest)
                again = before is not None and any(start <= before < end for start, end in spans)
                new = not self._heard[message_digest] or again
                self._places[message_digest] = number
                self._heard[message_digest] += new
            if new:
                found.append(number)
        return found

    def _is_new(self, message: dict[str, Json], counts: Counter[bytes]) -> bool:
        """Count a message; return whether it occurs in its conversation more often than in events."""
        if message.get("role") == "tool":
            return self._is_new_result(message)
        message_digest = self._digest(message)
        counts[message_digest] += 1
        new = counts[message_digest] > self._heard[message_digest]
        if new:
            self._heard[message_digest] = counts[message_digest]
        return new

    def _nearest(self, messages: list[Json]) -> tuple[_Conversation, int]:
        """Return the conversation that an input continues, and how many of its messages they share."""
        shared = [(_shared(one.messages, messages), number) for number, one in enumerate(self._conversations)]
        best, number = max(shared, default=(0, -1))
        found = self._conversations.pop(number) if best else _Conversation()
        self._conversations.append(found)
        del self._conversations[:-_KEPT]
        return found, best

    def _is_new_result(self, message: dict[str, Json]) -> bool:
        texts = self._texts((message.get("content"), first(as_dict(message.get("error")), "message")))
        known = self._results.setdefault(as_str(message.get("tool_call_id")), set())
        new = not texts <= known if texts else not known
        known |= texts or {b""}
        return new

    def _texts(self, values: Iterable[Json]) -> set[bytes]:
        return {_digest(text) for text in (as_text(self._completed(value)) for value in values) if text}

    def _digest(self, message: dict[str, Json]) -> bytes:
        content = parts_of_message(self._completed(message.get("content")))
        calls = [
            [call.get("id"), call.get("function"), call.get("arguments")] for call in objects(message.get("tool_calls"))
        ]
        own: list[Json] = [[call.id, call.tool, call.arguments] for call in content.calls]
        texts: list[Json] = [*content.texts, *content.thought]
        return _digest(compact([message.get("role"), texts, own, self._completed([*calls])]))


def _shared(one: Sequence[Json], other: Sequence[Json]) -> int:
    """Return how many messages two inputs share at their beginnings."""
    if one and len(one) <= len(other) and list(one) == list(other[: len(one)]):
        return len(one)
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _Ranges:
    """Whole numbers, stored as ranges that do not touch."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, int]] = []

    def add(self, spans: Iterable[tuple[int, int]]) -> list[int]:
        """Add ranges; return the numbers that were missing, in the order of the ranges."""
        new: list[int] = []
        for start, end in spans:
            at = start
            for known_start, known_end in self._spans:
                if known_end <= at:
                    continue
                if known_start >= end:
                    break
                new += range(at, min(known_start, end))
                at = max(at, known_end)
            new += range(at, end)
            self._insert(start, end)
        return new

    def _insert(self, start: int, end: int) -> None:
        apart = [span for span in self._spans if span[1] < start or span[0] > end]
        joined = [span for span in self._spans if not (span[1] < start or span[0] > end)]
        start = min([start, *(span[0] for span in joined)])
        end = max([end, *(span[1] for span in joined)])
        self._spans = sorted([*apart, (start, end)])
