"""Makes one gate for each host, which all conversations of a process share.

A rate limit that one conversation hits delays all of them, because each would otherwise waste its attempts on
it (decision 75). A limit per minute, and a request on which a local host may still be working, delay them as
well (decision 149).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gistpoint.core.agents.settings import OUTPUT_RESERVE
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.core.estimates import tokens_in
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.endpoints.hosts import Host
from gistpoint.sandbox.endpoints.limits import Charge, MinuteLimits, MinuteWindow
from gistpoint.sandbox.endpoints.retrying import Backoff

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOOK_S = 0.25
"""The seconds between two checks whether a host has dropped a request that was given up."""
_LONGEST_S = 5.0
"""The longest wait for a limit per minute before it is computed again."""
_SPREAD = 0.1
"""The maximum share by which waits are extended, so that not all requests arrive at the same moment."""


def _sleep(seconds: float, cancel: CancelToken) -> None:
    cancel.sleep(seconds)


class HostGate:
    """A gate that determines how long requests to one host have to wait; thread-safe."""

    def __init__(
        self,
        backoff: Backoff | None = None,
        now: Callable[[], float] = time.monotonic,
        *,
        place: str = "",
        limits: MinuteLimits | None = None,
    ) -> None:
        """`backoff` determines the waits if the host does not request any; `now` returns seconds.

        `place` is the host and its port, and `limits` is the maximum that it may be sent in a minute.
        """
        self.backoff = backoff or Backoff()
        self.host = Host(place, now)
        self.window = MinuteWindow(limits, now)
        self._now = now
        self._lock = threading.Lock()
        self._held_until = 0.0
        self._refusals = 0

    def wait_s(self) -> float:
        """Return the seconds until the gate opens; 0 if it is open."""
        with self._lock:
            return max(0.0, self._held_until - self._now())

    def refused(self, requested_s: float | None) -> None:
        """Close the gate after a rate limit, for `requested_s` or, if that is None, longer each time."""
        with self._lock:
            now = self._now()
            if now >= self._held_until:  # otherwise the request was sent before the gate closed
                self._refusals += 1
            seconds = (
                requested_s if requested_s is not None else self.backoff.seconds(self._refusals, None) or 0.0
            )
            self._held_until = max(self._held_until, now + seconds)

    def answered(self) -> None:
        """Record that the host has answered a request, so that the next wait is short again."""
        with self._lock:
            self._refusals = 0

    @contextmanager
    def admitted(
        self, tokens: int, cancel: CancelToken, sleep: Callable[[float, CancelToken], None] = _sleep
    ) -> Iterator[Charge]:
        """Wait until the limits per minute admit a request with this many tokens, and yield its charge."""
        charge = self.window.join(tokens)
        try:
            seconds = self.window.wait_s(charge)
            if seconds > 0:
                with cancel.waiting():
                    while seconds > 0:
                        sleep(min(seconds, _LONGEST_S), cancel)
                        seconds = self.window.wait_s(charge)
            yield charge
        finally:
            self.window.leave(charge)


@dataclass(frozen=True, slots=True)
class ThrottledModel:
    """A model whose requests wait until its host's gate is open; implements `ChatModel`."""

    model: ChatModel
    gate: HostGate
    sleep: Callable[[float, CancelToken], None] = _sleep
    reserve: int = OUTPUT_RESERVE
    """The assumed number of tokens in a reply until the number is known."""

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
        """Wait for the gate and the limits, then ask once, and return the reply or the failure.

        If the wait exceeds the gate's patience, nothing is sent, and a failure is returned. Raises
        `CancelledError` if stopped, even during a wait.
        """
        gate = self.gate
        while True:
            refusal = self._wait_for_gate(cancel) or self._wait_for_host(cancel)
            if refusal is not None:
                return refusal
            with gate.admitted(self._estimated_tokens(messages, tools), cancel, self.sleep) as charge:
                # Checked again after the wait, because another request may have closed the gate.
                if gate.wait_s() > 0 or self._host_is_at_work:
                    gate.window.withdraw(charge)
                    continue
                answer = self.model.complete(messages, tools, cancel=cancel)
                if answer.usage.tokens:
                    gate.window.used(charge, answer.usage.tokens)
            if isinstance(answer, ChatReply):
                gate.answered()
            elif answer.problem is ChatProblem.RATE_LIMITED or answer.busy:
                gate.refused(answer.retry_after_s)
            return answer

    def _wait_for_gate(self, cancel: CancelToken) -> ChatFailure | None:
        """Wait until the gate is open; return a failure if that would take too long."""
        while (seconds := self.gate.wait_s()) > 0:
            if seconds > self.gate.backoff.patience_s:
                return ChatFailure(
                    ChatProblem.RATE_LIMITED,
                    f"The endpoint asks to wait for another {seconds:.0f} s.",
                    seconds,
                )
            # Checked again after the wait, because another request may have closed the gate for longer.
            self.sleep(seconds * random.uniform(1.0, 1.0 + _SPREAD), cancel)
        return None

    @property
    def _host_is_at_work(self) -> bool:
        host = self.gate.host
        return host.is_local and host.still_works

    def _wait_for_host(self, cancel: CancelToken) -> ChatFailure | None:
        """Wait until a local host has dropped requests that were given up; return a failure if it does not.

        A host with one slot would otherwise get a request again while it still works on the first copy.
        """
        if not self._host_is_at_work:
            return None
        until = self.gate.host.now() + self.gate.backoff.patience_s
        with cancel.waiting():
            while self._host_is_at_work:
                if self.gate.host.now() >= until:
                    return ChatFailure(
                        ChatProblem.TIMED_OUT,
                        "The endpoint is still working on a request that was given up, so nothing is sent.",
                    )
                self.sleep(_LOOK_S, cancel)
        return None

    def _estimated_tokens(self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]) -> int:
        """Return an upper estimate of the tokens in a request and its reply; 0 if tokens are not limited."""
        if not self.gate.window.limits.tokens:
            return 0
        written = sum(len(message.content) + len(message.reasoning) for message in messages)
        called = sum(len(call.arguments) for message in messages for call in message.tool_calls)
        return tokens_in(written + called + len(str(tools))) + self.reserve


class Throttle:
    """The gates of a process, by host and port."""

    def __init__(self, backoff: Backoff | None = None) -> None:
        self._backoff = backoff
        self._gates: dict[str, HostGate] = {}
        self._lock = threading.Lock()

    def gate(self, place: str, limits: MinuteLimits | None = None) -> HostGate:
        """Return the gate of a host; it is always the same gate, with the first caller's limits."""
        with self._lock:
            if place not in self._gates:
                self._gates[place] = HostGate(self._backoff, place=place, limits=limits)
            return self._gates[place]
