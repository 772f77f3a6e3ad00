"""How much memory a tree of processes holds, by Linux's /proc; other systems have no such watch."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")


def can_watch() -> bool:
    """Whether this system tells what a process tree holds."""
    return sys.platform == "linux" and (_PROC / "self/statm").exists()


def descendants(pid: int) -> list[int]:
    """Return `pid` and every process below it that is there right now."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_bytes().rsplit(b")", 1)[1].split()
        except (OSError, IndexError):
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for known in found:
        found.extend(children.get(known, ()))
    return found


def memory_of_tree(pid: int, enough: int) -> int:
    """Return the bytes that `pid` and its descendants hold: proportional set sizes, so that shared pages count once.

    Where the resident sets alone, which are cheaper to read and never smaller, sum to no more than `enough`, their
    sum is returned instead; also for a process whose details may not be read.
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
