"""What is said between gistpoint and a chat model: messages, tool calls, replies, failures, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that a model asks for; `arguments` is the JSON text as it came, sound or not."""

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
    """Which call a message of a tool answers."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent: tokens, and US dollars where a price is known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False
    """Whether some of the tokens were counted from the length of the text, as the endpoint did not say."""

    @property
    def tokens(self) -> int:
        """All tokens, those sent and those received."""
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
        """Whether the same request may do better a little later."""
        return self not in (ChatProblem.NOT_AUTHORISED, ChatProblem.REJECTED)


@dataclass(frozen=True, slots=True)
class ChatFailure:
    """A request that was not answered; an expected outcome, told in a sentence."""

    problem: ChatProblem
    message: str
    retry_after_s: float | None = None
    """Seconds for which the endpoint asks to be left alone."""
    usage: Usage = field(default_factory=Usage)
    retried: tuple[ChatProblem, ...] = ()
    """What went wrong before, request by request."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What a model answered."""

    message: ChatMessage
    finish: str
    """`stop`, `tool_calls`, `length` (cut off), `content_filter`, or as the endpoint words it."""
    usage: Usage
    model: str = ""
    """The model's name as the endpoint gives it."""
    refusal: str = ""
    """The model's own words where it declines; empty otherwise."""
    retried: tuple[ChatProblem, ...] = ()
