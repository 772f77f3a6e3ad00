"""Archives from outside: the data that a tar reader reads at once is limited wherever one is opened."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard

from gistpoint.core import archives
from gistpoint.core.archives import (
    ArchiveBoundError,
    ArchiveBounds,
    ArchiveError,
    indexed_tar,
    opened_tar,
    opened_zip,
    streamed_tar,
)
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.archive import unpack_task
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.docker.engine import EngineError
from gistpoint.sandbox.backends.docker.taskimages import ContainerFiles
from gistpoint.sandbox.environments.sdists import unpack as unpack_sdist
from gistpoint.sessions.records.archives import FileBlob, tar_archive
from gistpoint.sessions.team.study_archive import unpack as unpack_study

_MANY = 600 << 20
_NAMED = ArchiveBounds(1 << 30, 1_000)


def header(kind: bytes, size: int, content: bytes = b"", name: str = "task.toml") -> bytes:
    """Return the blocks of one entry whose header may state a size other than its own."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, max(size, 0)
    block = info.tobuf(tarfile.GNU_FORMAT)
    if size < 0:
        wrong = b"\xff" * 4 + struct.pack(">q", size)
        block = block[:124] + wrong + block[136:]
        block = block[:148] + b"%06o\0 " % (sum(block[:148]) + sum(block[156:]) + 256) + block[156:]
    return block + content + b"\0" * (-len(content) % tarfile.BLOCKSIZE)


def pax(**records: str) -> bytes:
    """Return a pax header and the file that it describes."""
    lines = b""
    for key, value in records.items():
        record = f" {key.replace('_', '.')}={value}\n".encode()
        length = len(record) + len(str(len(record) + 2))
        lines += str(length).encode() + record
    return header(tarfile.XHDTYPE, len(lines), lines) + header(tarfile.REGTYPE, 0)


FEW = b"\0" * 4096
BOMBS: dict[str, Callable[[], bytes]] = {
    "pax header": lambda: header(tarfile.XHDTYPE, _MANY, FEW),
    "global pax header": lambda: header(tarfile.XGLTYPE, _MANY, FEW),
    "pax header of Solaris": lambda: header(tarfile.SOLARIS_XHDTYPE, _MANY, FEW),
    "long name": lambda: header(tarfile.GNUTYPE_LONGNAME, _MANY, FEW),
    "long link": lambda: header(tarfile.GNUTYPE_LONGLINK, _MANY, FEW),
    "header of a negative size": lambda: header(tarfile.XHDTYPE, -512),
    "headers in a row": lambda: header(tarfile.XHDTYPE, 0) * 5_000,
    "many headers": lambda: (
        header(tarfile.XHDTYPE, 1 << 20, b"\0" * (1 << 20)) * 10 + header(tarfile.REGTYPE, 0)
    ),
    "sparse file": lambda: header(tarfile.GNUTYPE_SPARSE, 512, FEW),
    "sparse file by pax": lambda: pax(
        GNU_sparse_major="1", GNU_sparse_minor="0", GNU_sparse_name="task.toml"
    ),
    "negative size": lambda: header(tarfile.REGTYPE, -512),
    "negative size by pax": lambda: header(tarfile.REGTYPE, 0) + pax(size="-1024"),
    "size beyond all files": lambda: header(tarfile.REGTYPE, 1 << 60),
    "size beyond all files by pax": lambda: pax(size="9" * 40),
}


def engine_with(archive: Path) -> Any:
    """Return an engine whose container has this tar at every path."""

    def get_archive(_: str, __: str) -> tuple[Iterator[bytes], None]:
        return iter([archive.read_bytes()]), None

    return SimpleNamespace(client=SimpleNamespace(api=SimpleNamespace(get_archive=get_archive)))


def copied_from_image(archive: Path, into: Path) -> None:
    ContainerFiles(engine_with(archive), "c").copy("/testbed", io.BytesIO(), keeps=bool)


def read_from_image(archive: Path, into: Path) -> None:
    ContainerFiles(engine_with(archive), "c").read("/report.json")


def unpacked_study(archive: Path, into: Path) -> None:
    into.mkdir()
    unpack_study(archive, into)


