"""The progress of a campaign: what is tried now, what was kept, what was thrown away and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gistpoint.core.running import RunProgress


@dataclass(frozen=True, slots=True)
class TrialProgress:
    """One candidate that is being tried by one worker."""

    worker: str
    function: str
    """The `path::qualname` of the function, the first one of a group."""
    attempt: int = 0
    """Which corruption of it is tried, 1 for the first; 0 before the first."""
    family: str = ""
    latest: str = ""
    """What became of the corruption before, in a few words."""
    tests: int = 0
    """Tests run so far for this candidate."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class KeptTask:
    """A task that is written, and can be opened while the campaign goes on."""

    id: str
    functions: tuple[str, ...]
    failing: int
    glance: float | None = None
    """The predicted rate at which readers see it at a glance, of a group the mean."""
    replaces: str = ""
    """The id of the task that it takes the place of."""


@dataclass(frozen=True, slots=True)
class CampaignProgress(RunProgress):
    """The state of a campaign on one source; reported at every change."""

    source: str = ""
    wanted: int = 0
    candidates: int = 0
    tried: int = 0
    kept: tuple[KeptTask, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Candidates thrown away, by reason."""
    corruptions: Mapping[str, int] = field(default_factory=dict)
    """Corruptions thrown away, by reason."""
    trials: tuple[TrialProgress, ...] = ()
    tests_per_second: float = 0.0
    elapsed: float = 0.0
    """Seconds since the campaign began on this source."""
    remaining: float | None = None
    """Seconds until the set is full, from what was measured; None as long as nothing is known."""
