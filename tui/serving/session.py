"""A participant's program behind a browser's window: started with an environment of its own, and always ended."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

END_S = 5.0
"""A program that was told to quit has this long, and as long again when it was told a second time."""
MOST_CELLS, FEWEST_CELLS = 500, 20
"""A window's columns and lines are taken for at most, and at least, so many."""
_PASSED_ON = (
    "PATH", "HOME", "GISTPOINT_HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "DOCKER_HOST",
    "PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE",
    "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
)  # fmt: skip
"""What of the server's environment the program gets: where things are, and no key."""
_MODE_BYTES = 10
"""What sets a terminal's mode is this long at most; a frame is longer."""
_MOST_ERROR_BYTES = 64 * 1024
_USER_ERROR = 2
_UNEXPECTED = "The program has ended unexpectedly. What you have done is kept."


def environment_of_session(environment: Mapping[str, str], width: int, height: int) -> dict[str, str]:
    """Return the environment of a participant's program in a window of so many cells."""
    return {
        **{name: environment[name] for name in _PASSED_ON if name in environment},
        "TEXTUAL_DRIVER": "gistpoint.tui.serving.driver:ServedDriver",
        "TEXTUAL_COLOR_SYSTEM": "truecolor",
        "TEXTUAL_ANIMATIONS": "basic",
        "COLUMNS": str(cells(width)),
        "ROWS": str(cells(height)),
    }


def cells(number: object) -> int:
    """Return a number of columns or lines that a browser said, within bounds."""
    return min(max(number, FEWEST_CELLS), MOST_CELLS) if isinstance(number, int) else 80


class ParticipantSession(AppService):
    """The program of one window. It is started from a list of arguments, without a shell."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        write_bytes: Callable[[bytes], Awaitable[None]],
        say: Callable[[str], Awaitable[None]],
        ended: Callable[[], Awaitable[None]],
        log: Callable[[str], None],
    ) -> None:
        """`arguments` follow `gistpoint`. `say` shows the participant a sentence, `log` tells it to who serves.

        `ended` is called when the program has ended by itself.
        """

        async def nothing(words: str) -> None:
            """Open no page and offer no file, whatever the program asks for."""

        super().__init__(
            "", write_bytes=write_bytes, write_str=nothing, close=ended, download_manager=DownloadManager()
        )
        self._arguments = arguments
        self._say, self._ended, self._log = say, ended, log
        self._stopping = self._focused = self._drawn = False

    async def focus(self) -> None:
        """Tell the program that its window has the focus."""
        self._focused = True
        await super().focus()

    async def blur(self) -> None:
        """Tell the program that its window has lost the focus."""
        self._focused = False
        await super().blur()

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "gistpoint", *self._arguments,
            stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment_of_session(os.environ, width, height),
            start_new_session=True,  # Ctrl+C at the server's terminal is for the server, which ends its sessions
        )  # fmt: skip
        self._stdin = process.stdin
        return process

    async def set_terminal_size(self, width: int, height: int) -> None:
        """Tell the program the size of its window."""
        await super().set_terminal_size(cells(width), cells(height))

    async def run(self) -> None:
        """Pass on what the program draws, until it ends."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        assert process.stderr is not None
        complaints = asyncio.create_task(_tail(process.stderr))
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await process.stdout.readline() != b"__GANGLION__\n":  # the driver's word that it has begun
                if process.stdout.at_eof():
                    break
            while True:
                kind, size = await process.stdout.readexactly(1), await process.stdout.readexactly(4)
                payload = await process.stdout.readexactly(int.from_bytes(size, "big"))
                if kind == b"D" and not self._stopping:
                    await self.on_data(payload)
                    await self._repeat_focus(payload)
        code = await process.wait()
        words = (await complaints).decode("utf-8", "replace").strip()
        if words:
            self._log(words)
        if not self._stopping:
            if code:
                await self._say(_sentence(words) if code == _USER_ERROR else _UNEXPECTED)
            await self._ended()

    async def _repeat_focus(self, payload: bytes) -> None:
        """Tell the focus again at the first frame: the driver begins without it, after it has begun to listen."""
        if not self._drawn and len(payload) > _MODE_BYTES:
            self._drawn = True
            if self._focused:
                await super().focus()

    async def stop(self) -> None:
        """Have the program quit, which keeps everything; if it does not, end it, then kill it. Wait for its end."""
        process, task, self._stopping = self._process, self._task, True
        if process is None or task is None:
            return
        if process.returncode is None:
            await self.send_meta({"type": "quit"})
        for insist in (process.terminate, process.kill, None):
            done, _ = await asyncio.wait({task}, timeout=END_S)
            if done or insist is None:
                break
            with suppress(ProcessLookupError):
                insist()
        with suppress(asyncio.CancelledError):
            task.exception()


async def _tail(stream: asyncio.StreamReader) -> bytes:
    """Return the end of what a stream brings."""
    kept = b""
    while data := await stream.read(4096):
        kept = (kept + data)[-_MOST_ERROR_BYTES:]
    return kept


def _sentence(words: str) -> str:
    """Return the message of a program that could not begin."""
    at = words.rfind("gistpoint: ")
    return words[at:].removeprefix("gistpoint: ") if at >= 0 else _UNEXPECTED


def envelope(text: str) -> tuple[str, object]:
    """Return the kind and the content of a browser's message. Raises `ValueError`."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not (isinstance(value, list) and value and isinstance(value[0], str)):
        raise ValueError("no message")
    return value[0], value[1] if len(value) > 1 else None
