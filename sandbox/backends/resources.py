"""Measures the memory use, disk use and waiting time of a run, and limits runs with control groups."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.sandbox.host_programs import run_host_program

if TYPE_CHECKING:
    from gistpoint.sandbox.limits import RunLimits


_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")
_LONGEST_STAT = 4096


def can_watch() -> bool:
    """Whether this system reports the memory of a process tree."""
    return sys.platform == "linux" and (_PROC / "self/statm").exists()


def descendants(pid: int) -> list[int]:
    """Return `pid` and the ids of all processes below it at this moment."""
    children: dict[int, list[int]] = {}
    with os.scandir(_PROC) as entries:
        for entry in entries:
            if entry.name.isdigit():
                parent = _parent(entry.name)
                if parent is not None:
                    children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for known in found:
        found.extend(children.get(known, ()))
    return found


def _parent(pid: str) -> int | None:
    """Return the id of a process's parent, or None if the process is gone."""
    # Read without `Path` and file objects, which took three times as long: every process on the machine is
    # read ten times a second while a run lasts (decision 132).
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        text = os.read(file, _LONGEST_STAT)
    except OSError:
        return None
    finally:
        os.close(file)
    # The name of the process precedes these fields, and may itself contain spaces and brackets.
    fields = text[text.rfind(b")") + 1 :].split(maxsplit=2)
    return int(fields[1]) if len(fields) > 1 else None


def waiting_of_tree(pid: int) -> float:
    """Return the longest total time, in seconds, that `pid` or a process below it waited for a processor.

    0 if the system does not report this.
    """
    return max(map(_waited, descendants(pid)), default=0.0)


