"""What one run may use. A run that wants more is stopped, and its report says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

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
