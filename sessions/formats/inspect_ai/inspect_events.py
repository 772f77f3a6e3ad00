"""Groups Inspect's events into turns, makes steps of them, and finds the messages that no event contains.

Each call to a model repeats the preceding conversation. `Inputs` finds those messages of the conversation
that are not replies or results with their own events: a system prompt, a user's message between turns, or a
prompt that a solver rewrote.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gistpoint.sessions.formats.shared.calls import edits_of, kind_of, kind_of_command
from gistpoint.sessions.formats.shared.message_parts import Parts, merged, parts_of_message
from gistpoint.sessions.formats.shared.messages import message_step
from gistpoint.sessions.records.building import StepBuilder, Tally, any_error, duration, error_if, latest
from gistpoint.sessions.records.format import Raw, unknown_step
from gistpoint.sessions.records.model import Actor, Json, Noted, Result, RunCall, Step, StepKind, Tokens
from gistpoint.sessions.records.record import Record, first_in, records_of, times_of
from gistpoint.sessions.records.scanning import RawRecord
from gistpoint.sessions.records.usage import counted_apart
from gistpoint.sessions.records.values import (
    as_dict,
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
)

_QUIET = frozenset(
    {"state", "store", "span_begin", "span_end", "step", "checkpoint", "anchor", "sample_init"}
)
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
    """Groups a model's reply with the tool events of its calls, or with the messages that answer them."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}
        self.tally = Tally()

    def place(self, fields: Json, step_count: int) -> int:
        """Return the step of the next event."""
        event = Record(fields)
        self.tally.add_time(event.time("timestamp"))
        self.tally.add_time(event.time("completed"))
        match event.get("event"):
            case "model":
                self.tally.add_usage(tokens_of_usage(event.inner("output", "usage")), _cost(event))
                for call in _reply(event).objects("tool_calls"):
                    self._calls[call.word("id")] = step_count
            case "tool":
                return self._calls.get(event.word("id"), step_count)
            case None if event.get("role") == "tool":
                # A sample without events contains only messages.
                return self._calls.get(event.word("tool_call_id"), step_count)
        return step_count

    def answers(self, fields: Json) -> bool:
        """Return whether a message is the result of a call in an existing step."""
        message = as_dict(fields)
        return message.get("role") == "tool" and as_str(message.get("tool_call_id")) in self._calls


def tokens_of_usage(usage: Record) -> Tokens:
    """Return the tokens of a reply or of a model.

    Inspect counts cached tokens separately for every provider; here the prompt's tokens include them.
    """
    return counted_apart(
        usage.whole("input_tokens"),
        usage.whole("output_tokens"),
        read=usage.whole("input_tokens_cache_read"),
        written=usage.whole("input_tokens_cache_write"),
        reasoning=usage.whole("reasoning_tokens"),
        whole=usage.whole("total_tokens"),
    )


def _cost(event: Record) -> float | None:
    return event.number("output", "usage", "total_cost")


def _reply(event: Record) -> Record:
    return first_in(event.get("output", "choices")).inner("message")


def event_step(index: int, raws: Sequence[Raw]) -> Step:
    """Return the step of a turn, of another event, or of a message in a sample without events."""
    events = records_of(raws)
    head = events[0]
    name = head.word("event")
    if not name:
        return message_step(index, raws)
    if name in ("model", "tool"):
        return _turn(index, raws, events)
    if name == "sandbox":
        return _sandbox(index, raws, head)
    if name in _QUIET:
        builder = _quiet(index, raws, name, head)
    elif name in _KINDS:
        actor = Actor.USER if name == "input" else Actor.ENVIRONMENT
        builder = StepBuilder(index, raws, actor, _KINDS[name], name).text(
            _text_of(head) or dumped(raws[0].value)
        )
    else:
        return unknown_step(index, raws, name, dumped(raws[0].value))
    return (
        builder.span(head.time("timestamp")).flag_if(name == "error", "error").id(head.word("uuid")).build()
    )


def _quiet(index: int, raws: Sequence[Raw], name: str, head: Record) -> StepBuilder:
    """Return the builder of a bookkeeping step; a sample's first event contains its task."""
    kind = StepKind.TASK if name == "sample_init" else StepKind.STATE
    sample = head.inner("sample")
    if sample:
        return StepBuilder(index, raws, Actor.USER, kind, name).text(_conversation(sample.get("input")))
    named = " ".join(filter(None, (head.word("action"), head.word("type"), head.word("name"))))
    return StepBuilder(index, raws, Actor.SYSTEM, kind, name).text(
        named or dumped(head.first("changes", "id"))
    )


