"""Mirrors attempts to the team's store while they are written, in a thread for which nobody waits.

Only the thread imports SQLAlchemy. If lines are unsent when the program exits, an empty file in the data
folder names the attempt; the next program that opens an attempt, or `gistpoint store sync`, sends them.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.journal import JOURNAL, is_open
from gistpoint.sessions.team.address import StoreAddress, TeamStoreError, UnreachableError
from gistpoint.sessions.team.ending import wait_briefly
from gistpoint.sessions.team.lines import end_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from gistpoint.sessions.team.attempts import PushResult

TO_SEND = "to-send"
"""The folder in the data folder that names the attempts with lines that may be missing from the store."""
RENEW_S = 20.0
"""The seconds after which a lease, which is valid for `attempts.LEASE_S`, is renewed."""
_GATHER_S = 0.05
"""The seconds for which lines are collected, to send them together."""
_SOON_S = 1.0
"""The seconds after which to look again for lines that were not yet on disk."""
_LOG = logging.getLogger(__name__)


class MirrorPhase(StrEnum):
    """The phase of mirroring this program's attempts."""

    IDLE = "idle"
    """No attempt has been opened yet."""
    SENDING = "sending"
    UP_TO_DATE = "up to date"
    AWAY = "away"
    """The store does not answer."""
    STOPPED = "stopped"
    """The store can't be used, for the reason in `MirrorState.words`."""


@dataclass(frozen=True, slots=True)
class MirrorState:
    """The state of the mirror, for screens."""

    phase: MirrorPhase = MirrorPhase.IDLE
    lines: int = 0
    """The number of lines of this program that are missing from the store."""
    since_ms: int = 0
    """The time when the store became unreachable or unusable, in ms since 1970; 0 if it never did."""
    words: str = ""
    """The reason why the store can't be used, as a sentence."""
    branches: tuple[str, ...] = ()
    """The branches to which lines were sent because another machine continued the attempt."""
    conflicts: tuple[str, ...] = ()
    """A sentence for each conflict."""

    @property
    def is_healthy(self) -> bool:
        """Whether the mirror needs no attention."""
        return self.phase not in (MirrorPhase.AWAY, MirrorPhase.STOPPED) and not self.conflicts

    def __str__(self) -> str:
        """Return the state in a few words for the header of a screen; empty before any attempt is opened."""
        waiting = f"{self.lines} line{'' if self.lines == 1 else 's'} to send" if self.lines else ""
        if self.conflicts:
            return "! a line differs"
        if self.phase is MirrorPhase.IDLE:
            return ""
        if self.phase is MirrorPhase.AWAY:
            return f"! away{', ' if waiting else ''}{waiting}"
        if self.phase is MirrorPhase.STOPPED:
            return "! can't be used"
        return waiting or ("in a branch" if self.branches else "up to date")


def pause_s(failures: int) -> float:
    """Return the pause in seconds after a number of failures in a row: 2 to that power, at most 30."""
    return float(min(30.0, 2.0 ** min(failures, 5)))


@dataclass(slots=True)
class _Open:
    """An attempt that is being mirrored."""

    folder: Path
    waiting: int = 0
    """The number of lines that are missing from the store."""
    pushed: PushResult | None = None
    renewed: float = float("-inf")
    closed: bool = False

    @property
    def due(self) -> bool:
        """Whether there are lines to send, or the lease must be renewed or given up."""
        return bool(self.waiting) or self.closed or monotonic() - self.renewed > RENEW_S / 2


def _unsent_line_count(folder: Path, pushed: PushResult) -> int:
    """Return how many lines of a journal can be sent to the store; 0 if there is a conflict."""
    end = end_of(folder / JOURNAL)
    if end is None or pushed.conflict is not None:
        return 0
    return max(0, end.seq - pushed.position.seq)


