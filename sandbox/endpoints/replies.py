"""Reads the body of a chat completion: the reply, its calls and its usage, or the failure it reports.

A failure that is the model's own, such as a call that the server could not read, is a reply as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, ToolRequest, Usage
from gistpoint.core.estimates import tokens_in
from gistpoint.sandbox.endpoints.meanings import (
    PROBLEMS,
    UNKNOWN_STATUS,
    FailureMeaning,
    error_in,
    error_text,
    errors_in,
    meaning_of,
    status_in,
)
from gistpoint.sandbox.endpoints.other_members import OtherMembers
from gistpoint.sandbox.endpoints.settings import Prices

_MOST_TOKENS = 1 << 40
_MOST_USD = 1e6
"""The limits of one request; an endpoint's claims beyond them are ignored."""
_TICKS = 1e10
"""The number of ticks in a US dollar; xAI reports costs in ticks."""
_NAME_CHARACTERS = 200


FINISHES: Mapping[str, str] = {
    **dict.fromkeys(("max_tokens", "model_length", "MAX_TOKENS"), "length"),
    **dict.fromkeys(("refusal", "sensitive", "safety", "SAFETY"), "content_filter"),
}
"""The finishes of some servers (Anthropic, Mistral, Zhipu, Gemini), with the usual names for them."""
BROKEN = ("error", "abort", "insufficient_system_resource", "network_error")
"""The finishes of replies that the server did not complete, of OpenRouter, vLLM and SGLang, and DeepSeek."""
WINDOW_FULL = "model_context_window_exceeded"
"""The finish of Anthropic's and Zhipu's replies that ended because the context is full."""
UNREADABLE = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL")
"""Gemini's finishes of replies with a call that it could not read, also as passed on by OpenRouter."""
_COMPLETE = frozenset(
    {
        *("", "stop", "length", "tool_calls", "function_call", "content_filter"),
        *("STOP", "end_turn", "stop_sequence", "tool_use", "tool", "eos", "eos_token"),
    }
)
"""The finishes of whole replies, also of Gemini, Anthropic, llama.cpp and TGI; only these may be empty."""
_RAW = re.compile(r"error parsing tool call: raw='([\s\S]*)', err=")
_NAME = re.compile(r'(?:"name"\s*:\s*"|<function=|^)([A-Za-z_][\w.-]{0,63})(?=["({>])')


def reply_of(
    data: object, prices: Prices | None, sent_characters: int, host: str = ""
) -> ChatReply | ChatFailure:
    """Return the reply in the body of a chat completion, or a failure if there is none.

    `sent_characters` is the length of the request, from which missing usage is estimated. `host` sent the
    reply, and gets its other members back.
    """
    if not isinstance(data, dict):
        return _malformed("it is not a JSON object", usage_of(None, prices, sent_characters, 0))
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    error = _error_in(data, choice)
    if error is not None:
        return reply_in_error(status_in(error), {"error": error}, prices, sent_characters) or _failure_of(
            error, data, prices, sent_characters
        )
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        what = "it has no choices" if not choices else "its first choice has no message"
        return _malformed(what, usage_of(data.get("usage"), prices, sent_characters, 0))
    others = OtherMembers()
    written = _written(message, others, host)
    finish, unreadable = _finish_of(choice)
    if unreadable and not written.tool_calls:
        written = _with_unread_call(written, written.content)
    refusal = text_of(message.get("refusal"))
    usage = usage_of(data.get("usage"), prices, sent_characters, _length(written))
    if not unreadable and not refusal:
        failure = _failure_to_reply(written, finish, usage)
        if failure is not None:
            return failure
    return ChatReply(
        written,
        finish,
        usage,
        text_of(data.get("model")),
        refusal,
        fingerprint=text_of(data.get("system_fingerprint"))[:_NAME_CHARACTERS],
        request_id=text_of(data.get("id"))[:_NAME_CHARACTERS],
        left_out=tuple(others.left_out),
    )


