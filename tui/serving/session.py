"""A participant's program behind a browser window. It starts in a separate environment, and always ends.

It ends with its window, so that reloading the page resumes the work (decision 98).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

QUIT_S = 5.0
"""Seconds that a program may take to quit when asked."""
KILL_S = 2.0
"""Seconds that a program may take to end after SIGTERM, and again after SIGKILL."""
POLL_S = 0.05
MOST_UNREAD_BYTES = 64 * 1024
"""The maximum number of bytes kept for a program that does not read them, besides those in its pipe.

Above this limit, the input of the window is not read either.
"""
_SLICE_BYTES = 8 * 1024
MOST_CELLS, FEWEST_CELLS = 500, 20
"""The limits of a window's columns and lines."""
_PASSED_ON = (
    "PATH",
    "HOME",
    "GISTPOINT_HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "DOCKER_HOST",
    "PGHOST",
    "PGHOSTADDR",
    "PGPORT",
    "PGUSER",
    "PGPASSFILE",
    "PGSERVICE",
    "PGSERVICEFILE",
    "PGSSLROOTCERT",
    "PGSSLCERT",
    "PGSSLKEY",
    "XDG_DATA_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
)
"""The variables of the server's environment that the program gets: locations, but no keys."""
_MODE_BYTES = 10
"""The length limit of an output that only sets a terminal's mode. A frame is longer."""
_MOST_ERROR_BYTES = 64 * 1024
_USER_ERROR = 2
_UNEXPECTED = "The program has ended unexpectedly. Your work is saved."


def environment_of_session(environment: Mapping[str, str], width: int, height: int) -> dict[str, str]:
    """Return the environment of a participant's program in a window of the given size in cells."""
    return {
        **{name: environment[name] for name in _PASSED_ON if name in environment},
        "TEXTUAL_DRIVER": "gistpoint.tui.serving.driver:ServedDriver",
        "TEXTUAL_COLOR_SYSTEM": "truecolor",
        "TEXTUAL_ANIMATIONS": "basic",
        "COLUMNS": str(cells(width)),
        "ROWS": str(cells(height)),
    }


def cells(number: object) -> int:
    """Return a browser's number of columns or lines, within the limits; 80 if it isn't a whole number."""
    return min(max(number, FEWEST_CELLS), MOST_CELLS) if isinstance(number, int) else 80


