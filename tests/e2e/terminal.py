"""Drives the real program in a pseudo-terminal and reads its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

import pyte
from processor import asked_s, wants_to_run

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "ctrl+home": "\x1b[1;5H",
    "ctrl+end": "\x1b[1;5F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "delete": "\x1b[3~",
    "backspace": "\x7f",
    "space": " ",
    **{f"alt+{letter}": f"\x1b{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"},
    **{f"ctrl+{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
    **{f"f{n}": sequence for n, sequence in enumerate(("\x1bOP", "\x1bOQ", "\x1bOR", "\x1bOS"), start=1)},
    **{
        f"f{n}": f"\x1b[{code}~"
        for n, code in zip(range(5, 13), (15, 17, 18, 19, 20, 21, 23, 24), strict=True)
    },
}
_LIMIT_S = 300.0
"""The time limit of every wait; it ends a hanging test, and is long enough for a slow machine."""
_QUIET_S = 0.15
_IDLE = 0.5
"""The maximum share of a moment in which an idle program uses the processor."""


class Terminal:
    """A program on a screen of `columns` x `rows`; the context ends the program."""

    def __init__(
        self, command: Sequence[str], *, environment: Mapping[str, str], columns: int = 120, rows: int = 40
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.exit_code: int | None = None
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            os.environ.clear()
            os.environ.update(environment, TERM="xterm-256color", COLUMNS=str(columns), LINES=str(rows))
            try:
                os.execvp(command[0], list(command))
            finally:
                os._exit(127)
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def text(self) -> str:
        """The text on the screen, line by line."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def press(self, *keys: str) -> None:
        """Press keys by name, one after another."""
        for key in keys:
            os.write(self._file, KEYS.get(key, key).encode())
            self._pump(0.02)

    def type(self, text: str) -> None:
        """Type text literally."""
        for start in range(0, len(text), 64):
            os.write(self._file, text[start : start + 64].encode())
            self._pump(0.01)

    def paste(self, text: str) -> None:
        """Paste text in brackets, as terminals do."""
        data = f"\x1b[200~{text}\x1b[201~".encode()
        while data:
            data = data[os.write(self._file, data) :]
            self._pump(0.02)

    def wait_for(self, pattern: str, *, gone: bool = False) -> str:
        """Wait until `pattern` is on the screen (or gone from it); return the screen's text.

        Raises `AssertionError` if the program ends or the time limit is reached.
        """
        deadline = time.monotonic() + _LIMIT_S
        while time.monotonic() < deadline:
            self._pump(0.05)
            if bool(re.search(pattern, self.text, re.MULTILINE)) is not gone:
                return self.text
            if self.exit_code is not None:
                break
        state = "is still" if gone else "never came"
        raise AssertionError(f"{pattern!r} {state} on the screen (exit code {self.exit_code}):\n{self.text}")

    def watch(self, seconds: float) -> None:
        """Process the output for a number of seconds."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._pump(left)

    def settle(self) -> str:
        """Wait until the program has drawn nothing and been idle for a moment; return the screen's text.

        A program that waits for the processor of a busy machine does not draw anything either, but is not
        done.
        """
        asked = asked_s(self.pid)
        while self._pump(_QUIET_S) or wants_to_run(self.pid) or asked_s(self.pid) - asked > _QUIET_S * _IDLE:
            asked = asked_s(self.pid)
        return self.text

    def wait_for_end(self) -> int:
        """Wait for the program to end and return its exit code."""
        deadline = time.monotonic() + _LIMIT_S
        while time.monotonic() < deadline:
            self._pump(0.05)
            if self.exit_code is not None:
                return self.exit_code
        raise AssertionError(f"the program still runs:\n{self.text}")

    def close(self) -> int:
        """Close the window, as its user does; wait for the program to end, and return its exit code."""
        os.close(self._file)
        self._file = -1
        deadline = time.monotonic() + _LIMIT_S
        while self.exit_code is None and time.monotonic() < deadline:
            self._pump(0)
            time.sleep(0.02)
        assert self.exit_code is not None, "the program still runs without its terminal"
        return self.exit_code

    def kill(self, sign: signal.Signals = signal.SIGKILL) -> None:
        """End the program with a signal."""
        if self.exit_code is None:
            os.kill(self.pid, sign)
            self._reap(os.waitpid(self.pid, 0)[1])

    def _pump(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._file], [], [], seconds) if self._file >= 0 else ([], [], [])
        if ready:
            try:
                data = os.read(self._file, 1 << 16)
            except OSError:
                data = b""
            if data:
                self._stream.feed(data)
                return True
        if self.exit_code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._reap(status)
        return False

    def _reap(self, status: int) -> None:
        self.exit_code = os.waitstatus_to_exitcode(status)
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
