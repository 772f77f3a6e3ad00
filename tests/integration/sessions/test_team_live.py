"""Live sharing of reviews: current readers, others' annotations, and the agreement of verdicts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from screens.review.reviewing import TURNS, command, mini_run, reviewing
from sqlalchemy import text
from team_machines import TeamMachine

from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.annotations.keys import beginning_of, run_key
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.reviews import ExcludeReason, RunVerdict
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.team.address import choose
from gistpoint.sessions.team.live import LiveAnnotations
from gistpoint.tui.screens.review.runs import RunsScreen

UNTIL_S = 60.0


class Live:
    """A reviewer on a machine whose reviews are shared."""

    def __init__(self, machine: TeamMachine, name: str) -> None:
        self.shared = LiveAnnotations(machine.locations, SystemTime(), "reviews", name)
        self._folder, self._name = machine.locations.reviews, name

    @property
    def reviewer(self) -> Reviewer:
        return Reviewer(ReviewStore(self._folder, SystemTime()), self._name)


@pytest.fixture
def first(one: TeamMachine) -> Iterator[Live]:
    live = Live(one, "first")
    yield live
    live.shared.close()


@pytest.fixture
def second(two: TeamMachine) -> Iterator[Live]:
    live = Live(two, "second")
    yield live
    live.shared.close()


def wait(met: Callable[[], object]) -> None:
    until = time.monotonic() + UNTIL_S
    while not met():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_each_sees_what_the_other_reads_and_gets_what_the_other_says(first: Live, second: Live) -> None:
    second.reviewer.verdict("before", RunVerdict.ACCEPT)
    first.shared.reading("run")
    second.shared.reading("run")
    wait(lambda: first.shared.state.readers == {"run": ("second",)})
    wait(lambda: second.shared.state.readers == {"run": ("first",)})
    wait(lambda: first.reviewer.store.book.review("before", "second").verdict)
    second.reviewer.verdict("run", RunVerdict.EXCLUDE, reasons=[ExcludeReason.AID])
    wait(lambda: first.reviewer.store.book.review("run", "second").verdict)
    second.shared.close()
    wait(lambda: not first.shared.state.readers)


def test_who_is_silent_is_no_longer_listed_as_a_reader(
    first: Live, second: Live, server: PostgresServer, one: TeamMachine
) -> None:
    second.shared.reading("run")
    first.shared.reading("other")
    wait(lambda: first.shared.state.readers)
    with one.store() as store, store.engine.begin() as connection:
        from gistpoint.sessions.team.presence import readers

        assert readers(connection, "reviews", "third", "x").keys() == {"run", "other"}
        connection.execute(text("UPDATE reading SET seen_at = seen_at - interval '91 s'"))
        assert readers(connection, "reviews", "third", "x") == {}


def test_a_store_that_is_away_is_told_and_what_was_said_goes_up_later(
    first: Live, second: Live, server: PostgresServer
) -> None:
    for live in (first, second):
        live.shared.reading("run")
    wait(lambda: first.shared.state.readers)
    server.kill()
    first.reviewer.verdict("run", RunVerdict.ACCEPT)
    wait(lambda: "does not answer" in first.shared.state.problem or "lost" in first.shared.state.problem)
    server.start()
    wait(lambda: second.reviewer.store.book.review("run", "first").verdict)
    wait(lambda: not first.shared.state.problem)


async def test_the_list_shows_who_reads_a_run_and_how_verdicts_agree(
    second: Live, server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    for name in ("a", "b"):
        mini_run(tmp_path / "runs" / f"{name}.traj.json", [command(f"cat {name}", name), *TURNS], model=name)
    choose(Locations.of_user().config, server.url)
    async with reviewing(tmp_path / "runs", size=(160, 48)) as driver:
        screen = await driver.until_on(RunsScreen)
        await driver.until(
            lambda: len(screen.table.shown) == 2 and all(row.review for row in screen.table.shown)
        )
        keys = [run_key(open_run(row.name)) for row in screen.table.shown]
        second.shared.reading(beginning_of(keys[1]))
        await driver.until(lambda: "second" in driver.text())
        second.reviewer.verdict(keys[0], RunVerdict.SOLVED)
        await driver.press("enter")
        await driver.until_read(0)
        second.shared.reading(beginning_of(keys[0]))
        await driver.until(lambda: "also read by second" in driver.text())
        await driver.press("Y")
        await driver.until(lambda: driver.review.run.review is not None and driver.review.run.review.verdict)
        await driver.press("escape")
        await driver.until(lambda: "agree 1 of 1" in driver.text())
