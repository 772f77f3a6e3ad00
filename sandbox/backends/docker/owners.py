"""Whose a container is: a program is named so that a later one can tell whether it still runs."""

from __future__ import annotations

import hashlib
import os
import platform
import uuid
from functools import cache
from pathlib import Path

OWNER = "io.gistpoint.owner"
_PARTS = 5


@cache
def _place() -> str:
    """Name this machine and this user, and where there is one the process namespace; tells nothing about them."""
    try:
        machine = Path("/etc/machine-id").read_text("ascii").strip()
    except (OSError, ValueError):
        machine = ""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    text = f"{machine or uuid.getnode()} {platform.node()} {os.getuid()} {namespace}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        return "unknown"


def _began(pid: int) -> str:
    """Return when a process began, as the kernel counts; `0` where that can't be told, empty for no process."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text("ascii", "replace").rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        return "0"
    return "0"


def this_program() -> str:
    """Return the name of the running program, which no other one has had or will have."""
    return f"v1/{_place()}/{_boot()}/{os.getpid()}/{_began(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Whether `owner` was a program of this user on this machine that no longer runs; False for anybody else's."""
    parts = owner.split("/")
    if len(parts) != _PARTS or parts[:2] != ["v1", _place()] or not parts[3].isdigit():
        return False
    if parts[2] != _boot():
        return True
    return _began(int(parts[3])) != parts[4]
