"""Faults of the machine, and a call of every command that meets them.

Each case runs the real program in a fresh copy of a small home, so that nothing carries over. The
expectations are the same for all: no traceback, a documented exit code, a sentence that names the unusable
thing and the remedy, and no half-written file.
"""

from __future__ import annotations

import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from warm_homes import warmed

EXIT_CODES = frozenset({0, 1, 2, 130})
"""The exit codes that `docs/guide/commands.md` lists."""
STOPPED = "stopped after its time"
_TREE = Path(__file__).resolve().parents[1]
_PARTS = ("*.part", "*.tmp", "*.torn")
_FULL_MIB = 24
_SCREEN_S = 20.0
"""The seconds after which a screen on a terminal is stopped."""

_OF_SYSTEM = re.compile(
    "No space left|Read-only file system|Not a directory|No such file|Input/output error|Permission denied"
)
"""A pattern of messages that report the fault; a call may also be refused for another reason."""
_OF_FOLDERS = re.compile("GISTPOINT_HOME|admin c")
"""A pattern of hints that concern gistpoint's folders, and so not standard output."""

CALLS: Mapping[str, tuple[str, ...]] = {
    "": (),
    "demo": ("--play", "dear-tickets", "--speed", "1000"),
    "solve": ("dear-tickets", "--lines"),
    "review": ("{attempt}",),
    "glance": ("dear-tickets",),
    "task new": ("{folder}", "--function", "small.py::double"),
    "task import": ("breakpoint", "records.json"),
    "task generate": ("{folder}", "--count", "1"),
    "task list": (),
    "task show": ("dear-tickets",),
    "task export": ("dear-tickets", "--to", "archive", "-o", "out.tar.zst"),
    "task control": ("dear-tickets",),
    "task delete": ("dear-tickets",),
    "task check": ("dear-tickets",),
    "task validate": ("dear-tickets",),
    "task validations": ("dear-tickets",),
    "gist new": ("{folder}", "--sample", "1"),
    "gist list": (),
    "gist reference": ("whole-railway",),
    "gist conditions": ("-o", "conditions", "whole-railway"),
    "gist score": ("whole-railway", "gist.py"),
    "attempt list": (),
    "attempt show": ("{attempt}",),
    "attempt accept": ("{attempt}", "--why", "read"),
    "attempt reject": ("{attempt}", "--why", "read"),
    "attempt confirm": ("{attempt}",),
    "attempt object": ("{attempt}", "--why", "earned"),
    "attempt export": ("--to", "csv", "-o", "attempts.csv"),
    "agent run": ("--demo", "--name", "another"),
    "agent resume": ("recorded",),
    "agent settle": ("recorded",),
    "agent list": (),
    "agent show": ("recorded",),
    "agent stop": ("recorded",),
    "agent watch": ("recorded",),
    "mcp": ("dear-tickets",),
    "serve": ("--for", "P01=dear-tickets", "--port", "0"),
    "participant": ("--code", "P01", "--task", "dear-tickets"),
    "runs": (".",),
    "show": ("{attempt}",),
    "search": ("ticket", "{attempt}"),
    "convert": ("{attempt}", "--to", "html", "-o", "run.html"),
    "replay": ("{attempt}",),
    "rescore": ("predictions.json", "--tasks", "dear-tickets"),
    "reviews export": (".", "-o", "reviews.csv"),
    "reviews summary": (".",),
    "reviews merge": (".",),
    "reviews agreement": ("a", "b"),
    "runs compare": (".",),
    "runs watch": (".", "--for", "1"),
    "findings judge": ("rubric.toml", ".", "--judge-model", "m", "--dry-run"),
    "findings read": ("rubric.toml", ".", "--reader", "r"),
    "findings report": ("rubric.toml", "."),
    "doctor": (),
    "store use": ("files",),
    "store init": (),
    "store status": (),
    "store sync": (),
    "store check": (),
    "code": ("{folder}",),
    "study new": ("another",),
    "study check": ("study",),
    "study open": ("study",),
    "study join": ("study", "--code", "P01"),
    "study progress": ("study",),
    "study enrol": ("study", "--code", "P77"),
    "study consent": ("study",),
    "study pay": ("study",),
    "study sync": ("study",),
    "study share": ("study",),
    "study return": ("study", "P01"),
    "study withdraw": ("study", "P01", "--keep"),
    "study erase": ("study", "--expired"),
    "study confirm": ("study",),
    "study compare": ("study",),
    "study read": ("study",),
    "study amend": ("study", "--why", "a typing error"),
    "study close": ("study",),
    "study demo": ("demo-study",),
    "study simulate": ("study",),
    "study power": ("study", "--people", "2"),
    "study solvers": ("study",),
    "study correct": ("study", "{attempt}", "--from", "1", "--to", "2", "--as", "idle", "--why", "away"),
    "study exclude": ("study", "{attempt}", "--why", "broken"),
    "study include": ("study", "{attempt}", "--why", "whole"),
    "study export": ("study", "--to", "tidy", "-o", "tables"),
    "study audit": ("study",),
    "study analyse": ("study",),
    "study report": ("study", "-o", "report"),
    "admin paths": (),
    "admin cache": (),
    "admin clean": (),
    "admin backup": ("home.tar.zst",),
    "admin restore": ("nothing.tar.zst",),
    "admin completion": ("bash",),
    "admin baseline": ("dear-tickets",),
}
"""A call of each command; `{attempt}` and `{folder}` stand for an attempt's id and a folder of code."""

