"""Follows one isolated command: its result lines, output, deadline, memory use and cancellation."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gistpoint.sandbox.backends.base import Ended, Stop
from gistpoint.sandbox.backends.resources import can_watch, memory_of_tree, waiting_of_tree

if TYPE_CHECKING:
    from gistpoint.core.running import CancelToken
    from gistpoint.sandbox.backends.resources import DiskWatch
    from gistpoint.sandbox.limits import RunLimits


_TICK_S = 0.05
_WATCH_TICK_S = 0.1
_WAITING_TICK_S = 0.5
_READ = 1 << 16
_DRAIN_S = 5.0
_READY = b'{"e":"ready"}'


class Tail:
    """The last `size` bytes of a stream."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.dropped = 0
        self._chunks: deque[bytes] = deque()
        self._held = 0

    def add(self, chunk: bytes) -> None:
        """Append a chunk, and drop chunks that are no longer among the last `size` bytes."""
        self._chunks.append(chunk)
        self._held += len(chunk)
        while self._held - len(self._chunks[0]) >= self.size:
            oldest = self._chunks.popleft()
            self._held -= len(oldest)
            self.dropped += len(oldest)

    def text(self) -> str:
        """Return the bytes as text, after a note on those that were dropped; invalid UTF-8 is replaced."""
        kept = b"".join(self._chunks)
        over = max(0, len(kept) - self.size)
        lost = self.dropped + over
        note = f"[{lost} bytes before this are not kept]\n" if lost else ""
        return note + kept[over:].decode("utf-8", "replace")


