"""Small bars for numbers between 0 and 1."""

from __future__ import annotations

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(share: float, width: int = 20) -> str:
    """Return a bar of `width` cells, filled as far as `share` of 1 to an eighth of a cell; beyond is cut."""
    filled = round(min(1.0, max(0.0, share)) * width * 8)
    whole, rest = divmod(filled, 8)
    text = _EIGHTHS[8] * whole + (_EIGHTHS[rest] if rest else "")
    return text.ljust(width, "·")
