"""Finds requests to model APIs and their replies in logged exchanges: objects, strings or streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import takewhile
from typing import Any

from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.merging import EndlessReplyError, Merger, plain
from gistpoint.core.streamed_calls import StreamedCalls
from gistpoint.sessions.formats.shared.messages import role_of
from gistpoint.sessions.records.model import CutText, Json
from gistpoint.sessions.records.record import Record, of_type, records_in
from gistpoint.sessions.records.values import (
    as_dict,
    as_int,
    as_str,
    first_object,
    objects,
    parsed_object,
)

_PAIRS = (
    ("request", "response"),
    ("params", "result"),
    ("request", "result"),
    ("request", "reply"),
    ("req", "res"),
    ("request_body", "response_body"),
    ("input", "output"),
    ("body", "response"),
    ("kwargs", "response"),
)
_BODIES = (
    "parsed_body",
    "body",
    "body_raw",
    "json",
    "json_data",
    "postData",
    "text",
    "string",
    "content",
    "data",
    "kwargs",
    "payload",
    "message",
    "response",
    "result",
    "params",
)
_DEEPEST = 5
_OF_REPLY = (
    "object",
    "type",
    "id",
    "role",
    "model",
    "content",
    "output",
    "usage",
    "stop_reason",
    "stop_details",
    "status",
    "incomplete_details",
    "error",
)
"""The members that describe a reply; its other members are settings of the request."""
_OF_REQUEST = ("input", "instructions", "previous_response_id")
"""The members of an OpenAI response that describe its request."""


def sides_of(exchange: Json) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the bodies of an exchange's request and reply; each is empty if there is none."""
    record = as_dict(exchange)
    if _is_response(record):  # a response alone, which names the previous one
        return Record(record).kept(*_OF_REQUEST), record
    if _is_request(record):  # a log of a proxy: the reply is among the members of the request
        named = (record[key] for key in ("response", "reply", "output") if key in record)
        return record, _found(next(named, None), _is_reply, 0)
    for asked, answered in _PAIRS:
        if asked in record and answered in record:
            request, reply = _found(record[asked], _is_request, 0), _found(record[answered], _is_reply, 0)
            if request or reply:
                return request, reply
    for key in ("request", "params", "body"):
        request = _found(record.get(key), _is_request, 0)
        if request:
            return request, {}
    if "custom_id" in record:  # a line of a batch's results, whose requests are in another file
        return {}, _found(record.get("response", record.get("result")), _is_reply, 0)
    return {}, {}


def _is_response(body: dict[str, Json]) -> bool:
    return body.get("object") == "response" and "output" in body


def _is_request(body: dict[str, Json]) -> bool:
    if isinstance(body.get("messages"), list):
        return all("role" in message for message in objects(body["messages"])[:3])
    asks = "model" in body and "object" not in body
    return asks and isinstance(body.get("input"), str | list)


def _is_reply(body: dict[str, Json]) -> bool:
    if body.get("type") == "message" and "content" in body:
        return True
    if any("message" in choice for choice in objects(body.get("choices"))[:1]):
        return True
    return _is_response(body) or isinstance(body.get("error"), dict | str)


def _found(value: Json, is_one: Callable[[dict[str, Json]], bool], depth: int) -> dict[str, Json]:
    """Return the value or the first object below its body keys that `is_one` accepts; empty if there is none.

    A string is decoded first, as JSON or as server-sent events.
    """
    if depth > _DEEPEST:
        return {}
    if isinstance(value, str) and not isinstance(value, CutText):
        body = parsed_object(value)
        return _found(streamed(value) if body is None else body, is_one, depth + 1)
    if not isinstance(value, dict):
        return {}
    if is_one(value):
        return value
    return next(
        (found for key in _BODIES if key in value and (found := _found(value[key], is_one, depth + 1))), {}
    )


def streamed(text: str) -> dict[str, Json]:
    """Return the reply assembled from the server-sent events in a string; empty if there are none."""
    if "data:" not in text:
        return {}
    reply = _StreamedReply()
    with suppress(EndlessReplyError):
        for event in _events(text):
            reply.add(event)
    return reply.built()


def _events(text: str) -> Iterator[dict[str, Json]]:
    for line in physical_lines(text):
        event = parsed_object(line[5:]) if line.startswith("data:") else None
        if event is not None:
            yield event


