"""Lets a model work: sends requests, journals replies and makes their calls until the attempt ends.

Requests are folded from the journal (`conversation`), so a process that resumes an attempt sends what the
previous process would have sent. An endpoint's failure is never the solver's: it ends the work, but not the
attempt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol, TypeVar

from msgspec import UNSET, UnsetType, structs

from gistpoint.core.agents import static
from gistpoint.core.agents.context import history_cut, prompt_tokens
from gistpoint.core.agents.conversation import (
    ReplyKind,
    calls_in_vain,
    conversation,
    missing_calls,
    offered_before,
)
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.agents.text_calls import calls_in
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import Heartbeat, ModelTurn, Pane, Paused, RequestedCall
from gistpoint.core.attempts.parts import REQUEST_ID
from gistpoint.core.attempts.reasons import EndReason, GiveUpCode, PauseReason
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, ToolRequest, Usage
from gistpoint.core.errors import AttemptError, CancelledError
from gistpoint.core.estimates import Estimate
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import UNATTENDED, CancelToken, RunContext
from gistpoint.core.tools.declaration import Tool

MOST_CHARACTERS = 1_000_000
"""The maximum number of characters in each string of a reply, in the journal and in the conversation."""
MOST_CALLS = 1_000
"""The maximum number of calls in one reply; more than any budget allows."""
_ID_CHARACTERS = 200
MOST_IN_VAIN, MOST_REFUSALS = 3, 2
"""The numbers of consecutive replies without a call, and of consecutive refusals, that count as giving up."""
_Kept = TypeVar("_Kept")
_TICK_S = 0.05
_HEARTBEAT_S = 5.0

_GIVEN_UP = {
    ReplyKind.NO_CALL: GiveUpCode.NO_TOOL_CALL,
    ReplyKind.CUT_OFF: GiveUpCode.TRUNCATED,
    ReplyKind.REFUSED: GiveUpCode.DECLINED,
    ReplyKind.NOT_SUPPORTED: GiveUpCode.NOT_SUPPORTED,
}
HISTORY_CUT = "history_cut"
"""The `problem` reported for an endpoint that silently drops the beginning of a conversation."""
INFRASTRUCTURE = "infrastructure"
"""The `problem` reported for a submission that the harness could not judge."""


class TerminationReason(StrEnum):
    """Why the work on an attempt ended."""

    ENDED = "ended"
    HALTED = "halted"
    STOPPED = "stopped"
    OVER_COST = "over_cost"


@dataclass(frozen=True, slots=True)
class WorkEnd:
    """The end of a model's work; unless `reason` is `ended`, the attempt can be resumed."""

    reason: TerminationReason
    problem: str = ""
    """The obstacle: a `ChatProblem`, `history_cut`, `infrastructure` or `scaffold`; empty unless halted."""
    message: str = ""
    """The obstacle, in a sentence."""
    stops_run: bool = False
    """Whether the obstacle would halt every other attempt with the same endpoint and model."""
    lost: Usage = field(default_factory=Usage)
    """The usage of replies that are not in the journal."""
    lost_s: float = 0.0
    """The duration of requests without a reply, in seconds."""

    @property
    def halted(self) -> str | None:
        """The obstacle; None if the work did not halt."""
        return self.problem or None


@dataclass(frozen=True, slots=True)
class AnnouncedRequest:
    """A request that is about to be sent, with the usage to count if its process dies.

    A request that ends without a reply is announced again, without usage, before its time is excluded from
    the model's time. Lost usage is therefore never missing and never counted twice (decision 210).
    """

    turn: int
    """The number of the turn that the reply will have; 0 if it is unknown."""
    usage: Usage
    """The estimated usage of the request alone, without its reply; empty if the request is over."""
    failed: Usage = field(default_factory=Usage)
    """The usage of failed requests: those for the same reply, or all of a scaffold's program."""
    failed_s: float = 0.0
    """The duration of all requests of this process that failed, in seconds."""
    number: int = 0
    """The number of a request that a scaffold's program sends; 0 for any other.

    If such a request was answered, it is announced again with its turn.
    """


def always(estimate: Estimate) -> bool:
    """Return True: every request is allowed."""
    return True


def never() -> bool:
    """Return False: the work is never stopped."""
    return False


