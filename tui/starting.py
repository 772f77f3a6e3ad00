"""The garbage collector while the program starts: modules and classes are made by the thousand, and none is garbage."""

from __future__ import annotations

import gc
import sys

START_S = 1.0
"""Seconds after which a screen is certainly up."""


def hold_collection() -> None:
    """Collect nothing until `go_on_collecting`, where a screen is about to be opened."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        gc.disable()


def go_on_collecting() -> None:
    """Collect again, but never look again at what the start has made: that is what makes a screen stutter."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
