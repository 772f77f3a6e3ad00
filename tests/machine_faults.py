"""Faults of the machine, and a call of every command that meets them.

Each case runs the real program in a fresh copy of a small home, so that nothing carries over. The
expectations are the same for all: no traceback, a documented exit code, a sentence that names the unusable
thing and the remedy, and no half-written file.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
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

_OF_SYSTEM = re.compile(
    "No space left|Read-only file system|Not a directory|No such file|Input/output error|Permission denied"
)
"""A pattern of messages that report the fault; a call may also be refused for another reason."""

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

SILENT = frozenset({"convert"})
"""Calls that print nothing on standard output."""


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
    is_late: bool = False
    """Whether it may occur when everything has been made, so that a repeated command finds it complete."""


def _read_only(place: str) -> str:
    return f"mkdir -p {place} && mount --bind {place} {place} && mount -o remount,bind,ro {place}"


def _full(place: str) -> str:
    return (
        f"cp -a {place} {place}.kept && mount -t tmpfs -o size={_FULL_MIB}m none {place}"
        f" && cp -a {place}.kept/. {place}/ && cat /dev/zero > {place}/filling 2>/dev/null; true"
    )


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
    Fault("output is full", streams=">/dev/full", loses_output=True, is_late=True),
    Fault("output is closed", streams=">&-", loses_output=True, changes_nothing=True),
    Fault("output can't be written", streams="1</dev/null", loses_output=True, changes_nothing=True),
    Fault("input is closed", streams="<&-"),
    Fault("few open files", limits={resource.RLIMIT_NOFILE: 20}),
    Fault("small files", limits={resource.RLIMIT_FSIZE: 2048}),
    Fault("no locks", patched=_NO_LOCKS),
    Fault("no processes", patched=_NO_PROCESSES),
    Fault("no threads", patched=_NO_THREADS),
    Fault("failing disk", patched=_FAILING_DISK),
)


@cache
def namespaces() -> tuple[str, ...]:
    """Return the command that gives a program its own mounts; empty if that is impossible here."""
    command = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-rm")
    works = shutil.which("unshare") and subprocess.run([*command, "true"], check=False).returncode == 0
    return command if works else ()


def possible(fault: Fault) -> bool:
    """Return whether this machine can produce a fault."""
    return not fault.script or bool(namespaces())


def template(place: Path) -> Case:
    """Make the home and the folder that each case copies, and return them with the id of an attempt."""
    home, folder = place / "home", place / "folder"
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
    process = subprocess.Popen(
        [*spaces, shell, "-c", script, "sh", *called],
        env=variables,
        cwd=case.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_limiting(fault),
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=seconds)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        code = 0
        errors += STOPPED.encode()
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
    if code == 2 and not errors.strip():
        yield "no message"
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
