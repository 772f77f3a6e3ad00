"""A bound on the memory and the processes of a whole run by cgroup v2, where a part of the tree is ours to use.

Two ways: a group of our own beside the one that we are in, where its parent may be written (a systemd user session's
applications, root on a bare machine); else a scope that systemd's user manager makes. Where neither is there, the
watchdog in `memory` remains.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gistpoint.sandbox.limits import Limits

_ROOT = Path("/sys/fs/cgroup")
_NEEDED = {"memory", "pids"}
_SPARE = 16
"""Processes of the isolation itself, which the group counts too."""
_JOIN = 'echo $$ > "$0" && exec "$@"'


@dataclass(frozen=True, slots=True)
class Bound:
    """A command line that starts another one under the bound, and how to ask whether the bound was hit."""

    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    """What the prefix itself needs; it hands nothing of it on."""
    was_hit: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Delegation:
    """Which of the two ways this machine offers."""

    parent: Path | None = None
    systemd_run: str = ""

    def __bool__(self) -> bool:
        return self.parent is not None or bool(self.systemd_run)


def find_delegation(root: Path = _ROOT, own: Path = Path("/proc/self/cgroup")) -> Delegation:
    """Look for a way, by trying it; an empty answer means that there is none."""
    parent = _writable_parent(root, own)
    if parent is not None:
        return Delegation(parent)
    program = shutil.which("systemd-run")
    if program and os.geteuid() != 0 and os.environ.get("XDG_RUNTIME_DIR"):
        command = [program, *_scope(1 << 30, 64), "true"]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            if subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0:
                return Delegation(systemd_run=program)
    return Delegation()


@contextlib.contextmanager
def bounded(delegation: Delegation, limits: Limits) -> Iterator[Bound]:
    """Make a group for one run and remove it afterwards; without a delegation the bound is empty."""
    processes = limits.processes + _SPARE
    if delegation.parent is not None:
        group = delegation.parent / f"gistpoint-{os.getpid()}-{os.urandom(4).hex()}"
        group.mkdir()
        try:
            (group / "memory.max").write_text(str(limits.memory))
            with contextlib.suppress(OSError):  # a kernel may have no swap to account
                (group / "memory.swap.max").write_text("0")
            (group / "pids.max").write_text(str(processes))
            prefix = ("/bin/sh", "-c", _JOIN, str(group / "cgroup.procs"))
            yield Bound(prefix, was_hit=lambda: _killed_in(group))
        finally:
            _remove(group)
    elif delegation.systemd_run:
        kept = {key: os.environ[key] for key in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS") if key in os.environ}
        yield Bound((delegation.systemd_run, *_scope(limits.memory, processes), "/usr/bin/env", "-i"), kept)
    else:
        yield Bound()


def _scope(memory: int, processes: int) -> Sequence[str]:
    return (
        "--user", "--scope", "--quiet", "--collect", f"--property=MemoryMax={memory}", "--property=MemorySwapMax=0",
        f"--property=TasksMax={processes}", "--",
    )  # fmt: skip


def _writable_parent(root: Path, own: Path) -> Path | None:
    try:
        line = next(line for line in own.read_text().splitlines() if line.startswith("0::/"))
        parent = (root / line.removeprefix("0::/")).parent
        if not parent.is_relative_to(root) or not os.access(parent / "cgroup.procs", os.W_OK):
            return None
        if not set((parent / "cgroup.subtree_control").read_text().split()) >= _NEEDED:
            return None
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
