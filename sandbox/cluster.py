"""Decides which workers of a Dask cluster get jobs, and which of their replies are trusted.

Dask distributes jobs, repeats those of a lost worker, and can encrypt connections. This module makes workers
introduce themselves before they get a job, checks each reply, and gives no more jobs to workers that lie
repeatedly (decision 105).
"""

from __future__ import annotations

import secrets
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib import import_module
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.errors import InfrastructureError, UserError, extra_hint
from gistpoint.core.orders import (
    ClusterJob,
    ClusterLieError,
    ClusterOutcome,
    ClusterWorker,
    ResultCheck,
    WorkerIntroduction,
    WorkFunction,
    WorkOrder,
    WorkReply,
    WorkStatus,
    introduce,
    stop_jobs,
)
from gistpoint.core.text import bounded

STRIKES = 3
"""The number of jobs with a rejected reply or a failure after which a worker gets no more jobs."""
SKEW_MS = 2_000
"""The largest difference between clocks, in ms, that is not reported, beyond the measurement's error."""
GRACE_S = 20.0
"""The time, in seconds, that jobs have to end after they are asked to stop."""
_LAST_S = 5.0
_CONNECT_S = 20
_LOOK_S = 2.0
_POLL_S = 0.02
_FETCH_S = 60
_FETCHES = 3
"""The number of failed fetches after which a finished job's reply counts as one that can't be read."""
_WAIT_S = 60.0
"""The longest time to wait for the first worker of a cluster, in seconds."""
_AHEAD = 2
"""The number of jobs submitted for each thread of a worker, so that no thread has to wait for a job."""
_MOST_CHARACTERS = 1_000
"""The limit on the length of a message from a worker."""


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield a client of the Dask scheduler at `address`.

    Raises `UserError` if Dask is not installed, and `InfrastructureError` if the connection fails.
    """
    try:
        distributed = import_module("distributed")  # not by `import`: it claims to be typed but has few types
    except ImportError as error:
        raise UserError(
            "A cluster needs the packages of Dask, which are not installed.", hint=extra_hint("cluster")
        ) from error
    try:
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except TypeError as error:  # Dask's own way of saying that no certificate is configured
        raise InfrastructureError(
            f"The scheduler at {address} admits only clients with a certificate, and none is configured.",
            hint="Dask reads its place from distributed.comm.tls; the guide on many machines shows how.",
        ) from error
    except (OSError, ValueError) as error:
        raise InfrastructureError(
            f"There is no Dask scheduler at {address}: {error}.",
            hint="Start one: dask scheduler; dask worker ADDRESS.",
        ) from error
    try:
        yield client
    finally:
        with suppress(OSError):
            client.close(timeout=_LAST_S)


def open_to_all(address: str) -> str:
    """Return a warning if the connection to a scheduler is neither encrypted nor local; otherwise empty."""
    given = urlsplit(address if "://" in address else f"tcp://{address}")
    host = given.hostname or ""
    is_local = host in ("localhost", "::1") or host.startswith("127.")
    if is_local or given.scheme in ("tls", "wss", "inproc"):
        return ""
    return (
        f"The connection to {given.netloc} is neither encrypted nor protected: anybody who can reach"
        " that port can read tasks with their answers, and run code on every machine of the cluster"
        " and on this one. Use Dask's TLS (tls://) to prevent this."
    )


@contextmanager
def worker_pool_at(address: str, tell: Callable[[str], None]) -> Iterator[ClusterWorkerPool]:
    """Yield the workers of a cluster; first pass a warning to `tell` if the connection is open to all.

    Raises `UserError` if Dask is not installed, and `InfrastructureError` if the connection fails.
    """
    with connected(address) as client:
        if warning := open_to_all(address):
            tell(warning)
        yield ClusterWorkerPool(client, address, tell)


def unfit_workers(client: Any) -> list[str]:
    """Return a sentence about each worker in a cluster that can't work for this process.

    One reason is that the worker has another version of gistpoint. Raises `InfrastructureError` if the
    scheduler does not answer.
    """
    pool = ClusterWorkerPool(client, "", lambda sentence: None)
    pool._introduce(client.nthreads())
    return [f"{worker.name}: {worker.left_out}." for worker in pool._workers.values() if worker.left_out]


@dataclass(frozen=True, slots=True)
class _Sent:
    """A job that was submitted to Dask, with or without the archive of its task."""

    job: ClusterJob
    workers: frozenset[str]
    """The addresses of the workers that may do the job."""
    with_archive: bool = False
    failed_fetches: int = 0
    """How often the reply could not be fetched although the job was finished."""


@dataclass
class ClusterWorkerPool:
    """The workers of a cluster, for the jobs of one command."""

    client: Any
    address: str
    tell: Callable[[str], None]
    """Called with a sentence on each worker that is not trusted, gets no more jobs, or has a wrong clock."""
    most: int | None = None
    """The maximum number of jobs at once; None for `_AHEAD` times the number of threads."""
    interrupts: int = 0
    """The number of times that Ctrl+C has been pressed."""
    _start: str = field(default_factory=lambda: secrets.token_hex(8))
    _numbers: Iterator[int] = field(default_factory=count)
    _workers: dict[str, ClusterWorker] = field(default_factory=dict)
    _present: frozenset[str] = frozenset()
    _look_at: float = 0.0
    _alone_since: float | None = None
    _at_work: dict[Any, _Sent] = field(default_factory=dict)
    _again: deque[ClusterJob] = field(default_factory=deque)
    _avoid: dict[str, dict[str, str]] = field(default_factory=dict)
    """The workers that lied about a job or could not do it, each with the reason, by the job's key."""
    _stop: int = 0
    """1 after workers have been asked to finish their jobs, 2 after they have been asked to abandon them."""
    _stop_sent: int = 0
    """The last value of `_stop` that was sent to the workers."""
    _ends_at: float = float("inf")

    def carry_out(
        self,
        work: WorkFunction,
        jobs: Iterable[ClusterJob],
        check: ResultCheck,
        on_outcome: Callable[[ClusterOutcome], None],
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Have jobs done, and pass each outcome to `on_outcome`; return when all are done, or after a stop.

        A job whose worker dies is repeated elsewhere by Dask; a job whose reply is rejected, or that the
        worker can't do, is repeated by this method. In the main thread, each Ctrl+C calls `stop`. `tick` is
        called several times a second. Raises `InfrastructureError` if the scheduler goes away or no worker
        is left.
        """
        todo = iter(jobs)
        with self._interruptible():
            try:
                while True:
                    self._check_workers()
                    self._send_stop()
                    more = self._send(work, todo, on_outcome)
                    if not (more or self._at_work) or time.monotonic() > self._ends_at:
                        return
                    # A copy, because receiving a reply may submit a job again, which changes the mapping.
                    for future in [one for one in self._at_work if one.status not in ("pending", "lost")]:
                        self._receive(work, future, check, on_outcome)
                    tick()
                    time.sleep(_POLL_S)
            finally:
                self._drop(list(self._at_work))

    def stop(self) -> None:
        """Send no more jobs, and ask the workers to finish theirs; the second time, to abandon them."""
        self._stop = min(self._stop + 1, 2)

    @property
    def stopping(self) -> bool:
        """Whether `stop` has been called."""
        return self._stop > 0

    @property
    def sent(self) -> frozenset[str]:
        """The keys of the jobs that workers have."""
        return frozenset(sent.job.key for sent in self._at_work.values())

    @property
    def capacity(self) -> int:
        """The number of jobs that may be with workers at the same time."""
        ahead = _AHEAD * sum(self._workers[address].threads for address in self._fit())
        return ahead if self.most is None else min(self.most, ahead)

    def _fit(self) -> frozenset[str]:
        return frozenset(address for address in self._present if not self._workers[address].left_out)

    # The cluster

    def _ask(self, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        try:
            return call(*given, **named)
        except OSError as error:
            raise self._gone() from error

    def _gone(self) -> InfrastructureError:
        return InfrastructureError(
            f"The Dask scheduler at {self.address} no longer answers. The results so far are kept.",
            hint="Start it again, then run the same command again to continue.",
        )

    def _check_workers(self) -> None:
        """Every two seconds, check new workers, and take back jobs that no present worker can do.

        Raises `InfrastructureError` if the scheduler is gone or no worker is left.
        """
        if self.client.status != "running":
            raise self._gone()
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_S
        threads: dict[str, int] = self._ask(self.client.nthreads)
        self._introduce(threads.keys() - self._workers.keys())
        self._present = frozenset(threads.keys() & self._workers.keys())
        for address in self._present:
            self._workers[address].threads = threads[address]
        lost = [future for future, sent in self._at_work.items() if not sent.workers & self._present]
        self._again.extend(self._at_work[future].job for future in lost)
        self._drop(lost)
        self._require_workers(now)

    def _introduce(self, addresses: Iterable[str]) -> None:
        """Let new workers introduce themselves; leave out those that differ, and report wrong clocks."""
        asked = [*addresses]
        if not asked:
            return
        here, began = WorkerIntroduction(), time.monotonic()
        found: dict[str, Any] = self._ask(self.client.run, introduce, workers=asked, on_error="return")
        # The answer was written between the call and its return: the error is half of that time, in ms.
        within = (time.monotonic() - began) * 500
        for address, answer in found.items():
            worker = self._workers[address] = ClusterWorker(address)
            try:
                introduction = msgspec.json.decode(answer, type=decodable(WorkerIntroduction))
            except (TypeError, msgspec.MsgspecError, RecursionError):
                self._leave_out(worker, f"it has no gistpoint, or a different one: {answer!r}")
                continue
            worker.host = bounded(introduction.host, 100)
            if different := introduction.differs_from(here):
                self._leave_out(worker, different)
                continue
            # A wrong clock is reported, but the worker is kept, and no event is changed (decision 105).
            ahead = introduction.utc_ms - here.utc_ms - within
            if abs(ahead) > within + SKEW_MS:
                worker.clock_ms = round(ahead)
                self.tell(
                    f"The clock of {worker.name} is {abs(ahead) / 1000:.0f} s"
                    f" {('ahead of' if ahead > 0 else 'behind')} this machine's. Durations are right; dates"
                    " are those of that clock."
                )

    def _require_workers(self, now: float) -> None:
        """Raise `InfrastructureError` if no present worker is usable, or none has come for a minute."""
        if self._fit():
            self._alone_since = None
            return
        if self._present:
            reasons = "; ".join(
                f"{self._workers[one].name}: {self._workers[one].left_out}" for one in self._present
            )
            raise InfrastructureError(f"No worker of the cluster at {self.address} is left: {reasons}.")
        if self._alone_since is None:
            self._alone_since = now
            self.tell(f"The cluster at {self.address} has no worker. Waiting for one for {_WAIT_S:.0f} s.")
        elif now > self._alone_since + _WAIT_S:
            raise InfrastructureError(
                f"The scheduler at {self.address} has no worker. The results so far are kept.",
                hint=f"Start one (dask worker {self.address}), then run the same command again to continue.",
            )

    def _leave_out(self, worker: ClusterWorker, reason: str) -> None:
        worker.left_out = bounded(reason, _MOST_CHARACTERS).rstrip(".")
        self.tell(f"{worker.name} gets no jobs: {worker.left_out}.")

    # Jobs

    def _send(
        self, work: WorkFunction, todo: Iterator[ClusterJob], on_outcome: Callable[[ClusterOutcome], None]
    ) -> bool:
        """Submit jobs while there is room; return whether more jobs may follow.

        A job that no worker can do is passed to `on_outcome` with the reason.
        """
        while not self.stopping and len(self._at_work) < self.capacity:
            job = self._again.popleft() if self._again else next(todo, None)
            if job is None:
                return False
            avoid = self._avoid.get(job.key, {})
            fit = self._fit() - avoid.keys()
            if fit:
                self._submit(work, _Sent(job, fit))
            else:
                why = f"None of the cluster's workers could do it. The last reason: {[*avoid.values()][-1]}."
                on_outcome(ClusterOutcome(job, None, message=why))
        return not self.stopping

    def _submit(self, work: WorkFunction, sent: _Sent) -> None:
        order = WorkOrder(
            start=self._start,
            job=sent.job.key,
            sender=WorkerIntroduction(),
            about=msgspec.Raw(sent.job.about()),
        )
        future = self._ask(
            self.client.submit,
            work,
            msgspec.json.encode(order),
            sent.job.archive() if sent.with_archive else b"",
            key=f"gistpoint-{self._start}-{next(self._numbers)}",
            pure=False,
            # Dask would otherwise use any worker, even one that lied about this job or has another version.
            workers=[*sent.workers],
            allow_other_workers=False,
        )
        self._at_work[future] = sent

    def _receive(
        self,
        work: WorkFunction,
        future: Any,
        check: ResultCheck,
        on_outcome: Callable[[ClusterOutcome], None],
    ) -> None:
        sent = self._at_work[future]
        if future.status == "finished":
            # The scheduler knows which worker holds a result; a reply could lie about that to avoid a strike.
            holders = self._ask(self.client.who_has, [future])
            worker = next((self._workers.get(address) for address in next(iter(holders.values()), ())), None)
            try:
                data = future.result(timeout=_FETCH_S)
            except Exception as error:
                self._count_failed_fetch(future, worker, error)
                return
            del self._at_work[future]
            if worker is None or worker.left_out:
                self._again.append(sent.job)
            else:
                self._take_reply(work, sent, worker, data, check, on_outcome)
            return
        del self._at_work[future]
        if future.status == "error":
            on_outcome(ClusterOutcome(sent.job, None, message=_failure(future.exception())))
        elif self.client.status == "running":
            self._again.append(sent.job)

    def _count_failed_fetch(self, future: Any, worker: ClusterWorker | None, error: Exception) -> None:
        """Fetch a reply again later or, if that has failed repeatedly, have the job done elsewhere."""
        if future.status != "finished":
            return  # the worker has just died: Dask repeats the job, or its status shows what happened
        sent = replace(self._at_work[future], failed_fetches=self._at_work[future].failed_fetches + 1)
        if sent.failed_fetches < _FETCHES:
            self._at_work[future] = sent
            return
        del self._at_work[future]
        if worker is None or worker.left_out:
            self._again.append(sent.job)
        else:
            why = f"{type(error).__name__}: {bounded(str(error), 200)}"
            self._strike(sent.job, worker, f"returned a reply that can't be fetched ({why})")

    def _take_reply(
        self,
        work: WorkFunction,
        sent: _Sent,
        worker: ClusterWorker,
        data: object,
        check: ResultCheck,
        on_outcome: Callable[[ClusterOutcome], None],
    ) -> None:
        """Check a worker's reply to a job: report its outcome, or submit the job again."""
        try:
            reply = _read(sent.job, data)
            value = check(sent.job, bytes(reply.result), worker) if reply.kind is WorkStatus.DONE else None
        except ClusterLieError as lie:
            self._strike(sent.job, worker, f"is rejected: {lie}")
            return
        message = bounded(reply.message, _MOST_CHARACTERS)
        match reply.kind:
            # A task is sent only to a worker that requests it.
            case WorkStatus.NEEDS_TASK if not sent.with_archive:
                self._submit(work, _Sent(sent.job, frozenset({worker.address}), with_archive=True))
            case WorkStatus.NEEDS_TASK:
                self._strike(sent.job, worker, "does not keep the task that was sent to it")
            case WorkStatus.UNFIT:
                self._strike(sent.job, worker, f"can't do it: {message}")
            case WorkStatus.STOPPED if not self.stopping:
                self._strike(sent.job, worker, "stopped without being asked to")
            case _:
                on_outcome(ClusterOutcome(sent.job, reply.kind, value, worker, message))

    def _strike(self, job: ClusterJob, worker: ClusterWorker, what: str) -> None:
        """Have a job done elsewhere, and give no more jobs to a worker to which this happens too often."""
        worker.strikes += 1
        what = what.rstrip(".")
        self._avoid.setdefault(job.key, {})[worker.address] = f"{worker.name} {what}"
        self._again.append(job)
        self.tell(f"{job.label}: {worker.name} {what}.")
        if worker.strikes == STRIKES:
            self._leave_out(worker, f"{STRIKES} jobs failed there; the last reason is that it {what}")

    def _drop(self, futures: list[Any]) -> None:
        for future in futures:
            del self._at_work[future]
        if futures and self.client.status == "running":
            with suppress(OSError):
                self.client.cancel(futures)

    # Stopping

    def _send_stop(self) -> None:
        """Ask workers to finish, or after a second `stop` to abandon their jobs; send each request once."""
        if self._stop_sent == self._stop:
            return
        self._stop_sent = self._stop
        at_once = self._stop > 1
        self._ends_at = time.monotonic() + (_LAST_S if at_once else GRACE_S)
        self._ask(
            self.client.run, stop_jobs, self._start, at_once, workers=[*self._present], on_error="ignore"
        )

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let Ctrl+C stop the work between two steps, but never within a step."""
        # Only the main thread may set signal handlers; other threads are stopped with `stop`.
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def interrupted(*_: object) -> None:
            self.interrupts += 1
            self.stop()

        before = signal.signal(signal.SIGINT, interrupted)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _read(job: ClusterJob, data: object) -> WorkReply:
    """Return a worker's reply to a job. Raises `ClusterLieError` if it can't be a true reply to this job."""
    try:
        reply: WorkReply = msgspec.json.decode(data, type=decodable(WorkReply))  # type: ignore[call-overload]
    except (TypeError, msgspec.MsgspecError, RecursionError) as error:
        raise ClusterLieError(f"its answer is not a reply ({bounded(str(error), 200)})") from error
    if reply.job != job.key:
        raise ClusterLieError("it returned the reply to another job")
    if reply.kind is WorkStatus.DONE and sha256(bytes(reply.result)).hexdigest() != reply.sha256:
        raise ClusterLieError("the hash that it gave does not match its result")
    return reply


def _failure(error: BaseException) -> str:
    """Return why Dask gave up a job, as a sentence."""
    # Recognised by its name, because importing the class would load Dask, which need not be installed.
    if type(error).__name__ == "KilledWorker":
        return f"Every worker that got it died. {bounded(str(error), _MOST_CHARACTERS)}"
    return f"gistpoint failed on the worker: {type(error).__name__}: {bounded(str(error), _MOST_CHARACTERS)}"
