"""Replays attempts on a cluster: sends their journals, and receives reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.orders import (
    ClusterJob,
    ClusterLieError,
    ClusterOutcome,
    ClusterWorker,
    WorkerPool,
    WorkStatus,
)
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.agentruns.cluster_runs import packed
from gistpoint.sessions.agentruns.cluster_work import AttemptToReplay, ServicesFactory, WorkTools, replayed
from gistpoint.sessions.journal import JOURNAL, first_event
from gistpoint.sessions.replay.reporting import ReplayReport, fault_in_report
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.services import Services


class ReplaysElsewhere:
    """Replays attempts of the store on the workers of a cluster."""

    def __init__(
        self,
        services: Services,
        tools: WorkTools,
        build: ServicesFactory,
        take: Callable[[str, ReplayReport], None],
        fail: Callable[[str, str], None],
    ) -> None:
        """`build` is as in `ClusterRunner`.

        For each attempt whose replay was not stopped, either `take` is called with its id and report, or
        `fail` with its id and the reason for the missing report.
        """
        self._services = services
        self._tools = tools
        self._build = build
        self._take = take
        self._fail = fail

    def carry_out(self, workers: WorkerPool, names: Sequence[str], tick: Callable[[], None]) -> None:
        """Replay the attempts with these ids.

        `tick` is called several times a second. Raises `InfrastructureError` if the scheduler disappears, or
        no worker is left.
        """
        workers.carry_out(
            partial(replayed, build=self._build), self._jobs(names), self._checked, self._deliver, tick
        )

    def _jobs(self, names: Sequence[str]) -> Iterator[ClusterJob]:
        for name in names:
            try:
                yield self._job(name)
            except UserError as error:
                self._fail(name, str(error))
            except OSError as error:
                self._fail(name, f"Its journal can't be read: {error.strerror}.")

    def _job(self, name: str) -> ClusterJob:
        path = self._services.attempts.folder(name) / JOURNAL
        if path.stat().st_size > self._tools.most_bytes:
            raise AttemptError(
                f"Its journal has {path.stat().st_size:,} bytes, but at most {self._tools.most_bytes:,}"
                " are sent.",
                hint=f"`gistpoint replay {name}` replays it here.",
            )
        task = self._task_of(name)
        return ClusterJob(
            name, f"attempt {name}", partial(self._encoded_order, name, task), partial(packed, task)
        )

    def _task_of(self, name: str) -> Task:
        first = first_event(self._services.attempts.folder(name) / JOURNAL)
        if first is None or not isinstance(first.data, AttemptStarted):
            raise AttemptError("Its journal does not contain the start of an attempt.")
        return self._services.tasks.find(first.data.task_id)

    def _encoded_order(self, name: str, task: Task) -> bytes:
        journal = (self._services.attempts.folder(name) / JOURNAL).read_bytes()
        return msgspec.json.encode(
            AttemptToReplay(tools=self._tools, attempt=name, task=task.id, journal=journal)
        )

    def _checked(self, job: ClusterJob, result: bytes, worker: ClusterWorker) -> ReplayReport:
        try:
            report = msgspec.json.decode(result, type=decodable(ReplayReport))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ClusterLieError(f"its answer is not a report ({str(error)[:200]})") from error
        document = open_run(self._services.attempts.folder(job.key))
        if fault := fault_in_report(report, document, name=job.key, task=self._task_of(job.key).id):
            raise ClusterLieError(fault)
        return report

    def _deliver(self, outcome: ClusterOutcome) -> None:
        if outcome.kind is WorkStatus.DONE:
            self._take(outcome.job.key, outcome.value)
        elif outcome.kind is not WorkStatus.STOPPED:
            self._fail(outcome.job.key, outcome.message)
