"""Reads the replies that a proxy passes on, in the formats of four APIs, whole or streamed.

They are read for the record and the budgets; unreadable parts are left out and never count against the model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import UNSET

from gistpoint.core.agents.loop import MOST_CALLS, MOST_CHARACTERS
from gistpoint.core.attempts.events import ModelTurn, RequestedCall
from gistpoint.core.chat import ChatFailure, ChatProblem, Usage
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.estimates import tokens_in
from gistpoint.core.merging import EndlessReplyError, Merger
from gistpoint.core.streamed_calls import StreamedCalls
from gistpoint.sandbox.endpoints import anthropic_bodies, gemini_bodies
from gistpoint.sandbox.endpoints.meanings import (
    PROBLEMS,
    UNKNOWN_STATUS,
    error_in,
    error_text,
    meaning_of,
    problem_of,
    status_in,
)
from gistpoint.sandbox.endpoints.replies import BROKEN, WINDOW_FULL, count, reply_in_error, usage_of

_SHORT: Final = 200
"""The maximum number of characters in names and ids."""
_UNKNOWN_STATUS: Final = 500
"""The status of an error in a stream that names none."""
Table = Mapping[str, Any]


def asks_for_reply(path: str) -> bool:
    """Return whether a request to a path asks a model for a reply."""
    return _api_of(path) is not None


def limit_in(path: str, request: Table) -> int | None:
    """Return the limit on a reply's tokens in a request: 0 if it asks for no reply, None without a limit.

    Only the members that the API of the path reads are a limit.
    """
    api = _api_of(path)
    if api is None:
        return 0
    return max(filter(None, map(count, _members(request, api.limits))), default=None)


def replies_in(path: str, request: Table) -> int:
    """Return the number of replies that a request asks for, each of which costs its own tokens; at least 1.

    Some servers also read a number in a string, or with a decimal point.
    """
    api = _api_of(path)
    return max((_whole(value) for value in _members(request, api.replies if api else ())), default=1)


def _members(request: Table, names: Sequence[str]) -> Iterator[object]:
    """Yield the values with these names in a request, or in the table of Google's settings."""
    inner = request.get("generationConfig", request.get("generation_config"))
    for table in (request, inner):
        if isinstance(table, dict):
            yield from (table[name] for name in names if name in table)


def _whole(value: object) -> int:
    try:
        number = int(float(value)) if isinstance(value, int | float | str) else 1
    except (OverflowError, ValueError):
        return 1
    return max(1, number)


def _api_of(path: str) -> _Api | None:
    plain = path.partition("?")[0].rstrip("/")
    return next((api for end, api in _APIS.items() if plain.endswith(end)), None)


def reply_in(path: str, request: Table, body: bytes, seconds: float) -> ModelTurn | ChatFailure | None:
    """Return the reply in the body of a successful answer to a request, or the failure that it reports.

    None if it contains neither. The path of the request, `path`, determines the API. The number of the turn
    is 0.
    """
    api = _api_of(path)
    if api is None:
        return None
    reply = _read(api, body)
    usage = Usage() if reply.is_empty else reply.usage(api, _length(request))
    if reply.error is not None:
        return refusal_in(path, request, status_in(reply.error), {"error": reply.error}, usage)
    if reply.finish in BROKEN:
        return ChatFailure(ChatProblem.SERVER_ERROR, f"a reply that ended with {reply.finish!r}", usage=usage)
    if reply.finish == WINDOW_FULL and not reply.requested:
        return ChatFailure(ChatProblem.CONTEXT_FULL, "with a full context", usage=usage)
    return None if reply.is_empty else reply.turn(usage, _offered(request), seconds)


def refusal_in(
    path: str, request: Table, status: int, body: object, usage: Usage | None = None
) -> ModelTurn | ChatFailure:
    """Return the failure that an error with a status means, with its usage.

    An error that reports a reply of the model, such as one that was filtered, is that reply.
    """
    api = _api_of(path)
    found = None if api is None else reply_in_error(status, body, None, _length(request))
    if api is None or found is None:
        problem = problem_of(status, body) if api is None else api.problem(status, body)
        code = f"{status}: " if status else ""
        return ChatFailure(problem, f"{code}{error_text(body)}", usage=usage or Usage())
    reply = _Reply()
    reply.finish = found.finish
    for call in found.message.tool_calls:
        reply.call(0, "", call.name, call.arguments)
    turn = reply.turn(found.usage, _offered(request), 0.0)
    return msgspec.structs.replace(turn, refusal=found.refusal[:MOST_CHARACTERS] or UNSET)


def lost_in(path: str, request: Table, body: bytes) -> Usage:
    """Return the minimum usage of a request whose answer broke off after `body`."""
    api = _api_of(path)
    if api is None:
        return Usage(tokens_in(_length(request)), estimated=True)
    return msgspec.structs.replace(_read(api, body).usage(api, _length(request)), estimated=True)


