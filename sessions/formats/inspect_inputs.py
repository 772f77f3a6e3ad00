"""Which messages in the inputs of an Inspect log's model calls are in no step yet.

Every call of a model repeats the conversation before it. What it adds beside the replies and results that have events
of their own (a system prompt, what a user says between turns, a prompt that a solver rewrote) is found here.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gistpoint.sessions.formats.blocks import parts_of_message
from gistpoint.sessions.formats.values import (
    as_dict,
    as_int,
    as_list,
    as_str,
    as_text,
    compact,
    first,
    objects,
    recoded,
)
from gistpoint.sessions.runs.model import Json
from gistpoint.sessions.runs.scanning import Record

_KEPT = 2
"""Conversations whose last input is remembered: agents that take turns have one each."""


@dataclass(slots=True)
class _Conversation:
    """The last input of an agent, and how often each message stands in it."""

    messages: list[Json] = field(default_factory=list)
    counts: Counter[bytes] = field(default_factory=Counter)


class Inputs:
    """Remembers which messages have become steps, by what they say: their ids may be new with every call."""

    def __init__(self, completed: Callable[[Json], Json]) -> None:
        """`completed` puts what a value refers to into its place."""
        self._complete = completed
        self._heard: Counter[bytes] = Counter()
        self._results: dict[str, set[bytes]] = {}
        self._conversations: list[_Conversation] = []
        self._places: dict[bytes, int] = {}
        self._seen = _Ranges()

    def _completed(self, value: Json) -> Json:
        return self._complete(recoded(value))

    def note(self, event: dict[str, Json]) -> None:
        """Note an event that is a step, or part of one."""
        kind = event.get("event")
        if kind == "model":
            for choice in objects(as_dict(event.get("output")).get("choices")):
                self._heard[self._said(as_dict(choice.get("message")))] += 1
        elif kind == "tool":
            texts = (event.get("result"), first(as_dict(event.get("error")), "message"))
            self._results.setdefault(as_str(event.get("id")), set()).update(self._texts(texts))
        elif kind == "sample_init":
            given = self._completed(as_dict(event.get("sample")).get("input"))
            asked: list[dict[str, Json]] = [{"role": "user", "content": given}]
            for message in asked if isinstance(given, str) else objects(given):
                self._heard[self._said(message)] += 1

    def new_in(self, messages: list[Json]) -> list[int]:
        """Return which of the messages of an input are in no step, by their places; they count as heard from now."""
        known, shared = self._nearest(messages)
        counts = Counter(known.counts) if shared == len(known.messages) else Counter[bytes]()
        begin = shared if counts or not shared else 0
        found: list[int] = []
        for place in range(begin, len(messages)):
            if self._is_new(as_dict(messages[place]), counts):
                found.append(place)
        known.messages, known.counts = messages, counts
        return found

    def new_records(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the records of a conversation, one at a time, whose messages are in no step."""
        counts = Counter[bytes]()
        for record in records:
            if self._is_new(as_dict(record.fields), counts):
                yield record

    def new_among(self, ranges: Json, size: int, message_at: Callable[[int], Json]) -> list[int]:
        """Return the same for an input that is ranges of a pool of `size` messages, by their numbers there."""
        pairs = [[as_int(number) or 0 for number in as_list(span)] for span in as_list(ranges)]
        spans = [(max(0, pair[0]), min(size, pair[1])) for pair in pairs if len(pair) == 2]
        found: list[int] = []
        for number in self._seen.add(spans):
            message = as_dict(message_at(number))
            if message.get("role") == "tool":
                new = self._is_new_result(message)
            else:
                said = self._said(message)
                before = self._places.get(said)
                again = before is not None and any(start <= before < end for start, end in spans)
                new = not self._heard[said] or again
                self._places[said] = number
                self._heard[said] += new
            if new:
                found.append(number)
        return found

    def _is_new(self, message: dict[str, Json], counts: Counter[bytes]) -> bool:
        """Whether a message stands in its conversation more often than it was heard; counts it there."""
        if message.get("role") == "tool":
            return self._is_new_result(message)
        said = self._said(message)
        counts[said] += 1
        new = counts[said] > self._heard[said]
        if new:
            self._heard[said] = counts[said]
        return new

    def _nearest(self, messages: list[Json]) -> tuple[_Conversation, int]:
        """Return the conversation that an input goes on with, and how many of its messages are the same."""
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

    def _said(self, message: dict[str, Json]) -> bytes:
        content = parts_of_message(self._completed(message.get("content")))
        calls = [
            [call.get("id"), call.get("function"), call.get("arguments")] for call in objects(message.get("tool_calls"))
        ]
        own: list[Json] = [[call.id, call.tool, call.arguments] for call in content.calls]
        texts: list[Json] = [*content.said, *content.thought]
        return _digest(compact([message.get("role"), texts, own, self._completed([*calls])]))


def _shared(one: Sequence[Json], other: Sequence[Json]) -> int:
    """Return how many messages two inputs have in common from their beginnings."""
    if one and len(one) <= len(other) and list(one) == list(other[: len(one)]):
        return len(one)
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _Ranges:
    """Whole numbers, kept as ranges that do not touch."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, int]] = []

    def add(self, spans: Iterable[tuple[int, int]]) -> list[int]:
        """Add ranges; return the numbers that were not there, in the order of the ranges."""
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
