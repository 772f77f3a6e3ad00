"""A chat model that repeats a request after transient failures, a few times and at growing intervals."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, Usage
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import NEVER, CancelToken


@dataclass(frozen=True, slots=True)
class Backoff:
    """The number of requests, and the waits between them.

    Each wait is about twice as long as the previous one, unless the endpoint asks for another.
    """

    requests: int = 5
    first_s: float = 1.0
    longest_s: float = 30.0
    patience_s: float = 120.0
    """The maximum wait; if an endpoint asks for a longer one, there is no further attempt."""
    busy_s: float = 600.0
    """The maximum total wait for a host that is loading a model or has no free slot."""

    def seconds(self, failures: int, requested_s: float | None) -> float | None:
        """Return how many seconds to wait after this many failures; None if `requested_s` is too long."""
        if requested_s is not None:
            return requested_s if requested_s <= self.patience_s else None
        doubled: float = self.first_s * 2 ** (failures - 1)
        # Varied at random, so that waiting conversations do not all send their requests at the same moment.
        return min(self.longest_s, doubled) * random.uniform(0.75, 1.0)


def _sleep(seconds: float, cancel: CancelToken) -> None:
    cancel.sleep(seconds)


@dataclass(frozen=True, slots=True)
class RetryingModel:
    """A model that repeats a request until it gets a reply, or fails permanently or too often.

    Implements `ChatModel`. By default, it waits with the token's `CancelToken.sleep`, so that the caller
    can distinguish waiting from work.
    """

    model: ChatModel
    backoff: Backoff = Backoff()
    sleep: Callable[[float, CancelToken], None] = _sleep

    @property
    def name(self) -> str:
        """The model's name as sent in requests."""
        return self.model.name

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        """Return the first reply, or the last failure.

        The usage of failed requests is in the reply's `lost`, or is included in the failure's usage. Raises
        `CancelledError` if stopped, even during a wait.
        """
        lost = Usage()
        retried = list[ChatProblem]()
        busy_s, busy = 0.0, 0
        while True:
            answer = self.model.complete(messages, tools, cancel=cancel)
            spent = lost + answer.usage
            if isinstance(answer, ChatReply):
                return replace(answer, lost=lost, retried=tuple(retried))
            if answer.busy and busy_s < self.backoff.busy_s:
                busy += 1
                seconds = self.backoff.seconds(busy, answer.retry_after_s)
                busy_s += seconds or 0.0
            else:
                seconds = self._wait_after(answer, len(retried) + 1 - busy)
            if seconds is None:
                return replace(answer, usage=spent, retried=tuple(retried))
            # The cost of failed requests counts, although they brought no reply.
            lost = spent
            retried.append(answer.problem)
            cancel.failed(answer.usage)
            self.sleep(seconds, cancel)

    def _wait_after(self, failure: ChatFailure, failures: int) -> float | None:
        """Return how many seconds to wait before the next request; None if there is no further request."""
        if not failure.problem.passing or failures >= self.backoff.requests:
            return None
        return self.backoff.seconds(failures, failure.retry_after_s)
