"""Builds one chat completion from the chunks of a stream, as it would have been sent whole (decision 149)."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gistpoint.sandbox.endpoints.events import ServerEvent
from gistpoint.sandbox.endpoints.transport import MOST_BYTES, MOST_VALUES, EndlessReplyError, signs_in

_DONE = b"[DONE]"
_ONCE = frozenset({"id", "model", "created"})
"""The members of a chunk that are those of its completion; the first that is not empty counts."""
_SHORT = 1_000
"""The maximum number of characters in a member around a message."""
_NAMES = frozenset({"id", "type", "index", "format", "name", "role", "object", "status"})
"""The members of a delta that repeat instead of growing."""
_TEXTS = frozenset(
    {"content", "reasoning_content", "reasoning", "refusal", "text", "summary", "thinking", "arguments"}
)
"""The members of a delta whose text always grows, even by the same characters again."""


class _Text:
    """A text that grows by pieces."""

    __slots__ = ("_pieces", "length")

    def __init__(self, text: str) -> None:
        self._pieces = io.StringIO()
        self.length = 0
        self.add(text)

    def add(self, text: str) -> None:
        self._pieces.write(text)
        self.length += len(text)

    def is_same(self, text: str) -> bool:
        return self.length == len(text) and str(self) == text

    def __str__(self) -> str:
        return self._pieces.getvalue()


@dataclass
class _Room:
    """The room left for the values and characters of a reply."""

    values: int = field(default_factory=lambda: MOST_VALUES)
    characters: int = field(default_factory=lambda: MOST_BYTES)
    written: int = 0
    """The number of characters of texts, other than those around the message."""

    def write(self, values: int, text: str) -> None:
        """Take room for a text of the message. Raises `EndlessReplyError` if there is too little."""
        self.written += len(text)
        self.take(values, len(text))

    def take(self, values: int, characters: int) -> None:
        """Take room for values and characters. Raises `EndlessReplyError` if there is too little."""
        self.values -= values
        self.characters -= characters
        if min(self.values, self.characters) < 0:
            raise EndlessReplyError


@dataclass
class _Choice:
    """One choice, as far as it was received."""

    message: dict[str, Any] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)
    others: dict[str, Any] = field(default_factory=dict)
    is_given: bool = False
    """Whether a piece of its message was received, even an empty one."""

    @property
    def is_blank(self) -> bool:
        return not self.message and not self.calls

    def call_of(self, delta: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the call that a delta continues; None if it begins another.

        The index names the call. vLLM, SGLang and Gemini have sent several calls with the same index, and
        vLLM a new id with each piece, so that only a new id with a name begins another call.
        """
        index, id = delta.get("index"), delta.get("id")
        same = [call for call in self.calls if call.get("index") == index]
        if not isinstance(index, int):
            same = [call for call in self.calls if not id or call.get("id") in (id, None)]
        if not same:
            return None
        call = same[-1]
        function = delta.get("function")
        if not isinstance(function, dict) or not function.get("name"):
            return call
        is_other = bool(id) and bool(call.get("id")) and call["id"] != id
        is_unnamed = not id and not call.get("id") and bool(function.get("arguments")) and _is_whole(call)
        return None if is_other or is_unnamed else call

    def built(self) -> dict[str, Any]:
        """Return the choice as a completion contains it."""
        if not self.is_given:
            return {**self.others, "message": None}
        message = {"role": "assistant", "content": None, **_plain(self.message)}
        if self.calls:
            calls = sorted(self.calls, key=_index)
            # The index only orders the pieces: a reply that is sent whole has none.
            message["tool_calls"] = [
                {name: _plain(value) for name, value in call.items() if name != "index"} for call in calls
            ]
        return {**self.others, "message": message}