PACKED: dict[str, Callable[[Path, Path], object]] = {
    "task": unpack_task,
    "study": unpacked_study,
    "sdist": unpack_sdist,
}
PLAIN: dict[str, Callable[[Path, Path], object]] = {
    "tree": lambda archive, _: SourceTree.open(archive),
    "runs": lambda archive, _: tar_archive(FileBlob(archive)),
    "image": copied_from_image,
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("reader", [*PACKED, *PLAIN])
def test_what_a_tar_may_make_its_reader_hold_is_refused(
    tmp_path: Path, bomb: str, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MOST_HEADERS", 8 << 20)
    data = BOMBS[bomb]() + b"\0" * 1024
    archive = tmp_path / "x.tar.zst"
    archive.write_bytes(zstandard.compress(data) if reader in PACKED else data)
    with pytest.raises((UserError, EngineError), match="and was refused"):
        {**PACKED, **PLAIN}[reader](archive, tmp_path / "into")


@pytest.mark.parametrize("bomb", [*BOMBS][:6])
def test_a_file_of_an_image_is_read_within_bounds(tmp_path: Path, bomb: str) -> None:
    (tmp_path / "x.tar").write_bytes(BOMBS[bomb]())
    with pytest.raises(EngineError, match="and was refused"):
        read_from_image(tmp_path / "x.tar", tmp_path)


@pytest.mark.parametrize("reader", PACKED)
def test_nothing_of_a_packed_header_is_unpacked(tmp_path: Path, reader: str) -> None:
    packer, block = zstandard.ZstdCompressor().compressobj(), b"\0" * (1 << 20)
    archive = tmp_path / "x.tar.zst"
    parts = [
        packer.compress(header(tarfile.XHDTYPE, 200 << 20)),
        *(packer.compress(block) for _ in range(200)),
    ]
    archive.write_bytes(b"".join(parts) + packer.flush())
    assert archive.stat().st_size < 20_000
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="contains a header of 209715200 bytes"):
            PACKED[reader](archive, tmp_path / "into")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def read_all(file: io.BytesIO, bounds: ArchiveBounds, members: ArchiveBounds | None = None) -> None:
    """Read everything in a tar; with `members`, only the stream has the bounds `bounds`."""
    with opened_tar(file, bounds) as tar:
        tar._bounds = members or bounds
        for info in tar:
            tar.content(info).read()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_what_a_decompressor_gives_is_bounded(
    monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    """The limit also holds if no header states the length."""
    monkeypatch.setattr(archives, "MOST_HEADERS", 0)
    data = header(tarfile.REGTYPE, 0) * 3 + header(tarfile.REGTYPE, 5, b"noise")
    with opened_tar(io.BytesIO(pack(data)), ArchiveBounds(5, 1_000)) as tar:
        assert [info.size for info in tar] == [0, 0, 0, 5]
    with pytest.raises(ArchiveBoundError, match="unpacks to more than 5 bytes"):
        read_all(io.BytesIO(pack(data * 20)), ArchiveBounds(5, 1), members=ArchiveBounds(1 << 30, 1 << 30))


def test_members_are_bounded() -> None:
    data = header(tarfile.DIRTYPE, 0) * 10
    for opened in (streamed_tar(io.BytesIO(data), ArchiveBounds(5, 9)), indexed_tar(io.BytesIO(data), 9)):
        with pytest.raises(ArchiveBoundError, match="more than 9 members"), opened as tar:
            list(tar)


def test_honest_long_names_are_read(tmp_path: Path) -> None:
    names = [f"{'deep/' * 60}{n}/ö" for n in range(40)]
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz", format=form) as made:
            for name in names:
                made.addfile(tarfile.TarInfo(name))
        buffer.seek(0)
        with opened_tar(buffer, _NAMED) as tar:
            assert [info.name for info in tar] == names


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_cut_archive_is_told(pack: Callable[[bytes], bytes]) -> None:
    data = pack(header(tarfile.REGTYPE, 100_000, bytes(range(250)) * 400))
    for size in range(0, len(data), max(1, len(data) // 10)):
        with pytest.raises(ArchiveError):
            read_all(io.BytesIO(data[:size]), _NAMED)


def zip_of(count: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for n in range(count):
            made.writestr(f"{n}", b"x")
    return buffer.getvalue()


def test_directory_of_a_zip_is_bounded() -> None:
    data = zip_of(200)
    with opened_zip(io.BytesIO(data)) as archive:
        assert archive.read("7") == b"x"
    with pytest.raises(ArchiveBoundError, match="directory"), opened_zip(io.BytesIO(data), 5_000):
        pass


def test_no_other_code_opens_a_tar_from_outside() -> None:
    """The payload unpacks gistpoint's own tars, where gistpoint is not installed."""
    root = Path(archives.__file__).resolve().parent.parent
    found = {
        path.relative_to(root).as_posix()
        for folder in ("core", "sandbox", "sessions", "tui")
        for path in (root / folder).rglob("*.py")
        if any(reads_tar(line) for line in path.read_text().splitlines())
    }
    assert found == {"core/archives.py", "sandbox/payload/container_entry.py"}


def reads_tar(line: str) -> bool:
    opens = "tarfile.open(" in line and 'mode="w' not in line and '"w:"' not in line
    return opens or "unpack_archive(" in line


def test_a_full_disk_is_no_damage_of_the_archive() -> None:
    full, damaged = OSError(errno.ENOSPC, "No space left on device"), OSError("Invalid data stream")
    data = header(tarfile.REGTYPE, 1, b"x")
    with pytest.raises(OSError, match="No space left"), opened_tar(io.BytesIO(data), _NAMED):
        raise full
    with pytest.raises(ArchiveError, match="Invalid data stream"), opened_tar(io.BytesIO(data), _NAMED):
        raise damaged
    with pytest.raises(OSError, match="No space left"), opened_zip(io.BytesIO(zip_of(1))):
        raise full
