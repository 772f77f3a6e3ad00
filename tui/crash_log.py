"""Records unexpected exceptions: the traceback in a separate file, and an event in the open attempt."""

from __future__ import annotations

import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint import __version__
from gistpoint.tui.machine_errors import temporary_folder

if TYPE_CHECKING:
    from gistpoint.core.attempts.events import Crashed

_LONGEST = 2_000
"""The maximum number of characters in an exception's message in a journal."""


def write_crash(logs: Path, error: BaseException, *, attempt_id: str = "") -> Path:
    """Write a traceback to a new file in `logs`, and return the path.

    If that folder can't be written, the file is in the folder of temporary files, or nowhere.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    head = f"gistpoint {__version__}\nattempt {attempt_id or 'none'}\n\n"
    text = head + "".join(traceback.format_exception(error))
    for folder in (logs, temporary_folder()):
        path = folder / f"crash-{stamp}.log"
        # A full disk may have caused the exception.
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            return path
    return path


def crash_event(error: Exception, log: Path) -> Crashed:
    """Return the event that names an exception and its log in the journal of an attempt."""
    from gistpoint.core.attempts.events import Crashed  # would delay the first drawing

    return Crashed(type(error).__name__, str(error)[:_LONGEST], log.name)
