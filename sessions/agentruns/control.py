"""A person's request to take over an attempt that a model works on: a file in the attempt's folder.

The process that works on the attempt looks for it between calls and while it waits for a reply; it then writes the
handover, and closes the journal. The file stays until the attempt is given back, so that no run goes on with it.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import msgspec

CONTROL = "control.json"
_MOST_BYTES = 4_096


class ControlRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants the attempt; `by` is a pseudonym."""

    want: str = "person"
    by: str = ""
    nonce: str = ""


def ask_for(folder: Path, by: str) -> None:
    """Ask for the attempt in `folder`; whoever asks last gets it."""
    request = ControlRequest(by=by, nonce=secrets.token_hex(8))
    beside = folder / f".{CONTROL}.{os.getpid()}"
    beside.unlink(missing_ok=True)
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, msgspec.json.encode(request))
    finally:
        os.close(file)
    beside.replace(folder / CONTROL)


def asked_for(folder: Path) -> bool:
    """Whether somebody asks for the attempt, or has it; quick, as it is asked many times a second."""
    return (folder / CONTROL).exists()


def request_in(folder: Path) -> ControlRequest | None:
    """Return the request; None without one, and for a file that is none."""
    try:
        with (folder / CONTROL).open("rb") as file:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=ControlRequest)
    except (OSError, ValueError):
        return None


def withdraw(folder: Path) -> None:
    """Take the request back, or give the attempt back to the runs that want it."""
    (folder / CONTROL).unlink(missing_ok=True)
