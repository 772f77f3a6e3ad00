"""The exchange with a chat model: messages, tool calls, replies, failures, and costs."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NoReturn, get_args

import msgspec

ChatApi = Literal["openai", "anthropic", "gemini"]
"""The APIs for chat models: OpenAI's, which most servers support, and those of two vendors."""
CHAT_APIS: tuple[ChatApi, ...] = get_args(ChatApi)


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that a model requests; `arguments` is the JSON text as received, valid or not."""

    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    """The call's other members, as received, which are sent back only to the host that sent them."""


def arguments_of(asked: ToolRequest) -> dict[str, Any]:
    """Return the arguments of a call. Raises `ValueError`, with the fault, if they are not a JSON object."""
    try:
        values = json.loads(asked.arguments or "{}", parse_constant=_no_json)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the arguments of {asked.name} are not JSON: {str(error)[:200]}.") from error
    if not isinstance(values, dict):
        raise ValueError(f"the arguments of {asked.name} must be one JSON object.")
    return values


def _no_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def sound_requests(calls: tuple[ToolRequest, ...], earlier: Collection[str]) -> tuple[ToolRequest, ...]:
    """Return the calls of a reply as the conversation repeats them; `earlier` are the ids of earlier calls.

    Endpoints refuse a history with repeated ids, odd names or arguments that are not JSON. So ids are made
    unique within the conversation, names are limited to 64 letters, digits, `_` and `-`, and arguments that
    are not a JSON object become `{}`.
    """
    sound: list[ToolRequest] = []
    seen = set(earlier)
    for number, asked in enumerate(calls, start=len(earlier) + 1):
        id = asked.id
        if not id or id in seen:
            id = _unused_id(number, seen)
        seen.add(id)
        name = re.sub(r"[^A-Za-z0-9_-]", "_", asked.name)[:64] or "unnamed"
        try:
            arguments = json.dumps(arguments_of(asked))
        except (ValueError, RecursionError):
            arguments = "{}"
        sound.append(ToolRequest(id, name, arguments, asked.extra))
    return tuple(sound)


def _unused_id(number: int, seen: Collection[str]) -> str:
    """Return an id that is not in `seen`: nine letters and digits, the only form that Mistral accepts."""
    while (id := f"call{number:05d}") in seen:
        number += 1
    return id


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation: `role` is `system`, `user`, `assistant` or `tool`."""

    role: str
    content: str
    tool_calls: tuple[ToolRequest, ...] = ()
    tool_call_id: str = ""
    """The id of the call that a tool's message answers."""
    reasoning: str = ""
    """The model's reasoning, if its endpoint separates it from the reply."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """The message's other members, as received, which are sent back only to the host that sent them."""
    host: str = ""
    """The host and port that sent the other members of the message and of its calls; empty without any."""


class Usage(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename={f"{it}_tokens": it for it in ("prompt", "completion", "cached", "reasoning", "written")}.get,
):
    """The cost of requests: tokens, and US dollars if known, stored in this order in journals."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """The number of sent tokens that the endpoint had cached."""
    reasoning_tokens: int = 0
    """The number of received tokens that are reasoning."""
    cost_usd: float | None = None
    estimated: bool = False
    """Whether some tokens were estimated from the text's length, because the endpoint did not report them."""
    written_tokens: int = 0
    """The number of sent tokens that the endpoint wrote to its cache."""

    @property
    def tokens(self) -> int:
        """The number of tokens, sent and received."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            sum(costs) if costs else None,
            self.estimated or other.estimated,
            self.written_tokens + other.written_tokens,
        )


LONGEST_REPLY = 32_000
"""The limit on a reply's tokens if a limit must be sent and none was chosen."""
AFTER_THINKING = 8_000
"""The minimum number of tokens left for a reply after its reasoning."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling parameters of a request.

    A value of None is not sent, because models refuse parameters that they don't support.
    """

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_output_tokens: int | None = None
    """The maximum number of tokens in one reply, including its reasoning; None for the endpoint's limit."""
    reasoning_effort: str | None = None
    """`low`, `medium`, `high`, or a value of the endpoint's own; None for its default."""
    thinking_tokens: int | None = None
    """The maximum number of tokens of reasoning."""

    def reply_limit(self, most: int = LONGEST_REPLY) -> int:
        """Return the limit on a reply's tokens for an API that requires one.

        It is the chosen limit or else `most`, and exceeds the limit on reasoning by at least 8,000 tokens.
        """
        if self.max_output_tokens is not None:
            return self.max_output_tokens
        return most if self.thinking_tokens is None else max(most, self.thinking_tokens + AFTER_THINKING)


class ChatProblem(StrEnum):
    """The reason for a missing reply."""

    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    TIMED_OUT = "timed_out"
    NO_CONNECTION = "no_connection"
    MALFORMED_REPLY = "malformed_reply"
    NOT_AUTHORISED = "not_authorised"
    ACCOUNT_EMPTY = "account_empty"
    """The account has no credit or quota left."""
    UNKNOWN_MODEL = "unknown_model"
    CONTEXT_FULL = "context_full"
    """The conversation is longer than the model accepts."""
    REJECTED = "request_rejected"

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self not in _LASTING

    @property
    def of_endpoint(self) -> bool:
        """Whether every other request to the same endpoint would fail as well."""
        return self in _OF_ENDPOINT


_OF_ENDPOINT = frozenset({ChatProblem.NOT_AUTHORISED, ChatProblem.ACCOUNT_EMPTY, ChatProblem.UNKNOWN_MODEL})
_LASTING = _OF_ENDPOINT | {ChatProblem.CONTEXT_FULL, ChatProblem.REJECTED}


@dataclass(frozen=True, slots=True)
class ChatFailure:
    """An unanswered request: an expected outcome, described in a sentence."""

    problem: ChatProblem
    message: str
    retry_after_s: float | None = None
    """The number of seconds that the endpoint asks clients to wait; None if the endpoint gives no number."""
    usage: Usage = field(default_factory=Usage)
    """The usage of all attempts."""
    retried: tuple[ChatProblem, ...] = ()
    """The failures of earlier attempts, in order."""
    busy: bool = False
    """Whether the host is up but temporarily busy, because it is loading a model or has no free slot."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The reply of a model."""

    message: ChatMessage
    finish: str
    """`stop`, `tool_calls`, `length` (cut off), `content_filter`, or the endpoint's own word."""
    usage: Usage
    model: str = ""
    """The model's name according to the endpoint."""
    refusal: str = ""
    """The model's own words if it declines; otherwise empty."""
    retried: tuple[ChatProblem, ...] = ()
    """The failures of earlier attempts, in order."""
    lost: Usage = field(default_factory=Usage)
    """The usage of earlier attempts, which `usage` does not include."""
    fingerprint: str = ""
    """The endpoint's name for the replying configuration (`system_fingerprint`)."""
    request_id: str = ""
    """The endpoint's id of the reply."""
    left_out: tuple[str, ...] = ()
    """The names of other members that were too large to store."""
    echoed: bool = False
    """Whether its reasoning is sent back with the conversation."""
    streamed: bool = False
    """Whether the reply was received in pieces."""
