"""The meaning of what endpoints answer instead of a reply: statuses, error bodies and headers.

What a failure means is data: the first row of `SIGNS` that fits decides. A failure that fits no row counts
against the endpoint (decision 147).
"""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from gistpoint.core.chat import ChatProblem
from gistpoint.core.text import whole_number

MOST_SHOWN = 1_000
"""The maximum number of characters in an error that are shown."""
_LONGEST_MESSAGE = 4_000
"""The number of characters at the beginning of a message that are matched; the rest may quote the request."""
UNKNOWN_STATUS = 0
"""The status of an error in a successful response that names no status."""


class FailureParty(StrEnum):
    """The party that a failure counts against."""

    MODEL = "the model's"
    CONDITION = "the condition's"
    ENDPOINT = "the endpoint's"


class FailureMeaning(StrEnum):
    """The meaning of a failure."""

    MALFORMED_CALL = "a malformed call"
    FILTERED = "a filtered reply or request"
    CONTEXT_FULL = "the context is full"
    ACCOUNT_EMPTY = "no credit or quota is left"
    WRONG_KEY = "the key is refused"
    UNKNOWN_MODEL = "the model is unknown"
    TOO_LARGE_FOR_RATE = "the request is larger than the limit of a minute"
    RATE_LIMITED = "a rate limit"
    TIMED_OUT = "a time limit of the server"
    OVERLOADED = "the server is overloaded or broken"
    UNKNOWN = "anything else"


PARTIES: Mapping[FailureMeaning, FailureParty] = {
    **dict.fromkeys(FailureMeaning, FailureParty.ENDPOINT),
    FailureMeaning.MALFORMED_CALL: FailureParty.MODEL,
    FailureMeaning.FILTERED: FailureParty.MODEL,
    FailureMeaning.CONTEXT_FULL: FailureParty.CONDITION,
}
PROBLEMS: Mapping[FailureMeaning, ChatProblem] = {
    FailureMeaning.CONTEXT_FULL: ChatProblem.CONTEXT_FULL,
    FailureMeaning.ACCOUNT_EMPTY: ChatProblem.ACCOUNT_EMPTY,
    FailureMeaning.WRONG_KEY: ChatProblem.NOT_AUTHORISED,
    FailureMeaning.UNKNOWN_MODEL: ChatProblem.UNKNOWN_MODEL,
    FailureMeaning.RATE_LIMITED: ChatProblem.RATE_LIMITED,
    FailureMeaning.TIMED_OUT: ChatProblem.TIMED_OUT,
    FailureMeaning.OVERLOADED: ChatProblem.SERVER_ERROR,
}
"""The problems of meanings; those of the model are replies (`replies.reply_in_error`) and have none.

`TOO_LARGE_FOR_RATE` and `UNKNOWN` have none either.
"""


_WRAPPED = (
    r"(?:(?:[\w.]*(?:Error|Exception)|Error code: \d{3}|An error occurred \(\w+\) when calling the \w+"
    r" operation|Input validation error|Invalid request)(?:: | - |, )){0,4}"
)
"""The prefixes that gateways and frameworks add to a vendor's sentence."""


