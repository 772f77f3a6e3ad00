"""Opens `.zip`, `.tar`, `.tar.gz` and `.tar.zst` archives and single `.gz` and `.zst` files, by content.

Nothing is ever unpacked under a member's own name, so no path or link in an archive can lead anywhere. Links,
and members whose names lead out of the archive, are refused as well, because no honest archive contains them.
"""

from __future__ import annotations

import codecs
import os
import posixpath
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import RawIOBase
from itertools import islice
from pathlib import Path
from typing import IO, BinaryIO, Protocol, cast, runtime_checkable

from gistpoint.core.errors import NegativeVerdictError, UserError
from gistpoint.sessions.records import limits

_STORED, _DEFLATED, _ZSTD_OLD, _ZSTD = 0, 8, 20, 93
_BYTE_ORDER_MARKS = (
    # The marks of UTF-32 come first, because one of them begins like a mark of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A file in an archive; `refused` is the reason why it can't be opened, empty if it can be."""

    name: str
    size: int
    open: Callable[[], Blob]
    refused: str = ""


class Archive:
    """The members of an archive by name, in their order in the archive."""

    def __init__(self, kind: str, members: list[ArchiveMember], damage: str = "") -> None:
        """`damage` is a sentence on the damage to the archive as a whole; empty if there is none."""
        self.kind = kind
        self.damage = damage
        self.members = {member.name: member for member in members}

    def read(self, name: str) -> Blob:
        """Return the content of a member.

        Raises `RunFileError` if it is missing, refused, damaged, or too large when unpacked.
        """
        member = self.members.get(name)
        if member is None:
            raise RunFileError(f"The archive has no member {name!r}.")
        if member.refused:
            raise RunFileError(f"{name!r} is refused: {member.refused}.")
        return in_utf8(member.open())


def opened(blob: Blob) -> Blob | Archive:
    """Return the archive in `blob`, the unpacked blob if it is compressed, or else `blob`; text is in UTF-8.

    Raises `RunFileError` if the archive can't be read, exceeds the limits, or is compressed more than twice.
    """
    for _ in range(3):
        head = blob.read(0, 512)
        if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            return zip_archive(blob)
        if head[257:262] == b"ustar":
            return tar_archive(blob)
        if head.startswith(b"\x1f\x8b"):
            blob = spool(_inflated(blob, 0, blob.size, 31), packed=blob.size, name=blob.name)
        elif head.startswith(b"\x28\xb5\x2f\xfd"):
            blob = spool(_unzstd(blob, 0, blob.size), packed=blob.size, name=blob.name)
        else:
            return in_utf8(blob)
    raise RunFileError("The file is compressed more than twice: refused.")


def in_utf8(blob: Blob) -> Blob:
    """Return text in UTF-16 or UTF-32 as UTF-8, which readers expect; any other blob unchanged.

    Windows PowerShell 5 writes UTF-16 with `>`. Only text with a byte order mark is recognised.
    """
    head = blob.read(0, 4)
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if head.startswith(mark)), None)
    if encoding is None:
        return blob
    return spool(_recoded(blob, encoding), packed=blob.size, name=blob.name)


def _recoded(blob: Blob, encoding: str) -> Iterator[bytes]:
    """Yield text in UTF-8, with U+FFFD for bytes that are invalid in its encoding."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in _chunks(blob, 0, blob.size):
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", final=True).encode()


def refusal(name: str) -> str:
    """Return the reason why a member's name is refused; empty if it is valid."""
    normal = posixpath.normpath(name.replace("\\", "/"))
    if not name or "\0" in name:
        return "its name is empty or contains a NUL"
    if normal.startswith(("/", "../")) or normal == ".." or normal[1:3] == ":/":
        return "its path leads out of the archive"
    return ""


