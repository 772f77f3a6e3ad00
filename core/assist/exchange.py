"""One question to the assistant and its answer, within the condition's limits, recorded in the attempt."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock

from msgspec import UNSET

from gistpoint.core.assist.context import AssistContext, context_of
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import AssistAnswered, AssistAsked, AssistInserted, EventData
from gistpoint.core.attempts.exchanges import AssistExchange
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.chat import ChatFailure, ChatReply
from gistpoint.core.errors import AttemptError, CancelledError
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.study.declaration import ChatSettings

LONGEST_QUESTION = 20_000
"""The maximum number of characters in a question."""
CANCELLED = "cancelled"
"""The `problem` of an exchange that the user cancelled."""


@dataclass(frozen=True, slots=True)
class AssistLeft:
    """The remaining messages and tokens of a condition's chat."""

    messages: int
    tokens: int

    @property
    def any(self) -> bool:
        """Whether another question may be asked."""
        return self.messages > 0 and self.tokens > 0


def assist_left(state: AttemptState, settings: ChatSettings) -> AssistLeft:
    """Return the messages and tokens that remain in an attempt; unanswered questions count as messages."""
    spent = sum((exchange.tokens for exchange in state.exchanges), 0)
    return AssistLeft(max(0, settings.messages - len(state.exchanges)), max(0, settings.tokens - spent))


class Assistant:
    """The assistant of one attempt; asking it costs no tool use.

    Its model gets the messages of `context.context_of`, and has no tools.
    """

    def __init__(self, attempt: Attempt, model: ChatModel, settings: ChatSettings) -> None:
        self._attempt, self._model, self.settings = attempt, model, settings
        self._asking = Lock()

    @property
    def left(self) -> AssistLeft:
        """The remaining messages and tokens."""
        return assist_left(self._attempt.state, self.settings)

    def ask(self, question: str, buffer: str = "", *, cancel: CancelToken = NEVER) -> AssistExchange:
        """Ask a question and return the exchange with its answer or problem, both synced to disk.

        Blocks until the model has replied. Raises `AttemptError` if the question is empty or too long, or if
        no question is allowed now.
        """
        text = question.strip()
        if not text or len(text) > LONGEST_QUESTION:
            raise AttemptError(
                f"A question has 1 to {LONGEST_QUESTION} characters, but this one has {len(text)}.",
                hint="Use fewer words.",
            )
        if not self._asking.acquire(blocking=False):
            raise AttemptError(
                "The assistant has not answered yet.", hint="Wait for its answer, or cancel it."
            )
        try:
            return self._ask(text, buffer, cancel)
        finally:
            self._asking.release()

    def _ask(self, text: str, buffer: str, cancel: CancelToken) -> AssistExchange:
        asked: list[AssistContext] = []

        def event(state: AttemptState) -> EventData:
            self._require_available(state)
            context = context_of(state, self.settings.template, text, buffer)
            asked.append(context)
            return AssistAsked(
                exchange=len(state.exchanges) + 1,
                text=text,
                buffer=buffer or UNSET,
                template=self.settings.template,
                context_sha256=context.sha256,
                calls=context.calls,
                left_out=context.left_out,
            )

        number = len(self._attempt.append_made(event).exchanges)
        began = time.monotonic()
        try:
            reply = self._model.complete(asked[0].messages, (), cancel=cancel)
        except CancelledError:
            reply = None
        duration_ms = round((time.monotonic() - began) * 1000)
        self._attempt.append(_answered(number, reply, duration_ms))
        return self._attempt.state.exchanges[number - 1]

    def inserted(self, exchange: int, buffer: str, characters: int) -> None:
        """Record that code from an answer was inserted into the editor."""
        self._attempt.append(AssistInserted(exchange=exchange, buffer=buffer, characters=characters))

    def _require_available(self, state: AttemptState) -> None:
        if state.ended or state.pause is not None:
            raise AttemptError("The attempt is not running.", hint="Resume it first.")
        left = assist_left(state, self.settings)
        if not left.any:
            what = "messages" if not left.messages else "tokens"
            raise AttemptError(f"The {what} of the assistant are used up.", hint="Continue without it.")


def _answered(number: int, reply: ChatReply | ChatFailure | None, duration_ms: int) -> AssistAnswered:
    if reply is None:
        return AssistAnswered(exchange=number, problem=CANCELLED, duration_ms=duration_ms)
    if isinstance(reply, ChatFailure):
        return AssistAnswered(exchange=number, problem=str(reply.problem), duration_ms=duration_ms)
    text = reply.message.content
    refused = bool(reply.refusal) or reply.finish == "content_filter"
    return AssistAnswered(
        exchange=number,
        text=text,
        model=reply.model,
        usage=reply.usage,
        duration_ms=duration_ms,
        problem=UNSET if text.strip() else "refused" if refused else "empty",
    )
