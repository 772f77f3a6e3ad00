"""What a reader sees at a glance: verdicts on a function read blind, and the score that predicts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class GlanceVerdict(StrEnum):
    """A reader's verdict on a corruption, after a blind reading of the function among untouched ones."""

    GOOD = "good"
    """Nothing was seen in the blind reading, and it is a fault."""
    BORDERLINE = "borderline"
    """Something was doubted at the changed place, among other places or without certainty."""
    AT_A_GLANCE = "at a glance"
    """The changed place was named as a fault in the blind reading."""
    NOT_A_FAULT = "not a fault"
    """The function does what it did, or another thing that nobody can call wrong."""


@dataclass(frozen=True, slots=True)
class GlanceScore:
    """How likely a reader sees a corruption at a glance, predicted from the text alone."""

    value: float
    """A probability, 0 to 1: the lower, the better hidden."""
    features: Mapping[str, float]
    """What the prediction rests on, by the feature's name."""

    def to_json(self) -> dict[str, Any]:
        """Return the score as a task's provenance keeps it."""
        return {"value": self.value, "features": dict(self.features)}
