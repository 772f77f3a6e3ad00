"""Synchronises this machine with the team's store in both directions; repeating it changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gistpoint.core.demo.tasks import unpack_demo
from gistpoint.core.locations import Locations
from gistpoint.core.ports import TimeSource
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.sessions.tasks import TaskStore
from gistpoint.sessions.team.annotations import annotation_stores, exchange
from gistpoint.sessions.team.attempts import (
    ToPush,
    local_attempts,
    miscounted,
    pull_attempts,
    push_attempts,
    to_push,
)
from gistpoint.sessions.team.conflicts import Conflict
from gistpoint.sessions.team.connecting import reaching
from gistpoint.sessions.team.opened import TeamStore
from gistpoint.sessions.team.rights import Rights
from gistpoint.sessions.team.silence import cancelled_by
from gistpoint.sessions.team.study_sharing import fetched_studies
from gistpoint.sessions.team.tasks import share_tasks


@dataclass(frozen=True, slots=True)
class StoreSync:
    """The result of a synchronisation."""

    tasks_sent: int = 0
    tasks_fetched: int = 0
    tasks_left: int = 0
    """The number of tasks that were deleted here and are therefore not fetched again."""
    attempts_sent: int = 0
    attempts_fetched: int = 0
    lines_sent: int = 0
    lines_fetched: int = 0
    operations_sent: int = 0
    operations_fetched: int = 0
    branches: tuple[str, ...] = ()
    """The branches to which this machine sent lines."""
    alarms: tuple[Conflict, ...] = ()
    """The conflicts; `sync --json` prints them under this name."""

    @property
    def changes(self) -> int:
        """The number of items that were sent and fetched."""
        return (
            self.tasks_sent
            + self.tasks_fetched
            + self.lines_sent
            + self.lines_fetched
            + self.operations_sent
            + self.operations_fetched
        )


def sync(
    store: TeamStore, locations: Locations, clock: TimeSource, run: RunContext, *, deleted: bool = False
) -> StoreSync:
    """Send and fetch all shared data, and return the result.

    A reader only fetches the public halves of tasks. `deleted` also fetches tasks that were deleted here.
    Raises `UnreachableError` if the store does not answer, `TeamStoreError` if it refuses, and
    `CancelledError` when cancelled; the results so far remain, and the next call continues.
    """
    with reaching(store.address), cancelled_by(run.cancel):
        return _sync(store, locations, clock, run, deleted=deleted)


def _sync(
    store: TeamStore, locations: Locations, clock: TimeSource, run: RunContext, *, deleted: bool
) -> StoreSync:
    engine, machine, works = store.engine, store.machine, store.rights is not Rights.READER
    tasks = TaskStore(locations.tasks)
    shared = share_tasks(engine, tasks, machine, _reporter(run, "tasks"), sends=works, deleted=deleted)
    if not works:
        return StoreSync(tasks_fetched=shared.fetched, tasks_left=shared.left, alarms=tuple(shared.conflicts))
    conflicts = [*shared.conflicts]

    report, sent, lines, branches = _reporter(run, "sending attempts"), 0, 0, list[str]()
    with engine.connect() as connection:
        mine = local_attempts(locations.attempts)
        lost = miscounted(connection, mine)
        folders = [folder for folder in to_push(connection, mine) if folder.name not in lost]
    conflicts += lost.values()
    for pushed in push_attempts(engine, machine, [ToPush(folder) for folder in folders], report):
        sent, lines = sent + bool(pushed.added), lines + pushed.added
        if pushed.conflict is not None:
            conflicts.append(pushed.conflict)
        elif pushed.branched and pushed.added:
            branches.append(pushed.attempt)
    report = _reporter(run, "fetching attempts")
    fetched, lines_fetched, found = pull_attempts(engine, locations.attempts, machine, report)
    conflicts += found
    if fetched:
        for _ in unpack_demo(locations.demo):  # fetched attempts may belong to the demo's tasks
            run.check()

    run.check()
    with engine.begin() as connection:
        exchanged = exchange(connection, annotation_stores(locations, clock), machine)
    conflicts += exchanged.conflicts.values()
    for study in fetched_studies(store.address, locations, clock):
        run.check()
        study.reload()
        study.send_soon()  # closing the study waits until all data are sent
        if study.away:
            conflicts.append(Conflict(f"study {study.study}", words=study.away))
    return StoreSync(
        shared.sent,
        shared.fetched,
        shared.left,
        sent,
        fetched,
        lines,
        lines_fetched,
        exchanged.sent,
        exchanged.fetched,
        tuple(branches),
        tuple(dict.fromkeys(conflicts)),
    )


def _reporter(run: RunContext, step: str) -> Callable[[int, int, str], None]:
    def report(done: int, total: int, what: str) -> None:
        run.check()
        run.progress(RunProgress(what, done, total, step=step))

    return report
