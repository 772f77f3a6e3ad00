"""Lists the parts of this machine that a run sees, in the same way for all backends, and caches the lists."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.locations import Locations
from gistpoint.core.logs import replace_file
from gistpoint.sandbox.backends.base import Environment
from gistpoint.sandbox.backends.sharedlibraries import libraries_named, libraries_of, read_binary
from gistpoint.sandbox.cache import build_once
from gistpoint.sandbox.host_programs import run_host_program

_LOADERS_LIST = Path("/etc/ld.so.cache")
_WRITABLE = 0o222


class RuntimeCache:
    """A cache of runtimes below one folder, by default in the user's cache."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._known: dict[tuple[object, ...], Runtime] = {}

    @property
    def folder(self) -> Path:
        """The folder that contains the cached lists and roots."""
        return self._folder or Locations.of_user().runtimes

    def of(self, environment: Environment, shows: tuple[Path, ...] = ()) -> Runtime:
        """Return what a run in `environment` sees, including `shows`; listed once, then cached."""
        known = self._known.get((environment.folder, shows))
        if known is None:
            known = self._known[environment.folder, shows] = self._listed(environment, shows)
        return known

    def of_programs(self, names: tuple[str, ...]) -> Runtime:
        """Return the view of a run with only the programs `names` and their libraries, and no interpreter."""
        known = self._known.get(names)
        if known is None:
            known = self._known[names] = self._cached([], names, lambda: programs_alone(names))
        return known

    def laid_out(self, runtime: Runtime, mounted: Sequence[str], written: Mapping[str, str]) -> Path:
        """Return a folder with the files and links of `runtime`, for use as a run's root.

        The folder is made once, then cached. The system folders that `runtime` shows whole are empty in it,
        so that the machine's can be mounted there, and so are the folders `mounted`. `written` contains the
        contents of further files, by path.
        """

        def build(folder: Path) -> None:
            _lay_out(runtime, folder)
            for place in mounted:
                (folder / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
            for path, text in written.items():
                (folder / path.lstrip("/")).write_text(text, "utf-8")

        return build_once(self.folder / _digest([runtime.key, mounted, written]), build)

    def _listed(self, environment: Environment, shows: tuple[Path, ...]) -> Runtime:
        library = environment.prefix / "lib" / f"python{environment.version}"
        watched = [environment.interpreter, library, library / "lib-dynload"]
        may_change = bool(environment.folder.stat().st_mode & _WRITABLE)
        if not may_change:
            watched.append(environment.folder)
        elif next(modules_in(environment), None) is not None:
            # Not cached: the environment may still change, and with it the libraries that it loads.
            return runtime_of(environment, shows)
        return self._cached(watched, [str(path) for path in shows], lambda: runtime_of(environment, shows))

    def _cached(self, watched: Iterable[Path], names: Iterable[str], make: Callable[[], Runtime]) -> Runtime:
        """Return the result of `make`, or its cached result if everything that it depends on is unchanged."""
        states = [_state(path) for path in (*watched, _LOADERS_LIST, *map(Path, PLACES))]
        file = self.folder / f"{_digest([RECIPE, *names, states])}.json"
        # A file that can't be read is written again, because the cache only saves time.
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            stored = json.loads(file.read_text("utf-8"))
            interpreter = tuple(RuntimePath(*part) for part in stored["interpreter"])
            system = tuple(RuntimePath(*part) for part in stored["system"])
            return Runtime(stored["key"], interpreter, system)
        made = make()
        with contextlib.suppress(OSError):
            _write(file, made)
        return made


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]


def _state(path: Path) -> list[object]:
    try:
        stat = path.stat()
    except OSError:
        return [str(path)]
    return [str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns]


def _write(file: Path, runtime: Runtime) -> None:
    """Write a list in one step, because another process may be reading the file."""
    stored = {
        "key": runtime.key,
        "interpreter": [astuple(part) for part in runtime.interpreter],
        "system": [astuple(part) for part in runtime.system],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, json.dumps(stored).encode("ascii"), durable=False, mode=0o600)


def _lay_out(runtime: Runtime, folder: Path) -> None:
    for part in runtime.parts:
        target = folder / part.path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if part.link:
            target.symlink_to(part.link)
        elif not part.folder:
            shutil.copy2(part.path, target)  # keeps the time, against which bytecode is checked
        elif part in runtime.interpreter:
            shutil.copytree(part.path, target, symlinks=True)
        else:
            target.mkdir()


