"""What a campaign's candidates came to, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from gistpoint.core.generation.campaign.candidates import Plan
from gistpoint.core.generation.campaign.controls import agreement
from gistpoint.core.generation.campaign.library import Library
from gistpoint.core.generation.campaign.settings import SourceSpec
from gistpoint.core.generation.campaign.verdicts import Verdict


@dataclass
class Counts:
    """The verdicts of a campaign so far, in their order."""

    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """How many candidates have a verdict."""
        return len(self.verdicts)

    @property
    def kept(self) -> int:
        """How many became a task."""
        return sum(verdict.kept is not None for verdict in self.verdicts)

    @property
    def reasons(self) -> dict[str, int]:
        """Candidates that came to nothing, by reason, the most frequent first."""
        found = Counter(verdict.reason.value for verdict in self.verdicts if verdict.kept is None)
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    @property
    def fates(self) -> dict[str, int]:
        """Single corruptions by the end that they met, the most frequent first."""
        found: Counter[str] = Counter()
        for verdict in self.verdicts:
            found.update(verdict.fates)
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def costs(self, suite_seconds: float) -> dict[str, Any]:
        """Return seconds spent, and saved against running the whole suite (which takes so long) on everything tried."""
        probes = [seconds for verdict in self.verdicts for seconds in verdict.cost.probes]
        middle = median(probes) if probes else None
        return {
            "probes": len(probes),
            "warm": sum(verdict.cost.warm for verdict in self.verdicts),
            "probe_seconds": round(sum(probes), 2),
            "median_probe_seconds": None if middle is None else round(middle, 4),
            "median_share_of_suite": None if middle is None else round(middle / suite_seconds, 4),
            "confirmations": sum(verdict.cost.confirmations for verdict in self.verdicts),
            "confirming_seconds": round(sum(verdict.cost.confirming for verdict in self.verdicts), 2),
            "suite_seconds": round(suite_seconds, 2),
            "saved_seconds": round(len(probes) * suite_seconds - sum(probes), 1),
        }


@dataclass
class SourceResult:
    """What came of one source of a campaign."""

    spec: SourceSpec
    refused: tuple[str, str] | None = None
    """Why no task can be made of it at all: a reason and a sentence."""
    learning_seconds: float = 0.0
    making_seconds: float = 0.0
    plan: Plan | None = None
    library: Library | None = None
    tasks: list[str] = field(default_factory=list)
    """Ids of the tasks, in the order of their candidates."""
    counts: Counts = field(default_factory=Counts)
    comparisons: list[Mapping[str, Any]] = field(default_factory=list)
    """Of the control sample."""

    @property
    def kept(self) -> int:
        """How many candidates became a task."""
        return self.counts.kept

    def to_json(self) -> dict[str, Any]:
        """Return the result as a JSON value."""
        left_out = {} if self.plan is None else self.plan.left_out
        return {
            "source": self.spec.source,
            "stars": self.spec.stars,
            "refused": None if self.refused is None else {"reason": self.refused[0], "message": self.refused[1]},
            "functions": 0 if self.plan is None else self.plan.functions,
            "left_out": left_out,
            "candidates": 0 if self.plan is None else len(self.plan.candidates),
            "tried": self.counts.tried,
            "kept": self.kept,
            "tasks": self.tasks,
            "dropped": self.counts.reasons,
            "corruptions": self.counts.fates,
            "costs": None if self.library is None else self.counts.costs(self.library.intake.seconds),
            "seconds": {"learning": round(self.learning_seconds, 1), "making": round(self.making_seconds, 1)},
            "control": {
                "tried": len(self.comparisons),
                "agreement": agreement(self.comparisons),
                "differing": [comparison for comparison in self.comparisons if not comparison["agrees"]],
            },
        }
