"""Runs the background jobs of a screen or widget in one thread, the most urgent job first.

Results are delivered on the UI thread. Textual's thread workers run in the event loop's own pool, which has
few threads, does not order the work, and is waited for when the program ends (decision 54). These threads end
when they have no work, and never keep the program alive.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from inspect import isawaitable
from typing import Any, NamedTuple, Protocol, TypeVar

from textual import events
from textual.message import Message
from textual.timer import Timer

from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.running import CancelToken

Result = TypeVar("Result")

_LINGER_S = 5.0
"""Seconds after which a thread without work ends."""
_KEEP_S = 10.0
"""The longest time that `stop` waits for jobs that must not be lost, in seconds."""


class Job:
    """A piece of work, passed to its body and its requester."""

    def __init__(self, jobs: Jobs, key: str, priority: int, *, keeps: bool) -> None:
        self._jobs = jobs
        self.key, self.priority, self.keeps = key, priority, keeps
        self.cancel = CancelToken()
        """Set if the job is stopped or replaced, or if its owner was removed."""
        self.running = True
        """False once the body has ended, or the job was dropped."""
        self._lock = threading.Lock()
        self._report: Callable[[], object] | None = None

    @property
    def replaced(self) -> bool:
        """Whether a newer job has the same key."""
        return self._jobs.newest(self) is not self

    def give_way(self, delay: float = 0.0) -> None:
        """Let more urgent jobs run first. Long bodies call this regularly.

        Returns if none is waiting. Otherwise, and always if there is a `delay` in seconds, the body ends at
        this call and runs again later, so it has to keep its progress. Raises `CancelledError` if the job was
        cancelled.
        """
        self.cancel.check()
        if delay > 0 or self._jobs.waits_before(self.priority):
            raise _Yielded(delay)

    def stop(self) -> None:
        """Stop at the body's next check. A job that has not started is dropped."""
        self._jobs.stop_job(self)

    def post(self, message: Message) -> None:
        """Send the owner a message, unless a newer job has the same key."""
        self._jobs.post(self, message)

    def hand(self, take: Callable[[Result], object], value: Result) -> None:
        """Call `take` on the UI thread with part of the result, unless a newer job has the same key."""
        self._jobs.deliver(self, take, value)

    def report(self, take: Callable[[Result], object], value: Result) -> None:
        """Like `hand`, for progress: a value is dropped if a newer one comes before it is taken."""
        with self._lock:
            on_its_way, self._report = self._report is not None, lambda: take(value)
        if not on_its_way:
            self._jobs.deliver(self, Job._take_report, self)

    def _take_report(self) -> object:
        with self._lock:
            report, self._report = self._report, None
        return report() if report is not None else None


class JobOwner(Protocol):
    """The part of a screen or widget that its jobs use."""

    @property
    def app(self) -> Any:
        """The app, which shows each `UserError`."""
        ...

    def post_message(self, message: Message) -> bool:
        """Put a message into the owner's queue, from any thread. Return False if the owner was removed."""
        ...

    def set_interval(self, interval: float, callback: Callable[[], object]) -> Timer:
        """Call a function repeatedly, at an interval in seconds, and return the timer."""
        ...


class JobFailed(Message):
    """A message to the app about the failure of a job whose owner does not handle errors."""

    def __init__(self, error: UserError) -> None:
        super().__init__()
        self.error = error


class _Yielded(Exception):
    """A request to end a body early, and to run it again after `delay` seconds."""

    def __init__(self, delay: float) -> None:
        super().__init__()
        self.delay = delay


class _Waiting(NamedTuple):
    job: Job
    run: Callable[[], None]
    order: int
    due: float


