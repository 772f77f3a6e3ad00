"""Connections that give up on a silent server, which a process then leaves alone for a short time.

A server that is stopped, or overloaded, keeps its connections open: its machine confirms all that is sent,
so neither TCP nor the server's own limits (`statement_timeout`) end the wait. Each wait for a byte in either
direction is therefore limited here (decision 189).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

import psycopg
from psycopg import errors, waiting
from psycopg.types.array import ListBinaryDumper

if TYPE_CHECKING:
    from psycopg.abc import PQGen

    from gistpoint.core.running import CancelToken

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    """The longest times to wait for a server, in seconds."""

    connecting_s: int
    """At least 2, the minimum of PostgreSQL's library."""
    silent_s: float
    """The time without a byte in either direction."""


PATIENT = SilenceLimits(5, 65.0)
"""The limits for commands that compare or send everything: longer than the server allows a statement."""
PROMPT = SilenceLimits(2, 2.5)
"""The limits for requests whose answers a person is waiting for."""
REST_S = 3.0
"""The time, in seconds, for which a silent server is not contacted again."""
_LOOK_S = 0.1
"""The seconds after which a wait checks the time again."""
_rests: dict[str, float] = {}
"""The monotonic time at which each silent server may be contacted again, by connection parameters."""
_cancel: ContextVar[CancelToken | None] = ContextVar("cancel", default=None)


@contextmanager
def cancelled_by(cancel: CancelToken) -> Iterator[None]:
    """Within this context, give up on a silent server sooner once `cancel` is cancelled."""
    before = _cancel.set(cancel)
    try:
        yield
    finally:
        _cancel.reset(before)


def is_resting(given: str) -> bool:
    """Return whether a server was silent just now and should not be contacted again yet."""
    return monotonic() < _rests.get(given, 0.0)


def connected(given: str, patience: SilenceLimits) -> psycopg.Connection[Any]:
    """Return a new connection with these parameters, which gives up on a silent server.

    Raises `OperationalError` if the server does not answer, immediately if it has just been silent.
    """
    if is_resting(given):
        raise _silent_just_now()
    try:
        connection = _HeardConnection.connect(given, connect_timeout=patience.connecting_s)
    except errors.ConnectionTimeout:
        note_silence(given, patience.connecting_s)
        raise
    connection.given, connection.patience = given, patience
    # In text format, which psycopg uses for lists, each byte of a line would be sent as two hexadecimal
    # digits.
    connection.adapters.register_dumper(list, ListBinaryDumper)
    return connection


def _silent_just_now() -> errors.OperationalError:
    return errors.OperationalError("it did not answer a moment ago, and will be tried again shortly")


def note_silence(given: str, _seconds: float) -> None:
    """Record that a server has just been silent, for whatever time."""
    _rests[given] = monotonic() + REST_S


class _HeardConnection(psycopg.Connection[Any]):
    """A connection that gives up on a silent server."""

    given = ""
    patience = PATIENT

    def wait(self, gen: PQGen[T], interval: float = _LOOK_S, timeout: float | None = None) -> T:
        """Consume a generator that communicates with the server, and return its result.

        Raises `OperationalError` if the server is silent. The connection is then closed. It is also closed
        after Ctrl+C, because psycopg's own method would first wait until the server has confirmed a
        cancellation.
        """
        if is_resting(self.given):
            self.pgconn.finish()
            raise _silent_just_now()
        try:
            # Earlier versions of psycopg have no `timeout`.
            limit = {} if timeout is None else {"timeout": timeout}
            return waiting.wait(self._heard(gen), self.pgconn.socket, interval, **limit)
        except KeyboardInterrupt:
            self.pgconn.finish()
            raise

    def _heard(self, gen: PQGen[T]) -> PQGen[T]:
        """Delegate to a generator that communicates with the server, and give up if it is silent too long."""
        since = monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    since = monotonic()
                elif monotonic() - since > self._limit_s:
                    raise self._given_up()
                wanted = gen.send(ready)
        except StopIteration as done:
            return cast(T, done.value)

    @property
    def _limit_s(self) -> float:
        cancel = _cancel.get()
        patience = PROMPT if cancel is not None and cancel.cancelled else self.patience
        return patience.silent_s

    def _given_up(self) -> errors.OperationalError:
        """Close the connection, record the server's silence, and return the error that reports it."""
        limit_s = self._limit_s
        self.pgconn.finish()
        note_silence(self.given, limit_s)
        return errors.OperationalError(f"it has been silent for {limit_s:g} seconds")
