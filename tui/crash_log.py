"""Writes the traceback of each unexpected exception to a file of its own."""

from __future__ import annotations

import traceback
from datetime import UTC, datetime
from pathlib import Path

from gistpoint import __version__


def write_crash(logs: Path, error: BaseException, *, attempt_id: str = "") -> Path:
    """Write a traceback to a new file in `logs`, and return the path."""
    logs.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    path = logs / f"crash-{stamp}.log"
    head = f"gistpoint {__version__}\nattempt {attempt_id or 'none'}\n\n"
    path.write_text(
        head + "".join(traceback.format_exception(error)), encoding="utf-8", errors="backslashreplace"
    )
    return path