class StreamedReply:
    """A reply that grows with each event."""

    def __init__(self) -> None:
        self._room = _Room()
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

        Some servers leave `[DONE]` out, others the reason why the reply ended.
        """
        reasons = [choice.others.get("finish_reason") for choice in self._choices.values()]
        return self.over or (bool(reasons) and all(reasons))

    @property
    def usage(self) -> dict[str, Any] | None:
        """The usage as last reported; None if it was not."""
        return self._usage

    @property
    def characters(self) -> int:
        """The number of characters received so far, in texts of any kind."""
        return self._room.written

    def add(self, event: ServerEvent) -> None:
        """Add an event. Raises `ValueError` for data that are not a chunk, and `EndlessReplyError`."""
        for data in _values_in(event):
            if data.strip() == _DONE:
                self.ended = True
                return
            if data.strip():
                self._add(_chunk(data), is_error=event.name == "error")

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
        error = chunk.get("error")
        if isinstance(error, dict | str) and error:
            self.error = error
        elif is_error or chunk.get("object") == "error":
            self.error = chunk
        elif chunk.get("object") == "chat.completion":
            self._whole = chunk
        else:
            self._add_members(chunk)

    def _add_members(self, chunk: dict[str, Any]) -> None:
        self._note(self._top, chunk)
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                self._add_choice(choice)

    def _note(self, members: dict[str, Any], given: Mapping[str, Any]) -> None:
        """Keep the members around a message that are no lists or tables, such as probabilities."""
        for name, value in given.items():
            is_short = isinstance(value, str) and 0 < len(value) <= _SHORT
            if not is_short and not isinstance(value, int | float):
                continue
            if name not in members:
                self._room.take(1, len(name) + _SHORT)
            elif name in _ONCE:
                continue
            members[name] = value

    def _learn_usage(self, table: Mapping[str, Any]) -> None:
        """Keep the usage that a chunk or its choice reports; Groq reports it in a member of its own."""
        groq = table.get("x_groq")
        for usage in (table.get("usage"), groq.get("usage") if isinstance(groq, dict) else None):
            if isinstance(usage, dict) and usage:
                self._usage = usage
                return

    def _add_choice(self, given: dict[str, Any]) -> None:
        error = given.get("error")
        if isinstance(error, dict | str) and error:
            self.error = error
            return
        choice = self._choices.setdefault(_index(given), _Choice())
        self._note(choice.others, given)
        if self._usage is None:
            self._learn_usage(given)  # Moonshot
        delta, message = given.get("delta"), given.get("message")
        choice.is_given = choice.is_given or isinstance(delta, dict) or isinstance(message, dict)
        if isinstance(delta, dict) and delta:
            self._add_delta(choice, delta)
        elif isinstance(message, dict) and choice.is_blank:
            self._add_delta(choice, message)

    def _add_delta(self, choice: _Choice, delta: dict[str, Any]) -> None:
        message = choice.message
        for name, value in delta.items():
            if name == "tool_calls":
                for call in value if isinstance(value, list) else ():
                    if isinstance(call, dict):
                        self._add_call(choice, call)
                        self.began = True
            elif name == "role":
                message.setdefault("role", value)
            elif value is not None:
                message[name] = self._merged(message.get(name), value, name)
                self.began = self.began or bool(value)

    def _add_call(self, choice: _Choice, delta: dict[str, Any]) -> None:
        call = choice.call_of(delta)
        if call is None:
            call = {}
            choice.calls.append(call)
        for name, value in delta.items():
            if name == "function" and isinstance(value, dict):
                self._add_function(call.setdefault("function", {}), value)
            elif name in ("id", "index"):
                if call.get(name) in (None, ""):
                    call[name] = self._kept(value, name)
            elif value is not None:
                call[name] = self._merged(call.get(name), value, name)

    def _add_function(self, function: dict[str, Any], delta: dict[str, Any]) -> None:
        for name, value in delta.items():
            if name == "name" and isinstance(value, str):
                function["name"] = self._kept(_named(function.get("name") or "", value), "name")
            elif value is not None:
                function[name] = self._merged(function.get(name), value, name)

    def _merged(self, old: Any, new: Any, name: str) -> Any:
        """Return a member after one more piece of it."""
        if old is None:
            return self._kept(new, name)
        if isinstance(old, _Text) and isinstance(new, str):
            # What is not known to be a text may also be a constant that every chunk repeats.
            if name in _TEXTS or not old.is_same(new):
                self._room.write(0, new)
                old.add(new)
        elif isinstance(old, dict) and isinstance(new, dict):
            for key, value in new.items():
                old[key] = self._merged(old.get(key), value, key)
        elif isinstance(old, list) and isinstance(new, list):
            self._extend(old, new)
        elif name == "content" and isinstance(old, list) and isinstance(new, str):
            self._extend(old, [{"type": "text", "text": new}])
        elif name == "content" and isinstance(old, _Text) and isinstance(new, list):
            return self._merged([{"type": "text", "text": old}] if old.length else [], new, name)
        elif new not in (None, "", [], {}):
            return self._kept(new, name)
        return old

    def _extend(self, old: list[Any], new: list[Any]) -> None:
        """Add pieces of items to the items that they continue, and other items at the end."""
        for item in new:
            continued = _continued(old, item) if isinstance(item, dict) else None
            if continued is None:
                old.append(self._kept(item, ""))
            else:
                self._merged(continued, item, "")

    def _kept(self, value: Any, name: str) -> Any:
        """Return a value in the form in which it can grow, after taking room for it."""
        if isinstance(value, str):
            self._room.write(1, value)
            return value if name in _NAMES else _Text(value)
        self._room.take(1, 0)
        if isinstance(value, dict):
            self._room.take(0, sum(map(len, value)))
            return {key: self._kept(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self._kept(item, "") for item in value]
        return value


def _values_in(event: ServerEvent) -> tuple[bytes, ...]:
    """Return the values in an event: usually one, but some servers leave out the lines between events."""
    if len(event.lines) < 2:
        return event.lines
    try:
        json.loads(event.data)
    except ValueError:
        return event.lines
    return (event.data,)


def _chunk(data: bytes) -> dict[str, Any]:
    """Return the chunk in an event. Raises `ValueError` if there is none, or one with too many values."""
    if signs_in(data) > MOST_VALUES:
        raise ValueError
    # Bytes that are not UTF-8 may be halves of a character that a server has cut in two (`_sound`).
    value = json.loads(data.decode("utf-8", "surrogateescape"))
    if not isinstance(value, dict):
        raise ValueError
    return value


def _index(item: Mapping[str, Any]) -> int:
    index = item.get("index")
    return index if isinstance(index, int) else 0


def _named(old: str, new: str) -> str:
    """Return a function's name after one more piece, which may also repeat the whole name."""
    return new if new.startswith(old) else old if old.startswith(new) else old + new


