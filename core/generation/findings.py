"""What a check of a task finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. A check that could not be made in full is `reduced`, which is no failure."""

    name: str
    passed: bool
    detail: str
    reduced: bool = False
