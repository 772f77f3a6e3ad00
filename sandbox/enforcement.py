"""Which limits a backend really holds on this machine, and by what."""

from __future__ import annotations

import os
from collections.abc import Mapping

from gistpoint.core.outcomes import BackendRecord

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