LONG = frozenset(
    {
        "agent run",
        "attempt confirm",
        "demo",
        "doctor",
        "gist new",
        "gist reference",
        "gist score",
        "replay",
        "study demo",
        "study power",
        "task check",
        "task control",
        "task generate",
        "task new",
    }
)
"""The commands that take seconds without a fault."""


MAKING = frozenset(
    {
        "admin backup",
        "attempt export",
        "convert",
        "gist conditions",
        "study demo",
        "study export",
        "study new",
        "study report",
        "task export",
        "task generate",
        "task new",
    }
)
"""Commands that make files or folders where the user says, which must be possible after a fault."""
_IN_THE_WAY = re.compile("exists|not empty|not an empty")

SILENT = frozenset({"convert", "reviews export", "runs watch"})
"""Calls that print nothing on standard output, or nothing within the second for which they watch."""


@dataclass(frozen=True, slots=True)
class Case:
    """One call's home, the folder in which it is called, and the id of an attempt in the home."""

    home: Path
    folder: Path
    attempt: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: variables of the environment, a shell script before the program, limits, and streams."""

    name: str
    variables: Mapping[str, str] = field(default_factory=dict)
    script: str = ""
    """A script for a separate mount namespace, where `$HOME_OF_IT` and `$FOLDER` are the case's folders."""
    limits: Mapping[int, int] = field(default_factory=dict)
    streams: str = ""
    """The shell's redirections."""
    patched: str = ""
    """Python code that runs before the program to imitate a file system or kernel with this fault."""
    is_of_disk: bool = False
    """Whether a message must name a path."""
    loses_output: bool = False
    """Whether a command that prints anything must fail."""
    changes_nothing: bool = False
    """Whether a command must be refused before it does anything."""
    loses_errors: bool = False
    """Whether messages can't be read, so that only the exit code counts."""
    is_late: bool = False
    """Whether it may occur when everything has been made, so that a repeated command finds it complete."""
    has_reader: bool = True
    """Whether somebody reads standard output; otherwise it is a pipe whose other end is closed."""
    has_terminal: bool = False
    """Whether all streams are a terminal. A screen is then stopped after a few seconds."""


def _read_only(place: str) -> str:
    return f"mkdir -p {place} && mount --bind {place} {place} && mount -o remount,bind,ro {place}"


def _full(place: str) -> str:
    return (
        f"cp -a {place} {place}.kept && mount -t tmpfs -o size={_FULL_MIB}m none {place}"
        f" && cp -a {place}.kept/. {place}/ && cat /dev/zero > {place}/filling 2>/dev/null; true"
    )


def _with_rights(mode: str, place: str) -> str:
    """Return a script that changes rights, and takes the right to ignore them from a superuser."""
    drop = "setpriv --bounding-set=-dac_override,-dac_read_search,-fowner --inh-caps=-all"
    return f'chmod {mode} {place}; test $(id -u) != 0 || set -- {drop} "$@"'


_NO_LOCKS = """
import errno, fcntl
def flock(*_): raise OSError(errno.ENOLCK, "No locks available")
fcntl.flock = flock
"""
_NO_PROCESSES = """
import _posixsubprocess, errno, os, subprocess
def fork_exec(*_): raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
_posixsubprocess.fork_exec = subprocess._fork_exec = fork_exec
subprocess._USE_POSIX_SPAWN = False
os.posix_spawn = os.fork = fork_exec
"""
_NO_THREADS = """
import threading
def start(*_, **__): raise RuntimeError("can't start new thread")
for name in ("_start_new_thread", "_start_joinable_thread"):
    if hasattr(threading, name): setattr(threading, name, start)
"""
_FAILING_DISK = """
import errno, os
def fail(file, *_): raise OSError(errno.EIO, "Input/output error")
os.fsync = os.fdatasync = fail
"""

