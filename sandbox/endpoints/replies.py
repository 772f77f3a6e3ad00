"""What an endpoint sent, read with care: any JSON at all may come back from it."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Mapping

from gistpoint.core.ports import ChatFailure, ChatMessage, ChatProblem, ChatReply, ToolRequest, Usage
from gistpoint.sandbox.endpoints.settings import Prices

_CHARACTERS_PER_TOKEN = 3
"""Fewer than English has, so that an estimate is rather too high."""
_MOST_TOKENS = 1 << 40


def reply_of(data: object, prices: Prices | None, sent_characters: int) -> ChatReply | ChatFailure:
    """Return the reply in the body of a chat completion; a failure where it holds none."""
    if not isinstance(data, dict):
        return _malformed("it is no JSON object")
    error = data.get("error")
    if isinstance(error, dict) and "choices" not in data:
        code = error.get("code")
        problem = problem_of(code) if isinstance(code, int) else ChatProblem.SERVER_ERROR
        return ChatFailure(problem, f"The endpoint answered with an error: {error_text(data)}")
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        what = "it has no choices" if not choices else "its first choice has no message"
        return _malformed(what, usage_of(data.get("usage"), prices, sent_characters, 0))
    content, calls = _content(message.get("content")), _calls(message.get("tool_calls"))
    received = len(content) + sum(len(call.arguments) + len(call.name) for call in calls)
    return ChatReply(
        ChatMessage("assistant", content, calls),
        _text(choice.get("finish_reason")),
        usage_of(data.get("usage"), prices, sent_characters, received),
        _text(data.get("model")),
        _text(message.get("refusal")),
    )


def usage_of(value: object, prices: Prices | None, sent: int, received: int) -> Usage:
    """Return what a request used; from the length of its texts, in characters, where the endpoint does not say."""
    table: Mapping[str, object] = value if isinstance(value, dict) else {}
    counted = [_count(table.get(f"{side}_tokens")) for side in ("prompt", "completion")]
    estimated = None in counted
    estimates = (sent // _CHARACTERS_PER_TOKEN, received // _CHARACTERS_PER_TOKEN)
    prompt, completion = (
        estimate if count is None else count for count, estimate in zip(counted, estimates, strict=True)
    )
    cost = table.get("cost")
    dollars: float | None = None
    if prices is not None:
        dollars = (prompt * prices.prompt + completion * prices.completion) / 1e6
    elif isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < float("inf"):
        dollars = float(cost)
    return Usage(prompt, completion, dollars, estimated)


def problem_of(status: int) -> ChatProblem:
    """Return what an HTTP status that is no success means."""
    if status == 429:
        return ChatProblem.RATE_LIMITED
    if status in (408, 504):
        return ChatProblem.TIMED_OUT
    if status >= 500 or status == 409:
        return ChatProblem.SERVER_ERROR
    return ChatProblem.NOT_AUTHORISED if status in (401, 403) else ChatProblem.REJECTED


def error_text(body: object) -> str:
    """Return the words of an error's body, in one bounded line."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    words = inner.get("message", inner.get("detail", "")) if isinstance(inner, dict) else inner
    return " ".join(str(words or "without a word").split())[:300]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds for which an endpoint asks to be left alone: a number, or a date (RFC 9110, 10.2.3)."""
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * scale
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        at = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    return max(0.0, at.timestamp() - time.time())


def _malformed(what: str, usage: Usage | None = None) -> ChatFailure:
    return ChatFailure(
        ChatProblem.MALFORMED_REPLY, f"The endpoint's reply is malformed: {what}.", usage=usage or Usage()
    )


def _content(value: object) -> str:
    """Return a message's text; some endpoints send it in parts."""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value if isinstance(part, dict))
    return _text(value)


def _calls(value: object) -> tuple[ToolRequest, ...]:
    calls = []
    for item in value if isinstance(value, list) else ():
        function = item.get("function") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(function, dict):
            continue
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)
        calls.append(ToolRequest(_text(item.get("id")), _text(function.get("name")), text))
    return tuple(calls)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS else None
