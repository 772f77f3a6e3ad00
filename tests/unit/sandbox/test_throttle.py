"""A rate limit in one conversation delays all conversations with the same host."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from scripted_endpoint import ScriptedModel, reply

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.core.errors import CancelledError
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.endpoints.retrying import Backoff, RetryingModel
from gistpoint.sandbox.endpoints.throttle import HostGate, Throttle, ThrottledModel

HELLO = [ChatMessage("user", "hello")]


@dataclass
class Time:
    """A clock that advances only during sleeps."""

    at: float = 100.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float, cancel: CancelToken = NEVER) -> None:
        cancel.check()
        self.slept.append(seconds)
        self.at += seconds


def limited(after: float | None = None) -> ChatFailure:
    return ChatFailure(ChatProblem.RATE_LIMITED, "slow down", after)


def test_the_wait_of_one_is_the_wait_of_all() -> None:
    time = Time()
    gate = HostGate(now=time.now)
    first = ThrottledModel(ScriptedModel([limited(20.0)]), gate, time.sleep)
    second = ThrottledModel(ScriptedModel([reply(content="done")]), gate, time.sleep)
    assert first.complete(HELLO, []) == limited(20.0)
    assert time.slept == []
    assert isinstance(second.complete(HELLO, []), ChatReply)
    assert 20.0 <= time.slept[0] <= 22.0
    assert gate.wait_s() == 0


def test_hosts_are_held_apart_and_have_one_gate_each() -> None:
    throttle = Throttle()
    throttle.gate("one:80").refused(60.0)
    assert throttle.gate("one:80").wait_s() > 0
    assert throttle.gate("one:81").wait_s() == 0


def test_without_a_stated_wait_it_grows_with_each_refusal_in_a_row() -> None:
    time = Time()
    gate = HostGate(Backoff(first_s=8.0), now=time.now)
    waits = []
    for _ in range(3):
        gate.refused(None)
        gate.refused(None)  # the request was pending already, so it does not count
        waits.append(gate.wait_s())
        time.at += 40
    assert 6 <= waits[0] <= 8 < 12 <= waits[1] <= 16 < 22 <= waits[2] <= 30
    gate.answered()
    gate.refused(None)
    assert gate.wait_s() <= 8


def test_a_host_that_wants_hours_is_left_alone_by_all() -> None:
    time = Time()
    gate = HostGate(now=time.now)
    gate.refused(3_600.0)
    model = ScriptedModel([reply(content="never asked")])
    answer = RetryingModel(ThrottledModel(model, gate, time.sleep), sleep=time.sleep).complete(HELLO, [])
    assert isinstance(answer, ChatFailure)
    assert answer.problem is ChatProblem.RATE_LIMITED
    assert (model.asked, time.slept) == ([], [])


def test_a_wait_can_be_cancelled() -> None:
    cancel = CancelToken()
    gate = HostGate()
    gate.refused(60.0)
    cancel.cancel()
    with pytest.raises(CancelledError):
        ThrottledModel(ScriptedModel([reply()]), gate).complete(HELLO, [], cancel=cancel)