class Pusher:
    """Sends the lines of open attempts to the chosen store, as a `JournalListener`."""

    def __init__(
        self, locations: Locations, clock: TimeSource, pause: Callable[[int], float] = pause_s
    ) -> None:
        """`pause` returns the seconds to wait after a number of failures in a row.

        Nothing is read or started before an attempt is opened.
        """
        self._locations, self._clock, self._pause = locations, clock, pause
        self._open: dict[str, _Open] = {}
        self._phase, self._words, self._since_ms = MirrorPhase.IDLE, "", 0
        self._branches, self._conflicts = dict[str, None](), dict[str, None]()
        self._lock = Lock()
        self._wake, self._stop, self._settled = Event(), Event(), Event()
        self._thread: Thread | None = None
        self._engine: Engine | None = None
        self._address: StoreAddress | None = None
        self._machine = ""

    @property
    def state(self) -> MirrorState:
        """The current state of the mirror; it can be read from any thread."""
        lines = sum(each.waiting for each in [*self._open.values()])
        branches, conflicts = tuple(self._branches), tuple(self._conflicts)
        return MirrorState(self._phase, lines, self._since_ms, self._words, branches, conflicts)

    def resuming(self, folder: Path) -> None:
        """Fetch the lines that other machines added to an attempt, before it is opened here, if possible.

        Do nothing if the attempt is already open, or if the mirror has stopped or has lost the store. Raises
        `AttemptElsewhereError` if another machine is continuing the attempt.
        """
        if self._phase in (MirrorPhase.AWAY, MirrorPhase.STOPPED) or folder.name in self._open:
            return
        try:
            engine = self._reached()
        except Exception as error:  # a problem of the store must not stop the attempt
            self._failed(error)
            return
        from gistpoint.sessions.team.attempts import AttemptElsewhereError, take_over
        from gistpoint.sessions.team.connecting import reaching

        try:
            with reaching(str(self._address)):
                take_over(engine, folder, self._machine)
        except AttemptElsewhereError:
            raise
        except Exception as error:
            self._failed(error)

    def opened(self, folder: Path) -> None:
        """Start to mirror an attempt."""
        self._mark(folder)
        with self._lock:
            self._open[folder.name] = _Open(folder, 1)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="mirror", daemon=True)
                self._thread.start()
                atexit.register(self.close)
        self._settled.clear()
        self._wake.set()

    def wrote(self, folder: Path) -> None:
        """Have the thread send a new line soon."""
        found = self._open.get(folder.name)
        if found is not None:
            found.waiting += 1
            self._settled.clear()
            self._wake.set()

    def closed(self, folder: Path) -> None:
        """Have the thread send the last lines of an attempt and release its lease."""
        found = self._open.get(folder.name)
        if found is not None:
            found.closed = True
            self._settled.clear()
            self._wake.set()

    def close(self) -> None:
        """Stop the thread, after waiting briefly for the last lines unless the store is away or unusable."""
        thread = self._thread
        if thread is None:
            return
        if self._phase not in (MirrorPhase.AWAY, MirrorPhase.STOPPED):
            wait_briefly(self._settled.wait)
        self._stop.set()
        self._wake.set()
        wait_briefly(thread.join)
        atexit.unregister(self.close)

    def _run(self) -> None:
        failures, left_over = 0, True
        while not self._stop.is_set():
            if failures:
                self._stop.wait(self._pause(failures))
            else:
                self._wake.wait(_SOON_S if self.state.lines else RENEW_S)
                self._stop.wait(_GATHER_S)
            self._wake.clear()
            try:
                self._round()
                if left_over:
                    self._send_left_over()
                failures, left_over = 0, False
            except Exception as error:  # a problem of the store must not stop the person's attempt
                failures += 1
                self._failed(error)
        if self._engine is not None:
            self._engine.dispose()

    def _round(self) -> None:
        """Send the unsent lines of all open attempts, and renew the leases that are due."""
        engine = self._reached()
        from gistpoint.sessions.team.attempts import NOWHERE, ToPush, push_attempts
        from gistpoint.sessions.team.connecting import reaching

        # The counts are taken first, so that lines written during the round wait for the next round.
        due = [(name, each, each.closed, each.waiting) for name, each in [*self._open.items()] if each.due]
        if not due and self._phase in (MirrorPhase.AWAY, MirrorPhase.STOPPED):
            with reaching(str(self._address)), engine.connect():
                pass
        if due and self._phase is not MirrorPhase.AWAY:
            self._phase = MirrorPhase.SENDING
        with reaching(str(self._address)):
            wanted = [ToPush(each.folder, not closed, each.pushed or NOWHERE) for _, each, closed, _ in due]
            found = push_attempts(engine, self._machine, wanted)
        for (name, each, closed, waiting), pushed in zip(due, found, strict=True):
            each.pushed, each.renewed = pushed, monotonic()
            left = _unsent_line_count(each.folder, pushed)
            each.waiting = max(left, each.waiting - waiting)
            self._note(pushed)
            if closed and not left:
                self._forget(name, each)
        self._phase, self._words = MirrorPhase.UP_TO_DATE, ""
        if not any(each.waiting or each.closed for each in self._open.values()):
            self._settled.set()

    def _forget(self, name: str, attempt: _Open) -> None:
        """Stop mirroring an attempt that is closed and completely sent, unless it was opened again."""
        with self._lock:
            if self._open.get(name) is attempt:
                del self._open[name]
                self._marker(attempt.folder).unlink(missing_ok=True)

    def _send_left_over(self) -> None:
        """Send the lines that earlier programs could not send."""
        from gistpoint.sessions.team.attempts import ToPush, push_attempts
        from gistpoint.sessions.team.connecting import reaching

        markers = sorted((self._locations.data / TO_SEND).iterdir())
        folders = [
            self._locations.attempts / marker.name for marker in markers if marker.name not in self._open
        ]
        left = [ToPush(folder) for folder in folders if not is_open(folder)]
        with reaching(str(self._address)):
            found = push_attempts(self._reached(), self._machine, left)
        for each, pushed in zip(left, found, strict=True):
            self._note(pushed)
            self._marker(each.folder).unlink(missing_ok=True)

    def _note(self, pushed: PushResult) -> None:
        if pushed.conflict is not None:
            self._conflicts[str(pushed.conflict)] = None
        elif pushed.branched:
            self._branches[pushed.attempt] = None

    def _reached(self) -> Engine:
        """Return the store's engine, which is made at the first call. Raises `UserError` if that fails."""
        with self._lock:
            if self._engine is None:
                from gistpoint.sessions.team.connecting import require_extra

                require_extra()
                from gistpoint.sessions.team.opened import open_store

                store = open_store(self._locations, self._clock, prompt=True)
                if not store.rights.works:
                    raise TeamStoreError(
                        "You have only a reader's rights on the store: attempts stay on this machine."
                    )
                self._address, self._machine, self._engine = store.address, store.machine, store.engine
            return self._engine

    def _failed(self, error: Exception) -> None:
        """Record that the store is away or can't be used."""
        away = isinstance(error, UnreachableError)
        if self._phase not in (MirrorPhase.AWAY, MirrorPhase.STOPPED):
            self._since_ms = self._clock.utc_ms()
        self._phase = MirrorPhase.AWAY if away else MirrorPhase.STOPPED
        self._words = error.message if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        self._settled.set()  # so that it does not delay the end of the program
        if not isinstance(error, UserError):
            _LOG.warning("The mirror of attempts failed.", exc_info=error)

    def _marker(self, folder: Path) -> Path:
        return self._locations.data / TO_SEND / folder.name

    def _mark(self, folder: Path) -> None:
        marker = self._marker(folder)
        with suppress(OSError):  # `gistpoint store sync` compares everything anyway
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()
