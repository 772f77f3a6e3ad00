"""Serves an attempt at a Unix socket, to an agent that a run has started in a sandbox."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import anyio
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from gistpoint.core.agents.scaffolds import ScaffoldError
from gistpoint.core.errors import extra_hint
from gistpoint.sessions.served import Served
from gistpoint.tui.mcp.stdio import MOST_BYTES, readable

_TO_START_S = 60.0
"""The time limit for opening the socket, in seconds."""


@contextmanager
def serving_socket(served: Served, path: Path) -> Iterator[None]:
    """Serve each connection at a Unix socket while the context lasts.

    Raises `ScaffoldError` if the extra `mcp` is missing, or if the socket can't be opened.
    """
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise ScaffoldError("The packages for serving tools are not installed.", hint=extra_hint("mcp"))
    server = _SocketServer(served, path)
    thread = threading.Thread(target=server.run, name="mcp-socket", daemon=True)
    thread.start()
    if not server.ready.wait(_TO_START_S) or server.error is not None:
        raise ScaffoldError(f"The tools can't be served: {server.error or 'it takes too long'}.")
    try:
        yield
    finally:
        server.close()
        thread.join()


class _SocketServer:
    """A server that runs in a thread, with the event loop of its connections."""

    def __init__(self, served: Served, path: Path) -> None:
        self._served, self._path = served, path
        self.ready = threading.Event()
        self.error: Exception | None = None
        self._loop: Any = None
        self._closed: anyio.Event | None = None

    def run(self) -> None:
        """Serve until `close`."""
        try:
            anyio.run(self._serve)
        except Exception as error:
            self.error = error
            self.ready.set()

    def close(self) -> None:
        """End the connections; a call in progress is completed first."""
        if self._loop is not None and self._closed is not None:
            self._loop.call_soon_threadsafe(self._closed.set)

    async def _serve(self) -> None:
        import asyncio

        from gistpoint.tui.mcp.server import AttemptServer

        server = AttemptServer(self._served)
        listener = await anyio.create_unix_listener(self._path)
        self._loop, self._closed = asyncio.get_running_loop(), anyio.Event()
        self.ready.set()
        async with listener, anyio.create_task_group() as connections:
            connections.start_soon(listener.serve, lambda stream: _converse(server, stream))
            await self._closed.wait()
            connections.cancel_scope.cancel()


async def _converse(server: Any, stream: SocketStream) -> None:
    from mcp.server.stdio import stdio_server

    with anyio.CancelScope():
        async with (
            stream,
            stdio_server(cast(Any, _messages(stream)), cast(Any, _Writing(stream))) as (incoming, outgoing),
        ):
            try:
                await server.run(incoming, outgoing, server.create_initialization_options())
            except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # the agent has ended


async def _messages(stream: SocketStream) -> AsyncIterator[str]:
    """Yield the lines of the client, until the stream ends or a message is too large."""
    buffered = BufferedByteReceiveStream(stream)
    while True:
        try:
            line = await buffered.receive_until(b"\n", MOST_BYTES)
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound, anyio.BrokenResourceError):
            return
        yield readable(line.decode("utf-8", "replace") + "\n")


class _Writing:
    """A stream in the form in which mcp's transport writes lines."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream

    async def write(self, text: str) -> None:
        """Send text."""
        await self._stream.send(text.encode())

    async def flush(self) -> None:
        """Do nothing, since nothing is buffered."""
