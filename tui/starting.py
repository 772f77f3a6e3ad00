"""The garbage collector while the program starts: thousands of modules and classes are created, and none is garbage."""

from __future__ import annotations

import gc
import sys

START_S = 1.0
"""Seconds after which a screen is certainly shown."""


_SWITCH_S = 0.001


def hold_collection() -> None:
    """Begin as `before_a_screen`, if there is a terminal, as a screen is then about to be opened."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        before_a_screen()


def before_a_screen() -> None:
    """Collect nothing until `go_on_collecting`, and let the drawing thread wait a fifth as long for those that read."""
    gc.disable()
    sys.setswitchinterval(_SWITCH_S)


def go_on_collecting() -> None:
    """Collect again, but never scan the objects made at the start, which would make the screen stutter."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
