"""Confines a program with bubblewrap: it sees system programs, Python, its own folder and named folders only.

It has no network; only sockets in its working folder lead out (decision 153).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import gistpoint.core
from gistpoint.core.agents.scaffolds import ScaffoldError
from gistpoint.core.text import shortened, visible
from gistpoint.sandbox.host_programs import run_host_program

WORK = "/gistpoint"
"""The working folder as the program sees it."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_OF_ETC = ("alternatives", "ca-certificates", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "ssl")
_ACCOUNTS = "root:x:0:0::/:/bin/sh\nsolver:x:1000:1000::/gistpoint/home:/bin/sh\n"
_HOSTS = "127.0.0.1 localhost\n"
_QUOTED_OUTPUT = 600
"""The maximum length of quoted output: in characters for bubblewrap's, in bytes for a program's."""
_TRY_S = 30
"""Seconds that bubblewrap may take to start a program that does nothing."""
_ISOLATING_OPTIONS = (
    "--unshare-user",
    "--disable-userns",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    "--uid",
    "1000",
    "--gid",
    "1000",
    "--hostname",
    "sandbox",
    "--clearenv",
)
"""Bubblewrap's options without which the program would have the host's processes, network and variables."""


@dataclass(frozen=True, slots=True)
class Confined:
    """A program to be confined."""

    words: Sequence[str]
    """The command line, with paths as the program sees them."""
    folder: Path
    """The host's folder that the program sees as `WORK` and may write to."""
    shown: Sequence[Path] = ()
    """Folders that it may read at their own paths, in addition to the interpreter's."""
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self, *, talks: bool) -> subprocess.Popen[bytes]:
        """Start the program; with `talks`, its standard input and output are pipes.

        Otherwise, its standard output is `output.txt` in its folder. In both cases, its standard error is
        `errors.txt` there. Raises `ScaffoldError` if bubblewrap is missing or does not work.
        """
        program = _bubblewrap()
        with contextlib.ExitStack() as files:
            out = files.enter_context((self.folder / "output.txt").open("wb"))
            errors = files.enter_context((self.folder / "errors.txt").open("wb"))
            accounts, hosts = (files.enter_context(_in_memory(text)) for text in (_ACCOUNTS, _HOSTS))
            return subprocess.Popen(
                [
                    program,
                    *_ISOLATING_OPTIONS,
                    *self._mounts(accounts, hosts),
                    *self._variables(),
                    "--",
                    *self.words,
                ],
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talks else out,
                stderr=errors,
                env={},
                cwd="/",
                pass_fds=(accounts, hosts),
                start_new_session=True,
            )

    def _mounts(self, accounts: int, hosts: int) -> Iterator[str]:
        for place in _SYSTEM:
            if Path(place).is_symlink():
                yield from ("--symlink", str(Path(place).readlink()), place)
            else:
                yield from ("--ro-bind-try", place, place)
        for name in _OF_ETC:
            yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
        yield from (
            "--ro-bind-data",
            str(accounts),
            "/etc/passwd",
            "--ro-bind-data",
            str(hosts),
            "/etc/hosts",
        )
        yield from ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")
        shown = [Path(sys.base_prefix), *self.shown]
        for folder in shown:
            yield from ("--ro-bind", str(folder), str(folder))
        # Hides gistpoint's package, which contains the demo's answers: a mount hides what was mounted before.
        for own in _own_folders():
            if any(own.is_relative_to(folder) for folder in [Path("/usr"), *shown]):
                yield from ("--tmpfs", str(own))
        yield from ("--bind", str(self.folder), WORK, "--chdir", f"{WORK}/home", "--remount-ro", "/")

    def _variables(self) -> Iterator[str]:
        given = {"HOME": f"{WORK}/home", "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", **self.environment}
        for name, value in given.items():
            yield from ("--setenv", name, value)


@contextlib.contextmanager
def _in_memory(text: str) -> Iterator[int]:
    descriptor = os.memfd_create("gistpoint")
    try:
        os.write(descriptor, text.encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _own_folders() -> set[Path]:
    """Return the folder of gistpoint's package, both as it is imported and with links resolved."""
    core = Path(gistpoint.core.__file__)
    return {core.parent.parent, core.resolve().parent.parent}


@cache
def _bubblewrap() -> str:
    """Return bubblewrap's path. Raises `ScaffoldError` if it is missing or does not work."""
    program = shutil.which("bwrap")
    why = "bwrap is not installed"
    if program is not None:
        command = [program, *_ISOLATING_OPTIONS, "--ro-bind", "/", "/", "true"]
        try:
            tried = run_host_program(command, timeout_s=_TRY_S, environment={})
        except OSError as error:
            words = str(error)
        else:
            if tried.returncode == 0:
                return program
            words = tried.stderr.decode("utf-8", "replace").strip()
        why = shortened(visible(words), _QUOTED_OUTPUT)
    raise ScaffoldError(
        f"Other programs' agents are started in a sandbox by bubblewrap, which does not work here: {why}.",
        hint="`gistpoint doctor` describes what it needs.",
    )


def python() -> str:
    """Return the interpreter that every confined program can start."""
    return os.path.realpath(sys.executable)


@contextlib.contextmanager
def killed_at_end(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill a program, with everything in its sandbox, at the end of the context."""
    try:
        with process:
            try:
                yield
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    except BrokenPipeError:  # it ended before it read everything
        pass


def last_words(folder: Path, name: str) -> str:
    """Return the end of a program's output file, with visible control characters; empty if unreadable."""
    with contextlib.suppress(OSError), (folder / name).open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _QUOTED_OUTPUT))
        return visible(file.read().decode("utf-8", "replace").strip())
    return ""