class _StreamedReply:
    """A reply of OpenAI's or Anthropic's APIs, as far as its events have been read."""

    def __init__(self) -> None:
        self._merger = Merger()
        self._whole: dict[str, Json] = {}
        self._message: dict[str, Any] = {}
        self._calls = StreamedCalls(self._merger)
        self._blocks: list[dict[str, Any]] = []
        self._last: dict[int | None, dict[str, Any]] = {}
        """The latest block with each index, and under None the latest of all."""

    def add(self, event: dict[str, Json]) -> None:
        """Add an event. Raises `EndlessReplyError` if the reply has become too large."""
        kind = as_str(event.get("type"))
        if kind.startswith("response.") and isinstance(event.get("response"), dict):
            # The last of these events has the complete response.
            self._whole = as_dict(event["response"])
        elif kind == "message_start":
            self._whole, self._blocks, self._last = as_dict(event.get("message")), [], {}
        elif kind == "error":
            self._whole = {**self._whole, "error": event.get("error")}
        elif kind and self._whole.get("type") == "message":
            self._add_to_message(kind, event)
        elif "choices" in event:
            self._add_to_choice(event)

    def built(self) -> dict[str, Json]:
        """Return the body that the reply would have without streaming."""
        if self._whole.get("type") == "message":
            return {**self._whole, "content": [_with_input(plain(block)) for block in self._blocks]}
        for choice in records_in(self._whole.get("choices"))[:1]:
            calls: list[Json] = [{"type": "function", **call} for call in self._calls.built()]
            message = {
                "role": "assistant",
                **plain(self._message),
                **({"tool_calls": calls} if calls else {}),
            }
            return {**self._whole, "choices": [{**choice.members, "message": message}]}
        return self._whole

    def _add_to_message(self, kind: str, event: dict[str, Json]) -> None:
        """Add an event of Anthropic's API to the content of a message."""
        index, delta = as_int(event.get("index")), as_dict(event.get("delta"))
        match kind:
            case "content_block_start":
                block = self._merger.kept(as_dict(event.get("content_block")), "")
                self._last[index] = self._last[None] = block
                self._blocks.append(block)
            case "content_block_delta":
                block = self._last.get(index, self._last.get(None, {}))
                for key, source in (("text", "text"), ("thinking", "thinking"), (_WRITTEN, "partial_json")):
                    if isinstance(delta.get(source), str):
                        block[key] = self._merger.merged(block.get(key), delta[source], "text")
            case "message_delta":
                usage = {**as_dict(self._whole.get("usage")), **as_dict(event.get("usage"))}
                self._whole = {**self._whole, **delta, "usage": usage}

    def _add_to_choice(self, event: dict[str, Json]) -> None:
        """Add a chunk of OpenAI's chat API to a completion."""
        known: dict[str, Json] = {}
        for choice in records_in(event.get("choices"))[:1]:
            known = choice.kept("finish_reason")
            delta = choice.inner("delta")
            for key in ("content", "reasoning_content", "refusal"):
                if isinstance(delta.get(key), str):
                    self._message[key] = self._merger.merged(self._message.get(key), delta.word(key), key)
            for piece in objects(delta.get("tool_calls")):
                self._calls.add(piece)
        choices: list[Json] = [{**first_object(self._whole.get("choices")), **known}]
        self._whole |= {**Record(event).kept("id", "model", "created", "usage"), "choices": choices}


_WRITTEN = ""
"""The name under which a block collects the text of its call's arguments; no member has this name."""


def _with_input(block: dict[str, Any]) -> dict[str, Json]:
    """Return a block with its call's arguments; text that is not an object stays text."""
    written = block.pop(_WRITTEN, None)
    if written is None:
        return block
    parsed = parsed_object(written)
    return {**block, "input": written if parsed is None else parsed}


def message_of(reply: dict[str, Json]) -> dict[str, Json]:
    """Return a reply as a message with its model and usage; empty for an error or any other form."""
    record = Record(reply)
    for choice in record.objects("choices")[:1]:
        own_members = {**record.kept("id", "model", "usage"), "finish_reason": choice.get("finish_reason")}
        return {**own_members, **choice.inner("message").members, "role": "assistant"}
    if reply.get("object") != "response" and reply.get("type") != "message":
        return {}
    return {key: reply[key] for key in _OF_REPLY if key in reply}