def other_usage_in(body: bytes) -> Usage:
    """Return the usage that an answer reports to a request for something other than a reply."""
    used: dict[str, Any] = {}
    for item in _items(body):
        for holder in (item, item.get("response")) if isinstance(item, dict) else ():
            usage = holder.get("usage") if isinstance(holder, dict) else None
            used |= usage if isinstance(usage, dict) else {}
    return usage_of(used if "prompt_tokens" in used else _of_responses(used), None, 0, 0)


def _read(api: _Api, body: bytes) -> _Reply:
    reply = _Reply()
    for item in _items(body):
        try:
            reply.error = error_in(item) or reply.error
            api.read(reply, item)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError, EndlessReplyError):
            continue  # not in the documented form, or too much
    return reply


def _length(request: Table) -> int:
    return len(json.dumps(request))


def _items(body: bytes) -> Iterator[Any]:
    """Yield the JSON values in a body: the data of its events, the items of its list, or the whole body."""
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
        self.pieces = StreamedCalls(Merger())
        """The calls of a chat completion."""
        self.finish = self.model = self.id = ""
        self.used: dict[str, Any] = {}
        """The reported usage, in the API's terms; later values replace earlier ones."""
        self.others = 0
        """The number of characters in further replies to the same request."""
        self.error: object = None
        """The error that the answer reports; None if it reports none."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing of a reply was read."""
        return not (self.texts or self.thoughts or self.requested or self.finish or self.used)

    @property
    def requested(self) -> list[list[str]]:
        """The id, the name and the arguments of each call."""
        called = ((call, call.get("function") or {}) for call in self.pieces.built())
        pieces = [
            [str(call.get("id") or ""), str(of.get("name") or ""), _arguments(of.get("arguments"))]
            for call, of in called
        ]
        return [*self.calls.values(), *pieces]

    def write(self, text: object, *, thought: bool = False) -> None:
        """Add text."""
        if isinstance(text, str) and text:
            (self.thoughts if thought else self.texts).append(text)

    def use(self, usage: object) -> None:
        """Add reported usage."""
        if isinstance(usage, dict):
            self.used |= {name: value for name, value in usage.items() if value is not None}

    def call(self, place: object, id: object, name: object, arguments: str) -> None:
        """Add a call, or more of its arguments."""
        known = self.calls.setdefault(place, ["", "", ""])
        known[0], known[1] = known[0] or str(id or ""), known[1] or str(name or "")
        known[2] += arguments

    def usage(self, api: _Api, sent: int) -> Usage:
        """Return the usage; what is not reported is estimated, like that of gistpoint's own requests."""
        parts = (*self.texts, *self.thoughts, *(part for call in self.requested for part in call[1:]))
        return api.usage_in(self.used, None, sent, self.others + sum(map(len, parts)))

    def turn(self, usage: Usage, offered: tuple[str, ...], seconds: float) -> ModelTurn:
        """Return the reply as it is journalled."""
        text, thought = "".join(self.texts), "".join(self.thoughts)
        calls = tuple(
            RequestedCall(id[:_SHORT], name[:MOST_CHARACTERS], arguments[:MOST_CHARACTERS])
            for id, name, arguments in self.requested[:MOST_CALLS]
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


def _arguments(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _read_messages(reply: _Reply, item: Table) -> None:
    """Read a whole message of Anthropic's API, or an event of a streamed one."""
    match item.get("type"):
        case "message":
            _message_head(reply, item)
            for place, part in enumerate(item.get("content", ())):
                _message_part(reply, place, part)
            reply.finish = str(item.get("stop_reason") or "")
        case "message_start":
            # Its token count covers only the reply so far; the last event has the count of the whole message.
            begun = item["message"]
            usage = {**(begun.get("usage") or {}), "output_tokens": None}
            _message_head(reply, {**begun, "usage": usage})
        case "content_block_start":
            _message_part(reply, item["index"], {**item["content_block"], "input": None})
        case "content_block_delta":
            delta = item["delta"]
            reply.write(delta.get("text"))
            reply.write(delta.get("thinking"), thought=True)
            if "partial_json" in delta:
                reply.call(item["index"], "", "", delta["partial_json"])
        case "message_delta":
            reply.finish = str(item["delta"].get("stop_reason") or "")
            reply.use(item.get("usage"))


def _message_head(reply: _Reply, message: Table) -> None:
    reply.id, reply.model = str(message.get("id", "")), str(message.get("model", ""))
    reply.use(message.get("usage"))


def _message_part(reply: _Reply, place: object, part: Table) -> None:
    reply.write(part.get("text"))
    reply.write(part.get("thinking"), thought=True)
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
    elif kind == "error":
        reply.error = reply.error or item
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
            for part in item.get("content", ()):
                reply.write(part.get("text"))
        case "reasoning":
            for part in item.get("summary", ()):
                reply.write(part.get("text"), thought=True)


def _response_end(reply: _Reply, response: Table) -> None:
    reply.id, reply.model = str(response.get("id", "")), str(response.get("model", ""))
    reply.finish = str(response.get("status") or "completed")
    reply.error = error_in(response) or reply.error
    reply.use(response.get("usage"))


def _of_responses(used: Table) -> dict[str, object]:
    """Return the usage of OpenAI's API for responses in the terms of that for chats."""
    return {
        **used,
        "prompt_tokens": used.get("input_tokens"),
        "completion_tokens": used.get("output_tokens"),
        "prompt_tokens_details": used.get("input_tokens_details"),
        "completion_tokens_details": used.get("output_tokens_details"),
    }


def _responses_usage(value: Table, prices: None, sent: int, received: int) -> Usage:
    return usage_of(_of_responses(value), prices, sent, received)


def _read_chat(reply: _Reply, item: Table) -> None:
    """Read a chat completion, or a chunk of a streamed one."""
    reply.id, reply.model = str(item.get("id") or reply.id), str(item.get("model") or reply.model)
    reply.use(item.get("usage") or (item.get("x_groq") or {}).get("usage"))
    for place, choice in enumerate(item.get("choices", ())):
        message = choice.get("message") or choice.get("delta") or {}
        if choice.get("index", place):
            reply.others += len(json.dumps(message))
            continue
        reply.error = error_in(choice) or reply.error
        _chat_message(reply, message, is_whole=bool(choice.get("message")))
        reply.finish = choice.get("finish_reason") or reply.finish
        if not reply.used:
            reply.use(choice.get("usage"))  # Moonshot


def _chat_message(reply: _Reply, message: Table, *, is_whole: bool) -> None:
    reply.write(message.get("content"))
    reply.write(message.get("reasoning_content") or message.get("reasoning"), thought=True)
    for place, call in enumerate(message.get("tool_calls") or ()):
        reply.pieces.add({"index": place, **call} if is_whole else call)


def _read_generated(reply: _Reply, item: Table) -> None:
    """Read a reply of Google's API, or a chunk of a streamed one."""
    reply.id = str(item.get("responseId") or reply.id)
    reply.model = str(item.get("modelVersion") or reply.model)
    reply.use(item.get("usageMetadata"))
    for place, candidate in enumerate(item.get("candidates", ())):
        parts = (candidate.get("content") or {}).get("parts", ())
        if candidate.get("index", place):
            reply.others += len(json.dumps(parts))
            continue
        for part in parts:
            _generated_part(reply, part)
        reply.finish = candidate.get("finishReason") or reply.finish


def _generated_part(reply: _Reply, part: Table) -> None:
    reply.write(part.get("text"), thought=bool(part.get("thought")))
    if "functionCall" in part:
        call = part["functionCall"]
        reply.call(len(reply.calls), call.get("id"), call.get("name"), json.dumps(call.get("args") or {}))


@dataclass(frozen=True, slots=True)
class _Api:
    """An API for replies: how they are read, and the members of a request that decide what they may cost."""

    read: Callable[[_Reply, Table], None]
    usage_in: Callable[[Table, None, int, int], Usage]
    """Returns usage in the common terms, estimated from lengths where it is not reported."""
    problem: Callable[[int, object], ChatProblem]
    """Returns the meaning of an error with a status, which is 0 for an error without one."""
    limits: tuple[str, ...]
    """The names of the limit on a reply's tokens."""
    replies: tuple[str, ...] = ()
    """The names of the number of replies."""


def _problem(status: int, body: object) -> ChatProblem:
    # Without a status, an unknown error may pass.
    unknown = ChatProblem.SERVER_ERROR if status == UNKNOWN_STATUS else ChatProblem.REJECTED
    return PROBLEMS.get(meaning_of(status, body), unknown)


_GEMINI: Final = _Api(
    _read_generated,
    gemini_bodies.usage_in,
    lambda status, body: gemini_bodies.error_problem(status or _UNKNOWN_STATUS, body),
    ("maxOutputTokens", "max_output_tokens"),
    ("candidateCount", "candidate_count"),
)
_APIS: Final[Mapping[str, _Api]] = {
    "/messages": _Api(
        _read_messages,
        anthropic_bodies.usage_in,
        lambda status, body: anthropic_bodies.error_problem(status or _UNKNOWN_STATUS, body),
        ("max_tokens",),
    ),
    "/responses": _Api(_read_responses, _responses_usage, _problem, ("max_output_tokens",)),
    "/chat/completions": _Api(
        _read_chat, usage_of, _problem, ("max_tokens", "max_completion_tokens"), ("n", "best_of")
    ),
    ":generateContent": _GEMINI,
    ":streamGenerateContent": _GEMINI,
}
"""The APIs, by the ends of their paths."""