RECIPE = "1"
"""The version of the rules for the shown parts, so that lists made by older rules are not reused."""
PROGRAMS = (
    "sh",
    "bash",
    "awk",
    "base64",
    "basename",
    "bunzip2",
    "bzip2",
    "cat",
    "chmod",
    "chown",
    "clear",
    "cmp",
    "comm",
    "cp",
    "cut",
    "date",
    "dd",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "env",
    "envsubst",
    "expand",
    "expr",
    "false",
    "fgrep",
    "file",
    "find",
    "fmt",
    "fold",
    "getent",
    "gettext",
    "git",
    "grep",
    "gunzip",
    "gzip",
    "head",
    "hostname",
    "iconv",
    "id",
    "install",
    "join",
    "kill",
    "ldconfig",
    "less",
    "ln",
    "locale",
    "ls",
    "md5sum",
    "mkdir",
    "mkfifo",
    "mktemp",
    "more",
    "msgcat",
    "msgfmt",
    "msginit",
    "msgmerge",
    "mv",
    "ngettext",
    "nice",
    "nl",
    "nohup",
    "nproc",
    "od",
    "paste",
    "patch",
    "printenv",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "setsid",
    "sha1sum",
    "sha256sum",
    "shuf",
    "sleep",
    "sort",
    "split",
    "stat",
    "stty",
    "sync",
    "tac",
    "tail",
    "tar",
    "tee",
    "test",
    "timeout",
    "touch",
    "tput",
    "tr",
    "tree",
    "true",
    "truncate",
    "tty",
    "uname",
    "unexpand",
    "uniq",
    "unlink",
    "unxz",
    "unzip",
    "wc",
    "which",
    "whoami",
    "xargs",
    "xgettext",
    "xz",
    "yes",
    "zip",
)
"""The programs that a run sees, because test suites call them."""
_COMPILERS = (
    "cc",
    "c99",
    "gcc",
    "g++",
    "c++",
    "cpp",
    "as",
    "ld",
    "ld.bfd",
    "ar",
    "ranlib",
    "nm",
    "strip",
    "objdump",
    "make",
    "pkg-config",
)
_COMPILER_FOLDERS = (
    "/usr/lib/gcc",
    "/usr/libexec/gcc",
    "/usr/include",
    "/usr/local/include",
    "/usr/share/pkgconfig",
)
_COMPILER_PARTS = ("cc1", "cc1plus", "collect2", "lto1", "lto-wrapper")
_LINKED = ("*crt1.o", "crti.o", "crtn.o", "lib*.so", "lib*_nonshared.a")
PLACES = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin", "/run/current-system/sw/bin")
_EXPECTED = (
    "gcc_s",
    "stdc++",
    "z",
    "gomp",
    "atomic",
    "pthread",
    "dl",
    "rt",
    "m",
    "util",
    "resolv",
    "nss_files",
    "nss_dns",
    "crypt",
    "ffi",
)
"""Libraries that binary wheels expect of any system, and those that the C library loads by name."""
_MERGED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links to the folder of the same name below `/usr`, on most systems."""
_DATA = ("/usr/share/zoneinfo", "/usr/lib/locale", "/usr/share/terminfo", "/lib/terminfo", "/etc/terminfo")
_DATA_OF_PREFIX = ("share/zoneinfo", "share/terminfo")
_ETC = ("/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/localtime", "/etc/mime.types")
_ASK = """
import json, sys, sysconfig
folders = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
print(json.dumps({"folders": folders, "names": sorted(getattr(sys, "stdlib_module_names", ()))}))
"""
_NO_LONGER = (
    "_bootlocale",
    "_bootsubprocess",
    "_crypt",
    "_sha256",
    "_sha512",
    "aifc",
    "asynchat",
    "asyncore",
    "audioop",
    "binhex",
    "cgi",
    "cgitb",
    "chunk",
    "crypt",
    "distutils",
    "formatter",
    "imghdr",
    "imp",
    "lib2to3",
    "mailcap",
    "nis",
    "nntplib",
    "ossaudiodev",
    "parser",
    "pipes",
    "smtpd",
    "sndhdr",
    "spwd",
    "sunau",
    "symbol",
    "telnetlib",
    "uu",
    "xdrlib",
)
"""Modules removed from the standard library since 3.9, a version that does not list its modules."""
_PARTLY = {
    "test": ("__init__.py", "support"),
    "ensurepip": ("__init__.py", "__main__.py", "_uninstall.py"),
    "idlelib": (),
    "turtledemo": (),
}
"""The parts that a run sees of some packages, by the package's name.

