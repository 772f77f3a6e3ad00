"""A team's store over a bad line: few round trips, a cut loses little, and waits for a silent server end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from integration.sessions.test_team_study import until
from postgres_server import PostgresServer
from slow_line import SlowLine
from studies.team_growth import Growth
from team_machines import TeamMachine, ask, make_schema
from team_studies import TeamStudy

from gistpoint.core.study.steps import PlanStep
from gistpoint.sessions.studies.taking import Participation
from gistpoint.sessions.team import ending, silence
from gistpoint.sessions.team.address import UnreachableError
from gistpoint.sessions.team.pusher import MirrorPhase

FEW, MANY = 50, 850
MOST_MORE = 30
"""The additional round trips allowed for 800 more attempts (19,000 lines): one for each portion sent."""
MOST_OF_SIZE, OTHER_BYTES = 1.6, 150_000
"""The bytes that may be sent for each byte of a line, with its hash and place, and those for all else."""
HELD_S = 3.0
"""The longest time in seconds for which a stopped server may hold up a person."""
GIVEN_UP_S = 60
"""Seconds: fewer than a command that compares everything waits for a silent server, but enough if busy."""


@pytest.fixture
def line(server: PostgresServer) -> Iterator[SlowLine]:
    with SlowLine(server.root / "socket" / f".s.PGSQL.{server.port}") as found:
        yield found


@pytest.fixture
def silences(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The seconds of each silence that was waited for."""
    found: list[float] = []
    note = silence.note_silence

    def noted(given: str, seconds: float) -> None:
        found.append(seconds)
        note(given, seconds)

    monkeypatch.setattr(silence, "note_silence", noted)
    yield found
    silence._rests.clear()


def url_of(line: SlowLine) -> str:
    return f"postgresql://owner@127.0.0.1:{line.port}/team"


def filled(root: Path, line: SlowLine, server: PostgresServer, attempts: int) -> TeamMachine:
    """Return a machine with this number of attempts in files, and the empty store."""
    growth = Growth(TeamMachine(root, url_of(line)), server, 3, attempts)
    growth.make(rows=False)
    return growth.machine


def test_round_trips_follow_the_lines_and_not_the_attempts(
    tmp_path: Path, server: PostgresServer, line: SlowLine
) -> None:
    spent = []
    for count in (FEW, MANY):
        make_schema(server)
        here = filled(tmp_path / f"one-{count}", line, server, count)
        there = TeamMachine(tmp_path / f"two-{count}", url_of(line))
        trips, sent = [line.round_trips], line.sent
        for machine in (here, here, there):
            machine.sync()
            trips.append(line.round_trips)
        size = ask(server, "SELECT sum(length(line)) FROM lines")[0][0]
        assert line.sent - sent < MOST_OF_SIZE * size + OTHER_BYTES
        spent.append([after - before for before, after in pairwise(trips)])
        assert ask(server, "SELECT count(*) FROM attempts") == [(count,)]
        assert there.check() == []
    few, many = spent
    assert many[1] == few[1], "nothing to do costs the same"
    assert all(more - less <= MOST_MORE for less, more in zip(few, many, strict=True)), spent
    assert max(few) < 70, few


def test_a_cut_costs_one_transaction(
    tmp_path: Path, server: PostgresServer, line: SlowLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gistpoint.sessions.team.attempts._AT_ONCE", 10)
    machine = filled(tmp_path / "one", line, server, FEW)
    line.bytes_until_cut = 300_000
    with pytest.raises(UnreachableError):
        machine.sync()
    kept = ask(server, "SELECT count(*) FROM attempts")[0][0]
    assert 0 < kept < FEW
    assert machine.sync().attempts_sent == FEW - kept
    assert machine.check() == []


def held_up(
    study: TeamStudy, silences: list[float], act: Callable[[Participation], object], code: str
) -> None:
    part = study.part("machine-1", code)
    until(part, PlanStep)
    with study.server.frozen():
        with pytest.raises(UnreachableError):
            act(part)
        assert silences
        assert sum(silences) <= HELD_S
        part.folder.store.close()  # type: ignore[attr-defined]  # a team's store
        assert sum(silences) <= HELD_S
    silence._rests.clear()
    silences.clear()
    assert part.step() is not None
    part.folder.store.close()  # type: ignore[attr-defined]


def test_a_stopped_server_holds_up_no_plan(
    tmp_path: Path, server: PostgresServer, silences: list[float]
) -> None:
    study = TeamStudy.made(tmp_path, server, "P01", "P02")
    held_up(study, silences, lambda part: part.step(), "P01")

    def come_and_step(part: Participation) -> None:
        part.come()
        part.step()

    held_up(study, silences, come_and_step, "P02")


def test_a_stopped_server_holds_up_no_resumption(
    one: TeamMachine, server: PostgresServer, silences: list[float]
) -> None:
    task = one.task()
    opened = one.start(task)
    opened.close()
    one.sync()
    with server.frozen():
        one.resume(opened.attempt.state.attempt_id, task, mirrored=True).close()
        assert one.pusher is not None
        assert one.pusher.state.phase is MirrorPhase.AWAY
        one.pusher.close()
        assert sum(silences) <= HELD_S


PROGRAM = """
import sys, time
from pathlib import Path
from team_machines import TeamMachine
machine = TeamMachine(Path(sys.argv[1]), sys.argv[2])
opened = machine.start(machine.task(), mirrored=True)
while machine.pusher.state.lines:
    time.sleep(0.01)
print("ready", flush=True)
sys.stdin.readline()
opened.attempt.call("read_file", {"file_path": "README.md"})
opened.close()
"""


def test_a_stopped_server_holds_up_no_end_of_a_program(tmp_path: Path, server: PostgresServer) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "home"), server.url],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    with server.frozen():
        program.communicate("go on\n", timeout=GIVEN_UP_S)
        assert program.returncode == 0


def test_waits_at_the_end_share_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, granted = [1000.0], list[float]()
    monkeypatch.setattr(ending, "monotonic", lambda: now[0])
    monkeypatch.setattr(ending, "_waits", [])

    def wait(seconds: float) -> None:
        granted.append(seconds)
        now[0] += min(seconds, 2.0)

    for _ in range(3):
        ending.wait_briefly(wait)
    assert granted == [HELD_S, 1.0, 0.0]
    now[0] += 60
    ending.wait_briefly(wait)
    assert granted[-1] == HELD_S


def test_ctrl_c_ends_a_synchronisation_with_a_silent_server(
    tmp_path: Path, server: PostgresServer, line: SlowLine
) -> None:
    machine = filled(tmp_path / "one", line, server, FEW)
    line.bytes_until_silence = 100_000
    command = subprocess.Popen(
        [sys.executable, "-m", "gistpoint", "store", "sync"],
        env={"GISTPOINT_HOME": str(machine.root), "PATH": "/usr/bin:/bin"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert line.silent.wait(GIVEN_UP_S)
    command.send_signal(signal.SIGINT)
    _, told = command.communicate(timeout=GIVEN_UP_S)
    assert command.returncode == 130, told
    assert "gistpoint store sync" in told
