"""Who reviews, and how."""

from __future__ import annotations

from dataclasses import dataclass

from gistpoint.core.locations import Locations


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """Who reviews, and how."""

    locations: Locations
    reviewer: str
    blind: bool = False
