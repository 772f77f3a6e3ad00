"""What goes to the workers of a cluster and comes back, as JSON, and the part of it that they carry out themselves.

Functions are sent by name: a worker imports its own. Code of a repository never enters a worker's process; it runs in
the worker's sandbox.
"""

from __future__ import annotations

import logging
import platform
import time
from collections.abc import Callable
from enum import StrEnum
from hashlib import sha256

import msgspec

from gistpoint import __version__
from gistpoint.core.running import CancelToken

MOST_BYTES = 64 * 1024**2
"""The largest journal that is sent either way."""


class WorkerIntroduction(msgspec.Struct, frozen=True, kw_only=True):
    """What a process says of itself, and when."""

    gistpoint: str = msgspec.field(default_factory=lambda: __version__)
    python: str = msgspec.field(default_factory=platform.python_version)
    host: str = msgspec.field(default_factory=platform.node)
    utc_ms: int = msgspec.field(default_factory=lambda: time.time_ns() // 1_000_000)

    def differs_from(self, other: WorkerIntroduction) -> str:
        """Return in a few words why this process can't work for the other; empty if it can."""
        if self.gistpoint != other.gistpoint:
            return f"it has gistpoint {self.gistpoint}, and {other.gistpoint} is here"
        if self.python.split(".")[:2] != other.python.split(".")[:2]:
            return f"it has Python {self.python}, and {other.python} is here"
        return ""


class WorkOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is sent; `about` is for the function that does it."""

    start: str
    """Names the command that sends it, so that its jobs can be stopped."""
    job: str
    sender: WorkerIntroduction
    about: msgspec.Raw


class WorkStatus(StrEnum):
    """What became of a job on a worker."""

    DONE = "done"
    STOPPED = "stopped"
    """It was asked to stop before it began."""
    LACKS = "lacks"
    """The worker does not have the task."""
    UNFIT = "unfit"
    """The worker can't do this job: `message` says why."""
    TOO_LARGE = "too_large"
    """What came of it stays there: `message` says where."""
    FAILED = "failed"
    """gistpoint itself failed: `message` is the error."""


class WorkReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker returns."""

    job: str
    kind: WorkStatus
    message: str = ""
    sha256: str = ""
    """Of `result`, as it is written here."""
    result: msgspec.Raw = msgspec.Raw(b"null")


class NotDoneError(Exception):
    """A worker does not return a result, but this word on why."""

    def __init__(self, kind: WorkStatus, message: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class StopSwitch:
    """Whether the command that sent a job wants it to end."""

    def __init__(self) -> None:
        self.soon = CancelToken()
        """What is under way may be finished."""
        self.at_once = CancelToken()


# On a worker


_switches: dict[str, StopSwitch] = {}


def introduce() -> bytes:
    """Return the introduction of this process."""
    return msgspec.json.encode(WorkerIntroduction())


def stop_jobs(start: str, at_once: bool) -> None:
    """Ask the jobs of a command that this process does, or has still to begin, to stop."""
    switch = _switches.setdefault(start, StopSwitch())
    switch.soon.cancel()
    if at_once:
        switch.at_once.cancel()


def replied(order: bytes, do: Callable[[bytes, StopSwitch], bytes]) -> bytes:
    """Do what an order is about and return the reply; `do` returns JSON, or raises `NotDoneError`."""
    given = msgspec.json.decode(order, type=WorkOrder)
    switch = _switches.setdefault(given.start, StopSwitch())
    try:
        if different := WorkerIntroduction().differs_from(given.sender):
            raise NotDoneError(WorkStatus.UNFIT, different)
        if switch.soon.cancelled:
            raise NotDoneError(WorkStatus.STOPPED)
        result = do(bytes(given.about), switch)
        reply = WorkReply(
            job=given.job, kind=WorkStatus.DONE, sha256=sha256(result).hexdigest(), result=msgspec.Raw(result)
        )
    except NotDoneError as error:
        reply = WorkReply(job=given.job, kind=error.kind, message=error.message)
    except Exception as error:  # Dask's client can't read every exception, and would then wait for ever
        logging.getLogger(__name__).exception("The job %s failed.", given.job)
        reply = WorkReply(job=given.job, kind=WorkStatus.FAILED, message=f"{type(error).__name__}: {error}")
    return msgspec.json.encode(reply)
