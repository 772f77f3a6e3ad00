"""The first `store sync` of a machine over a slow network: seconds, and how often it waits for the server.

Usage: PYTHONPATH=src:tests uv run python tests/benchmarks/first_sync.py [TASKS ATTEMPTS [DELAY_MS]]

A home with tasks and attempts only in files is sent to an empty PostgreSQL through a proxy that delays each
direction by 40 ms, fetched into an empty home, and sent again, with nothing left to do. A round trip is
counted whenever the client sends after the server did.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "studies")]

from postgres_server import PostgresServer, running_server  # noqa: E402
from slow_line import SlowLine  # noqa: E402
from team_growth import Growth, command  # noqa: E402
from team_machines import TeamMachine, make_schema  # noqa: E402


def measure(root: Path, server: PostgresServer, tasks: int, attempts: int, delay_ms: float) -> None:
    make_schema(server)
    with SlowLine(server.root / "socket" / f".s.PGSQL.{server.port}", delay_ms / 1000) as network:
        url = f"postgresql://owner@127.0.0.1:{network.port}/team"
        growth = Growth(TeamMachine(root / "one", url), server, tasks, attempts)
        growth.make(rows=False)
        print(f"{tasks} tasks, {attempts} attempts, {delay_ms:g} ms each way", flush=True)
        other = TeamMachine(root / "two", url)
        homes = {
            "first sync": growth.machine,
            "nothing to do": growth.machine,
            "first sync of another": other,
        }
        for name, machine in homes.items():
            before = network.round_trips
            took = command(machine.root, "store", "sync")
            print(f"  {name}: {network.round_trips - before} round trips, {took}", flush=True)


if __name__ == "__main__":
    given = [float(word) for word in sys.argv[1:]]
    count, each = (int(number) for number in given[:2] or (20, 100))
    with tempfile.TemporaryDirectory() as place, running_server() as postgres:
        measure(Path(place), postgres, count, each, given[2] if len(given) > 2 else 40.0)
