"""Reads the body of a chat completion: the reply, its calls and its usage, or the failure it reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, ToolRequest, Usage
from gistpoint.core.estimates import tokens_in
from gistpoint.sandbox.endpoints.meanings import error_text, problem_of
from gistpoint.sandbox.endpoints.settings import Prices

_MOST_TOKENS = 1 << 40
_MOST_USD = 1e6
"""The limits of one request; an endpoint's claims beyond them are ignored."""
_NAME_CHARACTERS = 200


def reply_of(data: object, prices: Prices | None, sent_characters: int) -> ChatReply | ChatFailure:
    """Return the reply in the body of a chat completion, or a failure if there is none.

    `sent_characters` is the length of the request, from which missing usage is estimated.
    """
    if not isinstance(data, dict):
        return _malformed("it is not a JSON object")
    failure = _error_in(data)
    if failure is not None:
        return failure
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        what = "it has no choices" if not choices else "its first choice has no message"
        return _malformed(what, usage_of(data.get("usage"), prices, sent_characters, 0))
    written = ChatMessage(
        "assistant",
        _content(message.get("content")),
        _calls(message.get("tool_calls")),
        reasoning=_text(message.get("reasoning_content")) or _text(message.get("reasoning")),
    )
    refusal = _text(message.get("refusal"))
    finish = _text(choice.get("finish_reason"))
    received = _length(written)
    usage = usage_of(data.get("usage"), prices, sent_characters, received)
    # Ollama sometimes answers this way. An empty reply for which tokens were counted is the model's own.
    is_empty = not received and not refusal and not usage.tokens
    if is_empty and finish in ("", "stop"):
        return _malformed("it is empty, and no token was counted", usage)
    return ChatReply(
        written,
        finish,
        usage,
        _text(data.get("model")),
        refusal,
        fingerprint=_text(data.get("system_fingerprint"))[:_NAME_CHARACTERS],
        request_id=_text(data.get("id"))[:_NAME_CHARACTERS],
    )


def _error_in(data: Mapping[str, Any]) -> ChatFailure | None:
    """Return the failure that a body with a status of success reports; None if it reports none.

    A body that also has choices is a reply, and reports none.
    """
    error = data.get("error")
    is_error = isinstance(error, dict | str) and bool(error)
    if not is_error or "choices" in data:
        return None
    problem = ChatProblem.SERVER_ERROR
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, int):
        problem = problem_of(code, data)
    return ChatFailure(problem, f"The endpoint answered with an error: {error_text(data)}")


def _length(message: ChatMessage) -> int:
    """Return how many characters of a message the model has written."""
    calls = sum(len(call.arguments) + len(call.name) for call in message.tool_calls)
    return len(message.content) + len(message.reasoning) + calls


def usage_of(value: object, prices: Prices | None, sent: int, received: int) -> Usage:
    """Return the usage of a request; what the endpoint omits is estimated from the lengths in characters.

    The cost is that of `prices` if they are given, otherwise the endpoint's; None if it reports none.
    """
    table: Mapping[str, object] = value if isinstance(value, dict) else {}
    prompt = _count(table.get("prompt_tokens"))
    completion = _count(table.get("completion_tokens"))
    estimated = prompt is None or completion is None
    if prompt is None:
        prompt = tokens_in(sent)
    if completion is None:
        completion = tokens_in(received)
    cached = _count(_details(table, "prompt").get("cached_tokens")) or 0
    reasoning = _count(_details(table, "completion").get("reasoning_tokens")) or 0
    # Prices in the settings override the endpoint's claim.
    dollars = _dollars(table.get("cost"))
    if prices is not None:
        dollars = (prompt * prices.prompt + completion * prices.completion) / 1e6
    return Usage(prompt, completion, min(cached, prompt), min(reasoning, completion), dollars, estimated)


def _dollars(cost: object) -> float | None:
    """Return the cost that an endpoint claims, in US dollars; None if it can't be that of a request."""
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    return float(cost) if 0 <= cost < _MOST_USD else None


def _details(usage: Mapping[str, object], side: str) -> Mapping[str, object]:
    details = usage.get(f"{side}_tokens_details")
    return details if isinstance(details, dict) else {}


def _malformed(what: str, usage: Usage | None = None) -> ChatFailure:
    return ChatFailure(
        ChatProblem.MALFORMED_REPLY, f"The endpoint's reply is malformed: {what}.", usage=usage or Usage()
    )


def _content(value: object) -> str:
    """Return a message's text, which some endpoints send in parts."""
    if not isinstance(value, list):
        return _text(value)
    parts = [part for part in value if isinstance(part, dict)]
    return "".join(_text(part.get("text")) for part in parts)


def _calls(value: object) -> tuple[ToolRequest, ...]:
    """Return a message's calls; llama.cpp may put the function's members into the call itself."""
    calls = []
    items = value if isinstance(value, list) else []
    for item in items:
        if not isinstance(item, dict):
            continue
        function = item.get("function", item if "name" in item else None)
        if isinstance(function, dict):
            text = _arguments(function.get("arguments"))
            calls.append(ToolRequest(_text(item.get("id")), _text(function.get("name")), text))
    return tuple(calls)


def _arguments(value: object) -> str:
    """Return a call's arguments as JSON text; some endpoints send the object itself, or nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return ""


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _MOST_TOKENS else None