def _chunks(blob: Blob, start: int, size: int) -> Iterator[bytes]:
    at = start
    while at < start + size:
        chunk = blob.read(at, min(limits.CHUNK // 4, start + size - at))
        if not chunk:
            return
        yield chunk
        at += len(chunk)


def _inflated(blob: Blob, start: int, size: int, bits: int) -> Iterator[bytes]:
    """Yield the inflated bytes; for a cut or damaged stream, those before the damage."""
    stream = zlib.decompressobj(bits)
    for chunk in _chunks(blob, start, size):
        remaining = chunk
        while remaining:
            try:
                piece = stream.decompress(remaining, limits.CHUNK)
            except zlib.error:
                return
            if piece:
                yield piece
            remaining = stream.unconsumed_tail
            if stream.eof and stream.unused_data.startswith(b"\x1f\x8b"):
                remaining, stream = stream.unused_data, zlib.decompressobj(bits)
            elif stream.eof:
                return


class BlobFile(RawIOBase):
    """A blob, or a part of one, as a file object for libraries that need one."""

    def __init__(self, blob: Blob, start: int = 0, size: int | None = None) -> None:
        super().__init__()
        self.blob, self.start, self.at = blob, start, 0
        self.length = blob.size - start if size is None else size

    def readable(self) -> bool:
        """Return True: every blob can be read."""
        return True

    def seekable(self) -> bool:
        """Return True: a blob can be read from any offset."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move the offset as `io.IOBase.seek` does, and return it."""
        self.at = max(0, offset + (0, self.at, self.length)[whence])
        return self.at

    def tell(self) -> int:
        """Return the offset."""
        return self.at

    def read(self, size: int | None = -1) -> bytes:
        """Return up to `size` bytes from the offset on; all the remaining ones if it is None or negative."""
        left = max(0, self.length - self.at)
        data = self.blob.read(self.start + self.at, left if size is None or size < 0 else min(size, left))
        self.at += len(data)
        return data


def _unzstd(blob: Blob, start: int, size: int) -> Iterator[bytes]:
    import zstandard

    source = cast("IO[bytes]", BlobFile(blob, start, size))
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
        source, read_across_frames=True
    )
    while True:
        try:
            piece = reader.read(limits.CHUNK // 4)
        except zstandard.ZstdError:
            return
        if not piece:
            return
        yield piece


def zip_archive(blob: Blob) -> Archive:
    """List a zip by its directory, or by the headers of its members if the directory is missing or damaged.

    Raises `RunFileError` if the zip exceeds the limits.
    """
    # Imported here, because the import takes longer than opening a plain file.
    from gistpoint.core.archives import ArchiveBoundError, ArchiveError, opened_zip

    try:
        with opened_zip(cast("BinaryIO", BlobFile(blob)), limits.DIRECTORY) as archive:
            infos = archive.infolist()
    except ArchiveBoundError as error:
        raise RunFileError(f"The zip {error}.") from error
    except ArchiveError:
        members = list(islice(_stray_members(blob), limits.MEMBERS))
        what = (
            f"The archive is cut off, or still being written: only {len(members)} of its members can be"
            " found."
        )
        return Archive("zip", members, what)
    if len(infos) > limits.MEMBERS:
        raise RunFileError(f"The zip contains {len(infos):,} members; at most {limits.MEMBERS:,} are read.")
    members = [
        _zip_member(
            blob,
            info.filename,
            info.header_offset,
            info.compress_size,
            info.file_size,
            info.compress_type,
            info.flag_bits,
            info.external_attr,
        )
        for info in infos
        if not info.is_dir()
    ]
    return Archive("zip", members)


def _zip_member(
    blob: Blob, name: str, header: int, packed: int, size: int, method: int, flags: int, attributes: int
) -> ArchiveMember:
    refused = refusal(name)
    if attributes >> 28 == 0xA:
        refused = "it is a link"
    elif flags & 1:
        refused = "it is encrypted"
    elif method not in (_STORED, _DEFLATED, _ZSTD_OLD, _ZSTD):
        refused = f"it is packed with method {method}, which is not supported"
    elif size > limits.UNPACKED:
        refused = f"it unpacks to {size >> 20:,} MB"

    def unpack() -> Blob:
        local = blob.read(header, 30)
        if len(local) < 30 or local[:4] != b"PK\x03\x04":
            raise RunFileError(f"The zip is damaged: {name!r} does not begin where its directory expects it.")
        names, extras = struct.unpack_from("<HH", local, 26)
        start = header + 30 + names + extras
        if method == _STORED:
            return SliceBlob(blob, start, min(start + packed, blob.size), name)
        chunks = _inflated(blob, start, packed, -15) if method == _DEFLATED else _unzstd(blob, start, packed)
        return spool(chunks, packed=packed, name=name)

    return ArchiveMember(name, size, unpack, refused)


def _stray_members(blob: Blob) -> Iterator[ArchiveMember]:
    """Yield members of a zip without a directory, which is still being written or was cut off."""
    at = 0
    while len(local := blob.read(at, 30)) == 30 and local[:4] == b"PK\x03\x04":
        flags, method, packed, size, names, extras = struct.unpack(
            "<2xHH4x4xII HH".replace(" ", ""), local[4:30]
        )
        name = blob.read(at + 30, names).decode("utf-8", "replace")
        if flags & 8 and not packed:
            packed = _next_header(blob, at + 30 + names + extras) - (at + 30 + names + extras)
        if not name.endswith("/"):
            yield _zip_member(blob, name, at, packed, size, method, flags, 0)
        at += 30 + names + extras + packed
        if flags & 8:
            at = _next_header(blob, at)


def _next_header(blob: Blob, at: int) -> int:
    held = b""
    for chunk in _chunks(blob, at, blob.size - at):
        found = (held + chunk).find(b"PK\x03\x04")
        if found >= 0:
            return at - len(held) + found
        at += len(chunk)
        held = chunk[-3:]
    return blob.size


def tar_archive(blob: Blob) -> Archive:
    """List a tar; for one that is cut off, the members before the cut.

    Raises `RunFileError` if the tar exceeds the limits or no member can be read.
    """
    # Imported here, because the import takes longer than opening a plain file.
    from gistpoint.core.archives import ArchiveBoundError, ArchiveError, indexed_tar

    members: list[ArchiveMember] = []
    try:
        with indexed_tar(cast("BinaryIO", BlobFile(blob)), 2 * limits.MEMBERS) as archive:
            for info in archive:
                if info.isdir():
                    continue
                refused = refusal(info.name) or ("" if info.isfile() else "it is a link or a special file")
                start, end = info.offset_data, info.offset_data + info.size
                members.append(
                    ArchiveMember(info.name, info.size, _slicer(blob, start, end, info.name), refused)
                )
                if len(members) > limits.MEMBERS:
                    raise RunFileError(f"The tar contains more than {limits.MEMBERS:,} members: refused.")
    except ArchiveError as error:
        if not members or isinstance(error, ArchiveBoundError):
            raise RunFileError(f"The tar {error}.") from error
    return Archive("tar", members)


def _slicer(blob: Blob, start: int, end: int, name: str) -> Callable[[], Blob]:
    return lambda: SliceBlob(blob, start, min(end, blob.size), name)


class RunFileError(UserError):
    """Raised if a file can't be read as a recorded run; the message explains why."""


class NoRunError(RunFileError, NegativeVerdictError):
    """Raised if a file can be read but contains no readable run; the message names its apparent format."""


@runtime_checkable
class Blob(Protocol):
    """Random access to the bytes of a file, or of a member of an archive."""

    @property
    def name(self) -> str:
        """The name in the archive or in the run's folder; empty for the file that the user named."""
        ...

    @property
    def size(self) -> int:
        """The current size in bytes; a file that is being written grows."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`; fewer at the end.

        Raises `RunFileError` if the file can't be read.
        """
        ...


class FileBlob:
    """A file on disk, read with `pread` and never mapped: mapped pages would count as used memory."""

    def __init__(self, path: Path, name: str = "") -> None:
        self.path = path
        self.name = name
        try:
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            raise RunFileError(f"{path} can't be opened: {error.strerror}.") from error

    @property
    def size(self) -> int:
        """The current size in bytes."""
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`. Raises `RunFileError` if the file can't be read."""
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise RunFileError(f"{self.path} can't be read: {error.strerror}.") from error

    @property
    def fate(self) -> str:
        """What has happened to the open file on disk: `deleted` or `replaced`.

        It is empty if neither has happened, or if that can't be determined.
        """
        try:
            return "" if os.path.samestat(self.path.stat(), os.fstat(self._descriptor)) else "replaced"
        except FileNotFoundError:
            return "deleted"
        except OSError:
            return ""

    def __del__(self) -> None:
        descriptor = getattr(self, "_descriptor", None)
        if descriptor is not None:
            os.close(descriptor)


class PathBlob:
    """A small file, one of many, open only while it is read."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name

    @property
    def size(self) -> int:
        """The current size in bytes; 0 if the file is gone."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`. Raises `RunFileError` if the file can't be read."""
        try:
            with self.path.open("rb") as file:
                return os.pread(file.fileno(), length, offset)
        except OSError as error:
            raise RunFileError(f"{self.path} can't be read: {error.strerror}.") from error


class BytesBlob:
    """Bytes in memory."""

    def __init__(self, data: bytes, name: str = "") -> None:
        self.data = data
        self.name = name

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.data)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        return self.data[offset : offset + length]


class SliceBlob:
    """A part of another blob."""

    def __init__(self, whole: Blob, start: int, end: int, name: str = "", *, origin: int = 0) -> None:
        """`origin` is the part's offset in `whole`, for places in the user's file; 0 for places in itself."""
        self.whole: Blob = whole
        self.origin: int = origin + (whole.origin if isinstance(whole, SliceBlob) and origin else 0)
        self.start = start
        self.end = end
        self.name = name

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.end - self.start

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        length = min(length, self.end - self.start - offset)
        return self.whole.read(self.start + offset, length) if length > 0 else b""


class _TemporaryBlob:
    """A file without a name, removed with the object."""

    def __init__(self, file: BinaryIO, size: int, name: str) -> None:
        self._file = file
        self.size = size
        self.name = name

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        return os.pread(self._file.fileno(), length, offset)


def spool(chunks: Iterable[bytes], *, packed: int, name: str) -> Blob:
    """Store unpacked `chunks` in memory if they are small, otherwise in a nameless file, within the limits.

    `packed` is the compressed size in bytes. Raises `RunFileError` as soon as the unpacked size exceeds the
    limits.
    """
    held: list[bytes] = []
    total = 0
    file: BinaryIO | None = None
    for chunk in chunks:
        total += len(chunk)
        if total > limits.UNPACKED or (total > limits.RATIO_FROM and total > packed * limits.RATIO):
            what = name or "The file"
            raise RunFileError(
                f"{what} unpacks to more than {total >> 20} MB from {packed:,} bytes: refused as a"
                " decompression bomb.",
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
