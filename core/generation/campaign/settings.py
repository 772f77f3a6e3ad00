"""What a campaign is asked to make."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from gistpoint.core.corruption.evidence import FEW_FAILING, band
from gistpoint.core.corruption.model_rounds import LoopSettings
from gistpoint.core.errors import UserError
from gistpoint.core.generation.proof import DEFAULT_MIN_FAILING

RECIPE = 4
"""Version of the rules by which a candidate is decided: verdicts of another one are not reused."""


class CampaignMode(StrEnum):
    """How functions are corrupted; `multi` makes discovery tasks with several targets."""

    REMOVE = "remove"
    DISCOVERY = "discovery"
    MULTI = "multi"


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides the tasks of a campaign, besides the library and the code of gistpoint."""

    mode: CampaignMode
    seed: int = 0
    min_failing: int = DEFAULT_MIN_FAILING
    hard: bool = False
    model: str = ""
    """The model that corrupts; empty for corruptions without one. With a model, a seed decides the order alone."""
    loop: LoopSettings | None = None
    """The limits of each conversation with it."""

    def __post_init__(self) -> None:
        if self.model and self.mode is not CampaignMode.DISCOVERY:
            raise UserError(f"A model corrupts in discovery mode, not in {self.mode}.", hint="Leave --model out.")
        if self.min_failing < 1:
            raise UserError(f"--min-failing must be 1 or more, and is {self.min_failing}.")

    @property
    def band(self) -> tuple[int, int]:
        """The least and the most failing tests of a good corruption."""
        return band(self.min_failing)

    @property
    def part_band(self) -> tuple[int, int]:
        """The least and the most failing tests of one corruption among several, which count together."""
        return min(FEW_FAILING[0], self.min_failing), self.band[1]

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a JSON value."""
        values = {**asdict(self), "mode": self.mode.value, "recipe": RECIPE}
        if not self.model:
            del values["model"], values["loop"]
        return values
