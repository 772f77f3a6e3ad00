"""Runs a program that is not a test as a child, and reports on it from outside.

Usage: `python program_runner.py ORDER COMMAND...`. ORDER is a JSON object with `folder`, in which the program
starts, `files`, whose hashes are reported, and `stdin`, the file that is its standard input; without `stdin`
the input is empty. The records go to the descriptor in GISTPOINT_RESULTS, numbered by `n`: unchanged `note`s
of the child, `stream` (a part of its output), `file` (a hash), and finally `finish` with the child's exit
status from the system. The child does not hold that descriptor and can't look into this process.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import IO, Any

_PART = 50_000
_STREAM = 2_000_000
_RECORDS = 48 << 20
_LINGER_S = 2.0
_PR_SET_DUMPABLE = 4


class Channel:
    """A writer of numbered records to the result pipe."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._number = 0

    def put(self, event: str, **fields: Any) -> None:
        """Write one record."""
        self._number += 1
        line = json.dumps({"e": event, "n": self._number, **fields}).encode() + b"\n"
        while line:
            line = line[os.write(self._descriptor, line) :]


class Stream(threading.Thread):
    """A thread that reads a pipe and keeps its first `most` bytes, and a hash of the others."""

    def __init__(self, source: IO[bytes], most: int) -> None:
        super().__init__(daemon=True)
        self._source, self._most = source, most
        self.data = bytearray()
        self.more = 0
        self._digest = hashlib.sha256()
        self.start()

    def run(self) -> None:
        """Read to the end of the pipe; keep the first bytes up to the limit, and count and hash the rest."""
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._source.fileno(), 1 << 16):
                kept = chunk[: max(0, self._most - len(self.data))]
                self.data += kept
                self.more += len(chunk) - len(kept)
                self._digest.update(chunk[len(kept) :])

    def text(self) -> str:
        """Return the kept bytes as a string, followed by the number and hash of the others, if any.

        Bytes that are not UTF-8 are shown as escapes.
        """
        text = bytes(self.data).decode("utf-8", "backslashreplace")
        return f"{text}\n[{self.more} bytes more, sha256 {self._digest.hexdigest()}]\n" if self.more else text


def _hash(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def main(order: Mapping[str, Any], command: list[str]) -> int:
    """Run `command` and report on it; always exits with status 0."""
    with contextlib.suppress(OSError, AttributeError):
        # Not dumpable: the child, which has the same user, can then neither trace nor read this process.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    channel = Channel(int(os.environ.pop("GISTPOINT_RESULTS")))
    reading, writing = os.pipe()
    child = subprocess.Popen(
        command,
        cwd=order["folder"],
        env={**os.environ, "GISTPOINT_RESULTS": str(writing)},
        stdin=os.open(order.get("stdin") or os.devnull, os.O_RDONLY),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(writing,),
    )
    os.close(writing)
    assert child.stdout is not None
    assert child.stderr is not None
    with os.fdopen(reading, "rb", buffering=0) as records_pipe:
        out, err = Stream(child.stdout, _STREAM), Stream(child.stderr, _STREAM)
        records = Stream(records_pipe, _RECORDS)
        # The status comes from the system, not from the child's records, which the child can forge.
        status = child.wait()
        for stream in (out, err, records):
            # Bounded, because a process that the child left may keep the pipe open.
            stream.join(_LINGER_S)
        _report(channel, order, {"stdout": out.text(), "stderr": err.text()}, bytes(records.data))
    channel.put("finish", exit=status)
    os._exit(0)


def _report(channel: Channel, order: Mapping[str, Any], streams: Mapping[str, str], records: bytes) -> None:
    for line in records.split(b"\n"):
        try:
            note = json.loads(line)
        except ValueError:
            continue
        # Only notes without `e` and `n`: a child must neither number its records nor end the run with a
        # record.
        if isinstance(note, dict) and isinstance(note.get("kind"), str) and not {"e", "n"} & note.keys():
            channel.put("note", **note)
    for name, text in streams.items():
        for start in range(0, len(text), _PART):
            channel.put("stream", name=name, part=text[start : start + _PART])
    for path in order.get("files", ()):
        channel.put("file", path=path, sha256=_hash(os.path.join(order["folder"], path)))


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
