"""Waiting until a process namespace that bubblewrap made is gone.

Bubblewrap itself leaves as soon as the command has: the first process of the namespace, and whatever the command left
in it, end by the kernel's signal a moment later.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gistpoint.sandbox.backends.bwrapmounts import Plan

_PATIENCE_S = 10.0
_TICK_S = 0.002
_MOST = 4096


@contextlib.contextmanager
def namespace_end(plan: Plan) -> Iterator[None]:
    """Leave only when no process is left in the namespace that `plan` makes, or after ten seconds.

    Bubblewrap is started and has ended inside; the descriptor that it tells the first process's number on is among the
    plan's.
    """
    reading, writing = os.pipe()
    plan.descriptors.append(writing)
    plan.arguments += ["--info-fd", str(writing)]
    try:
        yield
    finally:
        first = _first_process(reading)
        os.close(reading)
        if first is not None:
            _wait_for(first)


def _first_process(reading: int) -> int | None:
    """Return the host's number of the namespace's first process, None where it came to none."""
    os.set_blocking(reading, False)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return int(json.loads(os.read(reading, _MOST))["child-pid"])
    return None


def _wait_for(pid: int) -> None:
    """Wait for the end of a process that is not our own child; a first process ends after all of its namespace."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # a Python built for an older kernel has no such call
        _look_for(pid)
        return
    try:
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        waiting.poll(_PATIENCE_S * 1000)
    finally:
        os.close(handle)


def _look_for(pid: int) -> None:
    """Look until the process is gone or only waits for its parent; for kernels older than 5.3."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return
        if status.rpartition(")")[2].split()[0] in "ZX":
            return
        time.sleep(_TICK_S)