Tests, wheels that bundle copies of many packages, and graphical programs are left out.
"""
_SCRIPTS = (
    b"#!/bin/sh",
    b"#! /bin/sh",
    b"#!/bin/bash",
    b"#!/usr/bin/sh",
    b"#!/usr/bin/bash",
    b"#!/usr/bin/env bash",
)
_MOST_LINKS = 40


@dataclass(frozen=True, slots=True, order=True)
class RuntimePath:
    """One path that a run sees, as it is on this machine."""

    path: str
    link: str = ""
    """The target of a symbolic link, as written in the link; empty for anything else."""
    folder: bool = False
    """Whether this is a folder that is shown with all of its contents."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts of this machine that a run sees."""

    key: str
    """A digest of the paths, sizes and times of the parts."""
    interpreter: tuple[RuntimePath, ...]
    """The interpreter, the links to it, and its standard library; empty for a view of programs alone."""
    system: tuple[RuntimePath, ...]
    """Programs, shared libraries and other system files, and folders that are shown whole."""

    @property
    def parts(self) -> tuple[RuntimePath, ...]:
        """All parts, sorted by path, without duplicates."""
        return tuple(sorted({*self.interpreter, *self.system}))


def runtime_of(environment: Environment, shows: Iterable[Path] = ()) -> Runtime:
    """Return what a run in `environment` sees; `shows` adds programs and folders to the usual ones."""
    further = list(shows)
    interpreter = set(_interpreter(environment))
    programs = [*_programs(PROGRAMS), *(path for path in further if path.is_file())]
    files = [environment.interpreter, *(path.resolve() for path in programs)]
    files += [Path(part.path) for part in interpreter if part.path.endswith(".so")]
    # Wheels are read separately from the system's files: paths outside their environment are not trusted.
    libraries = libraries_of(files) | libraries_of(modules_in(environment), owner=environment.folder)
    libraries |= libraries_named(_EXPECTED, near=libraries)
    folders = [*map(Path, _DATA), *(environment.prefix / path for path in _DATA_OF_PREFIX)]
    folders += [path for path in further if path.is_dir()]
    system = _parts((*programs, *libraries), folders)
    return _runtime(interpreter, system - interpreter)


def toolchain(environment: Environment) -> tuple[Path, ...]:
    """Return the paths of the compiler for an interpreter's C extensions: programs, headers, start-up files.

    A run sees them if they are passed to `runtime_of` as `shows`.
    """
    found = list(_programs(_COMPILERS))
    c_library = [path for path in libraries_named(("c",), ()) if path.name.startswith("libc.so")]
    for folder in sorted({path.parent for path in c_library}):
        for kind in _LINKED:
            found += sorted(folder.glob(kind))
    folders = [*map(Path, _COMPILER_FOLDERS), environment.prefix / "include"]
    for folder in folders:
        for name in _COMPILER_PARTS:
            found += folder.glob(f"*/*/{name}")
    return (*found, *(folder for folder in folders if folder.is_dir()))


def programs_alone(names: Iterable[str]) -> Runtime:
    """Return the view of a run with only the programs `names` and their libraries, and no Python."""
    programs = list(_programs(names))
    libraries = libraries_of(path.resolve() for path in programs)
    return _runtime(set(), _parts((*programs, *libraries), [Path(path) for path in _DATA]))


