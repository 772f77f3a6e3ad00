"""Builds from the chunks of a stream the chat completion that would have been sent whole (decision 149)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gistpoint.core.merging import MOST_VALUES, Merger, plain
from gistpoint.core.streamed_calls import StreamedCalls, index_of
from gistpoint.sandbox.endpoints.events import ServerEvent
from gistpoint.sandbox.endpoints.meanings import error_in
from gistpoint.sandbox.endpoints.transport import delimiters_in

_DONE = b"[DONE]"
_ONCE = frozenset({"id", "model", "created"})
"""The members that a chunk shares with its completion; for each, the first value that is not empty counts."""
_SHORT = 1_000
"""The maximum number of characters in a member around a message."""


@dataclass
class _Choice:
    """One choice, as far as it was received."""

    calls: StreamedCalls
    message: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    is_given: bool = False
    """Whether a piece of its message was received, even an empty one."""

    def built(self) -> dict[str, Any]:
        """Return the choice in the form that a completion contains."""
        if not self.is_given:
            return {**self.others, "message": None}
        message = {"role": "assistant", "content": None, **plain(self.message)}
        if len(self.calls):
            message["tool_calls"] = self.calls.built()
        return {**self.others, "message": message}


class StreamedReply:
    """A reply that grows with each event."""

    def __init__(self) -> None:
        self._merger = Merger()
        self._top: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}
        self._whole: dict[str, Any] | None = None
        self._usage: dict[str, Any] | None = None
        self.error: object = None
        """The error that the stream reports; None if it reports none."""
        self.ended = False
        """Whether the stream reported its end with `[DONE]`."""
        self.began = False
        """Whether a part of the reply was received, other than the role of its author."""

    @property
    def over(self) -> bool:
        """Whether nothing of interest can follow."""
        return self.ended or self.error is not None or self._whole is not None

    @property
    def complete(self) -> bool:
        """Whether no part of the message is missing; its usage may be.

        Some servers omit `[DONE]`, others the reason why the reply ended.
        """
        reasons = [choice.others.get("finish_reason") for choice in self._choices.values()]
        return self.over or (bool(reasons) and all(reasons))

    @property
    def usage(self) -> dict[str, Any] | None:
        """The last reported usage; None if none was reported."""
        return self._usage

    @property
    def characters(self) -> int:
        """The number of characters received so far, in text of any kind."""
        return self._merger.room.written

    def add(self, event: ServerEvent) -> None:
        """Add an event.

        Raises `ValueError` for data that are not a chunk, and `EndlessReplyError` if a limit is exceeded.
        """
        for data in map(bytes.strip, _values_in(event)):
            if self.over:
                return
            if data == _DONE:
                self.ended = True
            elif data:
                self._add(chunk_in(data), is_error=event.name == "error")

    def body(self) -> dict[str, Any]:
        """Return the completion, or the body of an error."""
        if self._whole is not None:
            return self._whole
        if self.error is not None:
            return {"error": self.error}
        choices = [self._choices[index].built() for index in sorted(self._choices)]
        usage = {} if self._usage is None else {"usage": self._usage}
        return {**self._top, "object": "chat.completion", **usage, "choices": choices}

    def _add(self, chunk: dict[str, Any], *, is_error: bool) -> None:
        self._learn_usage(chunk)
        is_error = is_error or chunk.get("object") == "error"
        self.error = error_in(chunk) or (chunk if is_error else None)
        if self.error is not None:
            return
        if chunk.get("object") == "chat.completion":
            self._whole = chunk
        else:
            self._add_members(chunk)

    def _add_members(self, chunk: dict[str, Any]) -> None:
        self._note(self._top, chunk)
        for choice in _tables(chunk.get("choices")):
            self._add_choice(choice)

    def _note(self, members: dict[str, Any], given: Mapping[str, Any]) -> None:
        """Keep the numbers and short strings around a message, not lists and tables such as probabilities."""
        for name, value in given.items():
            is_short = isinstance(value, str) and 0 < len(value) <= _SHORT
            if not is_short and not isinstance(value, int | float):
                continue
            if name not in members:
                self._merger.room.take(1, len(name) + _SHORT)
            elif name in _ONCE:
                continue
            members[name] = value

    def _learn_usage(self, table: Mapping[str, Any]) -> None:
        """Keep the usage that a chunk or its choice reports; Groq reports it in a separate member."""
        groq = table.get("x_groq")
        for usage in (table.get("usage"), groq.get("usage") if isinstance(groq, dict) else None):
            if isinstance(usage, dict) and usage:
                self._usage = usage
                return

    def _add_choice(self, given: dict[str, Any]) -> None:
        error = error_in(given)
        if error is not None:
            self.error = error
            return
        choice = self._choices.setdefault(index_of(given), _Choice(StreamedCalls(self._merger)))
        self._note(choice.others, given)
        if self._usage is None:
            self._learn_usage(given)  # Moonshot
        delta, message = given.get("delta"), given.get("message")
        choice.is_given |= isinstance(delta, dict) or isinstance(message, dict)
        if isinstance(delta, dict) and delta:
            self._add_delta(choice, delta)
        elif isinstance(message, dict) and not choice.message and not len(choice.calls):
            self._add_delta(choice, message)

    def _add_delta(self, choice: _Choice, delta: dict[str, Any]) -> None:
        message = choice.message
        for name, value in delta.items():
            if name == "tool_calls":
                for call in _tables(value):
                    choice.calls.add(call)
                    self.began = True
            elif name == "role":
                message.setdefault("role", value)
            elif value is not None:
                message[name] = self._merger.merged(message.get(name), value, name)
                self.began |= bool(value)


def _values_in(event: ServerEvent) -> tuple[bytes, ...]:
    """Return the values in an event: usually one, but some servers omit the empty lines between events."""
    if len(event.lines) < 2:
        return event.lines
    try:
        json.loads(event.data)
    except (ValueError, RecursionError):
        return event.lines
    return (event.data,)


def chunk_in(data: bytes) -> dict[str, Any]:
    """Return the JSON object in an event's data.

    Raises `ValueError` if there is none, or one with too many values.
    """
    if delimiters_in(data) > MOST_VALUES:
        raise ValueError
    # Bytes that are not UTF-8 may be half of a character that a server has split (`merging`).
    value = json.loads(data.decode("utf-8", "surrogateescape"))
    if not isinstance(value, dict):
        raise ValueError
    return value


def _tables(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects in a list; empty if the value is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
