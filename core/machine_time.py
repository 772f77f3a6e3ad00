"""The clocks of the machine."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path


class SystemTime:
    """The machine's clocks; implements `core.ports.TimeSource`."""

    def utc_ms(self) -> int:
        """Return the milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def mono_ms(self) -> int:
        """Return the reading of the monotonic clock in milliseconds."""
        return time.monotonic_ns() // 1_000_000

    def boot_id(self) -> str:
        """Return the kernel's boot id on Linux, elsewhere the minute of the boot."""
        return _boot_id()


@cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"boot-{round((time.time() - time.monotonic()) / 60)}"