@dataclass
class ResultLines:
    """A splitter of the result pipe into lines, which passes them on and counts their bytes.

    Lines are passed on only after the line that reports the start of the command, and only until a limit is
    exceeded.
    """

    limits: RunLimits
    on_line: Callable[[bytes], None]
    ready: bool = False
    too_many: bool = False
    _unfinished: bytearray = field(default_factory=bytearray)
    _total: int = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the pipe."""
        self._total += len(chunk)
        self._unfinished += chunk
        if b"\n" in chunk:
            *lines, unfinished = bytes(self._unfinished).split(b"\n")
            self._unfinished = bytearray(unfinished)
            for line in lines:
                if not self.ready:
                    self.ready = line == _READY
                elif not self.too_many:
                    self.on_line(line)
        # The tested code can write to this pipe as well, so the memory that it takes is limited.
        if self._total > self.limits.results or len(self._unfinished) > self.limits.result_line:
            self.too_many = True
            self._unfinished.clear()


@dataclass
class ResultPipe:
    """Both ends of a pipe; the writing end is closed in this process as soon as the child has it."""

    reading: int
    writing: int
    _open: bool = True

    def close_writing(self) -> None:
        """Close the writing end, but only once, because another file may soon get its number."""
        if self._open:
            self._open = False
            os.close(self.writing)


@contextlib.contextmanager
def result_pipe() -> Iterator[ResultPipe]:
    """Open a pipe, and afterwards close the ends that are still open."""
    pipe = ResultPipe(*os.pipe())
    try:
        yield pipe
    finally:
        pipe.close_writing()
        os.close(pipe.reading)


@dataclass
class Deadline:
    """The time limit of a run, extended by the time that it waited for a processor."""

    timeout_s: float
    patience: float = 1.0
    """The multiple of `timeout_s` that the run may take at most."""
    began: float = field(default_factory=time.monotonic)
    waited: float = 0.0
    _next_look: float = 0.0

    def look(self, pid: int, now: float) -> None:
        """With `patience`, read at most every 0.5 s how long the processes at and below `pid` have waited."""
        if self.patience > 1 and now >= self._next_look:
            self._next_look = now + _WAITING_TICK_S
            # The maximum, because a process that has ended can't be read any more.
            self.waited = max(self.waited, min(waiting_of_tree(pid), now - self.began))

    def is_over(self, now: float) -> bool:
        """Whether the run has to be stopped."""
        extra = min(self.waited, (self.patience - 1) * self.timeout_s)
        return now - self.began > self.timeout_s + extra


def follow(
    process: subprocess.Popen[bytes],
    results_fd: int,
    *,
    timeout_s: float,
    limits: RunLimits,
    on_line: Callable[[bytes], None],
    cancel: CancelToken,
    kill: Callable[[], None],
    watch: DiskWatch | None = None,
    patience: float = 1.0,
) -> Ended:
    """Read until `process` ends or has to be stopped with `kill`, and return how it ended.

    `kill` must also end all children of the process. `watch` checks the disk while the process runs and once
    more at its end, so that even the files of a very short run count. A process that ends before it reports
    the start of the command counts as `NOT_STARTED`.
    """
    deadline = Deadline(timeout_s, patience)
    lines = ResultLines(limits, on_line)
    tail = Tail(limits.output)
    stop = Stop.EXITED
    try:
        stop = _pump(process, results_fd, lines, tail, deadline, limits, cancel, watch)
    finally:
        # Also after an exception, because no process of a run may continue unwatched.
        if stop is not Stop.EXITED or process.poll() is None:
            kill()
    process.wait()
    if stop is Stop.EXITED:
        # Without the first line, the command never began, and the status is the isolation's (decision 121).
        if not lines.ready:
            stop = Stop.NOT_STARTED
            return Ended(stop, process.returncode, tail.text(), time.monotonic() - deadline.began)
        if watch is not None and watch.exceeded():
            stop = Stop.TOO_MUCH_DISK
    exit_code = process.returncode if stop is Stop.EXITED else None
    seconds = time.monotonic() - deadline.began
    return Ended(stop, exit_code, tail.text(), seconds, waited=deadline.waited)


def _pump(
    process: subprocess.Popen[bytes],
    results_fd: int,
    lines: ResultLines,
    tail: Tail,
    deadline: Deadline,
    limits: RunLimits,
    cancel: CancelToken,
    watch: DiskWatch | None,
) -> Stop:
    """Read both pipes until the process has ended or has to be stopped; return why.

    Pipes that others still hold open are read for up to 5 s after the end of the process.
    """
    assert process.stdout is not None
    output_fd = process.stdout.fileno()
    sinks: dict[int, Callable[[bytes], None]] = {results_fd: lines.add, output_fd: tail.add}
    next_look = time.monotonic() + _WATCH_TICK_S
    gone_at: float | None = None
    with selectors.DefaultSelector() as selector:
        for fd in sinks:
            os.set_blocking(fd, False)
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(_TICK_S):
                if not _read(key.fd, sinks[key.fd]):
                    selector.unregister(key.fd)
            now = time.monotonic()
            if lines.too_many:
                return Stop.TOO_MANY_RESULTS
            if cancel.cancelled:
                return Stop.CANCELLED
            if process.poll() is not None:
                # A process that was left behind may hold the pipes open forever.
                gone_at = gone_at or now
                if now - gone_at > _DRAIN_S:
                    return Stop.EXITED
                continue
            deadline.look(process.pid, now)
            if deadline.is_over(now):
                return Stop.TIMED_OUT
            if now >= next_look:
                next_look = now + _WATCH_TICK_S
                reason = _exceeded_limit(process.pid, limits, watch)
                if reason is not None:
                    return reason
    return _wait(process, deadline, cancel)


def _exceeded_limit(pid: int, limits: RunLimits, watch: DiskWatch | None) -> Stop | None:
    """Return why a running process has to be stopped: too much memory or disk; otherwise None."""
    if can_watch() and memory_of_tree(pid, limits.memory) > limits.memory:
        return Stop.OUT_OF_MEMORY
    if watch is None or not watch.due():
        return None
    return Stop.TOO_MUCH_DISK if watch.exceeded() else None


def _wait(process: subprocess.Popen[bytes], deadline: Deadline, cancel: CancelToken) -> Stop:
    """Wait for a process that has closed its pipes but may still be running; return why it ended."""
    while True:
        try:
            process.wait(_TICK_S)
        except subprocess.TimeoutExpired:
            if cancel.cancelled:
                return Stop.CANCELLED
            deadline.look(process.pid, time.monotonic())
            if deadline.is_over(time.monotonic()):
                return Stop.TIMED_OUT
        else:
            return Stop.EXITED


def _read(fd: int, sink: Callable[[bytes], None]) -> bool:
    try:
        chunk = os.read(fd, _READ)
    except BlockingIOError:
        return True
    except OSError:
        return False
    if chunk:
        sink(chunk)
    return bool(chunk)
