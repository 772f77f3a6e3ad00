"""Reads the replies that a proxy passes on, in the formats of four APIs, whole or streamed.

They are read for the record and the budgets; unreadable parts are left out and never count against the model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from gistpoint.core.agents.loop import MOST_CALLS, MOST_CHARACTERS
from gistpoint.core.attempts.events import ModelTurn, RequestedCall
from gistpoint.core.chat import Usage
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.estimates import tokens_in
from gistpoint.sandbox.endpoints.replies import count

_SHORT: Final = 200
"""The maximum number of characters in names and ids."""
Table = Mapping[str, Any]


_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def asks_for_reply(path: str) -> bool:
    """Return whether a request to a path asks a model for a reply."""
    return _reader_of(path) is not None


def limit_in(path: str, request: Table) -> int | None:
    """Return the limit on a reply's tokens in a request: 0 if it asks for no reply, None without a limit."""
    if not asks_for_reply(path):
        return 0
    inner = request.get("generationConfig")
    given = [request.get(name) for name in _LIMITS]
    given.append(inner.get("maxOutputTokens") if isinstance(inner, dict) else None)
    return max(filter(None, map(count, given)), default=None)


def _reader_of(path: str) -> Callable[[_Reply, Table], None] | None:
    plain = path.partition("?")[0]
    return next((read for end, read in _READERS.items() if plain.endswith(end)), None)


def reply_in(path: str, request: Table, body: bytes, seconds: float) -> ModelTurn | None:
    """Return the reply in the body of an answer to a request; None if there is none.

    The path of the request, `path`, determines the API. The number of the turn is 0.
    """
    read = _reader_of(path)
    if read is None:
        return None
    reply = _Reply()
    for item in _items(body):
        try:
            read(reply, item)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            continue  # not in the documented form
    return reply.turn(len(json.dumps(request)), _offered(request), seconds)


def _items(body: bytes) -> Iterator[Any]:
    """Yield the JSON values in a body: those of its events, the items of its list, or the only one."""
    text = body.decode("utf-8", "replace")
    if text.lstrip().startswith(("{", "[")):
        try:
            whole = json.loads(text)
        except (ValueError, RecursionError):
            return
        yield from whole if isinstance(whole, list) else [whole]
        return
    for line in physical_lines(text):
        if line.startswith("data:"):
            try:
                yield json.loads(line[5:])
            except (ValueError, RecursionError):
                continue  # `[DONE]`


def _offered(request: Table) -> tuple[str, ...]:
    """Return the names of the tools that a request offers, including those in groups."""
    return tuple(name[:_SHORT] for name in _names(request.get("tools")))


def _names(tools: object) -> Iterator[str]:
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        function = tool.get("function")
        named = function if isinstance(function, dict) else tool
        within = [*_names(tool.get("tools")), *_names(tool.get("functionDeclarations"))]
        yield from within or [str(named.get("name") or named.get("type") or "")]


class _Reply:
    """The parts of a reply as they are read."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: dict[object, list[str]] = {}
        """The id, the name and the arguments of each call, by its position."""
        self.finish = self.model = self.id = ""
        self.counts: dict[str, int] = {}

    def count(self, name: str, value: object) -> None:
        """Keep a count of tokens; later counts replace earlier ones."""
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            self.counts[name] = value

    def call(self, place: object, id: object, name: object, arguments: str) -> None:
        """Add a call, or more of its arguments."""
        known = self.calls.setdefault(place, ["", "", ""])
        known[0], known[1] = known[0] or str(id or ""), known[1] or str(name or "")
        known[2] += arguments

    def turn(self, sent: int, offered: tuple[str, ...], seconds: float) -> ModelTurn | None:
        """Return the reply as it is journalled; None if nothing of a reply was read."""
        text, thought = "".join(self.texts), "".join(self.thoughts)
        if not (text or thought or self.calls or self.finish or self.counts):
            return None
        received = len(text) + len(thought) + sum(len(call[2]) for call in self.calls.values())
        counts = self.counts
        usage = Usage(
            counts.get("prompt", tokens_in(sent)),
            counts.get("completion", tokens_in(received)),
            counts.get("cached", 0),
            counts.get("reasoning", 0),
            written_tokens=counts.get("written", 0),
            estimated=not {"prompt", "completion"} <= counts.keys(),
        )
        calls = tuple(
            RequestedCall(id[:_SHORT], name[:MOST_CHARACTERS], arguments[:MOST_CHARACTERS])
            for id, name, arguments in [*self.calls.values()][:MOST_CALLS]
        )
        return ModelTurn(
            turn=0,
            content=text[:MOST_CHARACTERS],
            reasoning=thought[:MOST_CHARACTERS] or UNSET,
            tool_calls=calls,
            finish=self.finish[:_SHORT],
            model=self.model[:_SHORT],
            request_id=self.id[:_SHORT] or UNSET,
            usage=usage,
            latency_ms=round(seconds * 1000),
            tools=offered,
        )


def _read_messages(reply: _Reply, item: Table) -> None:
    """Read a whole message of Anthropic's API, or an event of a streamed one."""
    match item.get("type"):
        case "message":
            _message_head(reply, item)
            for place, part in enumerate(item.get("content", ())):
                _message_part(reply, place, part)
            reply.finish = str(item.get("stop_reason") or "")
        case "message_start":
            _message_head(reply, item["message"])
        case "content_block_start":
            _message_part(reply, item["index"], {**item["content_block"], "input": None})
        case "content_block_delta":
            delta = item["delta"]
            reply.texts.append(delta.get("text", ""))
            reply.thoughts.append(delta.get("thinking", ""))
            if "partial_json" in delta:
                reply.call(item["index"], "", "", delta["partial_json"])
        case "message_delta":
            reply.finish = str(item["delta"].get("stop_reason") or "")
            _message_usage(reply, item.get("usage") or {})


