"""Runs `gistpoint serve` as a process, with windows that use sockets instead of a browser."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import psutil
import pyte

UNTIL_S = 60.0


class ServedWindow:
    """One window of a participant."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, size: tuple[int, int]) -> None:
        self._socket = socket
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self.said = ""
        """The sentence received before the window was closed."""
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            if message.type is aiohttp.WSMsgType.BINARY:
                self._stream.feed(message.data)
            elif message.json()[0] == "notice":
                self.said = message.json()[1]

    @property
    def text(self) -> str:
        """The text on the screen."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    async def press(self, keys: str) -> None:
        """Send keys as a terminal's bytes."""
        await self._socket.send_json(["stdin", keys])

    async def send(self, text: str) -> None:
        """Send a string as it is, even if it is not a valid message."""
        await self._socket.send_str(text)

    async def resize(self, width: object, height: object) -> None:
        """Report another size to the server."""
        if isinstance(width, int) and isinstance(height, int):
            self._screen.resize(height, width)
        await self._socket.send_json(["resize", {"width": width, "height": height}])

    async def until(self, met: Callable[[str], object]) -> None:
        """Wait until a condition on the screen's text holds.

        Raises `AssertionError` if the window is closed or a minute passes.
        """
        for _ in range(int(UNTIL_S / 0.05)):
            if met(self.text):
                return
            assert not self._reading.done(), f"closed, {self.said!r}:\n{self.text}"
            await asyncio.sleep(0.05)
        raise AssertionError(f"never came about:\n{self.text}")

    async def until_closed(self) -> str:
        """Wait for the server to close the window; return its message."""
        await asyncio.wait_for(self._reading, UNTIL_S)
        return self.said

    async def close(self) -> None:
        """Close the window as a browser does."""
        await self._socket.close()


class ServedPrograms:
    """A running `gistpoint serve`, and the links that it printed."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, links: dict[str, str]) -> None:
        self.process, self.url, self.links = process, url, links

    @asynccontextmanager
    async def window(self, who: str, size: tuple[int, int] = (100, 30)) -> AsyncIterator[ServedWindow]:
        """Follow the link of a participant, and yield an open window."""
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
            (await http.get(self.links[who])).raise_for_status()
            address = f"{self.url}/s/ws?width={size[0]}&height={size[1]}"
            async with http.ws_connect(address, headers={"Origin": self.url}) as socket:
                await socket.send_json(["focus"])
                yield ServedWindow(socket, size)

    def programs(self) -> dict[str, psutil.Process]:
        """Return the programs of participants, by their codes."""
        found = {}
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.Error):
                words = child.cmdline()
                if "participant" in words:
                    found[words[words.index("--code") + 1]] = child
        return found

    async def stop(self) -> str:
        """End the server with SIGTERM; return what it printed after the links."""
        self.process.send_signal(signal.SIGTERM)
        output, _ = await asyncio.wait_for(self.process.communicate(), UNTIL_S)
        return output.decode()


@asynccontextmanager
async def serving(
    home: Path, people: int, *arguments: str, **environment: str
) -> AsyncIterator[ServedPrograms]:
    """Start the server for `people` participants, with `home` and on a free port; yield it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gistpoint", "serve", "--port", "0", *arguments,
        stdout=asyncio.subprocess.PIPE, env={**os.environ, **environment, "GISTPOINT_HOME": str(home)},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        first = (await asyncio.wait_for(process.stdout.readline(), UNTIL_S)).decode()
        url = first.split()[2].rstrip(";")
        links: dict[str, str] = {}
        while len(links) < people:
            who, _, link = (
                (await asyncio.wait_for(process.stdout.readline(), UNTIL_S)).decode().strip().partition("  ")
            )
            links[who] = link
        yield ServedPrograms(process, url, links)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
