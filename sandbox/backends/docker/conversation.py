"""Sends a container its work, receives its frames, and follows its run to the end."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.outcomes import Writable
from gistpoint.sandbox.backends.base import Stop
from gistpoint.sandbox.backends.process import ResultLines, Tail

if TYPE_CHECKING:
    from gistpoint.core.running import CancelToken


_BLOCK = 1 << 18
_MAX_FRAME = 1 << 20
_HEADER = 8
_INNER_HEADER = 5
_STDOUT = 1
_WAITING_FRAMES = 64
_TICK_S = 0.2


class BrokenFramesError(Exception):
    """The container sent something that its first process never writes."""


@dataclass(frozen=True, slots=True)
class StreamFrame:
    """One message from a container.

    Its kind is `R` for result lines, `O` for output, `E` for the end of the command, `M` if memory ran out,
    `C` for a complaint, or `Z` for the end of the stream.
    """

    kind: str
    payload: bytes = b""


class Conversation:
    """A connection that sends the parts of the work and then the bytes of `requests`, and receives frames."""

    def __init__(
        self, stream: socket.socket, parts: Sequence[bytes | IO[bytes]], requests: int | None = None
    ) -> None:
        self._stream = stream
        # A copy, because after the caller closes its descriptor, the number may soon belong to another pipe.
        self._requests = None if requests is None else os.dup(requests)
        self._frames: queue.Queue[StreamFrame] = queue.Queue(_WAITING_FRAMES)
        self._closed = threading.Event()
        for target, arguments in ((self._send, (parts,)), (self._listen, ())):
            threading.Thread(target=target, args=arguments, name="container", daemon=True).start()

    def next(self, timeout_s: float) -> StreamFrame | None:
        """Return the next frame, or None if none arrives within `timeout_s` seconds.

        The very last frame is a `Z`, with the text of the error if there was one.
        """
        try:
            return self._frames.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Stop receiving; frames that have not been taken are dropped."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)

    def _listen(self) -> None:
        reason = b""
        try:
            for frame in read_frames(self._stream):
                if not self._put(frame):
                    return
        except (OSError, BrokenFramesError, ValueError) as error:
            reason = str(error).encode()
        self._put(StreamFrame("Z", reason))

    def _send(self, parts: Sequence[bytes | IO[bytes]]) -> None:
        """Send the work in a separate thread, because a container that refuses it stops reading."""
        with contextlib.suppress(OSError, ValueError):
            for part in parts:
                if isinstance(part, bytes):
                    self._stream.sendall(part)
                    continue
                part.seek(0)
                while block := part.read(_BLOCK):
                    self._stream.sendall(block)
            if self._requests is not None:
                self._forward(self._requests)
        if self._requests is not None:
            os.close(self._requests)

    def _forward(self, requests: int) -> None:
        while not self._closed.is_set():
            if select.select([requests], [], [], _TICK_S)[0]:
                block = os.read(requests, _BLOCK)
                if not block:
                    return
                self._stream.sendall(block)

    def _put(self, frame: StreamFrame) -> bool:
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                self._frames.put(frame, timeout=_TICK_S)
                return True
        return False


def read_frames(stream: socket.socket) -> Iterator[StreamFrame]:
    """Yield frames until the stream ends; raises `BrokenFramesError` for invalid data.

    The engine wraps a container's output in blocks with a header of eight bytes: the first is the number of
    the stream, the last four are the length. The frames of the first process are inside the blocks of its
    standard output.
    """
    held = bytearray()
    while header := _read_exactly(stream, _HEADER):
        payload = _read_exactly(stream, int.from_bytes(header[4:], "big"))
        if header[0] != _STDOUT:
            yield StreamFrame("C", payload)
            continue
        held += payload
        while len(held) >= _INNER_HEADER:
            size = int.from_bytes(held[1:_INNER_HEADER], "big")
            if chr(held[0]) not in "ROEM" or size > _MAX_FRAME:
                raise BrokenFramesError("the container wrote something that its first process never writes")
            if len(held) < _INNER_HEADER + size:
                break
            yield StreamFrame(chr(held[0]), bytes(held[_INNER_HEADER : _INNER_HEADER + size]))
            del held[: _INNER_HEADER + size]


def _read_exactly(stream: socket.socket, size: int) -> bytes:
    """Return `size` bytes; empty if the stream ends first."""
    parts = []
    left = size
    while left:
        part = stream.recv(min(left, _BLOCK))
        if not part:
            return b""
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


_FRAME_S = 0.05


@dataclass
class FollowedRun:
    """What the frames of a run have reported so far.

    `stop` is None until the run ends, and stays None if the stream breaks off.
    """

    lines: ResultLines
    output: Tail
    received: bool = False
    """Whether the container has sent anything at all."""
    stop: Stop | None = None
    exit_code: int | None = None
    writes: Writable | None = None
    complaint: str = ""


def follow(
    conversation: Conversation, followed: FollowedRun, *, deadline: float, cancel: CancelToken
) -> None:
    """Take frames until the run ends or has to be stopped, and set `followed.stop`.

    `followed.stop` stays None if the stream breaks off. `deadline` is a time on the monotonic clock, in
    seconds.
    """
    takers: dict[str, Callable[[bytes], None]] = {"R": followed.lines.add, "O": followed.output.add}
    while followed.stop is None:
        frame = conversation.next(_FRAME_S)
        if cancel.cancelled:
            followed.stop = Stop.CANCELLED
            return
        if frame is not None and frame.kind not in takers:
            if _take_frame(frame, followed):
                return
            continue
        if frame is not None:
            followed.received = True
            takers[frame.kind](frame.payload)
        # Checked after every frame: a run that never stops writing must not outlast its limits.
        if followed.lines.too_many:
            followed.stop = Stop.TOO_MANY_RESULTS
        elif time.monotonic() > deadline:
            followed.stop = Stop.TIMED_OUT


class _End(msgspec.Struct):
    """The end of the command, as `payload/container_entry.py` reports it."""

    exit: int
    writes: Writable | None = None


def _take_frame(frame: StreamFrame, followed: FollowedRun) -> bool:
    """Take a frame that is neither results nor output; return whether it is the last one."""
    if frame.kind == "C":
        followed.complaint = (followed.complaint + frame.payload.decode("utf-8", "replace"))[-4000:]
        return False
    followed.received = followed.received or frame.kind != "Z"
    if frame.kind == "M":
        followed.stop = Stop.OUT_OF_MEMORY
    elif frame.kind == "E":
        try:
            end = msgspec.convert(json.loads(frame.payload), decodable(_End))
        except (ValueError, RecursionError):  # like a stream that breaks off
            followed.complaint += (
                "The container reported its end in a form that its first process never uses."
            )
            return True
        followed.exit_code = end.exit
        followed.writes = end.writes
        followed.stop = Stop.EXITED if followed.lines.ready else Stop.NOT_STARTED
    return True