def _waited(pid: int) -> float:
    try:
        return int((_PROC / str(pid) / "schedstat").read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def memory_of_tree(pid: int, enough: int) -> int:
    """Return the bytes of memory that `pid` and its descendants use, counting shared pages once.

    This is the sum of the proportional set sizes. If the resident sets, which are cheaper to read and never
    smaller, sum to at most `enough`, their sum is returned instead. The resident set is also used for a
    process whose details can't be read.
    """
    resident = {process: _resident(process) for process in descendants(pid)}
    total = sum(resident.values())
    if total <= enough:
        return total
    return sum(_proportional(process, known) for process, known in resident.items())


def _resident(pid: int) -> int:
    try:
        return int((_PROC / str(pid) / "statm").read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _proportional(pid: int, otherwise: int) -> int:
    try:
        for line in (_PROC / str(pid) / "smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return otherwise


_BLOCK = 512  # the unit of st_blocks, whatever the block size of the file system is
_LEAST_PAUSE_S = 0.25
_MOST_PAUSE_S = 1.0
_SHARE = 10
"""The ratio of a pause to the duration of the previous scan: scans take about a tenth of a processor.

No pause is longer than `_MOST_PAUSE_S` or shorter than `_LEAST_PAUSE_S`.
"""


@dataclass
class DiskWatch:
    """A watch on the size of a folder; removed files that `pid` or its descendants hold open count too."""

    folder: Path
    pid: int
    limit: int
    """The maximum size of the folder, in bytes."""
    most_files: int = 200_000
    _next: float = 0.0
    _free_before: int = field(default=0)

    def __post_init__(self) -> None:
        self._free_before = _free(self.folder)

    def due(self) -> bool:
        """Whether enough time has passed since the last check."""
        return time.monotonic() >= self._next

    def exceeded(self) -> bool:
        """Check now, and return whether the folder has too many bytes or files."""
        # Measured in processor time, because wall-clock time would delay the next check on a busy machine.
        began = time.thread_time()
        used, files, hidden = _usage(self.folder)
        used += _removed_but_open(self.pid, self.folder)
        if hidden:  # the run made a folder unreadable, so the disk's decrease in free space is measured
            used += max(0, self._free_before - _free(self.folder) - used)
        pause = _SHARE * (time.thread_time() - began)
        self._next = time.monotonic() + min(max(_LEAST_PAUSE_S, pause), _MOST_PAUSE_S)
        return used > self.limit or files > self.most_files


def _usage(folder: Path) -> tuple[int, int, bool]:
    """Return the bytes and the number of entries below `folder`, and whether part of it is unreadable."""
    used = 0
    files = 0
    hidden = False
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    # The run continues meanwhile, so a file may be gone before its size is read.
                    with contextlib.suppress(FileNotFoundError):
                        files += 1
                        used += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:
            hidden = True
    return used, files, hidden


def _removed_but_open(pid: int, folder: Path) -> int:
    """Return the bytes of files without a name, which are freed only when they are closed."""
    device = folder.stat().st_dev
    seen = set[int]()
    used = 0
    for process in descendants(pid):
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{process}/fd"):
                with contextlib.suppress(OSError):
                    found = entry.stat()
                    is_removed = found.st_dev == device and found.st_nlink == 0
                    if is_removed and found.st_ino not in seen:
                        seen.add(found.st_ino)
                        used += found.st_blocks * _BLOCK
    return used


def _free(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bfree * status.f_frsize


_ROOT = Path("/sys/fs/cgroup")
_NEEDED = {"memory", "pids"}
_SPARE = 16
"""The number of processes of the isolation itself, which the group counts too."""
_JOIN = 'echo $$ > "$0" && exec "$@"'


@dataclass(frozen=True, slots=True)
class BoundedCommand:
    """A command line that starts another command under a limit, and a check of whether the limit was hit."""

    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    """The environment of the prefix's programs, which do not pass it on."""
    was_hit: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Delegation:
    """The way in which this machine delegates control groups, if any."""

    parent: Path | None = None
    systemd_run: str = ""

    def __bool__(self) -> bool:
        return self.parent is not None or bool(self.systemd_run)


def find_delegation(root: Path = _ROOT, own: Path = Path("/proc/self/cgroup")) -> Delegation:
    """Return how this machine delegates control groups, after trying it; the result is falsy if it can't."""
    parent = _writable_parent(root, own)
    if parent is not None:
        return Delegation(parent)
    program = shutil.which("systemd-run")
    has_session = os.geteuid() != 0 and bool(os.environ.get("XDG_RUNTIME_DIR"))
    if program and has_session:
        command = [program, *_scope(1 << 30, 64), "true"]
        with contextlib.suppress(OSError):
            if run_host_program(command, timeout_s=10).returncode == 0:
                return Delegation(systemd_run=program)
    return Delegation()


@contextlib.contextmanager
def bounded(delegation: Delegation, limits: RunLimits) -> Iterator[BoundedCommand]:
    """Yield a way to start a command under limits on memory and processes, in a separate control group.

    The group is removed afterwards. Without a delegation there is no limit. Whether the limit was reached is
    known only if the group was made here, without `systemd-run`.
    """
    processes = limits.processes + _SPARE
    if delegation.parent is not None:
        group = delegation.parent / f"gistpoint-{os.getpid()}-{os.urandom(4).hex()}"
        group.mkdir()
        try:
            (group / "memory.max").write_text(str(limits.memory))
            with contextlib.suppress(OSError):  # the kernel might not account for swap
                (group / "memory.swap.max").write_text("0")
            (group / "pids.max").write_text(str(processes))
            # The command joins the group before it becomes bubblewrap, so nothing starts outside the group.
            prefix = ("/bin/sh", "-c", _JOIN, str(group / "cgroup.procs"))
            yield BoundedCommand(prefix, was_hit=lambda: _killed_in(group))
        finally:
            _remove(group)
    elif delegation.systemd_run:
        kept = {
            key: os.environ[key]
            for key in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
            if key in os.environ
        }
        yield BoundedCommand(
            (delegation.systemd_run, *_scope(limits.memory, processes), "/usr/bin/env", "-i"), kept
        )
    else:
        yield BoundedCommand()


def _scope(memory: int, processes: int) -> Sequence[str]:
    return (
        "--user",
        "--scope",
        "--quiet",
        "--collect",
        f"--property=MemoryMax={memory}",
        "--property=MemorySwapMax=0",
        f"--property=TasksMax={processes}",
        "--",
    )


def _writable_parent(root: Path, own: Path) -> Path | None:
    """Return the parent of this process's group if groups in it can limit memory and processes.

    Return None if they can't, or if it is unknown.
    """
    try:
        line = next(line for line in own.read_text().splitlines() if line.startswith("0::/"))
        parent = (root / line.removeprefix("0::/")).parent
        if not parent.is_relative_to(root) or not os.access(parent / "cgroup.procs", os.W_OK):
            return None
        offered = set((parent / "cgroup.subtree_control").read_text().split())
        if not offered >= _NEEDED:
            return None
        # Tried out, because a user who can make a group can't always set its limits.
        trial = parent / f"gistpoint-trial-{os.getpid()}"
        trial.mkdir()
        usable = os.access(trial / "memory.max", os.W_OK)
        trial.rmdir()
    except (OSError, StopIteration):
        return None
    return parent if usable else None


def _killed_in(group: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        counts = dict(line.split() for line in (group / "memory.events").read_text().splitlines())
        return int(counts.get("oom_kill", "0")) > 0
    return False


def _remove(group: Path) -> None:
    """Kill what is left in a group and remove it; retry a limited time while a process is in the way."""
    with contextlib.suppress(OSError):
        if (group / "cgroup.kill").exists():  # since Linux 5.14
            (group / "cgroup.kill").write_text("1")
    for _ in range(100):
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)
        else:
            return
