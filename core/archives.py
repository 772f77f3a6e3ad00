"""Reads archives within bounds. Every tar and zip that gistpoint did not pack itself is opened here.

Bounding the members of a tar is not enough. A pax header, a long name or the map of a sparse file is read
completely before the member that it describes, and compresses to a thousandth of its size (decision 118).
"""

from __future__ import annotations

import errno
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, Protocol, cast

from gistpoint.core.errors import cause
from gistpoint.core.text import visible_line

MOST_HEADER = 1 << 20
"""The maximum number of bytes in one extended header or long name; honest ones have a few hundred."""
MOST_HEADERS = 64 << 20
"""The maximum total number of bytes in all extended headers of a tar."""
MOST_DIRECTORY = 32 << 20
"""The maximum number of bytes in a zip's directory."""
_HEADERS_IN_A_ROW = 16
_MEMBER_OVERHEAD = 4 * tarfile.BLOCKSIZE
"""The bytes that a tar member takes up besides its content: headers, and padding to whole blocks."""
_LARGEST_WINDOW = 1 << 27
_LARGEST_FILE = 1 << 50
"""The maximum number of bytes in a file; a header that claims more is wrong."""
_MAGIC = {b"\x28\xb5\x2f\xfd": "zstd", b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
_EXTENDED = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)


class ArchiveError(Exception):
    """An archive can't be read; the message is a predicate, as in `contains ... and was refused`."""


class ArchiveBoundError(ArchiveError):
    """An archive exceeds a bound, and reading stops."""


@dataclass(frozen=True, slots=True)
class ArchiveBounds:
    """The bounds on an unpacked archive."""

    bytes: int
    """The maximum number of bytes in the contents of all members."""
    members: int

    @property
    def stream(self) -> int:
        """The maximum number of bytes in the unpacked tar: contents, headers and padding."""
        return self.bytes + MOST_HEADERS + self.members * _MEMBER_OVERHEAD


