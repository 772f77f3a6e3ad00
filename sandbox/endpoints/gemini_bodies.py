"""The bodies of Google's Gemini API: the request for a conversation, and the reply to it.

Sources: https://ai.google.dev/api/generate-content and the types of the package `google-genai`.
"""

from __future__ import annotations

import json
import re
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
from gistpoint.core.tools.dialects import gemini_tool
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

PARTS = "parts"
"""The member of `ChatMessage.extra` that holds the parts of a reply, as received."""
_NAME_CHARACTERS = 200

# The request


def request_of(
    messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]], settings: EndpointSettings
) -> dict[str, Any]:
    """Return the request."""
    system = [{"text": message.content} for message in messages if message.role == "system"]
    contents: list[dict[str, Any]] = []
    for role, parts in _contents(messages, settings.place):
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": role, "parts": parts})
    declared = [{"functionDeclarations": [gemini_tool(tool) for tool in tools]}]
    return given(
        {
            "contents": contents,
            "systemInstruction": given({"parts": system}),
            "tools": declared if tools else [],
            "generationConfig": _sampling(settings),
        }
    )


def _sampling(settings: EndpointSettings) -> dict[str, Any]:
    """Return the members for sampling; those without a value are left out.

    Summaries of the reasoning are always asked for: they cost nothing, and change no reply.
    """
    sampling = settings.sampling
    thinking = {
        "includeThoughts": True,
        "thinkingBudget": sampling.thinking_tokens,
        "thinkingLevel": (sampling.reasoning_effort or "").upper(),
    }
    return given(
        {
            "temperature": sampling.temperature,
            "topP": sampling.top_p,
            "seed": sampling.seed,
            "maxOutputTokens": sampling.max_output_tokens,
            "thinkingConfig": given(thinking),
        }
    )


def _contents(messages: Sequence[ChatMessage], place: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the role and the parts of each message."""
    called: dict[str, Block] = {}
    """The calls of the last reply that are sent as calls, by the ids that their answers name."""
    for message in messages:
        if message.role == "system":
            continue
        if message.role == "assistant":
            received = _received(message, place)
            called = dict(zip((call.id for call in message.tool_calls), _calls_in(received), strict=False))
            yield "model", received if received else _rebuilt(message)
        elif message.role == "tool":
            yield "user", [_answer(message, called.get(message.tool_call_id))]
        else:
            yield "user", [{"text": message.content}]


def _received(message: ChatMessage, place: str) -> list[dict[str, Any]]:
    """Return the parts that the message's host sent; empty unless their calls are those that were made."""
    parts = list(blocks_of(message.extra.get(PARTS))) if message.host == place else []
    called = _calls_in(parts)
    if len(called) != len(message.tool_calls):
        return []
    if not all(map(_is_same, called, message.tool_calls)):
        return []
    ids = iter([call.id for call in message.tool_calls])
    return [_named(part, next(ids)) if _calls_in([part]) else dict(part) for part in parts]


def _named(part: Block, id: str) -> dict[str, Any]:
    """Return the part of a call with its id in the conversation, if the host sent an id."""
    called = part["functionCall"]
    return {**part, "functionCall": {**called, "id": id}} if text_of(called.get("id")) else dict(part)


def _calls_in(parts: Sequence[Block]) -> list[Block]:
    return [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), dict)]


def _is_same(called: Block, made: ToolRequest) -> bool:
    """Return whether a call is the one that was made; its id in the conversation may be another."""
    try:
        arguments = arguments_of(made)
    except ValueError:
        return False
    return called.get("name") == made.name and (called.get("args") or {}) == arguments


def _rebuilt(message: ChatMessage) -> list[dict[str, Any]]:
    """Return a reply as text: the API refuses a call without its original signature."""
    calls = [f"{call.name} {call.arguments}" for call in message.tool_calls]
    return [{"text": text} for text in (message.content, *calls) if text]


def _answer(message: ChatMessage, called: Block | None) -> dict[str, Any]:
    if called is None:
        return {"text": message.content}
    return {
        "functionResponse": {
            **given({"id": text_of(called.get("id"))}),
            "name": text_of(called.get("name")),
            "response": {"output": message.content},
        }
    }


# The reply

