"""A model as a blind reader: it sees one function alone, original or corrupted at random, many times."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated

import msgspec

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.chat import ChatFailure, ChatMessage, Usage
from gistpoint.core.corruption.blind.reading import BlindAnswer, BlindItem, ShownVersion
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import NEVER, CancelToken

TEMPLATE = "glance-1"
MOST_TIMES = 1_000
"""Maximum number of requests for one function with one seed."""
BREAKER = 3
"""Number of consecutive requests without a usable answer after which no more are made."""
_LONGEST_REPLY = 20_000
_MOST_OBJECTS = 100


@cache
def judging_prompt() -> str:
    """Return the instructions for a model. A template never changes: a changed wording gets a new name."""
    return (
        files("gistpoint.core.corruption").joinpath("templates", f"{TEMPLATE}.md").read_text("utf-8").strip()
    )


def prompt_sha256() -> str:
    """Return the hash of the instructions, which is stored with each answer."""
    return sha256_of_text(judging_prompt())


class ModelAnswer(msgspec.Struct, frozen=True):
    """A model's answer to one function."""

    answer: BlindAnswer
    line: Annotated[int, msgspec.Meta(ge=0, lt=1_000_000)] | None = 0
    words: str = ""


class JudgeEnd(StrEnum):
    """A reason why no more requests are made."""

    ALL_ASKED = "all_asked"
    NO_ANSWERS = "no_answers"
    """Several consecutive requests had no usable answer."""
    ENDPOINT = "endpoint"
    """No request to this endpoint can succeed."""
    COST_CAP = "cost_cap"


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """One request: a function, and the seed that decides which version is shown."""

    item: BlindItem
    seed: int

    @property
    def version(self) -> ShownVersion:
        """The version that is shown."""
        return self.item.version(self.seed)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The messages of the request; nothing in them reveals the version, the task or the library."""
        lines = self.item.text(self.version).splitlines()
        width = len(str(len(lines)))
        code = "\n".join(f"{number:>{width}} | {line}" for number, line in enumerate(lines, start=1))
        return ChatMessage("system", judging_prompt()), ChatMessage("user", code)


@dataclass(slots=True)
class JudgeResult:
    """The state of a series of requests."""

    usage: Usage = field(default_factory=Usage)
    asked: int = 0
    answered: int = 0
    end: JudgeEnd = JudgeEnd.ALL_ASKED
    detail: str = ""
    """Why the series ended, or what was wrong with the last unusable answer, in a sentence."""


def questions(items: Iterable[BlindItem], seed: int, times: int) -> Iterator[JudgeRequest]:
    """Yield the requests for a seed: each function `times` times, in either version at random."""
    chosen = list(items)
    for number in range(times):
        for item in chosen:
            yield JudgeRequest(item, seed * MOST_TIMES + number)


def judge(
    asked: Iterable[JudgeRequest],
    model: ChatModel,
    keep: Callable[[JudgeRequest, ModelAnswer, Usage], object],
    *,
    max_cost_usd: float | None = None,
    cancel: CancelToken = NEVER,
) -> JudgeResult:
    """Send the requests to a model, pass each answer to `keep`, and return the state of the series.

    The series ends early after `BREAKER` consecutive requests without a usable answer, or if no request to
    the endpoint can succeed. With a cap, it ends before a request that would exceed the cap at the cost of
    the last one, or after the first request if the cost is unknown. Raises `CancelledError` when stopped;
    answers so far are kept.
    """
    # The cost of one request is the estimate for the next one.
    result, failed, last = JudgeResult(), 0, 0.0
    for question in asked:
        cancel.check()
        reason = _over_the_cap(result, last, max_cost_usd)
        if reason:
            result.end, result.detail = JudgeEnd.COST_CAP, reason
            return result
        reply = model.complete(question.messages, (), cancel=cancel)
        result.asked += 1
        usage = reply.usage if isinstance(reply, ChatFailure) else reply.usage + reply.lost
        result.usage, last = result.usage + usage, usage.cost_usd or 0.0
        if isinstance(reply, ChatFailure):
            fault = reply.message
            if reply.problem.of_endpoint:
                result.end, result.detail = JudgeEnd.ENDPOINT, fault
                return result
        else:
            answer, fault = read_answer_of(reply.refusal or reply.message.content)
            if answer is not None:
                failed = 0
                result.answered += 1
                keep(question, answer, usage)
                continue
        failed, result.detail = failed + 1, fault
        if failed == BREAKER:
            result.end = JudgeEnd.NO_ANSWERS
            return result
    return result


def _over_the_cap(result: JudgeResult, last: float, max_cost_usd: float | None) -> str:
    """Return why the cap allows no further request that costs as much as the last one; empty if it does."""
    if max_cost_usd is None or not result.asked:
        return ""
    spent = result.usage.cost_usd
    if spent is None:
        return "The cap on the cost: no price is known."
    if spent + last > max_cost_usd:
        return f"The cap on the cost: {spent:.4f} of {max_cost_usd:g} dollars are spent."
    return ""


def read_answer_of(text: str) -> tuple[ModelAnswer | None, str]:
    """Return the last answer in a reply and an empty string; without an answer, None and what is wrong.

    Only the last `_LONGEST_REPLY` characters and the last `_MOST_OBJECTS` objects are searched.
    """
    for value in objects_in(text):
        try:
            return msgspec.convert(value, ModelAnswer, strict=False), ""
        except (ValueError, RecursionError):
            continue
    return None, f"The reply holds no answer: {' '.join(text.split())[:100] or 'it is empty'}."


def objects_in(text: str) -> Iterator[object]:
    """Yield the JSON values that begin at a brace in a reply, from the last one.

    Only the last `_LONGEST_REPLY` characters and the last `_MOST_OBJECTS` braces are searched.
    """
    shown, decoder = text[-_LONGEST_REPLY:], json.JSONDecoder()
    # From the last object: a model may think aloud before it answers.
    for begins in reversed([found.start() for found in re.finditer(r"\{", shown)][-_MOST_OBJECTS:]):
        try:
            yield decoder.raw_decode(shown, begins)[0]
        except (ValueError, RecursionError):
            continue