def _text_of(head: Record) -> str:
    shown = head.first("score", "error", "message", "data", "input", "limit", "decision")
    if isinstance(shown, dict) and "message" not in shown:
        return dumped(shown)
    return as_text(as_dict(shown).get("message") or shown)


def _conversation(value: Json) -> str:
    if isinstance(value, list):
        return joined((Record(message).text("content") for message in value), "\n\n")
    return as_text(value)


def _sandbox(index: int, raws: Sequence[Raw], head: Record) -> Step:
    command = head.first_word("cmd", "file")
    started, ended = head.time("timestamp"), head.time("completed")
    code = head.whole("result")
    call = RunCall(
        "", f"sandbox.{head.word('action')}", command, head.kept("cmd", "file", "input", "options")
    )
    kind = kind_of_command(command) if head.get("cmd") else StepKind.STATE
    return (
        StepBuilder(index, raws, Actor.ENVIRONMENT, kind, "sandbox")
        .calls([call])
        .results([Result("", head.text("output"), None, code, duration(started, ended))])
        .span(started, ended)
        .flag_if(code, "error")
        .derived("kind", "results.duration_s")
        .id(head.word("uuid"))
        .build()
    )


def _of_event(events: list[Record], name: str) -> list[Record]:
    return [event for event in events if event.get("event") == name]


def _turn(index: int, raws: Sequence[Raw], events: list[Record]) -> Step:
    head = events[0]
    model = next(iter(_of_event(events, "model")), Record())
    tools = _of_event(events, "tool")
    answers = [event for event in events if not event.has("event")]
    reply = _reply(model)
    parts = parts_of_message(reply.get("content"))
    # If a reply contains no calls, those of the tools' events are used.
    calls = tuple([*parts.calls, *map(_call, reply.objects("tool_calls"))] or map(_call, tools))
    results = [*parts.results, *map(_result, tools), *map(answer, answers)]
    begun = head.time("timestamp")
    return (
        StepBuilder(
            index, raws, Actor.AGENT, kind_of(calls), joined([head.word("event"), model.word("role")], " ")
        )
        .thought(*parts.thought)
        .text(*parts.texts, as_text(model.first("error")))
        .calls(calls)
        .results(results)
        .edits(edits_of(calls))
        .span(begun, latest(times_of(events, "completed")))
        .replied([model.time("completed") if model else begun], asked=model.time("timestamp") or begun)
        .naive(head.get("timestamp"))
        .spent(tokens_of_usage(model.inner("output", "usage")), _cost(model))
        .model(as_str(model.inner("output").first("model") or model.get("model")))
        .flag_if(model.get("error") or any_error(results), "error")
        .derived("kind")
        .id(head.word("uuid"))
        .also(_replaced_reply(model, parts))
        .build()
    )


def _replaced_reply(model: Record, shown: Parts) -> tuple[Noted, ...]:
    """Return the text of the provider's reply if a solver replaced it; otherwise an empty tuple."""
    response = model.inner("call", "response")
    messages = [choice.inner("message") for choice in response.objects("choices")] or [response]
    text = merged(parts_of_message(message.get("content")) for message in messages).text
    return (Noted("call.response", text),) if text.strip() and text.strip() not in shown.combined_text else ()


def _failure(record: Record) -> str:
    return as_text(record.inner("error").first("message") or record.get("error"))


def answer(message: Record) -> Result:
    """Return the result of a call as it was sent to the model, for a tool without an event."""
    text = joined(dict.fromkeys([message.text("content"), _failure(message)]))
    return Result(message.word("tool_call_id"), text, error_if(message.get("error")))


def _call(item: Record) -> RunCall:
    arguments = item.get("arguments")
    # Logs of earlier versions have the function as an object.
    name = item.word("function") or item.word("function", "name")
    if isinstance(arguments, str):
        return RunCall(item.word("id"), name, arguments)
    return RunCall(
        item.word("id"), name, compact(arguments), arguments if isinstance(arguments, dict) else None
    )


def _result(event: Record) -> Result:
    spent = event.number("working_time")
    if spent is None:
        spent = duration(event.time("timestamp"), event.time("completed"))
    failed = error_if(event.get("error") or event.get("failed"))
    return Result(event.word("id"), joined([event.text("result"), _failure(event)]), failed, None, spent)


_KEPT = 2
"""The number of conversations whose last input is remembered: agents that take turns have separate ones."""


@dataclass(slots=True)
class _Conversation:
    """The last input of an agent, and the count of each message in it."""

    messages: list[Json] = field(default_factory=list)
    counts: Counter[bytes] = field(default_factory=Counter)


