"""What aiohttp complains of, as lines for who serves: never what was sent, and each kind at most once a minute."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp.http_exceptions import HttpProcessingError

from gistpoint.core.errors import UserError

QUIET_S = 60.0
"""A kind of complaint is told again after this time, with the number of those in between."""


@contextmanager
def complaints_to(log: Callable[[str], None]) -> Iterator[None]:
    """Pass the complaints of all of aiohttp's loggers to `log`, and to nothing else."""
    logger, handler = logging.getLogger("aiohttp"), _Complaints(log)
    passed_on, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = passed_on


class _Complaints(logging.Handler):
    def __init__(self, log: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._told: dict[str, tuple[float, int]] = {}
        """Of each kind when it was told, and how often it was kept back since."""

    def emit(self, record: logging.LogRecord) -> None:
        words, now = _kind(record.exc_info[1] if record.exc_info else None), time.monotonic()
        told_at, kept_back = self._told.get(words, (-QUIET_S, 0))
        if now - told_at < QUIET_S:
            self._told[words] = told_at, kept_back + 1
            return
        self._told[words] = now, 0
        self._log(f"{words} ({kept_back} more since that was last said.)" if kept_back else words)


def _kind(error: BaseException | None) -> str:
    """Return a sentence without the text of the error, which quotes the request; our own errors don't."""
    if error is None or isinstance(error, HttpProcessingError):
        return "A malformed request was refused."
    if isinstance(error, UserError):
        return f"A request failed: {error}"
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in place)
    return f"A request failed: {type(error).__name__}{where}."
