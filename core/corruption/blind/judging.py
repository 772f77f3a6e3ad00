"""A model as a blind reader: it sees one function alone, original or corrupted at random, many times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated

import msgspec

from gistpoint.core.asking import JudgeResult, ask_all, no_answer_in, objects_in
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.chat import ChatMessage, Usage
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.corruption.blind.reading import BlindAnswer, BlindItem, ShownVersion
from gistpoint.core.decoding import decodable
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import NEVER, CancelToken

TEMPLATE = "glance-1"
MOST_TIMES = 1_000
"""The maximum number of requests for one function with one seed."""


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
        lines = physical_lines(self.item.text(self.version))
        width = len(str(len(lines)))
        code = "\n".join(f"{number:>{width}} | {line}" for number, line in enumerate(lines, start=1))
        return ChatMessage("system", judging_prompt()), ChatMessage("user", code)


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

    The series ends early, or raises errors, as described in `ask_all`.
    """

    def take(question: JudgeRequest, reply: str, usage: Usage) -> str:
        answer, fault = read_answer_of(reply)
        if answer is not None:
            keep(question, answer, usage)
        return fault

    return ask_all(asked, model, take, max_cost_usd=max_cost_usd, cancel=cancel)


def read_answer_of(text: str) -> tuple[ModelAnswer | None, str]:
    """Return the last answer in a reply and an empty string; without an answer, None and the fault.

    Only the end of a long reply is searched.
    """
    for value in objects_in(text):
        try:
            return msgspec.convert(value, decodable(ModelAnswer), strict=False), ""
        except (ValueError, RecursionError):
            continue
    return None, no_answer_in(text)