class Jobs:
    """The jobs of an owner (a screen or widget), one at a time. Any thread may call any method.

    The owner calls `stop` when it is unmounted. An owner that was removed gets no results.
    """

    def __init__(
        self, owner: JobOwner | None, name: str, *, failed: Callable[[Exception], object] | None = None
    ) -> None:
        """`name` is the name of the thread. `failed` is called with each error on the UI thread.

        By default, the app shows a `UserError`, and any other error is raised there. Without an owner,
        results and errors are dropped.
        """
        self._owner, self._name = owner, name
        self._failed = failed or self._show_failure
        self._wake = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._newest: dict[str, Job] = {}
        self._current: Job | None = None
        self._thread: threading.Thread | None = None
        self._number = 0
        self._finishing = self._stopped = False

    def repeat(
        self, seconds: float, body: Callable[[Job], Result], then: Callable[[Result], object] | None = None
    ) -> None:
        """Run a job now, then every `seconds` seconds while the owner exists; without an owner, only now.

        A turn is skipped if any job is running or waiting. A `UserError` that is the same as in the turn
        before is dropped: nobody may be there to close the dialogs of a whole night.
        """
        last: UserError | None = None

        def succeeded(result: Result) -> object:
            nonlocal last
            last = None
            return None if then is None else then(result)

        def failed(error: Exception) -> object:
            nonlocal last
            before, last = last, error if isinstance(error, UserError) else None
            is_known = before is not None and str(before) == str(error)
            return None if is_known else self._failed(error)

        def again() -> None:
            if not self.busy:
                self.do(body, succeeded, failed=failed)

        again()
        if self._owner is not None:
            self._owner.set_interval(seconds, again)

    def do(
        self,
        body: Callable[[Job], Result],
        then: Callable[[Result], object] | None = None,
        *,
        failed: Callable[[Exception], object] | None = None,
        key: str = "",
        priority: int = 0,
        delay: float = 0.0,
        keeps: bool = False,
    ) -> Job:
        """Run `body` in the thread and pass its result to `then` on the UI thread, or its error to `failed`.

        Return the job, which can be stopped. A lower `priority` is more urgent; equal ones run in the order
        of the requests. A job replaces an older one with the same `key`: the older one is dropped if it has
        not started; otherwise it is cancelled, and its result is dropped. The job starts no earlier than
        `delay` seconds from now. After `stop` or `finish` no new job runs. A job with `keeps` saves
        something, such as a label: it runs even if `stop` is called before it starts.
        """
        job = Job(self, key, priority, keeps=keeps)

        def run() -> None:
            try:
                result = body(job)
            except _Yielded:
                raise
            except CancelledError:
                job.running = False
            # Every other error is passed to `failed`, which by default raises it on the UI thread unless it
            # is a `UserError`.
            except Exception as error:
                job.running = False
                self.deliver(job, failed or self._failed, error)
            else:
                job.running = False
                if then is not None:
                    self.deliver(job, then, result)

        with self._wake:
            if self._stopped or self._finishing:
                self._forget(job)
                return job
            if key:
                self._cancel(lambda other: other.key == key)
                self._newest[key] = job
            self._number += 1
            self._waiting.append(_Waiting(job, run, self._number, time.monotonic() + delay))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
            self._wake.notify_all()
        return job

    def cancel(self) -> None:
        """Cancel the running job and drop the waiting ones. New ones may be added afterwards."""
        with self._wake:
            self._cancel(lambda _: True)

    def stop(self) -> None:
        """Cancel the running job, and drop all others and all undelivered results, for good.

        Jobs that save something (`keeps`) still run; this waits at most `_KEEP_S` seconds for them.
        """
        with self._wake:
            self._stopped = True
            self._cancel(lambda job: not job.keeps)
            waits = any(waiting.job.keeps for waiting in self._waiting) or (
                self._current and self._current.keeps
            )
            self._wake.notify_all()
            thread = self._thread
        if waits and thread is not None and thread is not threading.current_thread():
            thread.join(_KEEP_S)

    def finish(self, timeout: float) -> bool:
        """Run the jobs that are due, drop delayed ones, and accept no more.

        Returns whether all ended within `timeout` seconds.
        """
        with self._wake:
            self._finishing = True
            now = time.monotonic()
            self._cancel(lambda _: True, among=[waiting for waiting in self._waiting if waiting.due > now])
            self._wake.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return thread is None or not thread.is_alive()

    @property
    def busy(self) -> bool:
        """Whether a job is running or waiting."""
        with self._wake:
            return self._current is not None or bool(self._waiting)

    # Called by jobs

    def newest(self, job: Job) -> Job:
        """Return the newest job with the same key, or the job itself if it has no key."""
        return self._newest.get(job.key, job)

    def waits_before(self, priority: int) -> bool:
        """Return whether a due job is more urgent than `priority`."""
        with self._wake:
            now = time.monotonic()
            return any(waiting.job.priority < priority and waiting.due <= now for waiting in self._waiting)

    def stop_job(self, job: Job) -> None:
        """Cancel one job."""
        with self._wake:
            self._cancel(lambda other: other is job)

    def post(self, job: Job, message: Message) -> None:
        """Send the owner a message, unless a newer job has the same key.

        All jobs end if the owner was removed.
        """
        if self._owner is None or job.replaced or self._stopped:
            return
        try:
            taken = self._owner.post_message(message)
        except RuntimeError:  # raised once the app's event loop is closed
            taken = False
        if not taken:
            self.stop()

    def deliver(self, job: Job, take: Callable[[Result], object], value: Result) -> None:
        """Call `take` on the UI thread, unless a newer job with the same key exists by then."""

        async def deliver() -> None:
            if not job.replaced and not self._stopped:
                taken = take(value)
                if isawaitable(taken):
                    await taken

        self.post(job, events.Callback(callback=deliver))

    # The thread

    def _work(self) -> None:
        while (waiting := self._next()) is not None:
            try:
                waiting.run()
            except _Yielded as yielded:
                self._again(waiting, yielded.delay)

    def _again(self, waiting: _Waiting, delay: float) -> None:
        with self._wake:
            if waiting.job.cancel.cancelled or self._stopped or (self._finishing and delay):
                self._forget(waiting.job)
            else:
                self._waiting.append(waiting._replace(due=time.monotonic() + delay))

    def _next(self) -> _Waiting | None:
        """Wait for the next job and return it; None if the thread should end."""
        with self._wake:
            self._current = None
            linger_until = time.monotonic() + _LINGER_S
            while not self._stopped or self._waiting:
                now = time.monotonic()
                due = [waiting for waiting in self._waiting if waiting.due <= now]
                if due:
                    first = min(due, key=lambda waiting: (waiting.job.priority, waiting.order))
                    self._waiting.remove(first)
                    self._current = first.job
                    return first
                if not self._waiting and (self._finishing or now >= linger_until):
                    break
                self._wake.wait(min((waiting.due for waiting in self._waiting), default=linger_until) - now)
            self._thread = None
            return None

    def _cancel(self, concerned: Callable[[Job], bool], *, among: list[_Waiting] | None = None) -> None:
        for waiting in [item for item in (self._waiting if among is None else among) if concerned(item.job)]:
            self._waiting.remove(waiting)
            self._forget(waiting.job)
        if among is None and self._current is not None and concerned(self._current):
            self._current.cancel.cancel()

    @staticmethod
    def _forget(job: Job) -> None:
        job.cancel.cancel()
        job.running = False

    def _show_failure(self, error: Exception) -> None:
        if self._owner is None or not isinstance(error, UserError):
            raise error
        self._owner.app.post_message(JobFailed(error))
