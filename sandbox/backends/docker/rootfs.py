"""A root file system made of this machine's Python: a base image where no registry can be reached.

It holds the interpreter and its standard library with its bytecode, the shared libraries that these and binary wheels
load, a shell and the few programs that suites call, time zones, a locale and terminal descriptions. Nothing that was
installed for that Python is among it: it may hold the answer.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from gistpoint.sandbox.backends.base import Environment
from gistpoint.sandbox.backends.docker.layers import Entry, folder_entries, with_parents

PYTHON = "usr/local"
_RECIPE = "1"
_PROGRAMS = (
    "sh", "bash", "cat", "cp", "ls", "mv", "rm", "mkdir", "rmdir", "ln", "chmod", "touch", "sed", "grep", "env", "less",
    "more", "head", "tail", "cut", "wc", "sleep", "true", "false", "uname", "id", "tr", "sort", "uniq", "echo",
    "printf", "test", "expr", "dirname", "basename", "date", "find", "xargs", "tee", "which", "mktemp",
)  # fmt: skip
_LIBRARIES = (
    "gcc_s", "stdc++", "z", "gomp", "atomic", "pthread", "dl", "rt", "m", "util", "resolv", "nss_files", "nss_dns",
    "crypt", "ffi",
)  # fmt: skip
_DATA = ("usr/share/zoneinfo", "usr/lib/locale/C.utf8", "lib/terminfo", "usr/share/terminfo/x", "usr/share/terminfo/d")
_NOT_NEEDED = {"test", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages", "dist-packages"}
_ETC = {
    "etc/passwd": "root:x:0:0::/:/bin/sh\nsolver:x:10001:10001::/sandbox/home:/bin/sh\n",
    "etc/group": "root:x:0:\nsolver:x:10001:\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_RESOLVED = re.compile(r"(?:=>\s+)?(/\S+)\s+\(0x")


def can_be_made(machine: str) -> bool:
    """Whether a root file system for an engine on `machine` (`x86_64`) can be made here."""
    return sys.platform == "linux" and platform.machine() == machine and shutil.which("ldd") is not None


def stamp_of(environment: Environment) -> str:
    """Return what changes when the interpreter of `environment` does, without reading any file."""
    total = hashlib.sha256(f"{_RECIPE}\0{environment.interpreter}\0".encode())
    library = _library(environment)
    for path in (environment.interpreter, *sorted(library.glob("*.py")), *sorted(library.glob("lib-dynload/*"))):
        stat = path.stat()
        total.update(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    return total.hexdigest()


def root_entries(environment: Environment) -> list[Entry]:
    """Return the entries of a root file system with the interpreter of `environment` in `/usr/local/bin`."""
    version, library = environment.version, _library(environment)
    programs = {name: Path(found).resolve() for name in _PROGRAMS if (found := shutil.which(name))}
    modules = [path for path in library.glob("lib-dynload/*.so") if path.is_file()]
    loaded = {environment.interpreter, *modules, *programs.values()}
    entries = [Entry(name, 0o755) for name in ("proc", "dev", "sys", "etc", "gistpoint")]
    entries += [Entry(name, 0o1777) for name in ("tmp", "sandbox")]
    entries += [Entry(name, data=text.encode()) for name, text in _ETC.items()]
    entries += _interpreter(environment, library)
    entries += [_file(path, f"bin/{name}") for name, path in programs.items()]
    entries += _shared(_libraries(loaded))
    for name in _DATA:
        folder = Path("/", name).resolve()
        if folder.is_dir():
            entries += folder_entries(folder, name)
    cache = Path("/etc/ld.so.cache")
    if cache.is_file():
        entries.append(_file(cache, "etc/ld.so.cache"))
    entries.append(Entry(f"{PYTHON}/lib/python{version}/site-packages", 0o755))
    return with_parents(entries)


def _interpreter(environment: Environment, library: Path) -> Iterator[Entry]:
    name = f"python{environment.version}"
    yield _file(environment.interpreter, f"{PYTHON}/bin/{name}")
    for alias in ("python3", "python"):
        yield Entry(f"{PYTHON}/bin/{alias}", 0o777, link=name)
    below = f"{PYTHON}/lib/{name}"
    for entry in folder_entries(library, below):
        inner = entry.path.removeprefix(below).strip("/").split("/")
        archive = entry.path.endswith(".a") or inner[0].startswith("config-")
        if inner[0] not in _NOT_NEEDED and not archive:
            yield entry


def _library(environment: Environment) -> Path:
    return environment.prefix / "lib" / f"python{environment.version}"


def _libraries(programs: Iterable[Path]) -> set[Path]:
    """Return the shared libraries that `programs` load, and those that binary wheels expect of any system."""
    told = subprocess.run(
        ["ldd", *map(str, sorted(programs))], capture_output=True, text=True, timeout=120, check=False
    ).stdout
    found = {Path(match) for match in _RESOLVED.findall(told)}
    folders = {path.parent for path in found}
    for name in _LIBRARIES:
        for folder in folders:
            found.update(folder.glob(f"lib{name}.so.[0-9]"))
    return found


def _shared(libraries: Iterable[Path]) -> Iterator[Entry]:
    """Put each library where it was found; one from outside the system's folders, beside the C library."""
    known = sorted(libraries)
    beside = next((path.parent for path in known if path.name.startswith("libc.so")), Path("/lib"))
    for path in known:
        of_the_system = path.is_relative_to("/usr") or path.parts[1].startswith("lib")
        inside = path if of_the_system else beside / path.name
        yield _file(path.resolve(), str(inside).lstrip("/"))


def _file(source: Path, path: str) -> Entry:
    stat = source.stat()
    return Entry(path, 0o755 if stat.st_mode & 0o100 else 0o644, source=source, modified=int(stat.st_mtime))
