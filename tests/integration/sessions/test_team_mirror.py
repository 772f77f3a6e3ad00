"""Attempts on a real server are sent while they are written, fetched, branched, and never overwritten."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable

import pytest
from builders import REPAIR
from fakes import FakeClock
from postgres_server import PostgresServer
from team_machines import TeamMachine, ask

from gistpoint.core.attempts.identity import Enrolment
from gistpoint.sessions.attempts import OpenAttempt
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.team.attempts import AttemptElsewhereError
from gistpoint.sessions.team.pusher import MirrorPhase, Pusher
from gistpoint.sessions.team.syncing import StoreSync

WAIT_S = 120.0


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def settled(machine: TeamMachine) -> None:
    assert machine.pusher is not None
    pusher = machine.pusher
    wait_for(lambda: pusher.state.phase is MirrorPhase.UP_TO_DATE and not pusher.state.lines)


def name_of(opened: OpenAttempt) -> str:
    return opened.attempt.state.attempt_id


def lines_of(server: PostgresServer, attempt: str) -> bytes:
    rows = ask(server, f"SELECT line FROM lines_of_attempts WHERE writer = '{attempt}' ORDER BY number")
    return b"".join(bytes(row[0]) + b"\n" for row in rows)


def end_lease(server: PostgresServer) -> None:
    """Move the ends of all leases back by 61 seconds, so that all leases have ended."""
    ask(server, "UPDATE attempts SET lease_until = lease_until - interval '61 s'")


def test_lines_are_sent_while_an_attempt_is_open_and_the_lease_is_given_back(
    one: TeamMachine, two: TeamMachine, server: PostgresServer
) -> None:
    task = one.task()
    opened = one.start(task, mirrored=True)
    name = name_of(opened)
    opened.attempt.call("read_file", {"file_path": "README.md"})
    settled(one)
    assert lines_of(server, name) == one.journal(name)
    two.sync()
    with pytest.raises(AttemptElsewhereError, match=f"now continues on another machine \\({one.name}\\)"):
        two.resume(name, task, mirrored=True)
    opened.close()
    wait_for(lambda: not list((one.locations.data / "to-send").iterdir()))
    assert [machine.attempts().unfinished(task.id, Enrolment()) != [] for machine in (one, two)] == [
        True,
        False,
    ]
    again = two.resume(name, task, mirrored=True)
    assert [summary.elsewhere for summary in two.attempts().outlines()] == [False]
    again.attempt.call("submit_attempt", {"func_code": REPAIR})
    again.close()
    settled(two)
    assert one.sync().lines_fetched > 0
    two.sync()
    assert one.journal(name) == two.journal(name) == lines_of(server, name)
    assert one.attempts().summary(name).state.solved
    assert [one.check(), two.check()] == [[], []]
    assert ask(server, "SELECT ended, fence, holder FROM attempts") == [(True, 2, two.name)]


def test_synchronising_again_changes_nothing(one: TeamMachine, two: TeamMachine) -> None:
    one.start(one.task()).close()
    first = one.sync()
    assert (first.tasks_sent, first.attempts_sent, first.alarms) == (1, 1, ())
    assert one.sync() == StoreSync()
    assert (two.sync().tasks_fetched, two.sync()) == (1, StoreSync())
    assert [one.check(), two.check()] == [[], []]
    assert one.attempts().summary(next(one.attempts().summaries()).attempt_id).witnessed
    (fetched,) = two.attempts().outlines()
    assert (fetched.elsewhere, fetched.is_of(""), next(two.attempts().summaries()).kept) == (
        True,
        False,
        None,
    )


def test_the_store_is_away_for_an_hour(one: TeamMachine, server: PostgresServer) -> None:
    clock = one.clock = FakeClock()
    task = one.task()
    server.stop()
    try:
        opened = one.start(task, mirrored=True)
        pusher = one.pusher
        assert isinstance(pusher, Pusher)
        wait_for(lambda: pusher.state.phase is MirrorPhase.AWAY)
        since = pusher.state.since_ms
        clock.advance(3_600_000)
        for _ in range(5):
            opened.attempt.call("read_file", {"file_path": "README.md"})
        assert (str(pusher.state)[:7], pusher.state.since_ms) == ("! away,", since)
        assert pusher.state.lines > 5
    finally:
        server.start()
    settled(one)
    assert lines_of(server, name_of(opened)) == one.journal(name_of(opened))
    opened.close()


def test_what_a_program_could_not_send_is_sent_by_the_next(one: TeamMachine, server: PostgresServer) -> None:
    task = one.task()
    server.stop()
    try:
        opened = one.start(task, mirrored=True)
        opened.close()
        assert one.pusher is not None
        one.pusher.close()
    finally:
        server.start()
    one.pusher = None
    other = one.start(task, mirrored=True)
    wait_for(lambda: bool(lines_of(server, name_of(opened))))
    assert lines_of(server, name_of(opened)) == one.journal(name_of(opened))
    other.close()


def test_a_machine_that_lost_its_lease_goes_on_in_a_branch(
    one: TeamMachine, two: TeamMachine, server: PostgresServer
) -> None:
    task = one.task()
    opened = one.start(task, mirrored=True)
    name, branch = name_of(opened), f"{name_of(opened)}~{one.name}"
    settled(one)
    two.sync()
    end_lease(server)
    elsewhere = two.resume(name, task, mirrored=True)
    settled(two)
    opened.attempt.call("read_file", {"file_path": "README.md"})  # while the other one holds the lease
    pusher = one.pusher
    assert pusher is not None
    wait_for(lambda: pusher.state.branches == (branch,))
    assert (str(pusher.state), pusher.state.conflicts) == ("in a branch", ())
    opened.close()
    wait_for(lambda: not list((one.locations.data / "to-send").iterdir()))
    elsewhere.attempt.call("submit_attempt", {"func_code": REPAIR})
    elsewhere.close()
    settled(two)
    one.sync()
    two.sync()
    assert one.journal(name) == two.journal(name) == lines_of(server, name)
    assert one.journal(branch) == two.journal(branch) == lines_of(server, branch)
    assert one.journal(branch) != one.journal(name)
    assert {one.sync(), two.sync()} == {StoreSync()}
    assert [one.check(), two.check()] == [[], []]
    assert one.attempts().summary(branch).problem == ""
    assert ask(server, "SELECT branch_of FROM attempts ORDER BY id") == [(None,), (name,)]


def test_two_machines_go_on_while_the_store_is_away_and_nothing_is_mixed(
    one: TeamMachine, two: TeamMachine, server: PostgresServer
) -> None:
    task = one.task()
    opened = one.start(task)
    name = name_of(opened)
    opened.close()
    one.sync()
    two.sync()
    server.stop()
    try:
        for machine in (one, two):
            again = machine.resume(name, task, mirrored=True)
            again.attempt.call("search", {"query": f"by {machine.name}"})
            again.close()
            assert machine.pusher is not None
            machine.pusher.close()
    finally:
        server.start()
    kept = {machine.name: machine.journal(name) for machine in (one, two)}
    for machine in (one, two, one, two):
        assert machine.sync().alarms == ()
    branch = f"{name}~{two.name}"
    for machine in (one, two):
        assert (machine.journal(name), machine.journal(branch)) == (kept[one.name], kept[two.name])
        assert machine.check() == []


def test_a_clock_that_is_ten_minutes_wrong_changes_no_lease(
    one: TeamMachine, two: TeamMachine, server: PostgresServer
) -> None:
    task = one.task()
    two.clock = FakeClock(int(time.time() * 1000) + 600_000)
    opened = one.start(task, mirrored=True)
    settled(one)
    with two.store() as store:
        assert 590_000 < store.skew_ms < 610_000
    two.sync()
    with pytest.raises(AttemptElsewhereError):
        two.resume(name_of(opened), task, mirrored=True)
    opened.close()


def test_a_server_that_is_killed_while_lines_are_sent_loses_none(
    one: TeamMachine, server: PostgresServer
) -> None:
    opened = one.start(one.task(), mirrored=True)
    name = name_of(opened)
    for number in range(12):
        opened.attempt.call("read_file", {"file_path": "README.md"})
        if number in (4, 8):
            wait_for(lambda: bool(lines_of(server, name)))
            server.kill()
            opened.attempt.call("read_file", {"file_path": "README.md"})
            server.start()
    opened.close()
    settled(one)
    assert lines_of(server, name) == one.journal(name)
    assert one.sync().lines_sent == 0
    assert one.check() == []


def test_another_line_under_a_key_is_a_conflict_and_overwrites_none(
    one: TeamMachine, server: PostgresServer
) -> None:
    task = one.task()
    opened = one.start(task)
    name = name_of(opened)
    opened.close()
    one.sync()
    here = one.journal(name)
    ask(server, f"UPDATE lines_of_attempts SET line = line || ' ' WHERE writer = '{name}' AND number = 2")
    there = lines_of(server, name)
    one.resume(name, task, mirrored=True).close()
    pusher = one.pusher
    assert pusher is not None
    wait_for(lambda: bool(pusher.state.conflicts))
    assert f"attempt {name}, line 2: the file here has " in pusher.state.conflicts[0]
    (alarm,) = one.sync().alarms
    assert (alarm.seq, alarm.here == alarm.there) == (2, False)
    assert lines_of(server, name) == there
    assert one.journal(name).startswith(here)


def test_a_journal_that_was_changed_here_is_not_sent(one: TeamMachine, server: PostgresServer) -> None:
    opened = one.start(one.task())
    name = name_of(opened)
    opened.close()
    path = one.locations.attempts / name / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    (alarm,) = one.sync().alarms
    assert "was changed, cut off or damaged" in str(alarm)
    assert lines_of(server, name) == b""
    shutil.rmtree(path.parent)