FAULTS = (
    Fault("home is a file", {"GISTPOINT_HOME": "/etc/passwd"}, is_of_disk=True),
    Fault("home can't be made", {"GISTPOINT_HOME": "/proc/nowhere"}, is_of_disk=True, is_late=True),
    Fault("home is read-only", script=_read_only('"$HOME_OF_IT"'), is_of_disk=True),
    Fault("home is full", script=_full('"$HOME_OF_IT"'), is_of_disk=True),
    Fault("cache is read-only", script=_read_only('"$HOME_OF_IT"/cache'), is_of_disk=True),
    Fault("output is read-only", script=_read_only('"$FOLDER"') + ' && cd "$FOLDER"', is_of_disk=True),
    Fault("folder was deleted", script="mkdir /tmp/gone.$$ && cd /tmp/gone.$$ && rmdir /tmp/gone.$$"),
    Fault("no programs", {"PATH": "/nonexistent"}),
    Fault("ASCII", {"PYTHONIOENCODING": "ascii"}),
    Fault("Latin-1", {"PYTHONIOENCODING": "latin-1"}),
    Fault("POSIX locale", {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    Fault("home can't be read", script=_with_rights("0", '"$HOME_OF_IT"'), is_of_disk=True),
    Fault("home can't be written", script=_with_rights("-R a-w", '"$HOME_OF_IT"'), is_of_disk=True),
    Fault("data can't be read", script=_with_rights("-R a-r", '"$HOME_OF_IT"/data'), is_of_disk=True),
    Fault(
        "no home of the user", {"GISTPOINT_HOME": "", "HOME": "/proc/nobody"}, is_of_disk=True, is_late=True
    ),
    Fault("user without a name", script="mount --bind /dev/null /etc/passwd"),
    Fault("empty list of programs", {"PATH": ""}),
    Fault("output is full", streams=">/dev/full", loses_output=True, is_late=True),
    Fault(
        "unbuffered output is full",
        {"PYTHONUNBUFFERED": "1"},
        streams=">/dev/full",
        loses_output=True,
        is_late=True,
    ),
    Fault("output is a closed pipe", has_reader=False, is_late=True),
    Fault("errors are full", streams="2>/dev/full", loses_errors=True),
    Fault("errors are closed", streams="2>&-", loses_errors=True),
    Fault(
        "output and errors are full",
        streams=">/dev/full 2>/dev/full",
        loses_output=True,
        loses_errors=True,
        is_late=True,
    ),
    Fault("no streams", streams="<&- >&- 2>&-", loses_output=True, loses_errors=True, changes_nothing=True),
    Fault("output is closed", streams=">&-", loses_output=True, changes_nothing=True),
    Fault("output can't be written", streams="1</dev/null", loses_output=True, changes_nothing=True),
    Fault("input is closed", streams="<&-"),
    Fault("few open files", limits={resource.RLIMIT_NOFILE: 20}),
    Fault("16 open files", limits={resource.RLIMIT_NOFILE: 16}),
    Fault("8 open files", limits={resource.RLIMIT_NOFILE: 8}),
    Fault("little memory", limits={resource.RLIMIT_AS: 300 << 20}),
    Fault("empty files", limits={resource.RLIMIT_FSIZE: 0}),
    Fault("small files", limits={resource.RLIMIT_FSIZE: 2048}),
    Fault("no locks", patched=_NO_LOCKS),
    Fault("no processes", patched=_NO_PROCESSES),
    Fault("no threads", patched=_NO_THREADS),
    Fault("failing disk", patched=_FAILING_DISK),
    Fault("dumb terminal", {"TERM": "dumb"}, has_terminal=True),
    Fault("terminal of one cell", {"TERM": "xterm", "COLUMNS": "1", "LINES": "1"}, has_terminal=True),
    Fault("terminal without a name or size", has_terminal=True),
)


@cache
def namespaces() -> tuple[str, ...]:
    """Return the command that gives a program its own mounts; empty if that is impossible here."""
    command = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-rm")
    works = shutil.which("unshare") and subprocess.run([*command, "true"], check=False).returncode == 0
    return command if works else ()


def possible(fault: Fault) -> bool:
    """Return whether this machine can produce a fault."""
    return not fault.script or (bool(namespaces()) and ("setpriv" not in fault.script or _drops_rights()))


def _drops_rights() -> bool:
    return os.geteuid() != 0 or shutil.which("setpriv") is not None


def template(place: Path) -> Case:
    """Make the home and the folder that each case copies, and return them with the id of an attempt.

    If `place` has them already, they are not made again.
    """
    home, folder = place / "home", place / "folder"
    if (folder / "run.jsonl").exists():
        return _made(home, folder)
    folder.mkdir(parents=True)
    warmed(home)
    for part in ("runtimes", "environments"):  # the same for all cases
        if not (home / "cache" / part).exists():
            (place / part).mkdir()
            (home / "cache").mkdir(parents=True, exist_ok=True)
            (home / "cache" / part).symlink_to(place / part)
    variables = _variables(home)
    for words in (
        ("demo", "--play", "dear-tickets", "--speed", "1000"),
        ("study", "new", "study"),
        ("agent", "run", "--demo", "--name", "recorded"),
    ):
        subprocess.run(
            [sys.executable, "-m", "gistpoint", *words],
            env=variables, cwd=folder, check=False, stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
    code = folder / "library"
    code.mkdir()
    (code / "small.py").write_text("def double(n):\n    return 2 * n\n")
    (code / "test_small.py").write_text(
        "from small import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
    )
    (folder / "gist.py").write_text("print(1)\n")
    (folder / "records.json").write_text("[]\n")
    (folder / "predictions.json").write_text("[]\n")
    (folder / "rubric.toml").write_text(
        'name = "r"\n[[label]]\nid = "x"\ndefinition = "It waits."\n[[label]]\nid = "y"\n'
        'coded = "computed"\nfact = "no_edit"\n'
    )
    run = (code.parents[1] / "home" / "data" / "attempts").glob("*/journal.jsonl")
    (folder / "run.jsonl").write_bytes(next(run).read_bytes())
    return _made(home, folder)


def _made(home: Path, folder: Path) -> Case:
    attempts = home / "data" / "attempts"
    return Case(home, folder, next(path.parent.name for path in attempts.glob("*/journal.jsonl")))


@dataclass(frozen=True, slots=True)
class Met:
    """The behaviour of a command that met a fault."""

    command: str
    fault: str
    code: int
    output: str
    errors: str
    complaints: tuple[str, ...]


def meet(command: str, fault: Fault, made: Case, place: Path, *, seconds: float = 120) -> Met:
    """Call a command with a fault, in a copy of a case below `place`, and return its behaviour."""
    case = Case(place / "home", place / "folder", made.attempt)
    for old, new in ((made.home, case.home), (made.folder, case.folder)):
        shutil.copytree(old, new, symlinks=True)
    if command == "admin clean":  # it would remove files that other cases use
        for part in ("runtimes", "environments"):
            (case.home / "cache" / part).unlink(missing_ok=True)
    before = _files(case)
    words = [word.format(attempt=made.attempt, folder="library") for word in CALLS[command]]
    variables = {**_variables(case.home), **fault.variables}
    if fault.patched:
        (place / "patched").mkdir()
        (place / "patched" / "sitecustomize.py").write_text(fault.patched)
        variables["PYTHONPATH"] = f"{place / 'patched'}:{variables['PYTHONPATH']}"
    called = [sys.executable, "-m", "gistpoint", *command.split(), *words]
    script = f'{fault.script}\nexec "$@" {fault.streams}'
    variables |= {"HOME_OF_IT": str(case.home), "FOLDER": str(case.folder)}
    shell = shutil.which("sh") or "/bin/sh"
    spaces = [shutil.which(namespaces()[0]) or "", *namespaces()[1:]] if fault.script else []
    with _started([*spaces, shell, "-c", script, "sh", *called], fault, case, variables) as run:
        code, output, errors = run.end(seconds)
    case.home.chmod(0o700)
    texts = [text.decode("utf-8", "backslashreplace") for text in (output, errors)]
    stopped = texts[1].endswith(STOPPED)
    complaints = [*_of_streams(command, fault, code, *texts), *([] if stopped else _of_files(before, case))]
    if fault.changes_nothing and before != _files(case):
        complaints.append("something was changed")
    if command in MAKING and code != 0 and not stopped and not fault.is_late:
        again = subprocess.run(
            called, env=_variables(case.home), cwd=case.folder, check=False, stdin=subprocess.DEVNULL,
            capture_output=True, text=True,
        )  # fmt: skip
        if again.returncode and _IN_THE_WAY.search(again.stderr):
            complaints.append(f"can't be repeated: {again.stderr.strip()[:200]}")
    return Met(command, fault.name, code, *texts, tuple(complaints))


@contextmanager
def _started(
    command: Sequence[str], fault: Fault, case: Case, variables: Mapping[str, str]
) -> Iterator[_Run]:
    """Yield a process with the streams of a fault: pipes, a pipe without a reader, or a terminal."""
    streams: dict[str, int] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }
    reading = other = None
    if fault.has_terminal:
        reading, other = os.openpty()
        streams = dict.fromkeys(streams, other)
    elif not fault.has_reader:
        closed, other = os.pipe()
        os.close(closed)
        streams["stdout"] = other
    process = subprocess.Popen(
        command, env=variables, cwd=case.folder, preexec_fn=_limiting(fault), start_new_session=True, **streams
    )  # fmt: skip
    if other is not None:
        os.close(other)
    try:
        yield _Run(process, reading)
    finally:
        if reading is not None:
            os.close(reading)


@dataclass(frozen=True, slots=True)
class _Run:
    """A started process, and the other end of its terminal."""

    process: subprocess.Popen[bytes]
    terminal: int | None

    def end(self, seconds: float) -> tuple[int, bytes, bytes]:
        """Return the exit code, output and errors; a process that takes longer is killed, and has the code 0.

        On a terminal, output and errors are one text.
        """
        if self.terminal is not None:
            return self._end_on_terminal(self.terminal, time.monotonic() + min(seconds, _SCREEN_S))
        try:
            output, errors = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self._kill()
            output, errors = self.process.communicate()
            return 0, output or b"", errors + STOPPED.encode()
        return self.process.returncode, output or b"", errors

    def _end_on_terminal(self, terminal: int, until: float) -> tuple[int, bytes, bytes]:
        shown = b""
        while select.select([terminal], [], [], max(0, until - time.monotonic()))[0]:
            try:
                shown += os.read(terminal, 1 << 16)
            except OSError:  # the process has closed its end
                break
        else:
            self._kill()
            shown += STOPPED.encode()
        return (0 if shown.endswith(STOPPED.encode()) else self.process.wait()), b"", shown

    def _kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _variables(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {
        **kept,
        "LANG": "C.UTF-8",
        "GISTPOINT_HOME": str(home),
        "GISTPOINT_CONFIRM": "no",
        "PYTHONPATH": str(_TREE / "src"),
        "OPENBLAS_NUM_THREADS": "1",
    }


def _limiting(fault: Fault) -> Callable[[], None]:
    def limit() -> None:
        for what, most in fault.limits.items():
            resource.setrlimit(what, (most, most))

    return limit


def _of_streams(command: str, fault: Fault, code: int, output: str, errors: str) -> Iterator[str]:
    """Yield the faults of the exit code and the messages."""
    if "Traceback" in errors + output:
        yield f"traceback: {errors.strip().splitlines()[-1][:200]}"
    if code not in EXIT_CODES:
        yield f"exit code {code}"
    if code == 2 and not errors.strip() and not fault.loses_errors:
        yield "no message"
    is_of_output = fault.loses_output and not fault.loses_errors and _OF_SYSTEM.search(errors) is not None
    if is_of_output and ("tandard output" not in errors or _OF_FOLDERS.search(errors)):
        yield f"standard output is not named, or folders are: {errors.strip()[:300]}"
    if fault.loses_output and code == 0 and command not in SILENT and STOPPED not in errors:
        yield "output was lost, and the exit code is 0"
    if code == 2 and fault.is_of_disk and _OF_SYSTEM.search(errors):
        named = ("/", *(word for word in CALLS[command] if not word.startswith(("-", "{"))))
        if not any(word in errors for word in named):
            yield f"no path is named: {errors.strip()[:200]}"
        if len(errors.strip().splitlines()) < 2:
            yield f"no way out is named: {errors.strip()[:200]}"


def _files(case: Case) -> dict[Path, bytes]:
    return {
        path: path.read_bytes()
        for root in (case.home / "data", case.home / "config", case.folder)
        for path in root.rglob("*")
        if path.is_file()
    }


def _of_files(before: Mapping[Path, bytes], case: Case) -> Iterator[str]:
    """Yield the half-written files, and the journals that lost something."""
    for root in (case.home, case.folder):
        found = {path for pattern in _PARTS for path in root.rglob(pattern)}
        yield from (f"left over: {path.relative_to(root)}" for path in sorted(found))
    for path, data in before.items():
        if path.name == "journal.jsonl" and not path.read_bytes().startswith(data):
            yield f"lost: {path.relative_to(case.home)}"
    for path in case.folder.rglob("*"):
        if path not in before and path.is_file() and path.stat().st_size == 0 and path.name != ".gitkeep":
            yield f"empty: {path.relative_to(case.folder)}"
