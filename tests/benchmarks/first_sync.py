"""The first `store sync` of a machine over a slow network: seconds, and how often it waits for the server.

Usage: PYTHONPATH=src:tests uv run python tests/benchmarks/first_sync.py [TASKS ATTEMPTS [DELAY_MS]]

A home with tasks and attempts only in files is sent to an empty PostgreSQL through a proxy that delays each
direction by 40 ms, fetched into an empty home, and sent again, with nothing left to do. A round trip is
counted whenever the client sends after the server did.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "studies")]

from postgres_server import PostgresServer, running_server  # noqa: E402
from team_growth import Growth, command  # noqa: E402
from team_machines import TeamMachine, make_schema  # noqa: E402


@dataclass
class SlowNetwork:
    """A proxy before a server's socket that forwards data after a delay, in order and without a limit."""

    socket: Path
    delay_s: float
    port: int = 0
    round_trips: int = 0

    def __enter__(self) -> SlowNetwork:
        self._ready, self._loop = Event(), asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *raised: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._end = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()

    async def _connected(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_unix_connection(str(self.socket))
        turn = ["server"]
        await asyncio.gather(
            self._passed(client, to_server, "client", turn), self._passed(server, to_client, "server", turn)
        )

    async def _passed(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, who: str, turn: list[str]
    ) -> None:
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, data = await waiting.get()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    to.close()
                    return
                to.write(data)
                await to.drain()

        delivering = asyncio.ensure_future(deliver())
        while data := await source.read(1 << 16):
            self.round_trips += who == "client" and turn[0] == "server"
            turn[0] = who
            waiting.put_nowait((time.monotonic() + self.delay_s, data))
        waiting.put_nowait((time.monotonic() + self.delay_s, b""))
        await delivering


def measure(root: Path, server: PostgresServer, tasks: int, attempts: int, delay_ms: float) -> None:
    make_schema(server)
    with SlowNetwork(server.root / "socket" / f".s.PGSQL.{server.port}", delay_ms / 1000) as network:
        url = f"postgresql://owner@127.0.0.1:{network.port}/team"
        growth = Growth(TeamMachine(root / "one", url), server, tasks, attempts)
        growth.make()
        growth.write(growth.new[0], growth.new[2], files=True, rows=False)
        make_schema(server)  # the creation adds rows too, because this machine is the first
        print(f"{tasks} tasks, {attempts} attempts, {delay_ms:g} ms each way", flush=True)
        other = TeamMachine(root / "two", url)
        homes = {
            "first sync": growth.machine,
            "nothing to do": growth.machine,
            "first sync of another": other,
        }
        for name, machine in homes.items():
            before = network.round_trips
            told = command(machine.root, "store", "sync")
            print(f"  {name}: {network.round_trips - before} round trips, {told}", flush=True)


if __name__ == "__main__":
    given = [float(word) for word in sys.argv[1:]]
    count, each = (int(number) for number in given[:2] or (20, 100))
    with tempfile.TemporaryDirectory() as place, running_server() as postgres:
        measure(Path(place), postgres, count, each, given[2] if len(given) > 2 else 40.0)
