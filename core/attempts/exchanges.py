"""The conversation with the assistant of a study's condition, folded from an attempt's events."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gistpoint.core.attempts.events import AssistAnswered, AssistAsked


@dataclass(frozen=True, slots=True)
class AssistExchange:
    """A question to the assistant, with its answer once there is one."""

    number: int
    question: str
    buffer: str = ""
    """The name of the buffer in the editor, if any."""
    calls: int = 0
    """The number of answers to calls that the request contained."""
    left_out: tuple[str, ...] = ()
    """The ids of the calls whose answers did not fit into the context."""
    reply: str = ""
    problem: str = ""
    """The reason why there is no answer; empty if there is one."""
    tokens: int = 0
    at_ms: int = 0
    """The active time of the question, in milliseconds."""


Exchanges = tuple[AssistExchange, ...]


def exchanges_after(exchanges: Exchanges, data: AssistAsked | AssistAnswered, at_ms: int) -> Exchanges:
    """Return the exchanges after a question or answer at an active time in milliseconds."""
    if isinstance(data, AssistAsked):
        asked = AssistExchange(
            data.exchange, data.text, data.buffer or "", data.calls, data.left_out, at_ms=at_ms
        )
        return (*exchanges, asked)
    return tuple(
        replace(one, reply=data.text, problem=data.problem or "", tokens=data.usage.tokens)
        if one.number == data.exchange
        else one
        for one in exchanges
    )