@cache
def _begins(sentences: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for messages that begin with one of `sentences`, which are patterns, too.

    Only the start counts: an error may quote the repository, the request or the model's own text.
    """
    return re.compile(f"{_WRAPPED}(?:{'|'.join(sentences)})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign of a meaning: a status, together with a code or a sentence if any are given."""

    meaning: FailureMeaning
    servers: str
    """The servers that send it."""
    statuses: tuple[int, ...] = ()
    """The statuses for which the sign counts; empty for all."""
    codes: tuple[str, ...] = ()
    """Values of the members `code`, `type`, `status`, `reason` and `limit_source`, or a key of `metadata`."""
    sentences: tuple[str, ...] = ()
    """Patterns for the sentences that a message may begin with."""

    def fits(self, status: int, codes: frozenset[str], messages: tuple[str, ...]) -> bool:
        """Whether a failure has the sign."""
        if self.statuses and status not in self.statuses:
            return False
        if any(code in codes for code in self.codes):
            return True
        if not self.sentences:
            return not self.codes
        return any(_begins(self.sentences).match(message) for message in messages)


_REFUSING = (UNKNOWN_STATUS, 400, 413, 422)
"""The statuses of requests that are refused because of their content."""

SIGNS: tuple[Sign, ...] = (
    # The model's own text, which a server could not read as a call.
    Sign(FailureMeaning.MALFORMED_CALL, "Groq", (UNKNOWN_STATUS, 400), ("tool_use_failed",)),
    Sign(FailureMeaning.MALFORMED_CALL, "Ollama", (500,), sentences=(r"error parsing tool call: raw='",)),
    # Refusals by a filter, which counts as the model's, as in a reply with the finish `content_filter`.
    Sign(
        FailureMeaning.FILTERED,
        "Azure, OpenAI",
        (UNKNOWN_STATUS, 400),
        ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"),
    ),
    Sign(FailureMeaning.FILTERED, "OpenRouter", (403,), ("flagged_input",)),
    Sign(
        FailureMeaning.FILTERED,
        "OpenAI, Anthropic, DeepSeek, xAI",
        (UNKNOWN_STATUS, 400, 403),
        sentences=(
            r"Invalid prompt: your prompt was flagged as",
            r"Output blocked by content filtering policy",
            r"Content Exists Risk",
            r"Content violates usage guidelines",
        ),
    ),
    # OpenRouter's limit on the cost of running requests passes; the other causes of its 402 do not.
    Sign(FailureMeaning.RATE_LIMITED, "OpenRouter", (402,), ("openrouter_in_flight_budget",)),
    Sign(FailureMeaning.ACCOUNT_EMPTY, "OpenRouter, DeepSeek, Anthropic", (402,)),
    Sign(
        FailureMeaning.ACCOUNT_EMPTY,
        "OpenAI, OpenRouter, Gemini",
        codes=(
            "insufficient_quota",
            "billing_not_active",
            "billing_hard_limit_reached",
            "billing_error",
            "openrouter_credits",
            "openrouter_key_limit",
            "openrouter_workspace_budget",
            "openrouter_guardrail_budget",
            "BILLING_DISABLED",
        ),
    ),
    # Gemini reports a passing limit in the words of OpenAI's empty account; only a limit of 0 never passes.
    Sign(
        FailureMeaning.ACCOUNT_EMPTY,
        "Anthropic, xAI, Gemini, DeepSeek",
        (UNKNOWN_STATUS, 400, 403, 429),
        sentences=(
            r"Your credit balance is too low to access",
            r"You have reached your specified API usage limits",
            r"Your team \S{1,80} has either used all available credits or reached its monthly spending limit",
            r"You have run out of credits",
            r"Insufficient Balance",
            r"Your prepayment credits are depleted",
            r"Gemini API free tier is not available in your country",
            r"You exceeded your current quota[\s\S]{0,2000}?\* Quota exceeded for metric: \S+ limit: 0\b",
        ),
    ),
    # xAI and Gemini refuse a key with 400.
    Sign(
        FailureMeaning.WRONG_KEY,
        "xAI, Gemini",
        (UNKNOWN_STATUS, 400),
        ("API_KEY_INVALID", "invalid_api_key", "authentication_error"),
        (r"API key not valid", r"Incorrect API key provided"),
    ),
    Sign(FailureMeaning.WRONG_KEY, "all", (401, 403)),
    Sign(
        FailureMeaning.UNKNOWN_MODEL,
        "OpenAI, OpenRouter",
        (UNKNOWN_STATUS, 400),
        ("model_not_found",),
        (r"\S{1,200} is not a valid model ID",),
    ),
    Sign(FailureMeaning.UNKNOWN_MODEL, "all", (404,)),
    # Such a request never succeeds, however long one waits, but the model may well accept it.
    Sign(FailureMeaning.TOO_LARGE_FOR_RATE, "Groq, OpenAI", (413,), ("rate_limit_exceeded",)),
    Sign(
        FailureMeaning.TOO_LARGE_FOR_RATE, "Groq, OpenAI", (413, 429), sentences=(r"Request too large for ",)
    ),
    Sign(
        FailureMeaning.CONTEXT_FULL,
        "OpenAI, Groq, OpenRouter, llama.cpp, Anthropic",
        codes=(
            "context_length_exceeded",
            "exceed_context_size_error",
            "string_above_max_length",
            "request_too_large",
        ),
    ),
    Sign(
        FailureMeaning.CONTEXT_FULL,
        "OpenAI, DeepSeek, OpenRouter, vLLM, SGLang",
        _REFUSING,
        sentences=(
            r"(?:this|the) (?:model|endpoint)'s maximum context length (?:is|of) \d",
            r"Your input exceeds the context window of this model",
            r"Input tokens exceed the configured limit of \d",
            r"'?max_(?:completion_)?tokens'?\D{0,60} is too large: \d+\. ?This model's maximum context",
            r"max_tokens must be at least 1, got -\d",
            r"You passed \d+ [\s\S]{0,300}?context length is only \d",
            r"The (?:decoder )?prompt \((?:total )?length \d+\) is longer than the maximum model length",
            r"The prompt \(total length \d+\) is too long to fit into the model",
            r"The input \(\d+ tokens\) is longer than the model's context length",
            r"Requested token count exceeds the model's maximum context length of \d",
        ),
    ),
    Sign(
        FailureMeaning.CONTEXT_FULL,
        "Anthropic, Gemini, xAI, Groq, Bedrock",
        _REFUSING,
        sentences=(
            r"prompt is too long: \d+ tokens > \d",
            r"input length and .max_tokens. exceed context limit: \d+ \+ \d+ > \d",
            r"The input token count (?:\(\d+\) )?exceeds the maximum number of tokens allowed",
            r"This model's maximum prompt length is \d",
            r"Please reduce the length of the messages or completion",
            r"Input is too long for requested model",
        ),
    ),
    Sign(
        FailureMeaning.CONTEXT_FULL,
        "llama.cpp, Ollama, LM Studio, TGI, Together, Mistral, Moonshot",
        _REFUSING,
        sentences=(
            r"(?:the )?request (?:\(\d+ tokens\) )?exceeds the available context size",
            r"prompt too long; exceeded (?:max )?context length",
            r"(?:the )?input length exceeds the (?:maximum )?context length",
            r"Trying to keep the first \d+ tokens when context the overflows",
            r"The number of tokens to keep from the initial prompt is greater than the context length",
            r"`inputs` tokens \+ `max_new_tokens` must be <= \d",
            r"`inputs` must have less than \d+ tokens",
            r"Prompt contains \d+ tokens [\s\S]{0,200}?too large for model with \d+ maximum context length",
            r"Your request exceeded model token limit",
        ),
    ),
    Sign(FailureMeaning.OVERLOADED, "Anthropic", codes=("overloaded_error",)),
    Sign(FailureMeaning.RATE_LIMITED, "all", (429,)),
    Sign(FailureMeaning.TIMED_OUT, "all", (408, 504)),
    Sign(FailureMeaning.OVERLOADED, "Groq", (498,)),
    Sign(FailureMeaning.OVERLOADED, "all", (409, *range(500, 600))),
)
"""The signs of meanings; the first one that fits decides."""


def meaning_of(status: int, body: object = None) -> FailureMeaning:
    """Return the meaning of an unsuccessful HTTP status and of the error in its body."""
    tables = tuple(errors_in(body))
    codes = frozenset(code for table in tables for code in _codes(table))
    messages = tuple(_message(table)[:_LONGEST_MESSAGE] for table in tables)
    return next(
        (sign.meaning for sign in SIGNS if sign.fits(status, codes, messages)), FailureMeaning.UNKNOWN
    )


def problem_of(status: int, body: object = None) -> ChatProblem:
    """Return the problem that an unsuccessful HTTP status and the error in its body indicate.

    It is `REJECTED` if the meaning is not in `PROBLEMS`.
    """
    return PROBLEMS.get(meaning_of(status, body), ChatProblem.REJECTED)


def error_in(table: Mapping[str, object]) -> object:
    """Return the error that a successful response, a chunk or a choice reports; None if it reports none.

    Some servers send an empty value, or an object of empty members, with every reply.
    """
    error = table.get("error")
    parts = error.values() if isinstance(error, dict) else error if isinstance(error, list) else (error,)
    return error if any(parts) else None


def status_in(error: object) -> int:
    """Return the status that an error in a successful response names; `UNKNOWN_STATUS` if it names none."""
    table = error if isinstance(error, dict) else {"code": error}
    for name in ("code", "status_code", "http_status_code", "status"):
        value = table.get(name)
        if isinstance(value, str):
            value = whole_number(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return UNKNOWN_STATUS


def errors_in(body: object) -> Iterator[Mapping[str, object]]:
    """Yield the error in a body as an object, and the error of another server that it passes on."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]  # Gemini
    if not isinstance(body, dict):
        yield {"message": body}
        return
    inner = body.get("error", body)
    # xAI and LM Studio send the message itself, with the code next to it.
    table = inner if isinstance(inner, dict) else {**body, "message": inner}
    yield table
    metadata = table.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if raw:  # OpenRouter passes on what a provider answered.
        yield from errors_in(_opened(raw))


def _opened(raw: object) -> object:
    """Return the JSON object or list in a string; any other value as it is."""
    try:
        value = json.loads(raw) if isinstance(raw, str) else raw
    except (ValueError, RecursionError):
        return raw
    return value if isinstance(value, dict | list) else raw


def _codes(table: Mapping[str, object]) -> Iterator[str]:
    details = table.get("details")
    metadata = table.get("metadata")
    inner = table.get("innererror")
    places = [table, inner, metadata, *(details if isinstance(details, list) else ())]
    for place in places:
        if isinstance(place, dict):
            for name in ("code", "type", "status", "reason", "limit_source"):
                if isinstance(place.get(name), str):
                    yield place[name]
    if isinstance(metadata, dict):
        yield from metadata


def _message(table: Mapping[str, object]) -> str:
    """Return the message of an error; values other than a string as JSON."""
    words = table.get("message") or table.get("detail") or ""
    if isinstance(words, str):
        return words.strip()
    return json.dumps(words, ensure_ascii=False)


def error_text(body: object) -> str:
    """Return the message in an error's body, as one line of at most `MOST_SHOWN` characters.

    An error that another server passes on follows it. An error without a message is shown as JSON, and an
    empty one as `without a word`.
    """
    tables = list(errors_in(body))
    texts = dict.fromkeys(filter(None, map(_message, tables)))
    shown = ": ".join(texts) or (json.dumps(body, ensure_ascii=False) if body else "without a word")
    return " ".join(shown.split())[:MOST_SHOWN]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds an endpoint asks to wait, from a number or a date; None if it does not ask.

    The format is that of RFC 9110, 10.2.3. A date is compared with the date of the answer, if it has one,
    because this machine's clock may be wrong.
    """
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * scale
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    at, answered = (_seconds_of(headers.get(name, "")) for name in ("retry-after", "date"))
    return None if at is None else max(0.0, at - (time.time() if answered is None else answered))


def _seconds_of(date: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
