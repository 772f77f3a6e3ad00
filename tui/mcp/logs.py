"""What the packages that serve the protocol log: on standard error, with clients' control characters visible."""

from __future__ import annotations

import logging

from gistpoint.core.text import visible


class _Visible(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text; names and headers in it are a client's."""
        return visible(super().format(record))


def log_visibly() -> None:
    """Have warnings and errors of packages without a handler of their own, which go to standard error, readable."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Visible())