def _written(message: Mapping[str, Any], others: OtherMembers, host: str) -> ChatMessage:
    """Return what the model has written; `others` keeps the members that are not read."""
    calls = _calls(message.get("tool_calls"), others) or _older_call(message.get("function_call"))
    extra = others.of_message(message)
    return ChatMessage(
        "assistant",
        _content(message.get("content")),
        calls,
        reasoning=text_of(message.get("reasoning_content")) or text_of(message.get("reasoning")),
        extra=extra,
        host=host if extra or any(call.extra for call in calls) else "",
    )


def _finish_of(choice: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the finish of a choice, and whether it reports a call that the server could not read."""
    word = text_of(choice.get("finish_reason"))
    native = text_of(choice.get("native_finish_reason"))
    if native in UNREADABLE or word.rpartition(" ")[2] in UNREADABLE:
        return native or word, True
    if word.startswith("content_filter"):  # Gemini appends the kind
        return "content_filter", False
    return FINISHES.get(word, word), False


def _failure_to_reply(written: ChatMessage, finish: str, usage: Usage) -> ChatFailure | None:
    """Return the failure that keeps a message from being a reply; None if it is a reply."""
    if finish == WINDOW_FULL and not written.tool_calls:
        what = "The endpoint ended its reply because the context is full."
        return ChatFailure(ChatProblem.CONTEXT_FULL, what, usage=usage)
    if finish in BROKEN:
        what = f"The endpoint broke off its reply: it ended with {finish!r}."
        return ChatFailure(ChatProblem.SERVER_ERROR, what, usage=usage)
    if written.content or written.tool_calls:
        return None
    if finish not in _COMPLETE:
        return _malformed(f"it is empty, and ended with {finish[:_NAME_CHARACTERS]!r}", usage)
    # Ollama sometimes answers this way. An empty reply for which tokens were counted is the model's own.
    if not written.reasoning and not usage.tokens and finish in ("", "stop"):
        return _malformed("it is empty, and no token was counted", usage)
    return None


def _error_in(data: Mapping[str, Any], choice: object) -> object:
    """Return the error in a body with a status of success, even next to a reply; None if there is none."""
    holders = (holder for holder in (data, choice) if isinstance(holder, dict))
    return next((error for error in map(error_in, holders) if error is not None), None)


def _failure_of(
    error: object, data: Mapping[str, Any], prices: Prices | None, sent_characters: int
) -> ChatFailure:
    """Return the failure that an error in a successful response means."""
    status = status_in(error)
    # Without a status, an unknown error may pass.
    unknown = ChatProblem.SERVER_ERROR if status == UNKNOWN_STATUS else ChatProblem.REJECTED
    usage = Usage()
    if data.get("usage"):
        usage = usage_of(data["usage"], prices, sent_characters, 0)
    return ChatFailure(
        PROBLEMS.get(meaning_of(status, {"error": error}), unknown),
        f"The endpoint answered with an error: {error_text({'error': error})}",
        usage=usage,
    )


def reply_in_error(
    status: int, body: object, prices: Prices | None, sent_characters: int
) -> ChatReply | None:
    """Return the model's own reply that an error reports; None if the error is no reply.

    A call that the server could not read gets the model's text as its arguments, and is therefore answered
    and charged as malformed. A reply or request that a filter stopped has the finish `content_filter`, and
    the endpoint's words as its refusal.
    """
    meaning = meaning_of(status, body)
    if meaning not in (FailureMeaning.MALFORMED_CALL, FailureMeaning.FILTERED):
        return None
    written = ChatMessage("assistant", "")
    if meaning is FailureMeaning.MALFORMED_CALL:
        written = _with_unread_call(written, _generation_in(body))
    usage = usage_of(None, prices, sent_characters, _length(written))
    if meaning is FailureMeaning.FILTERED:
        return ChatReply(written, "content_filter", usage, refusal=error_text(body))
    return ChatReply(written, "tool_use_failed", usage)


def _generation_in(body: object) -> str:
    """Return the model's text in the body of an error about its call; if it has none, the error's message."""
    for error in errors_in(body):
        text = text_of(error.get("failed_generation"))
        found = _RAW.match(text_of(error.get("message")))
        if text or found:
            return text or (found[1] if found else "")
    return error_text(body)


def _with_unread_call(message: ChatMessage, text: str) -> ChatMessage:
    """Return a message with a call whose arguments are a string that the server could not read as a call.

    The call has the name in that string; without one, it has no name, so it can't be carried out by mistake.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        found = _NAME.search(text[:_NAME_CHARACTERS])
        name = found[1] if found else ""
    else:
        name = text_of(value.get("name")) if isinstance(value, dict) else ""
    return replace(message, tool_calls=(ToolRequest("", name, text),))


def _length(message: ChatMessage) -> int:
    """Return how many characters of a message the model has written."""
    calls = sum(len(call.arguments) + len(call.name) for call in message.tool_calls)
    return len(message.content) + len(message.reasoning) + calls


def usage_of(value: object, prices: Prices | None, sent: int, received: int) -> Usage:
    """Return the usage of a request; what the endpoint omits is estimated from the lengths in characters.

    Some servers report 0 for tokens that they do not count, so 0 counts as omitted once a reply was received.
    The cost is that of `prices` if they are given, otherwise the endpoint's; None if it reports none.
    """
    table: Mapping[str, object] = value if isinstance(value, dict) else {}
    prompt = count(table.get("prompt_tokens"))
    completion = count(table.get("completion_tokens"))
    if received:
        prompt, completion = prompt or None, completion or None
    estimated = prompt is None or completion is None
    if prompt is None:
        prompt = tokens_in(sent)
    if completion is None:
        completion = tokens_in(received)
    cached = min(count(_details(table, "prompt").get("cached_tokens")) or 0, prompt)
    # The name is OpenRouter's: https://openrouter.ai/docs/guides/features/prompt-caching.
    written = min(count(_details(table, "prompt").get("cache_write_tokens")) or 0, prompt - cached)
    reasoning = count(_details(table, "completion").get("reasoning_tokens")) or 0
    # xAI counts the reasoning only in the total.
    if prompt + completion + reasoning == count(table.get("total_tokens")):
        completion += reasoning
    # Prices in the settings override the endpoint's claim.
    dollars = _dollars(table.get("cost"))
    ticks = count(table.get("cost_in_usd_ticks"))
    if dollars is None and ticks is not None:
        dollars = ticks / _TICKS
    if prices is not None:
        dollars = (prompt * prices.prompt + completion * prices.completion) / 1e6
    return Usage(prompt, completion, cached, min(reasoning, completion), dollars, estimated, written)


def _dollars(cost: object) -> float | None:
    """Return the cost that an endpoint claims, in US dollars; None if no request can have this cost."""
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
        return text_of(value)
    parts = [part for part in value if isinstance(part, dict)]
    return "".join(text_of(part.get("text")) for part in parts)


def _calls(value: object, others: OtherMembers) -> tuple[ToolRequest, ...]:
    """Return a message's calls; llama.cpp may put the function's members into the call itself."""
    calls = []
    items = value if isinstance(value, list) else []
    for item in items:
        if not isinstance(item, dict):
            continue
        function = item.get("function", item if "name" in item else None)
        if isinstance(function, dict):
            text = _arguments(function.get("arguments"))
            name = text_of(function.get("name"))
            calls.append(ToolRequest(text_of(item.get("id")), name, text, others.of_call(item)))
    return tuple(calls)


def _older_call(value: object) -> tuple[ToolRequest, ...]:
    """Return the call in a `function_call`, which some servers still send; empty if there is none."""
    if not isinstance(value, dict) or not text_of(value.get("name")):
        return ()
    return (ToolRequest("", text_of(value["name"]), _arguments(value.get("arguments"))),)


def _arguments(value: object) -> str:
    """Return a call's arguments as JSON text; some endpoints send the object itself, or nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value)


def text_of(value: object) -> str:
    """Return the value if it is a string; otherwise an empty string."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """Return a number of tokens; None for a value that can't be one."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _MOST_TOKENS else None
