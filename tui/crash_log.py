"""Records unexpected exceptions: the traceback in a separate file, and an event in the open attempt."""

from __future__ import annotations

import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint import __version__

if TYPE_CHECKING:
    from gistpoint.core.attempts.events import Crashed

_LONGEST = 2_000
"""The maximum number of characters in an exception's message in a journal."""


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


def crash_event(error: Exception, log: Path) -> Crashed:
    """Return the event that names an exception and its log in the journal of an attempt."""
    from gistpoint.core.attempts.events import Crashed  # the first screen is drawn before the engine exists

    return Crashed(type(error).__name__, str(error)[:_LONGEST], log.name)
