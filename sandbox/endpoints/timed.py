"""Carries out one request in a separate thread, until a time limit or a cancellation (decision 149)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from gistpoint.core.running import CancelToken
from gistpoint.sandbox.endpoints.connections import Connection
from gistpoint.sandbox.endpoints.hosts import Host

Answer = TypeVar("Answer")
_TICK_S = 0.05


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """The time limits of one request, in seconds."""

    longest_s: float
    """The limit from the start of the request to the last byte of the reply."""
    silence_s: float | None = None
    """The limit between two bytes of the reply; if it is None, only `longest_s` applies."""
    first_token_s: float | None = None
    """The limit between two bytes before the reply begins, such as those of keep-alive comments."""

    def exceeded(self, connection: Connection, now: float) -> str:
        """Return, in words that follow the host's name, which limit a request exceeds; empty if none."""
        if now - connection.began_at > self.longest_s:
            return f"gave no complete reply within {self.longest_s:g} s"
        silence = self.silence_s if connection.reply_began else self.first_token_s
        if silence is None or connection.silent_s() <= silence:
            return ""
        when = "in the middle of its reply" if connection.reply_began else "before its reply"
        return f"sent nothing for {silence:g} s {when}"


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The end of a request that exceeded a limit, in words that follow the host's name."""

    what: str


class TimedRequest(Generic[Answer]):
    """One request to a host, within time limits."""

    def __init__(self, host: Host, limits: TimeLimits) -> None:
        self.connection = Connection(host)
        self._host = host
        self._limits = limits

    def carried_out(self, send: Callable[[Connection], Answer], cancel: CancelToken) -> Answer | GivenUp:
        """Call `send` in a thread; return its result or raise its error, or return a `GivenUp` at a limit.

        A cancellation closes the connection within a tick and raises `CancelledError`. At a time limit, the
        connection is closed as well, which shows the host that nobody waits any more; a local host may notice
        it late (`Host.still_works`).
        """
        connection = self.connection
        answers: queue.SimpleQueue[Answer | BaseException] = queue.SimpleQueue()

        def work() -> None:
            try:
                answers.put(send(connection))
            except BaseException as error:
                answers.put(error)
            finally:
                connection.closed.set()

        # Run in a thread, because the packages of endpoints can't stop a request (decision 34).
        threading.Thread(target=work, name="chat-request", daemon=True).start()
        try:
            while True:
                cancel.check()
                try:
                    answer = answers.get(timeout=_TICK_S)
                    break
                except queue.Empty:
                    what = self._limits.exceeded(connection, self._host.now())
                    if what:
                        self._give_up()
                        return GivenUp(what)
        except BaseException:
            connection.cut()
            raise
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _give_up(self) -> None:
        if self._host.is_local:
            self._host.given_up(self.connection.closed)
            self.connection.leave()
        else:
            self.connection.cut()
