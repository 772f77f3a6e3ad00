"""Unpacking archives that nobody vouches for: no path out, no link out, no device, no bomb."""

from __future__ import annotations

import lzma
import posixpath
import shutil
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

from gistpoint.core.errors import SourceError
from gistpoint.core.text import visible_line

MOST_BYTES = 1 << 30
MOST_FILES = 100_000
_DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError,
    RuntimeError,
)  # fmt: skip


def unpack(archive: Path, into: Path, *, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> Path:
    """Unpack an sdist (tar or zip) below `into` and return the one folder that it holds, else `into` itself.

    Raises `SourceError` for a damaged archive, for one that is larger unpacked than these bounds, and for a path that
    leads out, before anything is written. Links that lead out, and special files, are left out.
    """
    into.mkdir(parents=True)
    room = _Room(archive, most_bytes, most_files)
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, into, room)
        else:
            _unpack_tar(archive, into, room)
    except _DAMAGED as error:
        raise SourceError(f"{archive.name} can't be unpacked: {visible_line(str(error))[:200]}.") from error
    entries = list(into.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() and not entries[0].is_symlink() else into


def _unpack_tar(archive: Path, into: Path, room: _Room) -> None:
    links: list[tuple[str, str]] = []
    with tarfile.open(archive) as opened:
        for member in opened:
            _inside(archive, member.name)
            room.take(member.size)
        files = _Files(into)
        for member in opened:
            path = _inside(archive, member.name)
            if member.isdir():
                files.folder(path)
            elif member.issym():
                links.append((path, member.linkname))
            elif member.islnk():
                files.copy(_inside(archive, member.linkname), path, room)
            elif member.isfile() and (source := opened.extractfile(member)) is not None:
                with source, files.create(path) as file:
                    shutil.copyfileobj(source, file)
                (into / path).chmod(0o755 if member.mode & 0o100 else 0o644)
    for path, target in links:  # last, so that no file is written through one
        aimed = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        place = into / path
        if target.startswith("/") or aimed.startswith("..") or place.exists() or place.is_symlink():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    for path, _ in links:
        place = into / path
        if place.is_symlink() and not place.resolve().is_relative_to(into.resolve()):
            place.unlink()


def _unpack_zip(archive: Path, into: Path, room: _Room) -> None:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            _inside(archive, member.filename)
            room.take(member.file_size)
        files = _Files(into)
        for member in opened.infolist():
            path = _inside(archive, member.filename)
            if member.is_dir():
                files.folder(path)
            elif not stat.S_ISLNK(member.external_attr >> 16):
                with opened.open(member) as source, files.create(path) as file:
                    shutil.copyfileobj(source, file)


class _Room:
    """What an archive may still hold."""

    def __init__(self, archive: Path, most_bytes: int, most_files: int) -> None:
        self.archive = archive
        self._bytes, self._files = most_bytes, most_files
        self._bounds = f"{most_bytes >> 20} MiB or {most_files:,} files"

    def take(self, size: int, files: int = 1) -> None:
        """Count bytes and files; raises `SourceError` if there is no room for them."""
        self._bytes -= size
        self._files -= files
        if self._bytes < 0 or self._files < 0:
            raise SourceError(f"{self.archive.name} is larger unpacked than {self._bounds}.")


class _Files:
    """Makes files and their folders below one folder."""

    def __init__(self, into: Path) -> None:
        self._into = into
        self._made = {""}

    def folder(self, path: str) -> None:
        """Make a folder, and those above it."""
        if path not in self._made:
            (self._into / path).mkdir(parents=True, exist_ok=True)
            self._made.add(path)

    def create(self, path: str) -> BinaryIO:
        """Make an empty file in place of what an earlier member may have put there."""
        self.folder(posixpath.dirname(path))
        place = self._into / path
        place.unlink(missing_ok=True)
        return place.open("xb")

    def copy(self, source: str, path: str, room: _Room) -> None:
        """Make a hard link: a copy of a file that is there already, since either may be changed later."""
        there = self._into / source
        if there.is_symlink() or not there.is_file():
            raise SourceError(f"{room.archive.name} holds a hard link to {source[:200]!r}, which is no file before it.")
        if source != path:
            room.take(there.stat().st_size, files=0)
            self.create(path).close()
            shutil.copy(there, self._into / path)


def _inside(archive: Path, name: str) -> str:
    normal = posixpath.normpath(name)
    if not name or normal.startswith(("/", "..")) or "\0" in name or "\\" in name:
        raise SourceError(f"{archive.name} holds the path {name[:200]!r}, which leads out of it.")
    return normal
