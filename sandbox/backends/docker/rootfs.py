"""A root file system made of this machine's parts: a base image if no registry can be reached.

It holds what every run is shown (`runtime.py`), the interpreter below `/usr/local`.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from gistpoint.sandbox.backends.base import Environment
from gistpoint.sandbox.backends.docker.layers import Entry, folder_entries, with_parents
from gistpoint.sandbox.backends.runtime import Part, Runtime

PYTHON = "usr/local"
RECIPE = "3"
"""Changes with how the parts of a runtime are laid out here."""
_ETC = {
    "etc/passwd": "root:x:0:0::/:/bin/sh\nsolver:x:10001:10001::/sandbox/home:/bin/sh\n",
    "etc/group": "root:x:0:\nsolver:x:10001:\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_CLOSED = 0o700
_BINARIES = {"bin", "sbin"}


def can_be_made(machine: str) -> bool:
    """Whether a root file system for an engine on `machine` (`x86_64`) can be made here."""
    return sys.platform == "linux" and platform.machine() == machine


def root_entries(environment: Environment, runtime: Runtime) -> list[Entry]:
    """Return the entries of a root file system with the interpreter of `environment` in `/usr/local/bin`."""
    entries = [Entry(name, 0o755) for name in ("proc", "dev", "sys", "etc", "gistpoint", "sandbox")]
    entries.append(Entry("tmp", 0o1777))
    entries += [Entry(name, data=text.encode()) for name, text in _ETC.items()]
    entries += _interpreter(environment, runtime.interpreter)
    entries += _system(runtime.system)
    headers = environment.prefix / "include" / f"python{environment.version}"
    if any(headers == Path(part.path) or Path(part.path) in headers.parents for part in runtime.system if part.folder):
        entries += folder_entries(headers, f"{PYTHON}/include/{headers.name}")
    entries.append(Entry(f"{PYTHON}/lib/python{environment.version}/site-packages", 0o755))
    return with_parents(entries)


def closed_entries(environment: Environment, runtime: Runtime, programs: Runtime) -> list[Entry]:
    """Return the same with nothing open to anybody but root that is not among `programs`.

    The first process of a container is root and needs the interpreter; the command is somebody else.
    """
    open_to_all = {entry.path for entry in with_parents(_system(programs.system))}
    needed = [part for part in runtime.system if part in programs.system or not _BINARIES & set(Path(part.path).parts)]
    closed = [
        replace(entry, mode=_CLOSED) if entry.source is not None and entry.path not in open_to_all else entry
        for entry in root_entries(environment, replace(runtime, system=tuple(needed)))
    ]
    return with_parents([Entry(PYTHON, _CLOSED), Entry("tmp", 0o755), *closed])


def _interpreter(environment: Environment, parts: Iterable[Part]) -> Iterator[Entry]:
    name = f"python{environment.version}"
    yield _file(environment.interpreter, f"{PYTHON}/bin/{name}")
    for alias in ("python3", "python"):
        yield Entry(f"{PYTHON}/bin/{alias}", 0o777, link=name)
    for part in parts:
        _, found, inner = part.path.partition(f"/{name}/")
        if found and not part.link:
            yield from _entries(part, f"{PYTHON}/lib/{name}/{inner}")


def _system(parts: Iterable[Part]) -> Iterator[Entry]:
    """Put each part where it is on this machine; a library from outside the system's folders, beside the C library."""
    known = list(parts)
    beside = next((Path(part.path).parent for part in known if "/libc.so" in part.path), Path("/lib"))
    for part in known:
        path = Path(part.path)
        elsewhere = ".so" in path.name and not path.parts[1].startswith(("usr", "lib", "etc"))
        yield from _entries(part, str(beside / path.name if elsewhere else path).lstrip("/"))


def _entries(part: Part, path: str) -> Iterator[Entry]:
    if part.link:
        yield Entry(path, 0o777, link=part.link)
    elif part.folder:
        yield from folder_entries(Path(part.path), path)
    else:
        yield _file(Path(part.path), path)


def _file(source: Path, path: str) -> Entry:
    stat = source.stat()
    return Entry(path, 0o755 if stat.st_mode & 0o100 else 0o644, source=source, modified=int(stat.st_mtime))