def _is_whole(call: Mapping[str, Any]) -> bool:
    """Whether the arguments of a call so far are a JSON object."""
    arguments = str(call.get("function", {}).get("arguments") or "").strip()
    if not arguments.endswith("}"):
        return False
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


def _continued(items: list[Any], piece: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the item that a piece continues; None if it is an item of its own.

    OpenRouter's `reasoning_details` have an index and a type. Without an index, only a piece of text
    continues the last item.
    """
    index, type = piece.get("index"), piece.get("type")
    if isinstance(index, int):
        same = (item for item in items if isinstance(item, dict) and item.get("index") == index)
        return next((item for item in same if item.get("type") == type), None)
    last = items[-1] if items else None
    if not isinstance(last, dict) or last.get("type") != type or last.get("index") is not None:
        return None
    grows = any(isinstance(piece.get(name), str) and isinstance(last.get(name), _Text) for name in _TEXTS)
    return last if grows else None


def _plain(value: Any) -> Any:
    """Return a value with its texts as strings."""
    if isinstance(value, _Text):
        return _sound(str(value))
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _sound(text: str) -> str:
    """Return a text in which halves of characters that came in two pieces are joined.

    Halves are surrogates of UTF-16, or bytes of UTF-8 that `_chunk` decoded as surrogates.
    """
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        pass
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:
        return text
