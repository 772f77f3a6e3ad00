"""The JSON messages between a command and the workers of a cluster, and the workers' side.

Functions are sent by name, and each worker imports its own copy. Code of a repository never enters a worker's
process; it runs in the worker's sandbox.
"""

from __future__ import annotations

import logging
import platform
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from gistpoint import __version__
from gistpoint.core.decoding import decodable
from gistpoint.core.running import CancelToken

MOST_BYTES = 64 * 1024**2
"""The maximum number of bytes in a journal sent in either direction."""


class WorkerIntroduction(msgspec.Struct, frozen=True, kw_only=True):
    """A process's versions, host and time, sent to the other side."""

    gistpoint: str = msgspec.field(default_factory=lambda: __version__)
    python: str = msgspec.field(default_factory=platform.python_version)
    host: str = msgspec.field(default_factory=platform.node)
    utc_ms: int = msgspec.field(default_factory=lambda: time.time_ns() // 1_000_000)

    def differs_from(self, other: WorkerIntroduction) -> str:
        """Return why this process can't work for the other process, in a few words; empty if it can."""
        if self.gistpoint != other.gistpoint:
            return f"it has gistpoint {self.gistpoint}, but this side has {other.gistpoint}"
        if self.python.split(".")[:2] != other.python.split(".")[:2]:
            return f"it has Python {self.python}, but this side has {other.python}"
        return ""


class WorkOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A job in the form sent to a worker; `about` is the input of the worker's function."""

    start: str
    """The id of the sending command, by which its jobs can be stopped."""
    job: str
    sender: WorkerIntroduction
    about: msgspec.Raw


class WorkStatus(StrEnum):
    """The outcome of a job on a worker."""

    DONE = "done"
    STOPPED = "stopped"
    """It was stopped before it began."""
    NEEDS_TASK = "lacks"
    """The worker does not have the task."""
    UNFIT = "unfit"
    """The worker can't do this job, for the reason in `message`."""
    TOO_LARGE = "too_large"
    """The result is too large and stays on the worker, at the place in `message`."""
    FAILED = "failed"
    """gistpoint itself failed with the error in `message`."""


class WorkReply(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's reply."""

    job: str
    kind: WorkStatus
    message: str = ""
    sha256: str = ""
    """The hash of the bytes of `result`."""
    result: msgspec.Raw = msgspec.Raw(b"null")


class NotDoneError(Exception):
    """A worker returns no result, for the reason in `kind` and `message`."""

    def __init__(self, kind: WorkStatus, message: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class StopSwitch:
    """The sending command's requests to stop its jobs."""

    def __init__(self) -> None:
        self.soon = CancelToken()
        """Cancelled when no more jobs may start; running jobs finish."""
        self.at_once = CancelToken()


# For the sender of jobs


@dataclass
class ClusterWorker:
    """A worker, with the known facts about its machine, its clock and its failures."""

    address: str
    host: str = ""
    threads: int = 1
    clock_ms: int = 0
    """The worker's clock minus the sender's in milliseconds; 0 for a negligible difference."""
    strikes: int = 0
    left_out: str = ""
    """The reason why the worker gets no more jobs; empty if it still gets jobs."""

    @property
    def name(self) -> str:
        """The address with the host."""
        return f"{self.address} ({self.host})" if self.host else self.address


@dataclass(frozen=True, slots=True)
class ClusterJob:
    """A job for any worker."""

    key: str
    label: str
    """The name of the job in messages."""
    about: Callable[[], bytes]
    """Returns the input of the worker's function as JSON; called whenever the job is sent."""
    archive: Callable[[], bytes]
    """Packs the job's task, for a worker that does not have it."""


@dataclass(frozen=True, slots=True)
class ClusterOutcome:
    """The final outcome of a job."""

    job: ClusterJob
    kind: WorkStatus | None
    """None if no worker could do it, for the reason in `message`."""
    value: Any = None
    """The value returned by the check of the result."""
    worker: ClusterWorker | None = None
    message: str = ""


class ClusterLieError(Exception):
    """A result can't be true, for the reason in the message."""


WorkFunction = Callable[[bytes, bytes], bytes]
"""Carries out an order, with the archive of its task or none; workers import it by name."""
ResultCheck = Callable[[ClusterJob, bytes, ClusterWorker], Any]
"""Checks a job's JSON result and returns its value. Raises `ClusterLieError` if it can't be true."""


class WorkerPool(Protocol):
    """The workers of a cluster, for the jobs of one command."""

    @property
    def stopping(self) -> bool:
        """Whether the pool was stopped."""
        ...

    @property
    def interrupts(self) -> int:
        """The number of times Ctrl+C was pressed."""
        ...

    @property
    def sent(self) -> Collection[str]:
        """The keys of the jobs sent to workers."""
        ...

    @property
    def capacity(self) -> int:
        """The maximum number of jobs that workers may have at once."""
        ...

    def stop(self) -> None:
        """Send no more jobs and let workers finish theirs; a second call makes workers abandon their jobs."""
        ...

    def carry_out(
        self,
        work: WorkFunction,
        jobs: Iterable[ClusterJob],
        check: ResultCheck,
        on_outcome: Callable[[ClusterOutcome], None],
        tick: Callable[[], None] = ...,
    ) -> None:
        """Have workers do jobs, and call `on_outcome` with each outcome; return when all are done or stopped.

        `check` verifies each result, and `tick` is called several times a second. Raises
        `InfrastructureError` if the scheduler disappears, or no worker is left.
        """
        ...


# On a worker


_switches: dict[str, StopSwitch] = {}


def introduce() -> bytes:
    """Return the introduction of this process as JSON."""
    return msgspec.json.encode(WorkerIntroduction())


def stop_jobs(start: str, at_once: bool) -> None:
    """Stop the jobs of a command before they begin and, with `at_once`, those that run in this process."""
    switch = _switches.setdefault(start, StopSwitch())
    switch.soon.cancel()
    if at_once:
        switch.at_once.cancel()


def replied(order: bytes, do: Callable[[bytes, StopSwitch], bytes]) -> bytes:
    """Carry out an order and return the reply as JSON; `do` returns JSON, or raises `NotDoneError`.

    Any other exception is logged, and becomes a reply of the kind `FAILED`.
    """
    given = msgspec.json.decode(order, type=decodable(WorkOrder))
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
    except Exception as error:  # Dask's client can't read every exception, and would then wait forever
        logging.getLogger(__name__).exception("The job %s failed.", given.job)
        reply = WorkReply(job=given.job, kind=WorkStatus.FAILED, message=f"{type(error).__name__}: {error}")
    return msgspec.json.encode(reply)
