"""Unpacking archives that nobody vouches for: no path out, no link out, no device, no bomb."""

from __future__ import annotations

import posixpath
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import BinaryIO

from gistpoint.core.errors import SourceError

_MAX_TOTAL = 1 << 30
_MAX_FILES = 100_000


def unpack(archive: Path, into: Path) -> Path:
    """Unpack an sdist (tar or zip) below `into` and return the one folder that it holds, else `into` itself.

    Raises `SourceError` for a damaged archive, for one that is larger unpacked than 1 GiB or 100,000 files, and for a
    path that leads out. Links that lead out of the archive, and special files, are left out.
    """
    into.mkdir(parents=True)
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, into)
        else:
            _unpack_tar(archive, into)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise SourceError(f"{archive.name} can't be unpacked: {error}.") from error
    entries = list(into.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() and not entries[0].is_symlink() else into


def _unpack_tar(archive: Path, into: Path) -> None:
    links: list[tuple[str, str]] = []
    total = count = 0
    with tarfile.open(archive) as opened:
        for member in opened:
            path = _inside(archive, member.name)
            count += 1
            total += member.size
            _bound(archive, total, count)
            if member.isdir():
                (into / path).mkdir(parents=True, exist_ok=True)
            elif member.issym():
                links.append((path, member.linkname))
            elif member.isfile() or member.islnk():
                source = opened.extractfile(member)
                if source is not None:
                    with source, _created(into / path) as file:
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


def _unpack_zip(archive: Path, into: Path) -> None:
    total = count = 0
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            path = _inside(archive, member.filename)
            count += 1
            total += member.file_size
            _bound(archive, total, count)
            if member.is_dir():
                (into / path).mkdir(parents=True, exist_ok=True)
            elif not stat.S_ISLNK(member.external_attr >> 16):
                with opened.open(member) as source, _created(into / path) as file:
                    shutil.copyfileobj(source, file)


def _created(path: Path) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    return path.open("xb")


def _inside(archive: Path, name: str) -> str:
    normal = posixpath.normpath(name)
    if not name or normal.startswith(("/", "..")) or "\0" in name or "\\" in name:
        raise SourceError(f"{archive.name} holds the path {name[:200]!r}, which leads out of it.")
    return normal


def _bound(archive: Path, total: int, count: int) -> None:
    if total > _MAX_TOTAL or count > _MAX_FILES:
        raise SourceError(f"{archive.name} is larger unpacked than {_MAX_TOTAL >> 20} MiB or {_MAX_FILES:,} files.")