def _message_head(reply: _Reply, message: Table) -> None:
    reply.id, reply.model = str(message.get("id", "")), str(message.get("model", ""))
    _message_usage(reply, message.get("usage") or {})


def _message_usage(reply: _Reply, usage: Table) -> None:
    if "input_tokens" in usage:
        cached = usage.get("cache_read_input_tokens") or 0
        created = usage.get("cache_creation_input_tokens") or 0
        # Anthropic does not count tokens that it reads from or writes to its cache as input.
        reply.count("prompt", usage["input_tokens"] + cached + created)
        reply.count("cached", cached)
        reply.count("written", created)
    reply.count("completion", usage.get("output_tokens"))


def _message_part(reply: _Reply, place: object, part: Table) -> None:
    reply.texts.append(part.get("text", ""))
    reply.thoughts.append(part.get("thinking", ""))
    if part.get("type") == "tool_use":
        given = part.get("input")
        reply.call(place, part.get("id"), part.get("name"), "" if given is None else json.dumps(given))


def _read_responses(reply: _Reply, item: Table) -> None:
    """Read a whole response of OpenAI's API, or an event of a streamed one."""
    kind = str(item.get("type", ""))
    if kind == "response.output_item.done":
        _response_item(reply, item["item"])
    elif kind in ("response.completed", "response.incomplete", "response.failed"):
        _response_end(reply, item["response"])
    elif item.get("object") == "response":
        for part in item.get("output", ()):
            _response_item(reply, part)
        _response_end(reply, item)


def _response_item(reply: _Reply, item: Table) -> None:
    match item.get("type"):
        case "function_call":
            call = item.get("call_id") or item.get("id") or len(reply.calls)
            reply.call(call, call, item.get("name"), str(item.get("arguments") or ""))
        case "message":
            reply.texts += [part.get("text", "") for part in item.get("content", ())]
        case "reasoning":
            reply.thoughts += [part.get("text", "") for part in item.get("summary", ())]


def _response_end(reply: _Reply, response: Table) -> None:
    usage = response.get("usage") or {}
    reply.id, reply.model = str(response.get("id", "")), str(response.get("model", ""))
    reply.finish = str(response.get("status") or "completed")
    reply.count("prompt", usage.get("input_tokens"))
    reply.count("completion", usage.get("output_tokens"))
    reply.count("cached", (usage.get("input_tokens_details") or {}).get("cached_tokens"))
    reply.count("reasoning", (usage.get("output_tokens_details") or {}).get("reasoning_tokens"))


def _read_chat(reply: _Reply, item: Table) -> None:
    """Read a chat completion, or a chunk of a streamed one."""
    reply.id, reply.model = str(item.get("id", "")), str(item.get("model", ""))
    _chat_usage(reply, item.get("usage") or {})
    for choice in item.get("choices", ())[:1]:
        _chat_message(reply, choice.get("message") or choice.get("delta") or {})
        reply.finish = choice.get("finish_reason") or reply.finish


def _chat_usage(reply: _Reply, usage: Table) -> None:
    reply.count("prompt", usage.get("prompt_tokens"))
    reply.count("completion", usage.get("completion_tokens"))
    reply.count("cached", (usage.get("prompt_tokens_details") or {}).get("cached_tokens"))
    reply.count("reasoning", (usage.get("completion_tokens_details") or {}).get("reasoning_tokens"))


def _chat_message(reply: _Reply, message: Table) -> None:
    reply.texts.append(message.get("content") or "")
    reply.thoughts.append(message.get("reasoning_content") or message.get("reasoning") or "")
    for place, call in enumerate(message.get("tool_calls") or ()):
        _read_call(reply, call, place)


def _read_call(reply: _Reply, call: Table, place: int) -> None:
    """Read a call of a chat completion, or a piece of one; `place` is its index if it names none."""
    function = call.get("function") or {}
    arguments = function.get("arguments") or ""
    reply.call(call.get("index", place), call.get("id"), function.get("name"), arguments)


def _read_generated(reply: _Reply, item: Table) -> None:
    """Read a reply of Google's API, or a chunk of a streamed one."""
    reply.id, reply.model = str(item.get("responseId", "")), str(item.get("modelVersion", ""))
    _generated_usage(reply, item.get("usageMetadata") or {})
    for candidate in item.get("candidates", ())[:1]:
        for part in (candidate.get("content") or {}).get("parts", ()):
            _generated_part(reply, part)
        reply.finish = candidate.get("finishReason") or reply.finish


def _generated_usage(reply: _Reply, usage: Table) -> None:
    reply.count("prompt", usage.get("promptTokenCount"))
    thought = usage.get("thoughtsTokenCount") or 0
    if "candidatesTokenCount" in usage:
        reply.count("completion", usage["candidatesTokenCount"] + thought)
    reply.count("cached", usage.get("cachedContentTokenCount"))
    reply.count("reasoning", usage.get("thoughtsTokenCount"))


def _generated_part(reply: _Reply, part: Table) -> None:
    (reply.thoughts if part.get("thought") else reply.texts).append(part.get("text") or "")
    if "functionCall" in part:
        call = part["functionCall"]
        reply.call(len(reply.calls), call.get("id"), call.get("name"), json.dumps(call.get("args") or {}))


_READERS: Final[Mapping[str, Callable[[_Reply, Table], None]]] = {
    "/messages": _read_messages,
    "/responses": _read_responses,
    "/chat/completions": _read_chat,
    ":generateContent": _read_generated,
    ":streamGenerateContent": _read_generated,
}
"""The reader of an API's replies, by the end of its path."""
