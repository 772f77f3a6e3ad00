"""Leases: names under which the processes of one client continue one attempt.

A client that opens a session for each call would otherwise begin a new attempt, with new budgets, at each
call. A lease is a file with the id of its attempt, and a lock that is held during a call (decision 152). All
other information is in the attempt's journal.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import msgspec

from gistpoint.core.attempts.identity import TIME_CHARACTERS, new_attempt_id
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import AttemptError
from gistpoint.core.locations import read_regular
from gistpoint.core.logs import FileLock, replace_file, sync_folder, take
from gistpoint.core.running import CancelToken
from gistpoint.core.text import plural, visible
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.attempts import AttemptStore

FOLDER = "leases"
"""The name of the lease folder, next to that of the attempts."""
WAIT_S = 30.0
"""The seconds for which a call waits for another process that holds the lease."""
PILE, PILE_CALLS, PILE_MS = 3, 3, 10 * 60_000
"""Attempts pile up if `PILE` of them, with at most `PILE_CALLS` calls each, begin within `PILE_MS`."""
_TICK_S = 0.05
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")


class LeaseError(AttemptError):
    """A lease can't be used with the given name or conditions."""


class _File(msgspec.Struct, frozen=True):
    """The content of a lease's file."""

    attempt: str


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease, identified by its name; several processes may have an object for the same lease."""

    folder: Path
    name: str
    wait_s: float = WAIT_S

    @property
    def _path(self) -> Path:
        return self.folder / f"{self.name}.json"

    @property
    def attempt(self) -> str:
        """The id of the lease's attempt, which may not have begun; empty if the lease is new.

        Raises `LeaseError` if the file can't be read.
        """
        try:
            return msgspec.json.decode(read_regular(self._path), type=decodable(_File)).attempt
        except FileNotFoundError:
            return ""
        except (OSError, msgspec.MsgspecError, RecursionError) as error:
            raise LeaseError(
                f"The lease {self.name} can't be read: {str(error)[:200]}.",
                hint="Use another name, or continue its attempt with --attempt.",
            ) from error

    def reserve(self, utc_ms: int) -> str:
        """Store and return the id of an attempt that will begin; the lease must be held.

        Because the id is stored first, a process that dies leaves no attempt that is unknown to the lease.
        """
        identity = new_attempt_id(utc_ms)
        replace_file(self._path, msgspec.json.encode(_File(identity)), mode=0o600)
        sync_folder(self.folder)
        return identity

    @contextmanager
    def held(self, cancel: CancelToken) -> Iterator[None]:
        """Hold the lease, after waiting for another holder.

        Raises `AttemptError` if another process holds it for more than `wait_s` seconds, and `CancelledError`
        when cancelled.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = self._lock(cancel)
        try:
            yield
        finally:
            lock.release()

    def _lock(self, cancel: CancelToken) -> FileLock:
        until = monotonic() + self.wait_s
        while True:
            lock = take(self.folder / f"{self.name}.lock")
            if lock is not None:
                return lock
            if monotonic() > until:
                raise AttemptError(
                    f"Another process is making a call under the lease {self.name}."
                    " This call was not made and cost nothing: make it again later."
                )
            cancel.sleep(_TICK_S)


def lease_named(attempts: Path, name: str) -> Lease:
    """Return the lease with this name; `attempts` is the folder of attempts.

    Raises `LeaseError` for an invalid name.
    """
    if not _NAME.fullmatch(name):
        raise LeaseError(
            f"{visible(name[:120])!r} is not a valid name for a lease.",
            hint="Use letters, digits and . _ @ + -, at most 100, starting with a letter or digit.",
        )
    return Lease(attempts.parent / FOLDER, name)


def require_same_conditions(name: str, begun: Mapping[str, str], asked: Mapping[str, str]) -> None:
    """Raise `LeaseError`, with the differences, if a lease's attempt began under other conditions."""
    different = [
        f"{what} {visible(begun[what])}, not {visible(value)}"
        for what, value in asked.items()
        if begun[what] != value
    ]
    if different:
        raise LeaseError(
            f"The lease {name} belongs to an attempt with other conditions: {'; '.join(different)}.",
            hint="Use those conditions, or another name.",
        )


@dataclass(frozen=True, slots=True)
class Pile:
    """Unfinished attempts at one task that one client began within minutes, with few calls each."""

    client: str
    task_id: str
    count: int

    @property
    def words(self) -> str:
        """The pile and its remedy, in two sentences."""
        return (
            f"{visible(self.client) or 'A client'} has left {plural(self.count, 'attempt')} at the task"
            f" {self.task_id[:12]} unfinished within minutes, each with few calls: it seems to open a session"
            " for each call, which begins an attempt with new budgets. `gistpoint mcp TASK --lease NAME` lets"
            " it continue one attempt."
        )


def piles(attempts: AttemptStore, solver_kind: str, since_utc_ms: int, task_id: str = "") -> list[Pile]:
    """Return the piles of attempts that solvers of a kind began since a time, optionally only of one task."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    earliest = new_attempt_id(since_utc_ms)[:TIME_CHARACTERS]
    for row in attempts.listed():
        if row.attempt_id < earliest:
            break
        # Most attempts have ended, and their journals need not be read.
        if row.ended or task_id not in ("", row.task_id):
            continue
        try:
            summary = attempts.summary(row.attempt_id)
        except AttemptError:  # its journal can't be read, which the list shows
            continue
        if _is_left(summary, solver_kind):
            found[_client(summary), summary.task_id].append(summary.started_utc_ms)
    return [
        Pile(client, task, len(begun)) for (client, task), begun in found.items() if _within_minutes(begun)
    ]


def _is_left(summary: AttemptSummary, solver_kind: str) -> bool:
    solver = summary.state.header.solver or {}
    is_of_client = solver.get("kind") == solver_kind and not solver.get("lease")
    is_at_work = summary.problem or summary.open or summary.state.ended
    return is_of_client and not is_at_work and len(summary.state.calls) <= PILE_CALLS


def _client(summary: AttemptSummary) -> str:
    client = (summary.state.header.solver or {}).get("client")
    return str(client.get("name", "")) if isinstance(client, Mapping) else ""


def _within_minutes(begun: list[int]) -> bool:
    ordered = sorted(begun)
    return any(last - first <= PILE_MS for first, last in zip(ordered, ordered[PILE - 1 :], strict=False))
