"""Measures the cost of an attempt's event beyond the disk's sync.

The event is appended to a journal, and its bytes are written to a bare file and synced, in turn.

Usage: PYTHONPATH=src:tests python tests/benchmarks/journal.py [EVENTS] [FOLDER]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

from gistpoint.core.attempts.events import BufferEdited, CallAnswered, JournalEvent
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.journal import JournalWriter, encode

ANSWER = "line of an answer\n" * 400


def timed(action: Callable[[], object]) -> float:
    """Return the milliseconds that an action takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as name:
        folder = Path(name)
        writer = JournalWriter(folder / "attempt", SystemTime())
        bare = os.open(folder / "bare", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        journalled, synced, grouped = [], [], []
        for number in range(events):
            data = CallAnswered(f"call-{number}", ANSWER)
            edit = BufferEdited(buffer=f"call-{number}", text=ANSWER)
            line = encode(JournalEvent(number, data.type, 0, 0, data, "0" * 64))
            synced.append(timed(lambda line=line: (os.write(bare, line), os.fdatasync(bare))))
            journalled.append(timed(lambda data=data: writer.append(data)))
            grouped.append(timed(lambda edit=edit: writer.append(edit)))
        writer.close()
        os.close(bare)
    extra = [event - sync for event, sync in zip(journalled, synced, strict=True)]
    print(f"{events} events of {len(ANSWER)} characters, milliseconds each: median, 99th percentile")
    for words, times in (
        ("bytes written and synced", synced),
        ("an event, on the disk with its head", journalled),
        ("difference, pair by pair", extra),
        ("an event that is synced in a group", grouped),
    ):
        print(f"{words:36} {median(times):8.3f} {quantiles(times, n=100)[98]:8.3f}")


if __name__ == "__main__":
    main()
