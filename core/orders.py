"""What goes to the workers of a cluster and comes back, as JSON, and the part of it that they carry out themselves.

Functions are sent by name: a worker imports its own. Code of a repository never enters a worker's process; it runs in
the worker's sandbox.
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


# For whoever has jobs done


@dataclass
class ClusterWorker:
    """A worker, as it introduced itself and as it has shown itself since."""

    address: str
    host: str = ""
    threads: int = 1
    clock_ms: int = 0
    """Its clock minus ours; 0 if they differ by less than is told."""
    strikes: int = 0
    left_out: str = ""
    """Why it gets no jobs; empty if it does."""

    @property
    def name(self) -> str:
        """Its address with its host."""
        return f"{self.address} ({self.host})" if self.host else self.address


@dataclass(frozen=True, slots=True)
class ClusterJob:
    """A job to be done on some worker."""

    key: str
    label: str
    """What messages call it."""
    about: Callable[[], bytes]
    """What the worker's function is told, as JSON; called whenever the job is sent."""
    archive: Callable[[], bytes]
    """Packs the job's task, for a worker that lacks it."""


@dataclass(frozen=True, slots=True)
class ClusterOutcome:
    """What became of a job in the end."""

    job: ClusterJob
    kind: WorkStatus | None
    """None if no worker could do it; `message` says why."""
    value: Any = None
    """What the check made of the result."""
    worker: ClusterWorker | None = None
    message: str = ""


class ClusterLieError(Exception):
    """A result can't be true; says in a few words why."""


WorkFunction = Callable[[bytes, bytes], bytes]
"""Does an order, given the archive of its task or nothing; a function that the worker imports by its name."""
ResultCheck = Callable[[ClusterJob, bytes, ClusterWorker], Any]
"""Takes a job's result as JSON. Raises `ClusterLieError` if it can't be true."""


class Crew(Protocol):
    """The workers of a cluster, for the jobs of one command."""

    @property
    def stopping(self) -> bool:
        """Whether it was stopped."""
        ...

    @property
    def interrupts(self) -> int:
        """How often Ctrl+C was pressed."""
        ...

    @property
    def sent(self) -> Collection[str]:
        """The keys of the jobs that workers have."""
        ...

    @property
    def places(self) -> int:
        """How many jobs are sent before the first is done."""
        ...

    def stop(self) -> None:
        """Send no job any more, and ask the workers to finish what they do; the second time, to leave it."""
        ...

    def carry_out(
        self,
        work: WorkFunction,
        jobs: Iterable[ClusterJob],
        check: ResultCheck,
        on_outcome: Callable[[ClusterOutcome], None],
        tick: Callable[[], None] = ...,
    ) -> None:
        """Have jobs done; return when all are, or once it was stopped. `tick` is called several times a second.

        Raises `InfrastructureError` if the scheduler goes away, or no worker is left.
        """
        ...


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
