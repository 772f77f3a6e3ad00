"""Which shared libraries programs and modules load, read from their ELF headers.

Neither they nor the system's loader are started: the files may come from somebody else's wheel.
"""

from __future__ import annotations

import contextlib
import mmap
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

_CACHE = Path("/etc/ld.so.cache")
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_CACHE_ENTRY = struct.Struct("=iIIIQ")
_CACHE_HEADER = 48
_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
"""Folders that loaders search by default, including musl's."""
_LOAD = 1
_DYNAMIC = 2
_INTERPRETER = 3
_NEEDED = 1
_STRINGS = 5
_RPATH = 15
_RUNPATH = 29
_MOST_NAMES = 1000


@dataclass(frozen=True, slots=True)
class Binary:
    """The header of a program or a shared library: what it loads."""

    machine: tuple[int, int]
    """Word size and machine: a file loads only libraries with the same ones."""
    loader: str
    needed: tuple[str, ...]
    folders: tuple[str, ...]
    """Folders to be searched first."""


def libraries_of(files: Iterable[Path], *, of: Path | None = None) -> set[Path]:
    """Return the paths, as the loader opens them, of all libraries that `files` load, directly or through others.

    Files that are not ELF load nothing, and missing libraries are left out. Files of somebody else's folder `of` can't
    name a path outside of it: what they load from elsewhere is what the system offers to all.
    """
    found: set[Path] = set()
    waiting: list[tuple[Path, tuple[str, ...]]] = [(path.resolve(), ()) for path in files]
    seen: set[Path] = set()
    while waiting:
        path, inherited = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        binary = read_binary(path)
        if binary is None:
            continue
        theirs = of is not None and path.is_relative_to(of)
        folders = tuple(place for place in (*binary.folders, *inherited) if not theirs or _is_below(place, of))
        wanted = [*binary.needed, *([binary.loader] if binary.loader else [])]
        for name in wanted:
            if theirs and "/" in name and not _is_below(name, of):
                continue
            for library in _places(name, binary, folders):
                found.add(library)
                waiting.append((library.resolve(), folders))
    return found


def libraries_named(stems: Iterable[str], beside: Iterable[Path]) -> set[Path]:
    """Return the libraries `libSTEM.so.N` that the loader knows, or that are next to one of the files `beside`."""
    wanted = tuple(f"lib{stem}.so." for stem in stems)
    found = {Path(path) for name, paths in _known().items() if name.startswith(wanted) for path in paths}
    for folder in {path.parent for path in beside}:
        found.update(path for path in folder.glob("lib*.so.*") if path.name.startswith(wanted))
    return {path for path in found if path.is_file()}


def read_binary(path: Path) -> Binary | None:
    """Read the header of an ELF file; return None for any other file and for a damaged one."""
    with contextlib.suppress(OSError):
        stat = path.stat()
        return _read_once(path, stat.st_mtime_ns, stat.st_size)
    return None


@lru_cache(1 << 12)
def _read_once(path: Path, _changed: int, _size: int) -> Binary | None:
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _read(data, path.parent)
    except (OSError, ValueError, struct.error, IndexError):
        return None


def _read(data: mmap.mmap, folder: Path) -> Binary:
    wide = data[4] == 2
    order = "<" if data[5] == 1 else ">"
    machine = struct.unpack_from(f"{order}H", data, 18)[0]
    table, size, count = (
        (*struct.unpack_from(f"{order}Q", data, 32), *struct.unpack_from(f"{order}HH", data, 54))
        if wide
        else (*struct.unpack_from(f"{order}I", data, 28), *struct.unpack_from(f"{order}HH", data, 42))
    )
    segments = []
    for place in range(table, table + size * count, size):
        if wide:
            kind, _, offset, address, _, length = struct.unpack_from(f"{order}IIQQQQ", data, place)
        else:
            kind, offset, address, _, length = struct.unpack_from(f"{order}IIIII", data, place)
        segments.append((kind, offset, address, length))

    def text(place: int) -> str:
        return data[place : data.find(b"\0", place)].decode("utf-8", "surrogateescape")

    loader = next((text(offset) for kind, offset, _, _ in segments if kind == _INTERPRETER), "")
    dynamic = next(((offset, length) for kind, offset, _, length in segments if kind == _DYNAMIC), (0, 0))
    entry = struct.Struct(f"{order}{'qQ' if wide else 'iI'}")
    tags: list[tuple[int, int]] = []
    for place in range(dynamic[0], dynamic[0] + dynamic[1], entry.size):
        tag, value = entry.unpack_from(data, place)
        if tag == 0 or len(tags) > _MOST_NAMES:
            break
        tags.append((tag, value))
    address = next((value for tag, value in tags if tag == _STRINGS), 0)
    strings = next((o + address - a for k, o, a, length in segments if k == _LOAD and a <= address < a + length), 0)
    needed = tuple(text(strings + value) for tag, value in tags if tag == _NEEDED)
    own = [text(strings + value) for tag, value in tags if tag == _RUNPATH]
    own = own or [text(strings + value) for tag, value in tags if tag == _RPATH]
    folders = [part for joined in own for part in joined.split(":") if part]
    origin = tuple(part.replace("${ORIGIN}", str(folder)).replace("$ORIGIN", str(folder)) for part in folders)
    return Binary((int(wide), machine), loader, needed, origin)


def _places(name: str, binary: Binary, folders: Iterable[str]) -> Iterator[Path]:
    """Yield where the loader finds a library: in the first of its folders, else all variants that the system offers."""
    if "/" in name:
        if _fits(Path(name), binary):
            yield Path(name)
        return
    for folder in folders:
        path = Path(folder, name)
        if path.is_absolute() and _fits(path, binary):
            yield path
            return
    known = [Path(path) for path in _known().get(name, ())] or [Path(folder, name) for folder in _FOLDERS]
    for path in known:
        if _fits(path, binary):
            yield path


def _is_below(place: str, folder: Path | None) -> bool:
    return folder is not None and Path(place).resolve().is_relative_to(folder)


def _fits(path: Path, binary: Binary) -> bool:
    found = read_binary(path)
    return found is not None and found.machine == binary.machine


@cache
def _known() -> Mapping[str, tuple[str, ...]]:
    """Return the paths of the libraries in the system's own list, by name; empty if it has no list."""
    try:
        data = _CACHE.read_bytes()
    except OSError:
        return {}
    start = data.find(_CACHE_MAGIC)
    if start < 0:
        return {}
    found: dict[str, list[str]] = {}
    (count,) = struct.unpack_from("=I", data, start + len(_CACHE_MAGIC))
    for number in range(count):
        place = start + _CACHE_HEADER + number * _CACHE_ENTRY.size
        _, key, value, _, _ = _CACHE_ENTRY.unpack_from(data, place)
        name, path = (data[start + at : data.index(b"\0", start + at)].decode() for at in (key, value))
        found.setdefault(name, []).append(path)
    return {name: tuple(paths) for name, paths in found.items()}
