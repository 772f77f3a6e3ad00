"""File systems to send to an engine: lists of entries that have a digest and can be written as a tar."""

from __future__ import annotations

import hashlib
import io
import os
import posixpath
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a layer: a file with the content of `source` or `data`, a link, or a folder."""

    path: str
    """Relative, with slashes."""
    mode: int = 0o644
    source: Path | None = None
    data: bytes | None = None
    link: str = ""
    modified: int = 0
    """Seconds since the epoch: compiled bytecode is compared with it."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.source is None and self.data is None and not self.link


def with_parents(entries: Iterable[Entry]) -> list[Entry]:
    """Return `entries` sorted, no path twice, with an entry of mode 0755 for each folder above them.

    Folders that a tar only implies get mode 0700 from some storage drivers.
    """
    known: dict[str, Entry] = {}
    for entry in entries:
        known.setdefault(entry.path, entry)
    for path in list(known):
        parent = posixpath.dirname(path)
        while parent:
            known.setdefault(parent, Entry(parent, 0o755))
            parent = posixpath.dirname(parent)
    return [known[path] for path in sorted(known)]


def digest_of(entries: Iterable[Entry]) -> str:
    """Return a digest of paths, modes, times and contents, in hexadecimal."""
    total = hashlib.sha256()
    for entry in entries:
        total.update(f"{entry.path}\0{entry.mode:o}\0{entry.modified}\0{entry.link}\0".encode())
        if entry.source is not None:
            with entry.source.open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
        elif entry.data is not None:
            total.update(hashlib.sha256(entry.data).digest())
    return total.hexdigest()


def write_layer(entries: Iterable[Entry], file: IO[bytes]) -> None:
    """Write a tar of `entries`; everything belongs to root."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            info = tarfile.TarInfo(entry.path)
            info.mode, info.mtime = entry.mode, entry.modified
            if entry.link:
                info.type, info.linkname = tarfile.SYMTYPE, entry.link
                archive.addfile(info)
            elif entry.source is not None:
                with entry.source.open("rb") as content:
                    info.size = os.fstat(content.fileno()).st_size
                    archive.addfile(info, content)
            elif entry.data is not None:
                info.size = len(entry.data)
                archive.addfile(info, io.BytesIO(entry.data))
            else:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)


def folder_entries(folder: Path, below: str) -> list[Entry]:
    """Return the files and relative links of `folder` as entries below the path `below`, readable by all."""
    found = [Entry(below, 0o755)] if below else []
    for place, folders, files in os.walk(folder):
        relative = Path(place).relative_to(folder).as_posix()
        prefix = below if relative == "." else posixpath.join(below, relative)
        for name in [*folders, *files]:
            path, inner = Path(place, name), posixpath.join(prefix, name)
            if path.is_symlink():
                target = str(path.readlink())
                if not target.startswith("/"):
                    found.append(Entry(inner, 0o777, link=target))
            elif path.is_dir():
                found.append(Entry(inner, 0o755))
            elif path.is_file():
                stat = path.stat()
                mode = 0o755 if stat.st_mode & 0o100 else 0o644
                found.append(Entry(inner, mode, source=path, modified=int(stat.st_mtime)))
    return found
