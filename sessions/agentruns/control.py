"""People's requests to take over an attempt of a run, each a locked file in the attempt's folder.

The run looks for the file between the steps of the model and while it waits for a reply. It then records the
handover in the journal and closes the journal. A request ends with its process; only the journal records who
has control of the attempt (decision 79).
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

import msgspec

from gistpoint.core.attempts.identity import MODEL, PERSON
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.logs import FileLock, is_held, wait_for
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore

CONTROL = "control.json"
MOST_CHARACTERS = 100
"""The longest pseudonym, in characters."""
_MOST_BYTES = 4_096


class ControlRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `control.json`; `by` is the person's pseudonym."""

    want: str = PERSON
    by: str = ""
    nonce: str = ""


class PendingRequest:
    """A request that is valid until it is withdrawn or its process ends."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        self._path, self._lock = path, lock

    def withdraw(self) -> None:
        """Withdraw the request, unless it is withdrawn already."""
        with suppress(OSError):
            if self._lock.file >= 0 and os.path.samestat(os.fstat(self._lock.file), self._path.stat()):
                self._path.unlink()
        self._lock.release()


def ask_for(folder: Path, by: str) -> PendingRequest:
    """Request control of the attempt in `folder`. Raises `AttemptError` while another request is valid."""
    if asker_of(folder) is not None:
        raise AttemptError(
            "Somebody else is taking this attempt over.", hint="Wait: the line below shows its progress."
        )
    request = ControlRequest(by=by[:MOST_CHARACTERS], nonce=secrets.token_hex(8))
    part = folder / f".{CONTROL}.{request.nonce}"
    lock = wait_for(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        os.write(lock.file, msgspec.json.encode(request))
        part.replace(folder / CONTROL)
    except BaseException:
        lock.release()
        part.unlink(missing_ok=True)
        raise
    return PendingRequest(folder / CONTROL, lock)


def asker_of(folder: Path) -> str | None:
    """Return the pseudonym of the person who requests control, which may be empty; None if nobody does.

    This must be fast, because it is called between the steps of every attempt.
    """
    if not is_held(folder / CONTROL):
        return None
    try:
        with (folder / CONTROL).open("rb") as file:
            return _pseudonym(file.read(_MOST_BYTES))
    except OSError:
        return None  # the request has just been withdrawn


def _pseudonym(data: bytes) -> str:
    try:
        return msgspec.json.decode(data, type=decodable(ControlRequest)).by[:MOST_CHARACTERS]
    except (ValueError, RecursionError):
        return ""


def has_person(state: AttemptState) -> bool:
    """Return whether a person has control of a model's attempt that has not ended."""
    return not state.ended and state.header.actor == MODEL and state.driver == PERSON


def run_to_take_from(state: AttemptState, runs: AgentRunStore, *, live: bool) -> AgentRun:
    """Return the run whose attempt a person may take over, or resume after a takeover.

    `live` is true if a process has the journal open. Raises `AttemptError` if the attempt has ended, if it
    was not made by a model in a run, was made by a scaffold or consists of a single reply, if its run can't
    be opened, and, for a live attempt, if a person already has it open or if the process that has it open is
    not working on the run.
    """
    if state.ended:
        raise AttemptError("The attempt has ended.")
    solver = state.header.solver or {}
    if state.header.actor != MODEL or "run" not in solver:
        raise AttemptError(
            "Only attempts that a model makes in a run can be taken over.",
            hint="`gistpoint solve` continues a person's own attempt.",
        )
    if solver.get("scaffold"):
        raise AttemptError("A scaffold's attempt can't be taken over: it could not continue afterwards.")
    if solver.get("setting") == "static":
        raise AttemptError("A static attempt is a single reply: it can't be continued.")
    try:
        run = runs.open(str(solver["run"]))
    except UserError as error:
        raise AttemptError(
            "The run to which this attempt belongs is gone, or can't be read.", hint=str(error)
        ) from error
    if live and state.driver == PERSON:
        raise AttemptError("A person already has this attempt open.")
    if live and not run.worked_on:
        raise AttemptError(
            f"The process that has this attempt open is not working on the run {run.name}.",
            hint="Close it there. After that, the attempt can be taken over.",
        )
    return run