def unannounced(request: AnnouncedRequest) -> None:
    """Record nothing before a request."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """The requests that were sent and have no reply yet."""

    requests: int = 0
    cost_usd: float = 0.0
    """Their highest possible cost, and the unrecorded cost of earlier requests that failed."""


OnTurn = Callable[[AttemptState, UnderWay], None]


def work(
    attempt: Attempt,
    model: ChatModel,
    settings: AgentSettings,
    *,
    may_ask: Callable[[Estimate], bool] = always,
    announce: Callable[[AnnouncedRequest], None] = unannounced,
    stop: Callable[[], bool] = never,
    on_turn: OnTurn | None = None,
    run: RunContext = UNATTENDED,
) -> WorkEnd:
    """Let a model work on an attempt, and return how the work ended.

    The work ends with the attempt, at an obstacle, when it is stopped, or when `may_ask` returns false. Begun
    calls are finished. `may_ask` is called before each request with the request's highest possible cost, and
    after each failure with the cost of failed requests added; `announce` is called whenever a request is
    sent. `stop` is called between calls, and often during requests, which are dropped if it returns true, so
    it must be fast. `on_turn` receives the state after each reply and call, and the requests still under way.
    `run` is the context of the tools; cancelling it also stops the work. The model waits with the token it
    receives (`CancelToken.sleep`), and that time is journalled as a pause. Raises `UserError` for a task that
    does not fit the settings.
    """
    return ModelWork(attempt, model, settings, may_ask, announce, stop, on_turn, run).done()


class Announce(Protocol):
    """Announces a request for a reply, with the usage and duration of its failed attempts."""

    def __call__(self, lost: Usage, lost_s: float, *, is_over: bool) -> None:
        """Announce a request; `is_over` is true if it also failed and is not sent again yet."""
        ...


class _Patience(CancelToken):
    """The cancel token of a request, which is cancelled when the work is stopped.

    It also records heartbeats, and pauses the attempt during waits.
    """

    def __init__(
        self,
        attempt: Attempt,
        stop: Callable[[], bool],
        outer: CancelToken,
        announce: Announce,
        may_send_again: Callable[[Usage], bool],
    ) -> None:
        """`may_send_again` receives the usage of failed requests."""
        super().__init__()
        self._attempt = attempt
        self._stop = stop
        self._outer = outer
        self._paused = False
        self._beat = time.monotonic()
        self._announce = announce
        self._may_send_again = may_send_again
        self._is_over = False
        """Whether the last request has failed, and is not announced again yet."""
        self._sent_at = time.monotonic()
        self.waited_s = 0.0
        self._unanswered_ms = 0
        """The time of failed requests that the attempt's clock still counts as thinking."""
        self._thinking_before_ms = attempt.clock().thinking
        """The thinking time before the last request was sent, in milliseconds."""
        self.lost = Usage()
        """The usage of requests that failed."""
        self.lost_s = 0.0
        """The duration of the failed requests, in seconds."""
        self.is_waiting = False
        """Whether a wait, possibly an interrupted one, means that no request is under way."""
        self.is_over_cost = False
        """Whether a failed request is not sent again, because that might exceed the limit on the cost."""

    @property
    def cancelled(self) -> bool:
        """Whether the work is stopped, or the request is not sent again."""
        return self.is_over_cost or self._event.is_set() or self._outer.cancelled or self._stop()

    def check(self) -> None:
        """Raise `CancelledError` when the work is stopped."""
        now = time.monotonic()
        if now - self._beat >= _HEARTBEAT_S:
            self._beat = now
            # No time limit ends an attempt during a request: if the request fails, its time does not count.
            if not self._attempt.state.ended:
                self._attempt.append(Heartbeat())
        if self.cancelled:
            raise CancelledError("The request was dropped.")

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Pause the attempt during a wait for the endpoint."""
        if self._paused:
            yield
            return
        self._paused = self.is_waiting = True
        began = time.monotonic()
        self._pause()
        try:
            yield
            self.is_waiting = False
        finally:
            self._paused = False
            self._attempt.resume()
            self._sent_at = time.monotonic()
            self._thinking_before_ms = self._attempt.clock().thinking
            self.waited_s += self._sent_at - began
        if self._is_over:
            self._is_over = False
            self._announce(self.lost, self.lost_s, is_over=False)

    def failed(self, usage: Usage) -> None:
        """Count a request that has failed and will be sent again."""
        self.lost += usage
        self._not_answered(self.lost)
        if not self._may_send_again(self.lost):
            self.is_over_cost = True

    def unanswered(self, lost: Usage) -> None:
        """Exclude the last request, which got no reply, from the model's time (decision 167).

        `lost` is the usage of all requests for that reply.
        """
        self._not_answered(lost)
        if self._unanswered_ms:
            self._pause()
        self._attempt.resume()

    def _not_answered(self, lost: Usage) -> None:
        self.lost_s += self.under_way_s()
        thinking = self._attempt.clock().thinking
        self._unanswered_ms += 0 if self.is_waiting else thinking - self._thinking_before_ms
        self._thinking_before_ms = thinking
        if not self._is_over:
            self._is_over = True
            self._announce(lost, self.lost_s, is_over=True)

    def _pause(self) -> None:
        thinking_ms, self._unanswered_ms = self._unanswered_ms, 0
        if not thinking_ms:
            with suppress(AttemptError):  # the attempt's time is up, which the reply will show
                self._attempt.pause(PauseReason.ENDPOINT_WAIT)
        elif not self._attempt.state.ended:
            # The time limit is not checked, because the time still includes that of the failed request.
            self._attempt.append(Paused(PauseReason.ENDPOINT_WAIT, thinking_ms=thinking_ms))

    def under_way_s(self) -> float:
        """Return the seconds for which the last request has been under way; 0 during a wait."""
        return 0.0 if self.is_waiting else time.monotonic() - self._sent_at

    def sleep(self, seconds: float) -> None:
        """Wait with the attempt paused. Raises `CancelledError` as soon as the work is stopped."""
        with self.waiting():
            until = time.monotonic() + seconds
            while True:
                self.check()
                left = until - time.monotonic()
                if left <= 0:
                    return
                time.sleep(min(left, _TICK_S))


@dataclass
class ModelWork:
    """The work on one attempt; its arguments are those of `work`."""

    attempt: Attempt
    model: ChatModel
    settings: AgentSettings
    may_ask: Callable[[Estimate], bool]
    announce: Callable[[AnnouncedRequest], None]
    stop: Callable[[], bool]
    on_turn: OnTurn | None
    run: RunContext
    lost: Usage = field(default_factory=Usage)
    lost_s: float = 0.0
    submissions: int = 0
    """The number of submissions made before this process resumed the attempt."""

    def done(self) -> WorkEnd:
        """Work until the attempt ends, halts or is stopped, and return how the work ended."""
        attempt = self.attempt
        attempt.resume()
        attempt.finish_pending(run=self.run)
        self.submissions = len(attempt.state.submissions)
        attempt.view(Pane.MODEL)
        end: WorkEnd | None = None
        while end is None:
            end = self._step()
        return end

    def _step(self) -> WorkEnd | None:
        """Do the next step that the journal requires; return the end of the work, or None if it continues."""
        attempt = self.attempt
        attempt.check_time()
        state = attempt.state
        missing = missing_calls(state)
        failed = self.not_judged()
        code = _given_up(calls_in_vain(state))
        # Begun steps are finished first, and the model is asked last (decision 74).
        if state.pending is not None:
            attempt.finish_pending(run=self.run)
        elif state.ended:
            return self._work_end(TerminationReason.ENDED)
        elif self.stop() or self.run.cancel.cancelled:
            return self._work_end(TerminationReason.STOPPED)
        elif failed is not None:
            return self._work_end(TerminationReason.HALTED, INFRASTRUCTURE, failed)
        elif self.settings.setting == "static" and state.turns:
            static.hand_in(attempt, state.turns[-1], run=self.run)
        elif missing:
            self._carry_out(missing[0])
        elif code is not None:
            attempt.hand_in(EndReason.GAVE_UP, code)
        else:
            return self._ask()
        self._report()
        return None

    def not_judged(self) -> str | None:
        """Return why the last submission could not be judged; None if it could.

        Only submissions of this process count; None if it has made none.
        """
        submissions = self.attempt.state.submissions[self.submissions :]
        if submissions and not submissions[-1].counts:
            return submissions[-1].reason or "The submission could not be judged."
        return None

    def _carry_out(self, asked: RequestedCall) -> None:
        attempt = self.attempt
        turn = attempt.state.turns[-1].turn
        id = asked.id[:_ID_CHARACTERS]
        try:
            attempt.call(
                asked.name, None, raw=asked.arguments, turn=turn, run=self.run, extra={REQUEST_ID: id}
            )
        except AttemptError:
            if not attempt.state.ended:  # otherwise the attempt's time was up
                raise

    def _ask(self) -> WorkEnd | None:
        """Send the conversation and journal the reply; return what `request` returns."""
        tools = self.attempt.offered() if self.settings.setting == "tools" else ()
        return self.request(self._messages(tools), tools)

    def request(self, messages: Sequence[ChatMessage], tools: Sequence[Tool]) -> WorkEnd | None:
        """Send messages and journal the reply, unless a limit ends the attempt; return how the work ends.

        Returns None if the attempt can continue, or if a limit has ended it.
        """
        attempt = self.attempt
        settings = self.settings
        declared = () if settings.calls_as_text else tools
        estimate = settings.estimate(
            prompt_tokens(attempt.state, messages, declared, loop_version=settings.loop_version)
        )
        limit = self._over_a_limit(estimate)
        if limit is not None:
            attempt.hand_in(limit)
            return None
        if not self.may_ask(estimate):
            return self._work_end(TerminationReason.OVER_COST)
        patience = self._announced(estimate)
        began = time.monotonic()
        try:
            reply = self.model.complete(messages, [tool.json_schema() for tool in declared], cancel=patience)
        except CancelledError:
            dropped = Usage() if patience.is_waiting else Usage(estimate.prompt_tokens)
            lost = patience.lost + dropped
            self.lost += structs.replace(self._priced(lost), estimated=True)
            patience.unanswered(lost)
            self.lost_s += patience.lost_s
            return self._work_end(
                TerminationReason.OVER_COST if patience.is_over_cost else TerminationReason.STOPPED
            )
        if isinstance(reply, ChatFailure):
            patience.unanswered(reply.usage)
            self.lost_s += patience.lost_s
            return self._failed(reply)
        taken_s = time.monotonic() - began - patience.waited_s - patience.lost_s
        turn = self._turn(reply, tools, taken_s)
        cut = history_cut(self.attempt.state, messages, turn)
        if cut is None:
            self.lost_s += patience.lost_s
            self._replied(turn, reply)
            return None
        # A reply to a shortened conversation must not be journalled (decision 74).
        patience.unanswered(reply.usage + reply.lost)
        self.lost_s += patience.lost_s
        self.lost += self._priced(reply.usage + reply.lost)
        return self._work_end(TerminationReason.HALTED, HISTORY_CUT, cut)

    def _announced(self, estimate: Estimate) -> _Patience:
        """Announce a request, and return a token that announces its failures and repetitions."""
        usage, before_s = self._priced(Usage(estimate.prompt_tokens)), self.lost_s
        turn = len(self.attempt.state.turns) + 1

        def announce(lost: Usage, lost_s: float, *, is_over: bool) -> None:
            usage_now = Usage() if is_over else usage
            self.announce(AnnouncedRequest(turn, usage_now, self._priced(lost), before_s + lost_s))

        def may_send_again(lost: Usage) -> bool:
            again = (estimate.cost_usd or 0.0) + (self._priced(lost).cost_usd or 0.0)
            return self.may_ask(replace(estimate, cost_usd=again))

        announce(Usage(), 0.0, is_over=False)
        return _Patience(self.attempt, self.stop, self.run.cancel, announce, may_send_again)

    def _messages(self, offered: Sequence[Tool]) -> Sequence[ChatMessage]:
        if self.settings.setting == "static":
            return static.static_messages(self.attempt, self.settings)
        return conversation(self.attempt.state, self.settings, self.attempt.tools, offered)

    def _failed(self, failure: ChatFailure) -> WorkEnd | None:
        """End the attempt and return None if the conversation is too long; else return the end of the work.

        All other failures are the endpoint's and not the solver's (decision 74).
        """
        self.lost += self._priced(failure.usage)
        problem = failure.problem
        if problem is not ChatProblem.CONTEXT_FULL:
            return self._work_end(
                TerminationReason.HALTED, problem, failure.message, stops_run=problem.of_endpoint
            )
        self.attempt.hand_in(EndReason.CONTEXT_EXHAUSTED)
        return None

    def _replied(self, turn: ModelTurn, reply: ChatReply) -> None:
        """Journal a reply."""
        try:
            self.attempt.model_turn(turn)
        except AttemptError:
            if not self.attempt.state.ended:  # otherwise the attempt's time was up
                raise
            self.lost += self._priced(reply.usage + reply.lost)
        self._report()

    def _over_a_limit(self, estimate: Estimate) -> EndReason | None:
        """Return the limit that a request would exceed; None if it exceeds none."""
        settings = self.settings
        tokens = estimate.prompt_tokens + estimate.completion_tokens
        if settings.setting == "tools" and tokens > settings.context_tokens:
            return EndReason.CONTEXT_EXHAUSTED
        if settings.attempt_tokens is None:
            return None
        # Failed requests are not the model's fault, so their tokens don't count (decision 167).
        spent = self.attempt.state.spent.replies.tokens
        if spent + estimate.prompt_tokens > settings.attempt_tokens:
            return EndReason.TOKEN_CAP
        return None

    def _report(self) -> None:
        if self.on_turn is not None:
            self.on_turn(self.attempt.state, UnderWay())

    def _turn(self, reply: ChatReply, tools: Sequence[Tool], seconds: float) -> ModelTurn:
        state = self.attempt.state
        message = reply.message
        names = tuple(tool.name for tool in tools)
        content = message.content[:MOST_CHARACTERS]
        calls, unmade = self._calls(message, content)
        return ModelTurn(
            turn=len(state.turns) + 1,
            content=content,
            reasoning=_unset_if_empty(message.reasoning[:MOST_CHARACTERS]),
            refusal=_unset_if_empty(reply.refusal[:MOST_CHARACTERS]),
            tool_calls=calls,
            unmade=_unset_if_empty(unmade),
            finish=reply.finish[:_ID_CHARACTERS],
            model=reply.model[:_ID_CHARACTERS],
            fingerprint=_unset_if_empty(reply.fingerprint),
            request_id=_unset_if_empty(reply.request_id),
            usage=self._priced(reply.usage),
            lost=self._priced(reply.lost) if reply.lost.tokens else UNSET,
            latency_ms=max(0, round(seconds * 1000)),
            retried=tuple(problem.value for problem in reply.retried),
            tools=UNSET if names == offered_before(state) else names,
            extra=_unset_if_empty(dict(message.extra)),
            host=_unset_if_empty(message.host),
            left_out=_unset_if_empty(reply.left_out[:MOST_CALLS]),
            echoed=_unset_if_empty(reply.echoed and bool(message.reasoning)),
            streamed=_unset_if_empty(reply.streamed),
        )

    def _calls(
        self, message: ChatMessage, content: str
    ) -> tuple[tuple[RequestedCall, ...], tuple[RequestedCall, ...]]:
        """Return a reply's calls in two groups: those to make, and those to ignore (decision 151)."""
        calls = tuple(map(_recorded_request, message.tool_calls[:MOST_CALLS]))
        if not self.settings.calls_as_text:
            return calls, ()
        calls = calls or tuple(map(_recorded_request, calls_in(content)))
        return calls[:1], calls[1:]

    def _priced(self, usage: Usage) -> Usage:
        return structs.replace(usage, cost_usd=self.settings.cost(usage))

    def _work_end(
        self, reason: TerminationReason, problem: str = "", message: str = "", *, stops_run: bool = False
    ) -> WorkEnd:
        return WorkEnd(reason, str(problem), message, stops_run, self.lost, self.lost_s)


def _unset_if_empty(value: _Kept) -> _Kept | UnsetType:
    """Return a value, or `UNSET` if it is empty, so that the journal omits it."""
    return value or UNSET


def _given_up(kinds: Sequence[ReplyKind]) -> GiveUpCode | None:
    """Return why a model has given up, judged by its last replies without calls; None if it hasn't.

    Replies of different kinds are counted together, so that no mixture of them continues forever.
    """
    if not kinds:
        return None
    last = kinds[-1]
    refused = kinds[-MOST_REFUSALS:] == [ReplyKind.REFUSED] * MOST_REFUSALS
    too_often = refused or len(kinds) >= MOST_IN_VAIN
    if too_often or last is ReplyKind.NOT_SUPPORTED:
        return _GIVEN_UP[last]
    return None


def _recorded_request(call: ToolRequest) -> RequestedCall:
    """Return a call as the journal records it, with strings of bounded length."""
    return RequestedCall(
        call.id[:_ID_CHARACTERS],
        call.name[:MOST_CHARACTERS],
        call.arguments[:MOST_CHARACTERS],
        dict(call.extra) or UNSET,
    )
