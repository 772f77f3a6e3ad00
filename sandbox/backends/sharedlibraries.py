"""Finds the shared libraries that programs and modules load, by reading their ELF headers.

Neither the files nor the system's loader is started, because the files may come from somebody else's wheel.
"""

from __future__ import annotations

import errno
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
"""The folders that loaders search by default, including musl's loader."""
_LOAD = 1
_DYNAMIC = 2
_INTERPRETER = 3
_NEEDED = 1
_STRINGS = 5
_RPATH = 15
_RUNPATH = 29
_MOST_NAMES = 1000
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


@dataclass(frozen=True, slots=True)
class Binary:
    """The header of a program or a shared library, with the libraries that it loads."""

    machine: tuple[int, int]
    """Whether the word size is 64 bits, and the machine; a file loads only libraries with the same values."""
    loader: str
    needed: tuple[str, ...]
    folders: tuple[str, ...]
    """The folders that are searched first for its libraries."""

    @property
    def loads(self) -> tuple[str, ...]:
        """The names of everything that the binary loads, including the loader."""
        return (*self.needed, self.loader) if self.loader else self.needed


def libraries_of(files: Iterable[Path], *, owner: Path | None = None) -> set[Path]:
    """Return the paths of all libraries that `files` load, directly or through others.

    They are the paths by which the loader opens the libraries. Files that are not ELF load nothing, and
    missing libraries are left out. Files in `owner`, somebody else's folder, can't name a path outside that
    folder: from outside, they load only the libraries that the system offers to everybody.
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
        folders = (*binary.folders, *inherited)
        names = binary.loads
        # A wheel may be somebody else's, so a path in it must not show outside files to a run (decision 39).
        if owner is not None and path.is_relative_to(owner):
            folders = tuple(place for place in folders if _is_below(place, owner))
            names = tuple(name for name in names if "/" not in name or _is_below(name, owner))
        for name in names:
            for library in _candidate_paths(name, binary, folders):
                found.add(library)
                waiting.append((library.resolve(), folders))
    return found


def libraries_named(stems: Iterable[str], near: Iterable[Path]) -> set[Path]:
    """Return the paths of the libraries `libSTEM.so.N` that the loader knows, or that are next to `near`."""
    prefixes = tuple(f"lib{stem}.so." for stem in stems)
    found = set[Path]()
    for name, paths in _system_libraries().items():
        if name.startswith(prefixes):
            found.update(map(Path, paths))
    for folder in {path.parent for path in near}:
        found.update(path for path in folder.glob("lib*.so.*") if path.name.startswith(prefixes))
    return {path for path in found if path.is_file()}


def read_binary(path: Path) -> Binary | None:
    """Read the header of an ELF file; return None for any other file and for a damaged one.

    Raises `OSError` if the process may open no more files, or if there is no memory.
    """
    try:
        stat = path.stat()
    except OSError:
        return None
    return _read_once(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(1 << 12)
def _read_once(path: Path, _changed: int, _size: int) -> Binary | None:
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _read(data, path.parent)
    except OSError as error:
        _require_resources(error)
        return None
    except (ValueError, struct.error, IndexError, OverflowError):
        return None


def _require_resources(error: OSError) -> None:
    """Re-raise an error that is due to exhausted resources, not to the file.

    Otherwise, libraries would be missing from the view of a run, which is cached.
    """
    if error.errno in _EXHAUSTED:
        raise error


def _read(data: mmap.mmap, folder: Path) -> Binary:
    """Return the header of an ELF file, read as the System V ABI describes it (chapters 4 and 5)."""
    wide = data[4] == 2
    order = "<" if data[5] == 1 else ">"
    machine = struct.unpack_from(f"{order}H", data, 18)[0]
    segments = _segments(data, order, wide=wide)
    loader = next((_text(data, one.offset) for one in segments if one.kind == _INTERPRETER), "")
    dynamic = next((one for one in segments if one.kind == _DYNAMIC), _Segment(_DYNAMIC, 0, 0, 0))
    tags = _tags(data, dynamic, struct.Struct(f"{order}{'qQ' if wide else 'iI'}"))
    # Tags contain addresses in memory; the segment that is loaded there determines the offset in the file.
    address = next(iter(_values(tags, _STRINGS)), 0)
    strings = _offset_of(address, segments)
    needed = tuple(_text(data, strings + value) for value in _values(tags, _NEEDED))
    # A loader ignores RPATH where there is a RUNPATH.
    own = _values(tags, _RUNPATH) or _values(tags, _RPATH)
    folders = list[str]()
    for value in own:
        folders += filter(None, _text(data, strings + value).split(":"))
    origin = tuple(part.replace("${ORIGIN}", str(folder)).replace("$ORIGIN", str(folder)) for part in folders)
    return Binary((int(wide), machine), loader, needed, origin)


def _values(tags: Iterable[tuple[int, int]], kind: int) -> list[int]:
    return [value for tag, value in tags if tag == kind]


@dataclass(frozen=True, slots=True)
class _Segment:
    kind: int
    offset: int
    address: int
    length: int


def _segments(data: mmap.mmap, order: str, *, wide: bool) -> list[_Segment]:
    """Return the segments of the program header, whose fields depend on the word size."""
    if wide:
        (table,) = struct.unpack_from(f"{order}Q", data, 32)
        size, count = struct.unpack_from(f"{order}HH", data, 54)
    else:
        (table,) = struct.unpack_from(f"{order}I", data, 28)
        size, count = struct.unpack_from(f"{order}HH", data, 42)
    segments = []
    for place in range(table, table + size * count, size):
        if wide:
            kind, _, offset, address, _, length = struct.unpack_from(f"{order}IIQQQQ", data, place)
        else:
            kind, offset, address, _, length = struct.unpack_from(f"{order}IIIII", data, place)
        segments.append(_Segment(kind, offset, address, length))
    return segments


def _tags(data: mmap.mmap, dynamic: _Segment, entry: struct.Struct) -> list[tuple[int, int]]:
    """Return the tags of the dynamic section with their values; implausibly many are cut off."""
    tags: list[tuple[int, int]] = []
    for place in range(dynamic.offset, dynamic.offset + dynamic.length, entry.size):
        tag, value = entry.unpack_from(data, place)
        if tag == 0 or len(tags) > _MOST_NAMES:
            break
        tags.append((tag, value))
    return tags


def _offset_of(address: int, segments: Iterable[_Segment]) -> int:
    """Return the offset in the file of an address in memory; 0 if nothing is loaded there."""
    for segment in segments:
        place = address - segment.address
        if segment.kind == _LOAD and 0 <= place < segment.length:
            return segment.offset + place
    return 0


def _text(data: mmap.mmap, place: int) -> str:
    return data[place : data.find(b"\0", place)].decode("utf-8", "surrogateescape")


def _candidate_paths(name: str, binary: Binary, folders: Iterable[str]) -> Iterator[Path]:
    """Yield the paths at which the loader may find a library.

    A name with a slash is itself the path. For any other name, this is the first match in `folders`; if there
    is none, these are all variants that the system offers.
    """
    if "/" in name:
        if _fits(Path(name), binary):
            yield Path(name)
        return
    for folder in folders:
        path = Path(folder, name)
        if path.is_absolute() and _fits(path, binary):
            yield path
            return
    known = [Path(path) for path in _system_libraries().get(name, ())]
    if not known:
        known = [Path(folder, name) for folder in _FOLDERS]
    yield from (path for path in known if _fits(path, binary))


def _is_below(place: str, folder: Path | None) -> bool:
    return folder is not None and Path(place).resolve().is_relative_to(folder)


def _fits(path: Path, binary: Binary) -> bool:
    found = read_binary(path)
    return found is not None and found.machine == binary.machine


@cache
def _system_libraries() -> Mapping[str, tuple[str, ...]]:
    """Return the paths of the libraries in the system's own list, by name.

    The result is empty if there is no list, or none in a known format.
    """
    try:
        data = _CACHE.read_bytes()
    except OSError as error:
        _require_resources(error)
        return {}
    # On some systems, the list comes after a list in an older format.
    start = data.find(_CACHE_MAGIC)
    if start < 0:
        return {}
    found: dict[str, list[str]] = {}
    (count,) = struct.unpack_from("=I", data, start + len(_CACHE_MAGIC))
    for number in range(count):
        place = start + _CACHE_HEADER + number * _CACHE_ENTRY.size
        _, key, value, _, _ = _CACHE_ENTRY.unpack_from(data, place)
        name = data[start + key : data.index(b"\0", start + key)].decode()
        path = data[start + value : data.index(b"\0", start + value)].decode()
        found.setdefault(name, []).append(path)
    return {name: tuple(paths) for name, paths in found.items()}