_FINISHES = {"STOP": "stop", "MAX_TOKENS": "length"}
_FILTERED = frozenset(
    {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"}
)
_MALFORMED_CALLS = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"})
_CALLED_NAME = re.compile(r"default_api\.(\w{1,64})\(")


def reply_of(data: object, settings: EndpointSettings, sent: int) -> ChatReply | ChatFailure:
    """Return the reply in a body with a status of success, or the failure that it reports.

    `sent` is the length of the request in characters, from which missing usage is estimated.
    """
    if not isinstance(data, dict):
        return malformed("it is not a JSON object", usage_in(None, settings.prices, sent, 0))
    candidates = blocks_of(data.get("candidates"))
    if error_in(data) is not None:
        usage = (
            usage_in(data["usageMetadata"], settings.prices, sent, 0)
            if data.get("usageMetadata")
            else Usage()
        )
        what = f"The endpoint answered with an error: {error_text(data)}"
        return ChatFailure(error_problem(_code_in(data), data), what, usage=usage)
    blocked = text_of(table_of(data.get("promptFeedback")).get("blockReason"))
    if not candidates and not blocked:
        return malformed(
            "it has no candidates", usage_in(data.get("usageMetadata"), settings.prices, sent, 0)
        )
    candidate = candidates[0] if candidates else {}
    finish = text_of(candidate.get("finishReason"))
    parts = blocks_of(table_of(candidate.get("content")).get("parts"))
    message = _message(parts, candidate, finish, settings)
    usage = usage_in(data.get("usageMetadata"), settings.prices, sent, len(json.dumps(parts)) if parts else 0)
    failure = None if blocked else _unfinished(finish, message, usage)
    if failure is not None:
        return failure
    return ChatReply(
        message,
        _finish(finish, message, blocked),
        usage,
        text_of(data.get("modelVersion")),
        request_id=text_of(data.get("responseId"))[:_NAME_CHARACTERS],
    )


def _finish(finish: str, message: ChatMessage, blocked: str) -> str:
    if blocked or finish in _FILTERED:
        return "content_filter"
    if message.tool_calls and finish != "MAX_TOKENS":
        return "tool_calls"
    return _FINISHES.get(finish, finish)


def _message(
    parts: Sequence[Block], candidate: Block, finish: str, settings: EndpointSettings
) -> ChatMessage:
    texts = [part for part in parts if isinstance(part.get("text"), str)]
    calls = tuple(_request(call) for call in _calls_in(parts))
    has_no_call = finish in _MALFORMED_CALLS and not calls
    is_malformed = finish == "MALFORMED_FUNCTION_CALL" or has_no_call
    message = ChatMessage(
        "assistant",
        "".join(part["text"] for part in texts if part.get("thought") is not True),
        (_malformed_call(candidate),) if is_malformed else calls,
        reasoning="\n\n".join(part["text"] for part in texts if part.get("thought") is True),
    )
    # Parts of plain text alone are not kept: the journal contains the text anyway.
    has_other_parts = bool(parts) and [*parts] != [{"text": message.content}]
    return message if not has_other_parts else kept(message, {PARTS: [*parts]}, settings.place)


def _request(called: Block) -> ToolRequest:
    arguments = called.get("args")
    return ToolRequest(
        text_of(called.get("id")),
        text_of(called.get("name")),
        json.dumps({} if arguments is None else arguments),
    )


def _malformed_call(candidate: Block) -> ToolRequest:
    """Return the call that the API could not read, for which the model is charged.

    Its text is in the candidate's message, such as `Malformed function call: print(default_api.search(`.
    """
    reported = text_of(candidate.get("finishMessage")) or "Malformed function call"
    found = _CALLED_NAME.search(reported)
    return ToolRequest("", found.group(1) if found else "unnamed", reported)


def _unfinished(finish: str, message: ChatMessage, usage: Usage) -> ChatFailure | None:
    """Return the failure that a reply means; None if it is a usable reply.

    A thought's signature is missing, the endpoint stopped for its own reasons, or nothing was written and
    counted.
    """
    if finish == "MISSING_THOUGHT_SIGNATURE":
        return ChatFailure(
            ChatProblem.REJECTED, "The endpoint reports that a thought's signature is missing.", usage=usage
        )
    is_empty = not message.content and not message.tool_calls
    is_known = finish in _FINISHES or finish in _FILTERED
    if is_empty and not is_known:
        return empty(finish, usage)
    if is_empty and finish == "STOP" and not usage.completion_tokens and not usage.estimated:
        return malformed("it is empty, and no token was counted", usage)
    return None


def usage_in(value: object, prices: Prices | None, sent: int, received: int) -> Usage:
    """Return the usage of a request: the API counts the reasoning separately from the rest of the reply."""
    table = table_of(value)
    prompt, total = count(table.get("promptTokenCount")), count(table.get("totalTokenCount"))
    thoughts = count(table.get("thoughtsTokenCount")) or 0
    written = count(table.get("candidatesTokenCount"))
    # Members that are 0 are left out of the body.
    completion = None if written is None else written + thoughts
    if completion is None and prompt is not None and total is not None:
        completion = max(total - prompt, thoughts)
    return usage_of(
        {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "prompt_tokens_details": {"cached_tokens": table.get("cachedContentTokenCount")},
            "completion_tokens_details": {"reasoning_tokens": thoughts},
        },
        prices,
        sent,
        received,
    )


# Errors

_TOO_LONG = "exceeds the maximum number of tokens"
_SPENT = re.compile(r"credits are depleted|limit: 0\b")
_SECONDS = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")


def _error(body: object) -> Block:
    """Return the error in a body, which may be a list of one."""
    first = body[0] if isinstance(body, list) and body else body
    return table_of(table_of(first).get("error"))


def _code_in(body: object) -> int:
    code = _error(body).get("code")
    is_status = isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600
    return code if is_status and isinstance(code, int) else 500


def error_problem(status: int, body: object) -> ChatProblem:
    """Return the meaning of an error; its details decide where status and message are ambiguous.

    The message is the same for a limit per minute and for an exhausted plan. Waiting within a run is useless
    only for a quota per day, depleted credits or a limit of zero.
    """
    details = blocks_of(_error(body).get("details"))
    words = text_of(_error(body).get("message")).lower()
    if any(detail.get("reason") == "API_KEY_INVALID" for detail in details):
        return ChatProblem.NOT_AUTHORISED
    if status == 400 and _TOO_LONG in words:
        return ChatProblem.CONTEXT_FULL
    if status == 429:
        violations = [item for detail in details for item in blocks_of(detail.get("violations"))]
        is_of_a_day = any("PerDay" in text_of(item.get("quotaId")) for item in violations)
        is_spent = is_of_a_day or _SPENT.search(words) is not None
        return ChatProblem.ACCOUNT_EMPTY if is_spent else ChatProblem.RATE_LIMITED
    return problem_of(status, body)


def requested_wait(body: object) -> float | None:
    """Return the wait in seconds that an error's details request; None if they request none.

    The wait is in `google.rpc.RetryInfo`.
    """
    for detail in blocks_of(_error(body).get("details")):
        found = _SECONDS.fullmatch(text_of(detail.get("retryDelay")))
        if found is not None:
            return float(found.group(1))
    return None
