"""The protocol over standard input and output, which nothing else in the process can use."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, BinaryIO, cast

if TYPE_CHECKING:
    from gistpoint.sessions.served import ServedAttempt

MOST_BYTES = 2 * 1024 * 1024
"""The maximum number of bytes in a message; code has at most 1,000,000 characters."""


@dataclass(frozen=True, slots=True)
class Wire:
    """The two streams of a client."""

    reading: BinaryIO
    writing: BinaryIO


def has_client() -> bool:
    """Return whether standard input is a pipe or a socket, as clients provide it."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def take_standard_streams() -> Wire:
    """Keep standard input and output for the protocol, and return them.

    Anything else that the process and its children print goes to standard error, and they read nothing. Must
    be called before importing anything that might print.
    """
    sys.stdout.flush()
    wire = Wire(os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return wire


def leave_at_signals(close: Callable[[], None]) -> None:
    """End the process at once on SIGINT and SIGTERM, after closing the attempt. Call it in the event loop.

    It does not wait for a call in progress, since clients kill slow servers. Resuming the attempt completes
    the call.
    """

    def leave(number: int) -> None:
        close()
        sys.stderr.flush()
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, leave, number)


def serve_stdio(wire: Wire, served: ServedAttempt) -> None:
    """Serve the client until it disconnects.

    A call in progress is still completed and recorded in the journal.
    """
    import anyio
    from mcp.server.stdio import stdio_server

    from gistpoint.tui.mcp.server import AttemptServer

    async def serve() -> None:
        leave_at_signals(partial(served.close, at_once=True))
        server = AttemptServer(served)
        writing = anyio.wrap_file(
            TextIOWrapper(cast(Any, wire.writing), encoding="utf-8", write_through=True)
        )
        async with stdio_server(cast(Any, _messages(wire.reading)), writing) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    try:
        anyio.run(serve)
    except* (BrokenPipeError, ConnectionError):
        print("gistpoint: the client disconnected during an answer", file=sys.stderr)
    finally:
        served.close()


async def _messages(reading: BinaryIO) -> AsyncIterator[str]:
    """Yield the lines of the client, until the stream ends or a message is too large."""
    lines = asyncio.StreamReader(limit=MOST_BYTES)
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), reading)
    try:
        while line := await lines.readline():
            yield readable(line.decode("utf-8", "replace"))
    except ValueError:
        print(
            f"gistpoint: the client sent a message of more than {MOST_BYTES} bytes: closed", file=sys.stderr
        )
    finally:
        pipe.close()


def readable(line: str) -> str:
    """Return a message without halves of surrogate pairs, which mcp's parser would drop without an answer.

    A message that is not valid JSON is returned unchanged.
    """
    if "\\ud" not in line.lower():
        return line
    try:
        whole = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):
        return line
    return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
