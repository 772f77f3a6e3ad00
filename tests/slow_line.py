"""A slow line to a server: a proxy that delays data, counts round trips, and can be cut."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread


@dataclass
class SlowLine:
    """A proxy in front of a server's socket that forwards data in order and after a delay, at any rate."""

    socket: Path
    delay_s: float = 0.0
    port: int = 0
    round_trips: int = 0
    """How often a client has sent after the server did."""
    sent: int = 0
    """The count of bytes that clients have sent."""
    bytes_until_cut: int | None = None
    """The bytes that clients may still send before all connections break; None for no cut."""
    bytes_until_silence: int | None = None
    """The bytes that clients may still send before nothing is passed on any more; None for no silence."""
    silent: Event = field(default_factory=Event)
    """Set when nothing is passed on any more."""
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def __enter__(self) -> SlowLine:
        self._ready = Event()
        self._thread = Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *raised: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._end, self._loop = asyncio.Event(), asyncio.get_running_loop()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()

    async def _connected(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_unix_connection(str(self.socket))
        self._writers |= {to_client, to_server}
        turn = ["server"]
        with suppress(OSError):
            await asyncio.gather(
                self._passed(client, to_server, "client", turn),
                self._passed(server, to_client, "server", turn),
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
            self.sent += len(data) if who == "client" else 0
            turn[0] = who
            if who == "client" and self._is_cut_by(len(data)):
                break
            if who == "client" and self.bytes_until_silence is not None:
                self.bytes_until_silence -= len(data)
                if self.bytes_until_silence < 0:
                    self.silent.set()
            if not self.silent.is_set():
                waiting.put_nowait((time.monotonic() + self.delay_s, data))
        waiting.put_nowait((time.monotonic() + self.delay_s, b""))
        await delivering

    def _is_cut_by(self, count: int) -> bool:
        """Count the bytes of a client. If they exceed the limit, break all connections and return True."""
        if self.bytes_until_cut is None:
            return False
        self.bytes_until_cut -= count
        if self.bytes_until_cut >= 0:
            return False
        self.bytes_until_cut = None  # new connections are not cut
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        return True
