"""What one run may use, and what holds each limit on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from gistpoint.core.outcomes import BackendRecord

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run, in bytes unless the name counts something; none of them is a time.

    `memory` bounds the sum over all processes of the run, `address_space` each of them alone: the second is larger
    because thread pools and large maps reserve more than they touch.
    """

    memory: int = 2048 * _MIB
    address_space: int = 4096 * _MIB
    processes: int = 256
    open_files: int = 1024
    file_size: int = 200 * _MIB
    workspace: int = 512 * _MIB
    temporary: int = 256 * _MIB
    output: int = _MIB
    """How much of standard output and error is kept: the end of it."""
    results: int = 64 * _MIB
    """How much may come over the result pipe; more stops the run."""
    result_line: int = _MIB

    @property
    def disk(self) -> int:
        """How much the files of a run may hold, all places together."""
        return self.workspace + self.temporary

    def record(self) -> Mapping[str, int]:
        """Return the limits as they are written into a result."""
        return asdict(self)


def suite_timeout(baseline_seconds: float) -> float:
    """Return the seconds that a run of a suite may take: five times its baseline, ten at least."""
    return max(10.0, 5.0 * baseline_seconds)


KERNEL, WATCHED, NOT = "kernel", "watched", "no"
LIMITS = ("memory", "processes", "disk", "files", "network", "time", "output")
_ALWAYS = {"time": WATCHED, "output": WATCHED}
_KNOWN: Mapping[str, Mapping[str, str]] = {
    "docker": {"memory": KERNEL, "processes": KERNEL, "disk": KERNEL, "files": NOT, "network": KERNEL},
    "bwrap": {"memory": WATCHED, "processes": KERNEL, "disk": KERNEL, "files": NOT, "network": KERNEL},
    "landlock": {"memory": WATCHED, "processes": KERNEL, "disk": WATCHED, "files": WATCHED, "network": KERNEL},
    "plain": {"memory": WATCHED, "processes": KERNEL, "disk": NOT, "files": NOT, "network": NOT},
}
_OF_DOCKER = {"memory": "memory", "pids": "processes", "processes": "processes"}


def enforcement(record: BackendRecord) -> Mapping[str, str]:
    """Return, for each of `LIMITS`, whether the kernel holds it, gistpoint watches it, or nobody does.

    What is watched is looked at ten times a second and the run is ended; an unknown backend is asked nothing, `?`.
    """
    known = _KNOWN.get(record.name)
    if known is None:
        return dict.fromkeys(LIMITS, "?")
    held = {**known, **_ALWAYS}
    if record.limits.get("memory_bound") == "cgroup":
        held["memory"] = KERNEL
    if record.name == "plain" and os.geteuid() == 0:
        held["processes"] = NOT  # the kernel lets root start as many as it likes
    for name in str(record.limits.get("not_enforced", "")).split(", "):
        if name in _OF_DOCKER:
            held[_OF_DOCKER[name]] = NOT
    return {name: held[name] for name in LIMITS}
