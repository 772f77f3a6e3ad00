"""Sends a series of requests to a model; unusable answers, a failing endpoint or a cost cap end it early."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeVar

from gistpoint.core.chat import ChatFailure, ChatMessage, Usage
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import NEVER, CancelToken

BREAKER = 3
"""The number of consecutive requests without a usable answer after which no more are made."""
_LONGEST_REPLY = 20_000
_MOST_OBJECTS = 100


class ModelQuestion(Protocol):
    """A request to a model."""

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The messages of the request."""
        ...


A = TypeVar("A", bound=ModelQuestion)


class JudgeEnd(StrEnum):
    """A reason why no more requests are made."""

    ALL_ASKED = "all_asked"
    NO_ANSWERS = "no_answers"
    """Several consecutive requests got no usable answer."""
    ENDPOINT = "endpoint"
    """No request to this endpoint can succeed."""
    COST_CAP = "cost_cap"


@dataclass(slots=True)
class JudgeResult:
    """The state of a series of requests."""

    usage: Usage = field(default_factory=Usage)
    asked: int = 0
    answered: int = 0
    end: JudgeEnd = JudgeEnd.ALL_ASKED
    detail: str = ""
    """The reason why the series ended, or what was wrong with the last unusable answer, as a sentence."""


def ask_all(
    asked: Iterable[A],
    model: ChatModel,
    take: Callable[[A, str, Usage], str],
    *,
    max_cost_usd: float | None = None,
    cancel: CancelToken = NEVER,
) -> JudgeResult:
    """Send the requests to a model, pass each reply to `take`, and return the state of the series.

    `take` stores the answer and returns an empty string, or returns a description of the fault in the reply.
    The series ends early after `BREAKER` consecutive requests without a usable answer, or if no request to
    the endpoint can succeed. With a cap, it ends before a request that would exceed the cap if it cost as
    much as the most expensive one so far, or after the first request if its cost is unknown. Raises
    `CancelledError` when cancelled; `take` has then received the replies so far.
    """
    result, failed, dearest = JudgeResult(), 0, 0.0
    for question in asked:
        cancel.check()
        reason = _over_the_cap(result, dearest, max_cost_usd)
        if reason:
            result.end, result.detail = JudgeEnd.COST_CAP, reason
            return result
        reply = model.complete(question.messages, (), cancel=cancel)
        result.asked += 1
        usage = reply.usage if isinstance(reply, ChatFailure) else reply.usage + reply.lost
        result.usage, dearest = result.usage + usage, max(dearest, usage.cost_usd or 0.0)
        if isinstance(reply, ChatFailure):
            fault = reply.message
            if reply.problem.of_endpoint:
                result.end, result.detail = JudgeEnd.ENDPOINT, fault
                return result
        else:
            fault = take(question, reply.refusal or reply.message.content, usage)
            if not fault:
                failed = 0
                result.answered += 1
                continue
        failed, result.detail = failed + 1, fault
        if failed == BREAKER:
            result.end = JudgeEnd.NO_ANSWERS
            return result
    return result


def _over_the_cap(result: JudgeResult, dearest: float, max_cost_usd: float | None) -> str:
    """Return why the cap allows no request as expensive as the dearest so far; empty if it allows one."""
    if max_cost_usd is None or not result.asked:
        return ""
    spent = result.usage.cost_usd
    if spent is None:
        return "The cap on the cost: no price is known."
    if spent + dearest > max_cost_usd:
        return f"The cap on the cost: {spent:.4f} of {max_cost_usd:g} dollars are spent."
    return ""


def objects_in(text: str) -> Iterator[object]:
    """Yield the JSON objects in a reply, including nested ones, from the last opening brace to the first.

    Only the last `_LONGEST_REPLY` characters and the last `_MOST_OBJECTS` braces are searched.
    """
    shown, decoder = text[-_LONGEST_REPLY:], json.JSONDecoder()
    # The last object comes first, because a model may think aloud before it answers.
    for begins in reversed([found.start() for found in re.finditer(r"\{", shown)][-_MOST_OBJECTS:]):
        try:
            yield decoder.raw_decode(shown, begins)[0]
        except (ValueError, RecursionError):
            continue


def no_answer_in(text: str) -> str:
    """Return a sentence that reports a reply without an answer and quotes its first 100 characters."""
    return f"The reply contains no answer: {' '.join(text.split())[:100] or 'it is empty'}."
