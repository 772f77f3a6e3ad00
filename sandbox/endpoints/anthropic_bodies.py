"""The bodies of Anthropic's Messages API: the request for a conversation, and the reply to it.

Sources: https://platform.claude.com/docs/en/api/messages and the types of the package `anthropic`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gistpoint.core.chat import (
    ChatFailure,
    ChatMessage,
    ChatProblem,
    ChatReply,
    ToolRequest,
    Usage,
    arguments_of,
)
from gistpoint.core.tools.dialects import anthropic_tool
from gistpoint.sandbox.endpoints.meanings import error_in, error_text, problem_of
from gistpoint.sandbox.endpoints.native_bodies import (
    Block,
    blocks_of,
    empty,
    given,
    kept,
    malformed,
    table_of,
)
from gistpoint.sandbox.endpoints.replies import count, text_of, usage_of
from gistpoint.sandbox.endpoints.settings import EndpointSettings, Prices

BLOCKS = "blocks"
"""The member of `ChatMessage.extra` that holds the blocks of a reply, as received."""
_MARK = {"cache_control": {"type": "ephemeral"}}
_MARKED_MESSAGES = 2
"""The number of messages with a cache mark: besides tools and system prompt, the API allows two more."""
_NAME_CHARACTERS = 200
_MESSAGE_CHARACTERS = 300

# The request


def request_of(
    messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]], settings: EndpointSettings
) -> dict[str, Any]:
    """Return the request, except for the model's name.

    With tools, it asks for the prompt's beginning to be cached, because the conversation will be sent again:
    the tools, the system prompt, and everything up to the last two messages.
    """
    system = [{"type": "text", "text": message.content} for message in messages if message.role == "system"]
    rows = _rows(messages, settings.place)
    offered = [anthropic_tool(tool) for tool in tools]
    if offered:
        _mark_last(offered)
        _mark_last(system)
        for row in [row for row in rows if row["role"] == "user"][-_MARKED_MESSAGES:]:
            _mark_last(row["content"])
    return given({"messages": rows, "system": system, "tools": offered, **_sampling(settings)})


def _mark_last(blocks: list[dict[str, Any]]) -> None:
    if blocks:
        blocks[-1] = {**blocks[-1], **_MARK}


def _sampling(settings: EndpointSettings) -> dict[str, Any]:
    """Return the members for sampling, with the limit that the API requires; models from 4 on allow 32,000.

    With an effort, the model decides how much it thinks: newer models refuse a number of tokens, and without
    either, the vendor's default applies.
    """
    sampling = settings.sampling
    thinking: dict[str, object] = {}
    if sampling.thinking_tokens is not None:
        thinking = {"type": "enabled", "budget_tokens": sampling.thinking_tokens}
    elif sampling.reasoning_effort is not None:
        thinking = {"type": "adaptive", "display": "summarized"}
    return {
        "max_tokens": sampling.reply_limit(),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "thinking": thinking,
        "output_config": given({"effort": sampling.reasoning_effort}),
    }


def _rows(messages: Sequence[ChatMessage], place: str) -> list[dict[str, Any]]:
    """Return the messages; the answers to the calls of one reply are in one message, as the API requires."""
    rows: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, place)
        if rows and rows[-1]["role"] == role:
            rows[-1]["content"] += blocks
        elif blocks:
            rows.append({"role": role, "content": blocks})
    return rows


def _blocks(message: ChatMessage, place: str) -> list[dict[str, Any]]:
    if message.role == "assistant":
        return _written(message, place)
    if message.role != "tool":
        return [{"type": "text", "text": message.content}]
    # The API refuses an empty string here, but an answer may be empty.
    content = given({"content": message.content})
    return [{"type": "tool_result", "tool_use_id": message.tool_call_id, **content}]


def _written(message: ChatMessage, place: str) -> list[Block]:
    """Return the blocks of a reply: those that its host sent, if their first calls are those that were made.

    Otherwise, the blocks are rebuilt from the message. Further calls in them were cut off, and not made.
    """
    made = [_as_made(call) for call in message.tool_calls]
    received = blocks_of(message.extra.get(BLOCKS)) if message.host == place else []
    called = [block for block in received if block.get("type") == "tool_use"]
    is_made = len(called) >= len(made) and all(map(_is_same, called, made))
    can_be_sent_back = bool(received) and is_made
    return list(_sent_back(received, made)) if can_be_sent_back else _rebuilt(message)


def _sent_back(received: Sequence[Block], made: Sequence[Block]) -> Iterator[Block]:
    """Yield the blocks that the API accepts again, with the ids that the calls have in the conversation."""
    ids = iter([call["id"] for call in made])
    for block in received:
        if block.get("type") != "tool_use":
            if not _is_blank(block):
                yield block
        elif (id := next(ids, None)) is not None:
            yield {**block, "id": id}


def _is_blank(block: Block) -> bool:
    """Return whether a block is blank text, which the API sends but does not accept again."""
    return block.get("type") == "text" and not text_of(block.get("text")).strip()


def _rebuilt(message: ChatMessage) -> list[Block]:
    texts = [{"type": "text", "text": message.content}] if message.content.strip() else []
    return [*texts, *({"type": "tool_use", **_as_made(call)} for call in message.tool_calls)]


def _is_same(called: Block, made: Block) -> bool:
    """Return whether a call is the one that was made; its id in the conversation may be another."""
    return all(called.get(name) == made[name] for name in ("name", "input"))


def _as_made(call: ToolRequest) -> dict[str, Any]:
    try:
        arguments = arguments_of(call)
    except ValueError:
        arguments = {}
    return {"id": call.id, "name": call.name, "input": arguments}


# The reply

_FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}


def reply_of(data: object, settings: EndpointSettings, sent: int) -> ChatReply | ChatFailure:
    """Return the reply in a body with a status of success, or the failure that it reports.

    `sent` is the length of the request in characters, from which missing usage is estimated.
    """
    if not isinstance(data, dict):
        return malformed("it is not a JSON object", usage_in(None, settings.prices, sent, 0))
    if data.get("type") == "error" or error_in(data) is not None:
        usage = usage_in(data["usage"], settings.prices, sent, 0) if data.get("usage") else Usage()
        what = f"The endpoint answered with an error: {error_text(data)}"
        return ChatFailure(error_problem(500, data), what, usage=usage)
    if not isinstance(data.get("content"), list):
        return malformed("it has no content", usage_in(data.get("usage"), settings.prices, sent, 0))
    blocks = blocks_of(data["content"])
    stop = text_of(data.get("stop_reason"))
    message = _message(blocks, settings, cut_off=stop == "max_tokens")
    usage = usage_in(data.get("usage"), settings.prices, sent, len(json.dumps(blocks)) if blocks else 0)
    failure = _unfinished(stop, message, usage)
    if failure is not None:
        return failure
    return ChatReply(
        message,
        _FINISHES.get(stop, stop),
        usage,
        text_of(data.get("model")),
        _refusal(stop, data),
        request_id=text_of(data.get("id"))[:_NAME_CHARACTERS],
    )


def _message(blocks: list[Block], settings: EndpointSettings, *, cut_off: bool) -> ChatMessage:
    called = [block for block in blocks if block.get("type") == "tool_use"]
    if cut_off and called and blocks[-1] is called[-1]:
        # Some arguments of the last call may be missing, which can't be seen once they are parsed.
        called.pop()
    calls = tuple(
        ToolRequest(text_of(block.get("id")), text_of(block.get("name")), json.dumps(block.get("input")))
        for block in called
    )
    message = ChatMessage(
        "assistant",
        "".join(text_of(block.get("text")) for block in blocks if block.get("type") == "text"),
        calls,
        reasoning="\n\n".join(
            text_of(block.get("thinking")) for block in blocks if block.get("type") == "thinking"
        ),
    )
    # Content that the journal has anyway is not stored twice.
    if _rebuilt(message) == blocks:
        return message
    return kept(message, {BLOCKS: blocks}, settings.place)


def _unfinished(stop: str, message: ChatMessage, usage: Usage) -> ChatFailure | None:
    """Return the failure that a reply means; None if it is a usable reply.

    The context is full, the endpoint stopped for its own reasons, or nothing was written and counted.
    """
    is_empty = not message.content and not message.reasoning and not message.tool_calls
    if stop == "model_context_window_exceeded":
        return ChatFailure(ChatProblem.CONTEXT_FULL, "The model's context was full.", usage=usage)
    if stop == "pause_turn":
        # Sent for long turns with the vendor's own tools; none of these was offered.
        return ChatFailure(ChatProblem.SERVER_ERROR, "The endpoint paused the model's turn.", usage=usage)
    if is_empty and stop not in _FINISHES:
        return empty(stop, usage)
    if is_empty and not usage.completion_tokens and not usage.estimated and stop == "end_turn":
        return malformed("it is empty, and no token was counted", usage)
    return None


def _refusal(stop: str, data: Mapping[str, Any]) -> str:
    return text_of(table_of(data.get("stop_details")).get("explanation")) if stop == "refusal" else ""


def usage_in(value: object, prices: Prices | None, sent: int, received: int) -> Usage:
    """Return the usage of a request, including the tokens that were read from or written to the cache.

    The API counts those separately.
    """
    table = table_of(value)
    read = count(table.get("cache_read_input_tokens")) or 0
    written = count(table.get("cache_creation_input_tokens")) or 0
    fresh = count(table.get("input_tokens"))
    return usage_of(
        {
            "prompt_tokens": None if fresh is None else fresh + read + written,
            "completion_tokens": table.get("output_tokens"),
            "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
            "completion_tokens_details": {
                "reasoning_tokens": table_of(table.get("output_tokens_details")).get("thinking_tokens")
            },
        },
        prices,
        sent,
        received,
    )


# Errors

_FILTERED = "Output blocked by content filtering policy"
_BY_TYPE = {
    "authentication_error": ChatProblem.NOT_AUTHORISED,
    "permission_error": ChatProblem.NOT_AUTHORISED,
    "billing_error": ChatProblem.ACCOUNT_EMPTY,
    "not_found_error": ChatProblem.UNKNOWN_MODEL,
    "request_too_large": ChatProblem.CONTEXT_FULL,
    "rate_limit_error": ChatProblem.RATE_LIMITED,
    "timeout_error": ChatProblem.TIMED_OUT,
    "overloaded_error": ChatProblem.SERVER_ERROR,
    "api_error": ChatProblem.SERVER_ERROR,
}
_SPENT = ("spend_limit_reached", "credit balance is too low")
"""Strings in the code or message of an error which mean that the money is spent."""
_TOO_LONG = ("prompt is too long", "exceed context limit")


def filtered_reply(body: object, settings: EndpointSettings, sent: int) -> ChatReply | None:
    """Return the reply that an error reports as stopped by a filter; None for any other error."""
    message = text_of(_error(body).get("message"))
    if not message.startswith(_FILTERED):
        return None
    usage = usage_in(None, settings.prices, sent, 0)
    return ChatReply(
        ChatMessage("assistant", ""), "content_filter", usage, refusal=message[:_MESSAGE_CHARACTERS]
    )


def _error(body: object) -> Block:
    return table_of(table_of(body).get("error"))


def error_problem(status: int, body: object) -> ChatProblem:
    """Return the meaning of an error, from its code, its message, its type and the status."""
    table = _error(body)
    code = text_of(table_of(table.get("details")).get("error_code"))
    words = f"{code} {text_of(table.get('message'))}".lower()
    if any(sign in words for sign in _SPENT):
        return ChatProblem.ACCOUNT_EMPTY
    if any(sign in words for sign in _TOO_LONG):
        return ChatProblem.CONTEXT_FULL
    kind = text_of(table.get("type"))
    if kind == "invalid_request_error":
        return problem_of(400, body)
    return _BY_TYPE.get(kind) or problem_of(status, body)
