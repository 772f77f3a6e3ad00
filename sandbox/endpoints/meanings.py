"""The meaning of what endpoints answer instead of a reply: statuses, error bodies and headers."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping, Sequence

from gistpoint.core.chat import ChatProblem

_CONTEXT_CODES = ("context_length_exceeded", "exceed_context_size_error")
_CONTEXT_WORDS = (
    "maximum context length",  # vLLM, OpenRouter, OpenAI
    "longer than the maximum model length",  # vLLM
    "exceeds the available context size",  # llama.cpp
)
"""The codes, and the words in messages, by which endpoints report that a conversation is too long."""
_MODEL_WORDS = ("model_not_found", "is not a valid model id")


_MEANINGS = {
    401: ChatProblem.NOT_AUTHORISED,
    403: ChatProblem.NOT_AUTHORISED,
    404: ChatProblem.UNKNOWN_MODEL,
    408: ChatProblem.TIMED_OUT,
    409: ChatProblem.SERVER_ERROR,
    429: ChatProblem.RATE_LIMITED,
    504: ChatProblem.TIMED_OUT,
}


def problem_of(status: int, body: object = None) -> ChatProblem:
    """Return the meaning of an HTTP status other than success, and of the error in its body."""
    inner = _error_body(body)
    table = inner if isinstance(inner, dict) else {"message": inner}
    words = " ".join(str(table.get(name) or "") for name in ("code", "type", "message")).lower()
    # Words in a message count only with the statuses for a request that is too long; codes always count.
    signs = (*_CONTEXT_CODES, *_CONTEXT_WORDS) if status in (400, 413) else _CONTEXT_CODES
    if _has_one(words, signs):
        return ChatProblem.CONTEXT_FULL
    if status == 400 and _has_one(words, _MODEL_WORDS):
        return ChatProblem.UNKNOWN_MODEL
    if status in _MEANINGS:
        return _MEANINGS[status]
    if status >= 500:
        return ChatProblem.SERVER_ERROR
    return ChatProblem.REJECTED


def _has_one(words: str, signs: Sequence[str]) -> bool:
    return any(sign in words for sign in signs)


def _error_body(body: object) -> object:
    """Return the error in a body, which is its member `error`, or else the body."""
    if isinstance(body, dict):
        return body.get("error", body)
    return body


def error_text(body: object) -> str:
    """Return the message in an error's body, as one line of at most 300 characters.

    Returns `without a word` if there is none.
    """
    words = _error_body(body)
    if isinstance(words, dict):
        words = words.get("message", words.get("detail", ""))
    return " ".join(str(words or "without a word").split())[:300]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds an endpoint asks to wait, as a number or until a date; None if it does not.

    The format is that of RFC 9110, 10.2.3.
    """
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
