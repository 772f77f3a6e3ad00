"""Requests to model APIs and their replies, found in what a log keeps of an exchange: objects, texts, event streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from gistpoint.sessions.formats.messages import role_of
from gistpoint.sessions.records.model import CutText, Json
from gistpoint.sessions.records.values import as_dict, as_list, as_str, objects, parsed_object

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
"""What a reply says of itself; the rest are the settings of its request."""
_OF_REQUEST = ("input", "instructions", "previous_response_id")
"""What a response of OpenAI's API says of its request."""


def sides_of(exchange: Json) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the body of an exchange's request and its reply; empty if there is none."""
    record = as_dict(exchange)
    if record.get("object") == "response" and "output" in record:  # a response alone, which names the one before it
        return {key: record[key] for key in _OF_REQUEST if record.get(key)}, record
    if _is_request(record):  # a log of a proxy: the reply stands among the members of the request
        reply = next(
            (_found(record[key], _is_reply, 0) for key in ("response", "reply", "output") if key in record), {}
        )
        return record, reply
    for asked, answered in _PAIRS:
        if asked in record and answered in record:
            request, reply = _found(record[asked], _is_request, 0), _found(record[answered], _is_reply, 0)
            if request or reply:
                return request, reply
    for key in ("request", "params", "body"):
        request = _found(record.get(key), _is_request, 0)
        if request:
            return request, {}
    if "custom_id" in record:
        return {}, _found(record.get("response", record.get("result")), _is_reply, 0)
    return {}, {}


def _is_request(body: dict[str, Json]) -> bool:
    if isinstance(body.get("messages"), list):
        return all("role" in message for message in objects(body["messages"])[:3])
    return "model" in body and isinstance(body.get("input"), str | list) and "object" not in body


def _is_reply(body: dict[str, Json]) -> bool:
    if body.get("type") == "message" and "content" in body:
        return True
    choices = objects(body.get("choices"))
    if choices and "message" in choices[0]:
        return True
    return (body.get("object") == "response" and "output" in body) or isinstance(body.get("error"), dict | str)


def _found(value: Json, is_one: Callable[[dict[str, Json]], bool], depth: int) -> dict[str, Json]:
    """Return the first object that is one, below the names under which logs keep bodies."""
    if depth > _DEEPEST:
        return {}
    if isinstance(value, str) and not isinstance(value, CutText):
        body = parsed_object(value)
        return _found(streamed(value) if body is None else body, is_one, depth + 1)
    if not isinstance(value, dict):
        return {}
    if is_one(value):
        return value
    return next((found for key in _BODIES if key in value and (found := _found(value[key], is_one, depth + 1))), {})


def streamed(text: str) -> dict[str, Json]:
    """Return the reply that server-sent events make; empty if the text holds none."""
    if "data:" not in text:
        return {}
    whole: dict[str, Json] = {}
    for event in _events(text):
        kind = as_str(event.get("type"))
        if kind.startswith("response.") and isinstance(event.get("response"), dict):
            whole = as_dict(event["response"])
        elif kind == "message_start":
            whole = {**as_dict(event.get("message")), "content": []}
        elif kind == "error":
            whole = {**whole, "error": event.get("error")}
        elif kind and whole.get("type") == "message":
            _add_to_message(whole, kind, event)
        elif "choices" in event:
            _add_to_choice(whole, event)
    return whole


def _events(text: str) -> Iterator[dict[str, Json]]:
    for line in text.splitlines():
        event = parsed_object(line[5:]) if line.startswith("data:") else None
        if event is not None:
            yield event


def _add_to_message(whole: dict[str, Json], kind: str, event: dict[str, Json]) -> None:
    """Add an event of Anthropic's API to a message."""
    blocks, delta = as_list(whole["content"]), as_dict(event.get("delta"))
    if kind == "content_block_start":
        blocks.append(dict(as_dict(event.get("content_block"))))
    elif kind == "content_block_delta" and blocks:
        block = as_dict(blocks[-1])
        for key, source in (("text", "text"), ("thinking", "thinking"), ("input", "partial_json")):
            if source in delta:
                known = block.get(key)
                block[key] = (known if isinstance(known, str) else "") + as_str(delta[source])
    elif kind == "content_block_stop" and blocks:
        block = as_dict(blocks[-1])
        written = block.get("input")
        if isinstance(written, str):
            parsed = parsed_object(written)
            block["input"] = written if parsed is None else parsed
    elif kind == "message_delta":
        whole.update(delta)
        whole["usage"] = {**as_dict(whole.get("usage")), **as_dict(event.get("usage"))}


