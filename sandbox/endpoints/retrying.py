"""A chat model that is asked again, a bounded number of times and ever later, when something passing went wrong."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gistpoint.core.cancel import CancelToken
from gistpoint.core.ports import ChatFailure, ChatMessage, ChatModel, ChatProblem, ChatReply, Usage


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often and how long: each wait is about twice the one before, or as long as the endpoint asks for."""

    requests: int = 5
    first_s: float = 1.0
    longest_s: float = 30.0
    patience_s: float = 120.0
    """An endpoint that wants to be left alone for longer ends it."""

    def seconds(self, failures: int, asked: float | None) -> float | None:
        """Return how long to wait after so many failures; None where it is too long."""
        if asked is not None:
            return asked if asked <= self.patience_s else None
        doubled: float = self.first_s * 2 ** (failures - 1)
        return min(self.longest_s, doubled) * random.uniform(0.75, 1.0)


def _sleep(seconds: float, cancel: CancelToken | None) -> None:
    if cancel is None:
        time.sleep(seconds)
    else:
        cancel.sleep(seconds)


@dataclass(frozen=True, slots=True)
class RetryingModel:
    """Asks `model` until it replies, fails for good, or has failed too often; implements `ChatModel`."""

    model: ChatModel
    backoff: Backoff = Backoff()
    sleep: Callable[[float, CancelToken | None], None] = _sleep

    @property
    def name(self) -> str:
        """The model's name as it is asked for."""
        return self.model.name

    def complete(
        self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]], *, cancel: CancelToken | None = None
    ) -> ChatReply | ChatFailure:
        """Return the first reply, or the last failure. Raises `CancelledError` when stopped, also while it waits."""
        spent, retried = Usage(), list[ChatProblem]()
        while True:
            answer = self.model.complete(messages, tools, cancel=cancel)
            spent += answer.usage
            if isinstance(answer, ChatFailure) and answer.problem.passing and len(retried) + 1 < self.backoff.requests:
                seconds = self.backoff.seconds(len(retried) + 1, answer.retry_after_s)
                if seconds is not None:
                    retried.append(answer.problem)
                    self.sleep(seconds, cancel)
                    continue
            return replace(answer, usage=spent, retried=tuple(retried))
