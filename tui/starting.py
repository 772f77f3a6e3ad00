"""The garbage collector while the program starts: modules and classes are made by the thousand, and none is garbage."""

from __future__ import annotations

import gc
import sys

START_S = 1.0
"""Seconds after which a screen is certainly up."""


_SWITCH_S = 0.001


def hold_collection() -> None:
    """Collect nothing until `go_on_collecting`, where a screen is about to be opened.

    From then on the thread that draws waits a fifth as long as usual for those that read.
    """
    if sys.stdin.isatty() and sys.stdout.isatty():
        gc.disable()
        sys.setswitchinterval(_SWITCH_S)


def go_on_collecting() -> None:
    """Collect again, but never look again at what the start has made: that is what makes a screen stutter."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