def messages_in(request: dict[str, Json]) -> list[dict[str, Json]]:
    """Return a request's messages, or the items of its input; a string becomes a message from the user."""
    asked = request.get("messages", request.get("input"))
    return [{"role": "user", "content": asked}] if isinstance(asked, str) else objects(asked)


def system_of(request: dict[str, Json]) -> Json:
    """Return the system prompt that a request has next to its messages; None or empty if there is none."""
    return request.get("system") or request.get("instructions")


class Conversations:
    """Decides which conversation an exchange continues, and how much of its request is new.

    An exchange continues an earlier one if its messages begin with those of the earlier request, followed by
    the earlier reply.
    """

    def __init__(self) -> None:
        self.count = 0
        self._ends: dict[int, list[tuple[int, str]]] = {}
        self._replies: dict[str, int] = {}

    def place(self, request: dict[str, Json], reply: dict[str, Json]) -> tuple[int, int]:
        """Return the conversation's number, counted from 0, and how many messages of a request are known."""
        messages = messages_in(request)
        states = list(_states(messages))
        # A request to OpenAI's Responses API can name the response that it continues; in that case it
        # repeats no earlier messages.
        before = self._replies.get(as_str(request.get("previous_response_id")))
        conversation, start = self._continued(messages, states) if before is None else (before, 0)
        if conversation is None:
            conversation, start = self.count, 0
            self.count += 1
        if states:
            self._ends.setdefault(states[-1], []).append((conversation, _mark(message_of(reply))))
        if reply.get("id"):
            self._replies[as_str(reply["id"])] = conversation
        return conversation, start

    def _continued(self, messages: list[dict[str, Json]], states: list[int]) -> tuple[int | None, int]:
        for length in range(len(states), 0, -1):
            ends = self._ends.get(states[length - 1], [])
            following = "" if length == len(messages) else _mark(_first_reply(messages[length:]))
            known = next((end for end in reversed(ends) if end[1] == following), None)
            if known is None:
                continue
            # Two requests with the same beginning are two branches: each earlier reply is continued once.
            ends.remove(known)
            replied = _replies_in(messages[length:]) if known[1] else []
            return known[0], length + len(replied)
        return None, 0


def _replies_in(messages: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """Return the messages or items of the model at the beginning of a list."""
    return list(takewhile(lambda message: role_of(message) == "assistant", messages))


def _first_reply(messages: list[dict[str, Json]]) -> dict[str, Json]:
    """Return the first message at the beginning of a list if it is the model's; empty otherwise.

    The model's items at the beginning of the list are combined into one message.
    """
    replies = _replies_in(messages)
    if replies and "type" in replies[0]:
        return {"output": list[Json](replies)}
    return replies[0] if replies else {}


def _mark(message: dict[str, Json]) -> str:
    """Return a reply's identifier: its first call's id, otherwise up to 200 characters of its first text."""
    pieces = list(map(Record, _pieces(message)))
    calls = of_type(pieces, "tool_use", "function", "function_call", "custom_tool_call")
    if calls:
        return as_str(calls[0].get("call_id") or calls[0].get("id"))
    thoughts = ("reasoning", "thinking", "summary_text")
    spoken = [piece for piece in pieces if piece.get("type") not in thoughts]
    texts = [piece.get(key) for piece in spoken for key in ("content", "text")]
    shown = [text.strip()[:200] for text in texts if isinstance(text, str)]
    return next(filter(None, shown), "")


def _pieces(message: dict[str, Json]) -> Iterator[dict[str, Json]]:
    yield message
    for key in ("output", "content", "tool_calls"):
        for inner in objects(message.get(key)):
            yield from _pieces(inner)


def _states(messages: list[dict[str, Json]]) -> Iterator[int]:
    """Yield for each message a hash of all messages up to it, without cache markers."""
    # Chained: equal hashes mean that all messages up to there are equal.
    state = 0
    for message in messages:
        content = message.get("content")
        plain: Json = [{"type": "text", "text": content}] if isinstance(content, str) else content
        shown = {**message, "content": _uncached(plain)}
        state = hash((state, json.dumps(shown, sort_keys=True)))
        yield state


def _uncached(content: Json) -> Json:
    if not isinstance(content, list):
        return content
    return [_without_mark(part) if isinstance(part, dict) else part for part in content]


def _without_mark(part: dict[str, Json]) -> Json:
    return {key: _uncached(item) for key, item in part.items() if key != "cache_control"}
