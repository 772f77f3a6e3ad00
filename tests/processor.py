"""The processor time that a process's threads request, which the clock of a busy machine does not show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def wants_to_run(process: int | str, *, without: int = 0) -> bool:
    """Return whether a thread of the process runs or waits for a processor; False if unknown.

    The thread `without` is left out.
    """
    left_out = str(without)
    with suppress(OSError):  # the process has ended
        for thread in Path(f"/proc/{process}/task").iterdir():
            if thread.name == left_out:
                continue
            with suppress(OSError):
                if (thread / "stat").read_bytes().rpartition(b") ")[2].startswith(b"R"):
                    return True
    return False


def asked_s(process: int | str, *, without: int = 0) -> float:
    """Return the seconds for which the threads of a process have run or waited for a processor.

    The thread `without` is left out. The result is 0 if the kernel doesn't report them. A wait counts only
    once it is over.
    """
    return sum(ran + waited for ran, waited in _scheduled(process, without))


def ran_s(process: int | str) -> float:
    """Return the seconds for which the threads of a process have run; 0 if the kernel doesn't report them."""
    return sum(ran for ran, _ in _scheduled(process))


def _scheduled(process: int | str, without: int = 0) -> Iterator[tuple[float, float]]:
    """Yield the seconds for which each thread has run and has waited for a processor."""
    with suppress(OSError):  # the process has ended
        for thread in Path(f"/proc/{process}/task").iterdir():
            if thread.name != str(without):
                with suppress(OSError):
                    ran, waited, *_ = (thread / "schedstat").read_bytes().split()
                    yield int(ran) / 1e9, int(waited) / 1e9