class Inputs:
    """Remembers which messages have become steps, by content, because each call may change their ids."""

    def __init__(self, completed: Callable[[Json], Json]) -> None:
        """`completed` replaces the references in a value with the values that they refer to."""
        self._complete = completed
        # Counted, because a message may occur several times, and each occurrence is a step.
        self._known: Counter[bytes] = Counter()
        self._results: dict[str, set[bytes]] = {}
        self._conversations: list[_Conversation] = []
        self._places: dict[bytes, int] = {}
        self._seen = _Ranges()

    def _resolved(self, value: Json) -> Json:
        return self._complete(recoded(value))

    def note(self, event: dict[str, Json]) -> None:
        """Record an event that is a step, or part of one."""
        kind = event.get("event")
        if kind == "model":
            for choice in objects(as_dict(event.get("output")).get("choices")):
                self._known[self._digest(as_dict(choice.get("message")))] += 1
        elif kind == "tool":
            texts = (event.get("result"), first(as_dict(event.get("error")), "message"))
            self._results.setdefault(as_str(event.get("id")), set()).update(self._texts(texts))
        elif kind == "sample_init":
            given = self._resolved(as_dict(event.get("sample")).get("input"))
            asked: list[dict[str, Json]] = [{"role": "user", "content": given}]
            for message in asked if isinstance(given, str) else objects(given):
                self._known[self._digest(message)] += 1

    def new_in(self, messages: list[Json]) -> list[int]:
        """Return the positions of an input's messages that are in no step, and record these as known."""
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
        """Yield those records of a conversation whose messages are in no step."""
        counts = Counter[bytes]()
        for record in records:
            if self._is_new(as_dict(record.fields), counts):
                yield record

    def new_among(self, ranges: Json, size: int, message_at: Callable[[int], Json]) -> list[int]:
        """Return the numbers of messages in a pool that are in no step, for an input given as ranges.

        `ranges` are pairs of a first number and an end, and `size` is the number of messages in the pool;
        `message_at` returns the message with a number.
        """
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
                new = not self._known[message_digest] or again
                self._places[message_digest] = number
                self._known[message_digest] += new
            if new:
                found.append(number)
        return found

    def _is_new(self, message: dict[str, Json], counts: Counter[bytes]) -> bool:
        """Count a message; return whether the conversation contains more copies of it than the events do."""
        if message.get("role") == "tool":
            return self._is_new_result(message)
        message_digest = self._digest(message)
        counts[message_digest] += 1
        new = counts[message_digest] > self._known[message_digest]
        if new:
            self._known[message_digest] = counts[message_digest]
        return new

    def _nearest(self, messages: list[Json]) -> tuple[_Conversation, int]:
        """Return the conversation that an input continues, and the number of messages that they share."""
        shared = [(_shared(one.messages, messages), number) for number, one in enumerate(self._conversations)]
        best, number = max(shared, default=(0, -1))
        found = self._conversations.pop(number) if best else _Conversation()
        self._conversations.append(found)
        del self._conversations[:-_KEPT]
        return found, best

    def _is_new_result(self, message: dict[str, Json]) -> bool:
        texts = self._texts((message.get("content"), first(as_dict(message.get("error")), "message")))
        known = self._results.setdefault(as_str(message.get("tool_call_id")), set())
        # A tool's event contains its result too, perhaps in another form, so only new text makes a step.
        new = not texts <= known if texts else not known
        known |= texts or {b""}
        return new

    def _texts(self, values: Iterable[Json]) -> set[bytes]:
        return {_digest(text) for text in (as_text(self._resolved(value)) for value in values) if text}

    def _digest(self, message: dict[str, Json]) -> bytes:
        content = parts_of_message(self._resolved(message.get("content")))
        calls = [
            [call.get("id"), call.get("function"), call.get("arguments")]
            for call in objects(message.get("tool_calls"))
        ]
        own: list[Json] = [[call.id, call.tool, call.arguments] for call in content.calls]
        texts: list[Json] = [*content.texts, *content.thought]
        return _digest(compact([message.get("role"), texts, own, self._resolved([*calls])]))


def _shared(one: Sequence[Json], other: Sequence[Json]) -> int:
    """Return the number of messages that two inputs share at their beginnings."""
    if one and len(one) <= len(other) and list(one) == list(other[: len(one)]):
        return len(one)
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


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
        touching = [span for span in self._spans if span[0] <= end and start <= span[1]]
        starts, ends = zip((start, end), *touching, strict=True)
        self._spans = sorted({*self._spans} - {*touching} | {(min(starts), max(ends))})
