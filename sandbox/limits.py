"""The limits of one run, and how they are enforced on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of one run, in bytes, except for the counts `processes` and `open_files`.

    `memory` limits the sum over all processes of the run, `address_space` each process alone; `address_space`
    is larger because thread pools and large maps reserve more than they touch.
    """

    memory: int = 2048 * _MIB
    address_space: int = 4096 * _MIB
    processes: int = 256
    open_files: int = 1024
    file_size: int = 200 * _MIB
    workspace: int = 512 * _MIB
    temporary: int = 256 * _MIB
    output: int = _MIB
    """The number of bytes at the end of standard output and error that are kept."""
    results: int = 64 * _MIB
    """The maximum number of bytes sent over the result pipe; a run that exceeds it is stopped."""
    result_line: int = _MIB

    @property
    def disk(self) -> int:
        """The limit on the total size of the run's files."""
        return self.workspace + self.temporary

    def of_a_process(self) -> dict[str, int]:
        """Return the limits on each process, keyed by the names of constants in the module `resource`."""
        # RLIMIT_NPROC is left out on purpose: it counts all processes of a user, not those of a run.
        # RLIMIT_DATA adds nothing to RLIMIT_AS, but replaces a lower limit of gistpoint's own process.
        return {
            "RLIMIT_CORE": 0,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_FSIZE": self.file_size,
            "RLIMIT_AS": self.address_space,
            "RLIMIT_DATA": self.address_space,
        }

    def record(self) -> Mapping[str, int]:
        """Return the limits by name, as written into a result."""
        return asdict(self)


def suite_timeout(baseline_seconds: float) -> float:
    """Return the seconds that a run of a suite may take: five times its baseline, but at least ten."""
    return max(10.0, 5.0 * baseline_seconds)


KERNEL, WATCHED, NOT_ENFORCED = "kernel", "watched", "no"
LIMITS = ("memory", "processes", "disk", "files", "network", "time", "output")
_ALWAYS = {"time": WATCHED, "output": WATCHED}


def enforcement(*, memory: str, processes: str, disk: str, files: str, network: str) -> Mapping[str, str]:
    """Return how each of `LIMITS` is enforced: by the kernel, by gistpoint's watching, or not.

    A watched limit is checked while the run lasts, except for the limit on files, which is checked after
    the run. Time and output are always watched.
    """
    return {
        "memory": memory,
        "processes": processes,
        "disk": disk,
        "files": files,
        "network": network,
        **_ALWAYS,
    }