def _runtime(interpreter: set[RuntimePath], system: set[RuntimePath]) -> Runtime:
    description = RECIPE
    for part in sorted(interpreter | system):
        stat = Path(part.path).lstat()
        description += f"\0{part}\0{stat.st_size}\0{stat.st_mtime_ns}"
    key = hashlib.sha256(description.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return Runtime(key, tuple(sorted(interpreter)), tuple(sorted(system)))


def _parts(files: Iterable[Path], folders: Iterable[Path]) -> set[RuntimePath]:
    """Return the parts of the system for `files` and for those of `folders` that exist."""
    paths = [*files, *map(Path, _ETC), *(path for path in folders if path.is_dir())]
    parts = {
        RuntimePath(path, link=str(Path(path).readlink())) for path in _MERGED if Path(path).is_symlink()
    }
    for path in paths:
        parts.update(_shown(path))
    # An entry of a folder that is shown whole needs no separate part.
    shown_whole = {part.path for part in parts if part.folder}
    return {part for part in parts if shown_whole.isdisjoint(map(str, Path(part.path).parents))}


def _interpreter(environment: Environment) -> Iterator[RuntimePath]:
    """Yield the interpreter with the links to it, and its standard library."""
    yield from _shown(environment.interpreter)
    for path in environment.interpreter.parent.iterdir():
        if path.is_symlink() and path.resolve() == environment.interpreter:
            yield from _shown(path)
    # With -I and -S, so that no code of an environment or the user is run.
    library = _answer_of(environment.interpreter)
    # An old interpreter does not list its modules; those of this interpreter and the removed ones are used.
    names = set(library["names"] or (*sys.stdlib_module_names, *_NO_LONGER))
    for folder in {Path(path).resolve() for path in library["folders"]}:
        yield from _library(folder, names)


def _answer_of(interpreter: Path) -> dict[str, Any]:
    """Return an interpreter's answer to `_ASK`. Raises `EnvironmentBuildError` if there is none."""
    try:
        asked = run_host_program([interpreter, "-I", "-S", "-c", _ASK], timeout_s=60)
        answer: dict[str, Any] = json.loads(asked.stdout)
    except (OSError, ValueError, RecursionError) as error:
        raise EnvironmentBuildError(
            "The task's Python does not report where its standard library is.",
            hint="Check that it starts; `gistpoint doctor` lists the interpreters on this machine.",
            log=f"{interpreter}: {error}",
        ) from error
    return answer


def _library(folder: Path, names: set[str]) -> Iterator[RuntimePath]:
    """Yield only the parts of the standard library, because its folder may contain other code."""
    for path in (*folder.iterdir(), *_inside(folder / "__pycache__")):
        name = path.name.partition(".")[0]
        if path.name in _PARTLY:
            inner = [path / part for part in _PARTLY[path.name]]
            for part in filter(Path.exists, inner):
                yield from _shown(part)
        elif path.is_dir() and name in names:
            yield RuntimePath(str(path), folder=True)
        elif _is_module(path, names):
            yield from _shown(path)
    for path in _inside(folder / "lib-dynload"):
        if path.suffix == ".so":
            yield from _shown(path)


def _is_module(path: Path, names: set[str]) -> bool:
    """Whether a file is a module with one of these names, or describes the build of the interpreter."""
    name = path.name.partition(".")[0]
    if path.suffix not in (".py", ".pyc", ".so"):
        return False
    return name in names or name.startswith("_sysconfigdata")


def _inside(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return list(folder.iterdir())


def _programs(names: Iterable[str]) -> Iterator[Path]:
    """Yield, for each program that exists, its path in the first of the system's folders that has it."""
    for name in names:
        paths = (Path(place, name) for place in PLACES)
        found = next(filter(_is_program, paths), None)
        if found is not None:
            yield found


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline(200).rstrip().startswith(_SCRIPTS)


def modules_in(environment: Environment) -> Iterator[Path]:
    """Yield the files of an environment that are named like shared libraries."""
    for place, _, files in os.walk(environment.folder):
        yield from (Path(place, name) for name in files if ".so" in name)


def _is_program(path: Path) -> bool:
    """Whether a file is machine code, or a script for the shell."""
    if not path.is_file():
        return False
    return read_binary(path.resolve()) is not None or _is_script(path)


def _shown(path: Path) -> Iterator[RuntimePath]:
    """Yield a path as the kernel resolves it: every link on the way, and the file or folder if it exists.

    Stop after as many links as the kernel follows.
    """
    waiting = list(path.parts[1:])
    here = Path("/")
    links = 0
    while waiting:
        name = waiting.pop(0)
        here = here.parent if name == ".." else here / name
        if here.is_symlink():
            links += 1
            # The kernel follows no more links than this, because they may lead in a circle.
            if links > _MOST_LINKS:
                return
            link = here.readlink()
            yield RuntimePath(str(here), link=str(link))
            here = Path("/") if link.is_absolute() else here.parent
            waiting = [*link.parts, *waiting]
    if here.is_dir() or here.is_file():
        yield RuntimePath(str(here), folder=here.is_dir())