def _add_to_choice(whole: dict[str, Json], event: dict[str, Json]) -> None:
    """Add a chunk of OpenAI's chat API to a completion."""
    for key in ("id", "model", "created", "usage"):
        if event.get(key):
            whole[key] = event[key]
    message = as_dict(as_dict(as_list(whole.setdefault("choices", [{"message": {"role": "assistant"}}]))[0])["message"])
    for choice in objects(event.get("choices"))[:1]:
        delta = as_dict(choice.get("delta"))
        for key in ("content", "reasoning_content", "refusal"):
            if isinstance(delta.get(key), str):
                message[key] = as_str(message.get(key)) + as_str(delta[key])
        if choice.get("finish_reason"):
            as_dict(as_list(whole["choices"])[0])["finish_reason"] = choice["finish_reason"]
        for piece in objects(delta.get("tool_calls")):
            _add_to_call(as_list(message.setdefault("tool_calls", [])), piece)


def _add_to_call(calls: list[Json], piece: dict[str, Json]) -> None:
    asked = as_dict(piece.get("function"))
    if piece.get("id") or not calls:
        calls.append(
            {"id": piece.get("id"), "type": "function", "function": {"name": asked.get("name"), "arguments": ""}}
        )
    begun = as_dict(as_dict(calls[-1])["function"])
    begun["arguments"] = as_str(begun["arguments"]) + as_str(asked.get("arguments"))


def message_of(reply: dict[str, Json]) -> dict[str, Json]:
    """Return a reply as a message that tells its model and usage; empty if it is an error."""
    choices = objects(reply.get("choices"))
    if choices:
        beside = {key: reply[key] for key in ("id", "model", "usage") if reply.get(key)}
        beside["finish_reason"] = choices[0].get("finish_reason")
        return {**beside, **as_dict(choices[0].get("message")), "role": "assistant"}
    if reply.get("object") != "response" and reply.get("type") != "message":
        return {}
    return {key: reply[key] for key in _OF_REPLY if key in reply}


def asked_in(request: dict[str, Json]) -> list[dict[str, Json]]:
    """Return the messages of a request, or the items of its input."""
    asked = request.get("messages", request.get("input"))
    return [{"role": "user", "content": asked}] if isinstance(asked, str) else objects(asked)


def system_of(request: dict[str, Json]) -> Json:
    """Return the system prompt that stands beside the messages."""
    return request.get("system") or request.get("instructions")


class Conversations:
    """Tells which conversation an exchange continues, and how much of its request is new.

    An exchange continues the one whose request begins its own and whose reply comes next there.
    """

    def __init__(self) -> None:
        self.count = 0
        self._ends: dict[int, list[tuple[int, str]]] = {}
        self._replies: dict[str, int] = {}

    def place(self, request: dict[str, Json], reply: dict[str, Json]) -> tuple[int, int]:
        """Return the conversation, and the number of messages that its earlier exchanges have."""
        messages = asked_in(request)
        before = self._replies.get(as_str(request.get("previous_response_id")))
        states = list(_states(messages))
        conversation, start = (before, 0) if before is not None else self._continued(messages, states)
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
            following = "" if length == len(messages) else _mark(_said(messages[length:]))
            known = next((end for end in reversed(ends) if end[1] == following), None)
            if known is not None:
                ends.remove(known)
                while known[1] and length < len(messages) and role_of(messages[length]) == "assistant":
                    length += 1
                return known[0], length
        return None, 0


def _said(messages: list[dict[str, Json]]) -> dict[str, Json]:
    """Return what the model said at the beginning of messages or items, as one message."""
    said: list[Json] = []
    for message in messages:
        if role_of(message) != "assistant":
            break
        said.append(message)
    return {"output": said} if said and "type" in as_dict(said[0]) else as_dict(said[0]) if said else {}


def _mark(message: dict[str, Json]) -> str:
    """Return what tells a reply from others: the id of its first call, else how its text begins."""
    pieces = list(_pieces(message))
    for piece in pieces:
        if as_str(piece.get("type")) in ("tool_use", "function", "function_call", "custom_tool_call"):
            return as_str(piece.get("call_id") or piece.get("id"))
    said = [piece for piece in pieces if piece.get("type") not in ("reasoning", "thinking", "summary_text")]
    texts = [piece[key] for piece in said for key in ("content", "text") if isinstance(piece.get(key), str)]
    return next((text.strip()[:200] for text in map(as_str, texts) if text.strip()), "")


def _pieces(message: dict[str, Json]) -> Iterator[dict[str, Json]]:
    yield message
    for key in ("output", "content", "tool_calls"):
        for inner in objects(message.get(key)):
            yield from _pieces(inner)


def _states(messages: list[dict[str, Json]]) -> Iterator[int]:
    """Yield a hash of the messages up to each one, without the marks of a cache."""
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
    return [
        {key: _uncached(item) for key, item in part.items() if key != "cache_control"}
        if isinstance(part, dict)
        else part
        for part in content
    ]
