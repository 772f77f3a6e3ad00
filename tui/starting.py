"""Suspends garbage collection at the start, when thousands of classes are created and none is garbage."""

from __future__ import annotations

import gc
import sys

START_S = 1.0
"""Seconds after which a screen is certain to be visible."""


_SWITCH_S = 0.001


def hold_collection() -> None:
    """Call `before_a_screen` if there is a terminal, since a screen is then about to open."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        before_a_screen()


def before_a_screen() -> None:
    """Stop collecting until `resume_collecting`, and let threads take turns five times as often."""
    gc.disable()
    sys.setswitchinterval(_SWITCH_S)


def resume_collecting() -> None:
    """Collect again, but never scan the objects of the start: that would delay the screen (decision 37)."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