class Readable(Protocol):
    """A readable file."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        ...


class _BoundedStream:
    """The output of a decompressor, up to a bound."""

    def __init__(self, source: Readable, bounds: ArchiveBounds) -> None:
        self._source, self._bounds = source, bounds
        self._left = bounds.stream

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes. Raises `ArchiveBoundError` beyond the bound."""
        data = self._source.read(min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise _too_large(self._bounds.bytes)
        return data


def _too_large(most: int) -> ArchiveBoundError:
    return ArchiveBoundError(f"unpacks to more than {most} bytes and was refused")


class BoundedTar:
    """The members of a tar, in order. Iteration raises `ArchiveBoundError` at the first beyond a bound."""

    def __init__(self, tar: tarfile.TarFile, bounds: ArchiveBounds) -> None:
        self._tar, self._bounds = tar, bounds

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        size = members = 0
        while (info := self._tar.next()) is not None:
            size += info.size
            members += 1
            if info.size < 0:  # a pax header may claim this, which would rewind the reader forever
                raise ArchiveBoundError(f"contains a member of {info.size} bytes and was refused")
            if size > self._bounds.bytes:
                raise _too_large(self._bounds.bytes)
            if members > self._bounds.members:
                raise ArchiveBoundError(
                    f"contains more than {self._bounds.members:,} members and was refused"
                )
            yield info

    def content(self, info: tarfile.TarInfo) -> IO[bytes]:
        """Return a readable file with the content of a member. Raises `ArchiveError` if it has none."""
        source = self._tar.extractfile(info)
        if source is None:
            raise ArchiveError(f"contains {info.name[:200]!r}, which has no content")
        return source


def _bounded_headers() -> type[tarfile.TarInfo]:
    """Return a `TarInfo` class for one tar, which refuses sparse files and excessive headers."""
    total = in_a_row = 0

    class Header(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Any:
            nonlocal total, in_a_row
            header = super().frombuf(buf, encoding, errors)
            extended = header.type in _EXTENDED
            in_a_row = in_a_row + 1 if extended else 0
            total += header.size if extended else 0
            if extended and not 0 <= header.size <= MOST_HEADER:
                raise ArchiveBoundError(f"contains a header of {header.size} bytes and was refused")
            if total > MOST_HEADERS or in_a_row > _HEADERS_IN_A_ROW:
                raise ArchiveBoundError("contains more headers than files need and was refused")
            if header.type == tarfile.GNUTYPE_SPARSE:
                raise _sparse()
            return header

        def _proc_gnusparse_10(self, *given: object) -> None:
            # In this format, the sparse map is in the content, which tarfile reads without a bound and offers
            # no public hook for.
            raise _sparse()

    return Header


def _sparse() -> ArchiveBoundError:
    return ArchiveBoundError("contains a sparse file, which no archive of code needs, and was refused")


@contextmanager
def opened_tar(file: BinaryIO, bounds: ArchiveBounds) -> Iterator[BoundedTar]:
    """Yield a tar, plain or compressed with gzip, bzip2, xz or zstd, for a single sequential reading.

    Raises `ArchiveError` if it exceeds a bound or is damaged. While it is open, errors such as `OSError` and
    `ValueError` count as damage, except system errors that no archive causes, such as a full disk.
    """
    with _damage_reported(), _decompressed(file) as source, streamed_tar(source, bounds) as tar:
        yield tar


@contextmanager
def streamed_tar(source: Readable, bounds: ArchiveBounds) -> Iterator[BoundedTar]:
    """Yield a plain tar that is read from a stream.

    Raises `ArchiveError` if it is damaged or exceeds the bounds, even if that is only found while it is open.
    """
    stream: Any = _BoundedStream(source, bounds)  # tarfile only calls its `read`
    with _damage_reported(), tarfile.open(fileobj=stream, mode="r|", tarinfo=_bounded_headers()) as tar:
        yield BoundedTar(tar, bounds)


@contextmanager
def indexed_tar(file: BinaryIO, members: int) -> Iterator[BoundedTar]:
    """Yield a plain tar of at most `members` members, for later reads at their offsets.

    Raises `ArchiveError` if it is damaged or has more members, even if that is only found while it is open.
    """
    with _damage_reported("read"), tarfile.open(fileobj=file, mode="r:", tarinfo=_bounded_headers()) as tar:
        yield BoundedTar(tar, ArchiveBounds(_LARGEST_FILE, members))


@contextmanager
def _decompressed(file: BinaryIO) -> Iterator[Readable]:
    head = file.read(6)
    file.seek(-len(head), 1)
    packing = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")
    match packing:
        case "zstd":
            import zstandard

            with zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).stream_reader(file) as stream:
                try:
                    yield cast(Readable, stream)
                except zstandard.ZstdError as error:
                    raise _damaged(error) from error
        case "gzip":
            import gzip

            with gzip.GzipFile(fileobj=file) as stream:
                yield stream
        case "bzip2":
            import bz2

            with bz2.BZ2File(file) as stream:
                yield stream
        case "xz":
            with lzma.LZMAFile(file) as stream:
                yield stream
        case _:
            yield file


def _damaged(error: Exception, done: str = "unpacked") -> ArchiveError:
    return ArchiveError(f"can't be {done}: {visible_line(cause(error))[:200]}")


_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
)


_OF_THE_SYSTEM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM})
"""The system errors that a damaged archive can't cause, such as a full disk."""


@contextmanager
def _damage_reported(done: str = "unpacked") -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        # The archive's content is also written within this context, so a system error need not be
        # damage.
        if isinstance(error, OSError) and error.errno in _OF_THE_SYSTEM:
            raise
        raise _damaged(error, done) from error


class _BoundedDirectory:
    """The file of a zip, with bounded reads until zipfile has loaded the directory, which it reads whole."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self.most = file, most

    def read(self, size: int = -1) -> bytes:
        if self.most and size > self.most:
            raise ArchiveBoundError(f"has a directory of more than {self.most >> 20} MB and was refused")
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def opened_zip(file: BinaryIO, most_directory: int = MOST_DIRECTORY) -> Iterator[zipfile.ZipFile]:
    """Yield an opened zip, whose readers return no more of a member than the directory declares.

    Raises `ArchiveError` if its directory is too large or it is damaged. While it is open, errors such as
    `OSError` and `ValueError` count as damage, except system errors that no archive causes, such as a full
    disk.
    """
    source: Any = _BoundedDirectory(file, most_directory)
    with _damage_reported(), zipfile.ZipFile(source) as archive:
        source.most = 0
        yield archive
