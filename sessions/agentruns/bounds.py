"""Limits shared by a run's attempts: on test runs, on cost, and on requests until one is accepted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from gistpoint.core.confirmation.model import Confirmation, Confirmer, Controls
from gistpoint.core.entrypoints.runs import CommandOutput, EntrypointRunner, GistTrial, OriginalRun
from gistpoint.core.errors import CancelledError
from gistpoint.core.outcomes import BackendRecord, RunStatus, SuiteReport
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import Runner, RunRequest
from gistpoint.core.running import NEVER, UNATTENDED, CancelToken, RunContext
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.trees import SourceTree

_TICK_S = 0.1
_ACCEPTED_S = 10.0
"""The seconds after which a pending request counts as accepted: a refusal would have come sooner."""


class Slots:
    """Slots for test runs, because too many suites at once would exceed their time limits."""

    def __init__(self, places: int) -> None:
        self._places = threading.Semaphore(places)

    @contextmanager
    def taken(self, cancel: CancelToken) -> Iterator[None]:
        """Wait for a slot and occupy it. Raises `CancelledError` if cancelled while waiting."""
        while not self._places.acquire(timeout=_TICK_S):
            cancel.check()
        try:
            yield
        finally:
            self._places.release()


@dataclass(frozen=True, slots=True)
class BoundedRunner:
    """A `Runner` that waits for a slot."""

    runner: Runner
    slots: Slots

    @property
    def backend(self) -> BackendRecord:
        """The isolation of its runs."""
        return self.runner.backend

    def run(self, request: RunRequest, *, run: RunContext = UNATTENDED) -> SuiteReport:
        """Wait for a slot, run the tests, and return the report; its status is `CANCELLED` if cancelled."""
        try:
            with self.slots.taken(run.cancel):
                return self.runner.run(request, run=run)
        except CancelledError:
            return SuiteReport(RunStatus.CANCELLED, backend=self.backend)


@dataclass(frozen=True, slots=True)
class BoundedEntrypoints:
    """An `EntrypointRunner` that waits for a slot, and raises `CancelledError` if cancelled while waiting."""

    runner: EntrypointRunner
    slots: Slots

    @property
    def backend(self) -> BackendRecord:
        """The isolation of the code that it runs."""
        return self.runner.backend

    def tests(
        self, tree: SourceTree, environment: EnvironmentPins, *, timeout_s: float, cancel: CancelToken = NEVER
    ) -> tuple[str, ...]:
        """Wait for a slot, then call the runner."""
        with self.slots.taken(cancel):
            return self.runner.tests(tree, environment, timeout_s=timeout_s, cancel=cancel)

    def run_original(self, *given: Any, cancel: CancelToken = NEVER, **named: Any) -> OriginalRun:
        """Wait for a slot, then call the runner."""
        with self.slots.taken(cancel):
            return self.runner.run_original(*given, cancel=cancel, **named)

    def run_gist(self, *given: Any, cancel: CancelToken = NEVER, **named: Any) -> GistTrial:
        """Wait for a slot, then call the runner."""
        with self.slots.taken(cancel):
            return self.runner.run_gist(*given, cancel=cancel, **named)

    def run_command(self, *given: Any, cancel: CancelToken = NEVER, **named: Any) -> CommandOutput:
        """Wait for a slot, then call the runner."""
        with self.slots.taken(cancel):
            return self.runner.run_command(*given, cancel=cancel, **named)


@dataclass(frozen=True, slots=True)
class _BoundedConfirmer:
    """A `Confirmer` that waits for a slot."""

    confirmer: Confirmer
    slots: Slots

    def control(
        self, task: Task, answer: Answer, *, measured_here: bool = False, run: RunContext = UNATTENDED
    ) -> Controls:
        with self.slots.taken(run.cancel):
            return self.confirmer.control(task, answer, measured_here=measured_here, run=run)

    def confirm(
        self,
        task: Task,
        answer: Answer,
        controls: Controls,
        submitted: SourceTree,
        *,
        run: RunContext = UNATTENDED,
    ) -> Confirmation:
        with self.slots.taken(run.cancel):
            return self.confirmer.confirm(task, answer, controls, submitted, run=run)


def bounded_confirmer(confirmer: Confirmer | None, slots: Slots) -> Confirmer | None:
    """Return a confirmer that waits for a slot; None if `confirmer` is None."""
    return None if confirmer is None else _BoundedConfirmer(confirmer, slots)


@dataclass
class Purse:
    """The cost of all attempts of a run in US dollars: the amount spent, and that reserved for requests.

    A job has one reservation, for all of its requests that are under way.
    """

    most_usd: float | None = None
    _spent: dict[str, float] = field(default_factory=dict)
    _asked: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def spent(self, job: str, usd: float | None, reserved_usd: float = 0.0) -> None:
        """Record the cost so far of a job's attempt, and the amount still reserved for its requests."""
        with self._lock:
            self._spent[job] = usd or 0.0
            self._asked[job] = reserved_usd

    def may_ask(self, job: str, usd: float | None) -> bool:
        """Reserve the possible cost of a job's requests, replacing the earlier reservation.

        If that would exceed the limit, return False and leave the reservation unchanged.
        """
        with self._lock:
            wanted, before = usd or 0.0, self._asked.get(job, 0.0)
            is_more = wanted > before
            if is_more and self.most_usd is not None and self._total() - before + wanted > self.most_usd:
                return False
            self._asked[job] = wanted
            return True

    @property
    def total_usd(self) -> float:
        """The amount spent or reserved."""
        with self._lock:
            return self._total()

    def _total(self) -> float:
        return sum(self._spent.values()) + sum(self._asked.values())


class Acceptance:
    """Lets only one thread send requests until the endpoint has accepted one.

    If the key is refused or the account is empty, the other threads begin no attempt (decision 150).
    """

    def __init__(self) -> None:
        self._accepted = threading.Event()
        self._scout = 0
        self._lock = threading.Lock()

    def awaited(self, stopping: Callable[[], bool]) -> bool:
        """Wait until requests are accepted, except in the first thread; return False when `stopping`."""
        this = threading.get_ident()
        with self._lock:
            self._scout = self._scout or this
        while self._scout != this and not self._accepted.wait(_TICK_S) and not stopping():
            pass
        return not stopping()

    def accept(self) -> None:
        """Record that requests are accepted, or that waiting would not help."""
        self._accepted.set()

    def pending(self, seconds: float) -> None:
        """Record how long a request has been pending; after `_ACCEPTED_S`, requests count as accepted."""
        if seconds > _ACCEPTED_S:
            self.accept()


def share_out(cores: int | None) -> int:
    """Return the default number of simultaneous test runs on a machine with this many cores."""
    return max(1, (cores or 1) // 2)
