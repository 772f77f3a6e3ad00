"""The exchange between gistpoint and a chat model: messages, tool calls, replies, failures, and costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that a model requests; `arguments` is the JSON text as received, valid or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation: `role` is `system`, `user`, `assistant` or `tool`."""

    role: str
    content: str
    tool_calls: tuple[ToolRequest, ...] = ()
    tool_call_id: str = ""
    """The id of the call that a message of a tool answers."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of requests: tokens, and US dollars if a price is known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False
    """Whether some of the tokens were counted from the length of the text, as the endpoint did not report them."""

    @property
    def tokens(self) -> int:
        """All tokens, sent and received."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            sum(costs) if costs else None,
            self.estimated or other.estimated,
        )


class ChatProblem(StrEnum):
    """Why a model gave no reply."""

    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    TIMED_OUT = "timed_out"
    NO_CONNECTION = "no_connection"
    MALFORMED_REPLY = "malformed_reply"
    NOT_AUTHORISED = "not_authorised"
    REJECTED = "request_rejected"

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self not in (ChatProblem.NOT_AUTHORISED, ChatProblem.REJECTED)


@dataclass(frozen=True, slots=True)
class ChatFailure:
    """A request that was not answered; an expected outcome, described in a sentence."""

    problem: ChatProblem
    message: str
    retry_after_s: float | None = None
    """Seconds that the endpoint asks to wait."""
    usage: Usage = field(default_factory=Usage)
    retried: tuple[ChatProblem, ...] = ()
    """The failures of earlier tries, request by request."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The answer of a model."""

    message: ChatMessage
    finish: str
    """`stop`, `tool_calls`, `length` (cut off), `content_filter`, or the endpoint's own word."""
    usage: Usage
    model: str = ""
    """The model's name as the endpoint gives it."""
    refusal: str = ""
    """The model's own words if it declines; else empty."""
    retried: tuple[ChatProblem, ...] = ()
