"""Finds requests to model APIs and their replies in logged exchanges: objects, strings or streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import takewhile
from operator import itemgetter
from typing import TypeAlias

from gistpoint.core.code.source_text import physical_lines
from gistpoint.sessions.formats.shared.messages import role_of
from gistpoint.sessions.records.model import CutText, Json
from gistpoint.sessions.records.record import Record, of_type, records_in
from gistpoint.sessions.records.values import (
    as_dict,
    as_int,
    as_list,
    as_str,
    compact,
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
_LastOfIndex: TypeAlias = dict[int | None, dict[str, Json]]
"""The last part of a streamed reply with each index; under None, the last one of all."""
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
    whole: dict[str, Json] = {}
    blocks: _LastOfIndex = {}
    calls = _StreamedCalls()
    for event in _events(text):
        kind = as_str(event.get("type"))
        if kind.startswith("response.") and isinstance(event.get("response"), dict):
            # The last of these events has the complete response.
            whole = as_dict(event["response"])
        elif kind == "message_start":
            whole, blocks = {**as_dict(event.get("message")), "content": []}, {}
        elif kind == "error":
            whole = {**whole, "error": event.get("error")}
        elif kind and whole.get("type") == "message":
            _add_to_message(whole, blocks, kind, event)
        elif "choices" in event:
            _add_to_choice(whole, calls, event)
    as_dict(first_object(whole.get("choices")).get("message")).update(calls.built())
    return whole


def _events(text: str) -> Iterator[dict[str, Json]]:
    for line in physical_lines(text):
        event = parsed_object(line[5:]) if line.startswith("data:") else None
        if event is not None:
            yield event


def _add_to_message(whole: dict[str, Json], begun: _LastOfIndex, kind: str, event: dict[str, Json]) -> None:
    """Add an event of Anthropic's API to a message; `begun` has its blocks so far."""
    index, delta = as_int(event.get("index")), as_dict(event.get("delta"))
    block = begun.get(index, begun.get(None, {}))
    match kind:
        case "content_block_start":
            begun[index] = begun[None] = dict(as_dict(event.get("content_block")))
            as_list(whole["content"]).append(begun[index])
        case "content_block_delta":
            for key, source in (("text", "text"), ("thinking", "thinking"), ("input", "partial_json")):
                if source in delta:
                    known = block.get(key)
                    block[key] = (known if isinstance(known, str) else "") + as_str(delta[source])
        case "content_block_stop":
            # The arguments of a call arrive as pieces of JSON, which can be parsed only together.
            written = block.get("input")
            parsed = parsed_object(written) if isinstance(written, str) else None
            if parsed is not None:
                block["input"] = parsed
        case "message_delta":
            whole.update(delta)
            whole["usage"] = {**as_dict(whole.get("usage")), **as_dict(event.get("usage"))}


def _add_to_choice(whole: dict[str, Json], calls: _StreamedCalls, event: dict[str, Json]) -> None:
    """Add a chunk of OpenAI's chat API to a completion and its calls."""
    whole.update(Record(event).kept("id", "model", "created", "usage"))
    known = as_dict(as_list(whole.setdefault("choices", [{"message": {"role": "assistant"}}]))[0])
    message = as_dict(known["message"])
    for choice in records_in(event.get("choices"))[:1]:
        delta = choice.inner("delta")
        for key in ("content", "reasoning_content", "refusal"):
            if isinstance(delta.get(key), str):
                message[key] = as_str(message.get(key)) + delta.word(key)
        known.update(choice.kept("finish_reason"))
        for piece in objects(delta.get("tool_calls")):
            calls.add(piece)


class _StreamedCalls:
    """The calls of a streamed completion, as far as their pieces were read."""

    def __init__(self) -> None:
        self._calls: list[tuple[int, dict[str, Json]]] = []
        self._last: _LastOfIndex = {}

    def add(self, piece: dict[str, Json]) -> None:
        """Add a piece of a call."""
        # A piece belongs to the call with its index; some providers repeat the id with every piece, others
        # send none.
        index = as_int(piece.get("index"))
        call = self._last.get(index)
        if call is None or _is_another(call, piece, has_index=index is not None):
            call = {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
            self._calls.append((index or 0, call))
        self._last[index] = self._last[None] = call
        call["id"] = call["id"] or piece.get("id")
        asked, begun = as_dict(piece.get("function")), as_dict(call["function"])
        begun["name"] = _named(as_str(begun["name"]), as_str(asked.get("name")))
        given = asked.get("arguments")
        begun["arguments"] = as_str(begun["arguments"]) + (
            compact(given) if isinstance(given, dict) else as_str(given)
        )

    def built(self) -> dict[str, Json]:
        """Return the member of a message with the calls in the order of their index; empty without calls."""
        calls: list[Json] = [call for _, call in sorted(self._calls, key=itemgetter(0))]
        return {"tool_calls": calls} if calls else {}


def _is_another(call: dict[str, Json], piece: dict[str, Json], *, has_index: bool) -> bool:
    """Whether a piece begins another call than the one with its index: with a name and a new id.

    Without ids, a named piece with arguments begins another call if those of the first one are complete.
    """
    asked, before, identity = as_dict(piece.get("function")), call["id"], piece.get("id")
    if not asked.get("name") and has_index:
        return False
    if before or identity:
        return bool(before and identity) and before != identity
    written = as_str(as_dict(call["function"])["arguments"]).rstrip()
    is_whole = written.endswith("}") and parsed_object(written) is not None
    return is_whole and bool(asked.get("name")) and bool(asked.get("arguments"))


def _named(old: str, new: str) -> str:
    """Return a function's name after one more piece, which may also repeat the whole name."""
    return new if new.startswith(old) else old if old.startswith(new) else old + new


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
