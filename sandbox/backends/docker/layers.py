"""File systems to send to an engine: lists of entries that can be hashed and written as a tar.

A root file system is made from this machine's parts, so that no registry is needed. It contains the files
that every run sees (`runtime.py`), with the interpreter below `/usr/local`.
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import posixpath
import sys
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from gistpoint.sandbox.backends.base import Environment
from gistpoint.sandbox.backends.runtime import Runtime, RuntimePath


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a layer: a file with the content of `source` or `data`, a link, or a folder."""

    path: str
    """The path relative to the root, with slashes."""
    mode: int = 0o644
    source: Path | None = None
    data: bytes | None = None
    link: str = ""
    modified: int = 0
    """The time of the last change, in seconds since the epoch, with which bytecode is compared."""

    @property
    def is_folder(self) -> bool:
        """Whether the entry is a folder."""
        return self.source is None and self.data is None and not self.link


def with_parents(entries: Iterable[Entry]) -> list[Entry]:
    """Return `entries` sorted, without duplicate paths, with an entry for each folder above them.

    The added entries have mode 0755, because some storage drivers give mode 0700 to folders that a tar only
    implies.
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
    """Return a SHA-256 digest of the paths, modes, times, links and contents, in hexadecimal."""
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
    """Write a tar of `entries`, all owned by root."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            info = tarfile.TarInfo(entry.path)
            info.mode = entry.mode
            # Kept, because bytecode is compared with the time of its source.
            info.mtime = entry.modified
            if entry.link:
                info.type = tarfile.SYMTYPE
                info.linkname = entry.link
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
    """Return the folders, files and relative links in `folder` as entries below the path `below`."""
    found = [Entry(below, 0o755)] if below else []
    for place, folders, files in os.walk(folder):
        relative = Path(place).relative_to(folder).as_posix()
        prefix = below if relative == "." else posixpath.join(below, relative)
        for name in [*folders, *files]:
            entry = _entry_of(Path(place, name), posixpath.join(prefix, name))
            if entry is not None:
                found.append(entry)
    return found


PYTHON = "usr/local"
RECIPE = "3"
"""The version of the layout of runtime parts, to be increased when that changes."""
_ETC = {
    "etc/passwd": "root:x:0:0::/:/bin/sh\nsolver:x:10001:10001::/sandbox/home:/bin/sh\n",
    "etc/group": "root:x:0:\nsolver:x:10001:\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_CLOSED = 0o700
_BINARIES = {"bin", "sbin"}


def can_be_made(machine: str) -> bool:
    """Whether this machine can provide a root file system for an engine on `machine` (`x86_64`)."""
    return sys.platform == "linux" and platform.machine() == machine


def _entry_of(path: Path, inner: str) -> Entry | None:
    """Return the entry of a file, a folder or a relative link; None for anything else, such as a socket."""
    if path.is_symlink():
        target = str(path.readlink())
        # An absolute link would lead to another place in the container.
        return None if target.startswith("/") else Entry(inner, 0o777, link=target)
    if path.is_dir():
        return Entry(inner, 0o755)
    if path.is_file():
        return _file(path, inner)
    return None


def root_entries(environment: Environment, runtime: Runtime) -> list[Entry]:
    """Return the entries of a root file system with the interpreter of `environment` in `/usr/local/bin`."""
    entries = [Entry(name, 0o755) for name in ("proc", "dev", "sys", "etc", "gistpoint", "sandbox")]
    entries.append(Entry("tmp", 0o1777))
    entries += [Entry(name, data=text.encode()) for name, text in _ETC.items()]
    entries += _interpreter(environment, runtime.interpreter)
    entries += _system_entries(runtime.system)
    headers = environment.prefix / "include" / f"python{environment.version}"
    shown_whole = {Path(part.path) for part in runtime.system if part.folder}
    if not shown_whole.isdisjoint((headers, *headers.parents)):
        entries += folder_entries(headers, f"{PYTHON}/include/{headers.name}")
    entries.append(Entry(f"{PYTHON}/lib/python{environment.version}/site-packages", 0o755))
    return with_parents(entries)


def closed_entries(environment: Environment, runtime: Runtime, programs: Runtime) -> list[Entry]:
    """Return the entries of a root file system in which commands can use only `programs` of this machine.

    The first process of a container is root and needs the interpreter; the command runs as another user.
    """
    open_to_all = {entry.path for entry in with_parents(_system_entries(programs.system))}
    needed = tuple(part for part in runtime.system if part in programs.system or not _is_binary(part))
    closed = list[Entry]()
    for entry in root_entries(environment, replace(runtime, system=needed)):
        is_closed = entry.source is not None and entry.path not in open_to_all
        closed.append(replace(entry, mode=_CLOSED) if is_closed else entry)
    return with_parents([Entry(PYTHON, _CLOSED), Entry("tmp", 0o755), *closed])


def _interpreter(environment: Environment, parts: Iterable[RuntimePath]) -> Iterator[Entry]:
    name = f"python{environment.version}"
    yield _file(environment.interpreter, f"{PYTHON}/bin/{name}")
    for alias in ("python3", "python"):
        yield Entry(f"{PYTHON}/bin/{alias}", 0o777, link=name)
    for part in parts:
        _, found, inner = part.path.partition(f"/{name}/")
        if found and not part.link:
            yield from _entries(part, f"{PYTHON}/lib/{name}/{inner}")


def _is_binary(part: RuntimePath) -> bool:
    """Whether a part is in a folder of programs."""
    return not _BINARIES.isdisjoint(Path(part.path).parts)


def _system_entries(parts: Iterable[RuntimePath]) -> Iterator[Entry]:
    """Yield each part at its path on this machine.

    Libraries from unusual folders are put next to the C library instead.
    """
    known = list(parts)
    c_library_folders = [Path(part.path).parent for part in known if "/libc.so" in part.path]
    libraries = next(iter(c_library_folders), Path("/lib"))
    for part in known:
        path = Path(part.path)
        is_elsewhere = ".so" in path.name and not path.parts[1].startswith(("usr", "lib", "etc"))
        target = libraries / path.name if is_elsewhere else path
        yield from _entries(part, str(target).lstrip("/"))


def _entries(part: RuntimePath, path: str) -> Iterator[Entry]:
    if part.link:
        yield Entry(path, 0o777, link=part.link)
    elif part.folder:
        yield from folder_entries(Path(part.path), path)
    else:
        yield _file(Path(part.path), path)


def _file(source: Path, path: str) -> Entry:
    stat = source.stat()
    return Entry(path, 0o755 if stat.st_mode & 0o100 else 0o644, source=source, modified=int(stat.st_mtime))