class ParticipantSession(AppService):
    """The program of one window. It starts from a list of arguments, without a shell."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        write_bytes: Callable[[bytes], Awaitable[None]],
        log: Callable[[str], None],
    ) -> None:
        """`arguments` follow `gistpoint`. `log` is called with sentences for the server's operator."""

        async def ignore(words: str = "") -> None:
            """Ignore the program's requests to open a page or offer a file."""

        super().__init__(
            "", write_bytes=write_bytes, write_str=ignore, close=ignore, download_manager=DownloadManager()
        )
        self._arguments, self._log = arguments, log
        self._focused = self._drawn = False
        self._errors: asyncio.Task[bytes] | None = None
        self.ended = asyncio.Event()
        """Set once the program has ended or no longer draws."""
        self.last_words = ""
        """The last message to the participant."""

    def command_line(self) -> list[str]:
        """Return the command to start."""
        return [sys.executable, "-P", "-m", "gistpoint", *self._arguments]

    async def focus(self) -> None:
        """Report to the program that its window has the focus."""
        self._focused = True
        await super().focus()

    async def blur(self) -> None:
        """Report to the program that its window has lost the focus."""
        self._focused = False
        await super().blur()

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        process = self._process = await asyncio.create_subprocess_exec(
            *self.command_line(),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=environment_of_session(os.environ, width, height),
            # Ctrl+C at the server's terminal must reach only the server, which ends its sessions itself.
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.transport.set_write_buffer_limits(high=MOST_UNREAD_BYTES - _SLICE_BYTES)
        self._stdin = process.stdin
        self._errors = asyncio.create_task(_tail(process.stderr))
        return process

    async def send_bytes(self, data: bytes) -> bool:
        """Pass on the typed input, as fast as the program reads it. Return whether the program still runs."""
        for at in range(0, len(data), _SLICE_BYTES):
            if not await super().send_bytes(data[at : at + _SLICE_BYTES]):
                return False
        return True

    async def set_terminal_size(self, width: int, height: int) -> None:
        """Report the size of the window to the program."""
        await super().set_terminal_size(cells(width), cells(height))

    async def run(self) -> None:
        """Pass on the output of the program until it ends."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        drawing = asyncio.create_task(self._draw(process.stdout))
        try:
            # A process that the program has started, and that still runs, may keep the output open.
            await _until(lambda: drawing.done() or process.returncode is not None)
            await asyncio.wait({drawing}, timeout=KILL_S)
        finally:
            drawing.cancel()
            await asyncio.wait({drawing})
        await self._ends_within(KILL_S)
        if process.returncode:
            words = await self._log_errors()
            self.last_words = _sentence(words) if process.returncode == _USER_ERROR else _UNEXPECTED
        self.ended.set()

    async def _draw(self, stdout: asyncio.StreamReader) -> None:
        # `readline` raises ValueError for a line that is too long.
        with suppress(asyncio.IncompleteReadError, ConnectionError, ValueError):
            # The driver prints this line once it has started.
            while await stdout.readline() != b"__GANGLION__\n":
                if stdout.at_eof():
                    return
            while True:
                kind, size = await stdout.readexactly(1), await stdout.readexactly(4)
                payload = await stdout.readexactly(int.from_bytes(size, "big"))
                if kind == b"D":
                    await self.on_data(payload)
                    self._repeat_focus(payload)

    def _repeat_focus(self, payload: bytes) -> None:
        """Send the focus again at the first frame, because the driver forgets it when it starts to listen."""
        if not self._drawn and len(payload) > _MODE_BYTES:
            self._drawn = True
            if self._focused:
                self._write_meta("focus")

    def _write_meta(self, kind: str) -> None:
        """Send a message without waiting until it is read: the program may be waiting for us to read."""
        with suppress(RuntimeError, ConnectionError):
            self.stdin.write(self.encode_packet(b"M", json.dumps({"type": kind}).encode()))

    async def stop(self) -> None:
        """Ask the program to quit, which saves everything. If it does not, terminate it, then kill it.

        Takes no longer than `QUIT_S` and `KILL_S` allow, whatever the program, its children and the window
        do (decision 117).
        """
        process, drawing = self._process, self._task
        if process is None or drawing is None:
            return
        drawing.cancel()
        await asyncio.wait({drawing})
        assert process.stdout is not None
        # The output has to be read, since a program that can't write can't quit.
        unseen = asyncio.create_task(_tail(process.stdout))
        await self._make_it_end(process)
        unseen.cancel()
        await self._log_errors()
        process._transport.close()  # type: ignore[attr-defined] # or its children may keep our pipes open

    async def _make_it_end(self, process: Process) -> None:
        # While input is waiting to be read, the message would have to wait as well.
        if not self.stdin.transport.get_write_buffer_size():
            self._write_meta("quit")
            if await self._ends_within(QUIT_S):
                return
        # The program leads a process group, so this also ends its children.
        kill = partial(os.killpg, process.pid, signal.SIGKILL)
        for force in (process.terminate, kill):
            with suppress(ProcessLookupError):
                force()
            if await self._ends_within(KILL_S):
                return

    async def _ends_within(self, seconds: float) -> bool:
        process = self._process
        assert process is not None
        with suppress(TimeoutError):
            await asyncio.wait_for(_until(lambda: process.returncode is not None), seconds)
        return process.returncode is not None

    async def _log_errors(self) -> str:
        """Log what the program has written to standard error, and return it; empty after the first time."""
        task, self._errors = self._errors, None
        if task is None:
            return ""
        _, open_still = await asyncio.wait({task}, timeout=KILL_S)
        if open_still:
            task.cancel()
        words = (await task).decode("utf-8", "replace").strip()
        if words:
            self._log(words)
        return words


async def _until(met: Callable[[], bool]) -> None:
    """Wait until a condition is met.

    Processes are polled, since asyncio's own wait lasts until their pipes are closed.
    """
    while not met():
        await asyncio.sleep(POLL_S)


async def _tail(stream: asyncio.StreamReader) -> bytes:
    """Return the end of a stream's output, or of its output so far if this is cancelled."""
    kept = b""
    with suppress(asyncio.CancelledError):
        while data := await stream.read(4096):
            kept = (kept + data)[-_MOST_ERROR_BYTES:]
    return kept


def _sentence(words: str) -> str:
    """Return the error message in the output of a program; a general one if there is none."""
    at = words.rfind("gistpoint: ")
    return words[at:].removeprefix("gistpoint: ") if at >= 0 else _UNEXPECTED


def envelope(text: str) -> tuple[str, object]:
    """Return the kind and the content of a browser's message. Raises `ValueError` if it is malformed.

    The content is None if there is none.
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not (isinstance(value, list) and value and isinstance(value[0], str)):
        raise ValueError("no message")
    return value[0], value[1] if len(value) > 1 else None
