"""Lets eight machines write mirrored attempts while their server is killed twice and stopped for a minute.

Usage: PYTHONPATH=src:tests uv run python tests/studies/team_mirror.py [ATTEMPTS [SECONDS OF THE STOP]]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from builders import REPAIR
from postgres_server import PostgresServer, running_server
from team_machines import TeamMachine, make_schema

from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.team.syncing import StoreSync

MACHINES, PACE_S = 8, 0.07
CALLS = ("README.md", "shop/prices.py", "README.md", "shop/basket.py", "README.md")


def write_attempts(root: Path, url: str, count: int) -> None:
    """Act as a machine: write attempts, and save the end and the duration of each call."""
    machine, times = TeamMachine(root, url), []
    task = machine.task()
    for _ in range(count):
        opened = machine.start(task, mirrored=True)
        for path in CALLS:
            before = time.monotonic()
            opened.attempt.call("read_file", {"file_path": path})
            times.append((time.time(), 1000 * (time.monotonic() - before)))
            time.sleep(PACE_S)
        before = time.monotonic()
        opened.attempt.call("submit_attempt", {"func_code": REPAIR})
        opened.close()
        times.append((time.time(), 1000 * (time.monotonic() - before)))
    assert machine.pusher is not None
    machine.pusher.close()
    (root / "times.json").write_text(json.dumps(times), encoding="utf-8")


@contextmanager
def away(server: PostgresServer, spans: list[tuple[float, float]], *, kill: bool) -> Iterator[None]:
    begun = time.time()
    server.kill() if kill else server.stop()
    yield
    spans.append((begun, time.time()))
    server.start()


def run(root: Path, server: PostgresServer, attempts: int, stop_s: float) -> bool:
    make_schema(server)
    homes = [root / f"machine-{number}" for number in range(MACHINES)]
    words = [sys.executable, __file__, "child"]
    children = [
        subprocess.Popen([*words, str(home), server.url, str(attempts // MACHINES)]) for home in homes
    ]
    spans: list[tuple[float, float]] = []
    for _ in range(2):
        time.sleep(stop_s / 4)
        with away(server, spans, kill=True):
            pass
    time.sleep(stop_s / 4)
    under_way = sum(child.poll() is None for child in children)
    with away(server, spans, kill=False):
        time.sleep(stop_s)
    print(f"{under_way} of {MACHINES} machines were at work when the server was stopped for {stop_s:.0f} s")
    if any(child.wait() for child in children):
        return False
    times = [pair for home in homes for pair in json.loads((home / "times.json").read_text(encoding="utf-8"))]
    print_times(times, spans[-1])

    machines = [TeamMachine(home, server.url) for home in homes]
    begun = time.monotonic()
    done = [machine.sync() for machine in machines]
    left = sum(found.lines_sent for found in done)
    again = [machine.sync() for machine in machines]
    last = [machine.sync() for machine in machines]
    print(
        f"left to send after the programs' end: {left} lines; three rounds: {time.monotonic() - begun:.0f} s"
    )
    alarms = [str(alarm) for found in (*done, *again, *last) for alarm in found.alarms]
    journals = [journals_of(machine) for machine in machines]
    equal = all(first == second for first, second in pairwise(journals))
    lines = sum(data.count(b"\n") for data in journals[0].values())
    differences = [str(found) for machine in machines for found in machine.check()]
    changed = sum(found != StoreSync() for found in last)
    print(f"{len(journals[0])} attempts, {lines} lines; the same bytes on all machines: {equal}")
    print(f"alarms: {len(alarms)}; changes by the last round: {changed}; differences: {len(differences)}")
    print("\n".join([*alarms, *differences][:20]))
    return equal and not alarms and not differences and not changed and len(journals[0]) == attempts


def journals_of(machine: TeamMachine) -> Mapping[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in machine.locations.attempts.glob(f"*/{JOURNAL}")}


def print_times(times: list[tuple[float, float]], stopped: tuple[float, float]) -> None:
    """Print the durations of calls while the server was stopped, as ratios to the others."""
    during = sorted(ms for at, ms in times if stopped[0] <= at <= stopped[1])
    others = sorted(ms for at, ms in times if not stopped[0] <= at <= stopped[1])
    print(f"calls: {len(times)}, of these while the server was stopped: {len(during)}")
    for name, part in (("median", 0.5), ("99 %", 0.99)):
        there, here = others[int(part * len(others))], during[int(part * len(during))]
        print(f"{name}: {here / there:.2f} of what it takes while the server answers")
    print(f"longest: {during[-1]:.0f} ms while it was stopped, {others[-1]:.0f} ms otherwise")


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        write_attempts(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
        stop_s = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
        with tempfile.TemporaryDirectory() as place, running_server() as postgres:
            sys.exit(not run(Path(place), postgres, count, stop_s))
