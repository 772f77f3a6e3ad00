"""Bytes that can be read at any offset: a file, a part of one, or what a compressed member unpacks to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from gistpoint.core.errors import NegativeVerdictError, UserError
from gistpoint.sessions.runs import limits


class RunFileError(UserError):
    """A file can't be read as a recorded run; the message says why."""


class NoRunError(RunFileError, NegativeVerdictError):
    """A file that can be read holds no run that can: a verdict on the file, with what it seems to be."""


@runtime_checkable
class Blob(Protocol):
    """Random access to bytes; `name` is empty for the file that was named, else the member."""

    @property
    def name(self) -> str:
        """Member of an archive, or sibling file."""
        ...

    @property
    def size(self) -> int:
        """Bytes, as of now: a file that is being written grows."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`; fewer at the end."""
        ...


class FileBlob:
    """A file on the disk, read by `pread` and never mapped: mapped pages would count as memory held."""

    def __init__(self, path: Path, name: str = "") -> None:
        self.path = path
        self.name = name
        try:
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            raise RunFileError(f"{path} can't be opened: {error.strerror}.") from error

    @property
    def size(self) -> int:
        """Bytes, as of now."""
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise RunFileError(f"{self.path} can't be read: {error.strerror}.") from error

    def __del__(self) -> None:
        descriptor = getattr(self, "_descriptor", None)
        if descriptor is not None:
            os.close(descriptor)


class PathBlob:
    """A small file of many, open only while it is read."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name

    @property
    def size(self) -> int:
        """Bytes, as of now."""
        return self.path.stat().st_size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        with self.path.open("rb") as file:
            return os.pread(file.fileno(), length, offset)


class BytesBlob:
    """Bytes in memory."""

    def __init__(self, data: bytes, name: str = "") -> None:
        self.data = data
        self.name = name

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        return self.data[offset : offset + length]


class SliceBlob:
    """A part of another blob."""

    def __init__(self, whole: Blob, start: int, end: int, name: str = "", *, origin: int = 0) -> None:
        """`origin` is what its offsets count from in the file that the user knows; 0 for a member of an archive."""
        self.whole: Blob = whole
        self.origin: int = origin + (whole.origin if isinstance(whole, SliceBlob) and origin else 0)
        self.start = start
        self.end = end
        self.name = name

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        length = min(length, self.end - self.start - offset)
        return self.whole.read(self.start + offset, length) if length > 0 else b""


class _TemporaryBlob:
    """A file without a name, gone with the object."""

    def __init__(self, file: BinaryIO, size: int, name: str) -> None:
        self._file = file
        self.size = size
        self.name = name

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        return os.pread(self._file.fileno(), length, offset)


def spool(chunks: Iterable[bytes], *, packed: int, name: str) -> Blob:
    """Unpack `chunks` to memory if small, else to a nameless file, within the limits.

    `packed` is the compressed size in bytes. Raises `RunFileError` for what unpacks to too much, before it has.
    """
    held: list[bytes] = []
    total = 0
    file: BinaryIO | None = None
    for chunk in chunks:
        total += len(chunk)
        if total > limits.UNPACKED or (total > limits.RATIO_FROM and total > packed * limits.RATIO):
            what = name or "The file"
            raise RunFileError(
                f"{what} unpacks to more than {total >> 20} MB from {packed:,} bytes: refused as a decompression bomb.",
                hint="Unpack it by hand if you trust it, then open the result.",
            )
        if file is None and total > limits.LONG_RECORD:
            file = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the blob)
            for part in held:
                file.write(part)
            held.clear()
        if file is None:
            held.append(chunk)
        else:
            file.write(chunk)
    if file is None:
        return BytesBlob(b"".join(held), name)
    file.flush()
    return _TemporaryBlob(file, total, name)
