"""All that the analyses of a study read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gistpoint.core.study.declaration import Study, StudyTask
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.rows import AttemptRow


class ReviewDecision(StrEnum):
    """What a reviewer of a study says of an attempt."""

    ACCEPT = "accept"
    EXCLUDE = "exclude"


@dataclass(frozen=True, slots=True)
class ReviewerDecision:
    """One reviewer's last word on whether an attempt counts, blind to participant and outcome."""

    attempt: str
    reviewer: str
    decision: ReviewDecision


@dataclass(frozen=True, slots=True)
class RepairEquivalence:
    """The repair of a solved attempt compared with the original, on recorded and varied inputs."""

    attempt: str
    task: str
    verdict: str
    """`equivalent`, `differs` or `not_comparable`."""
    inputs: int = 0
    """How many calls were compared."""
    example: str = ""
    """The smallest call whose results differ, or why nothing could be compared."""


class MergeDecision(StrEnum):
    """What a reader who can't distinguish repairs from originals would do with a change."""

    MERGE = "merge"
    MERGE_AFTER_CHANGES = "merge_after_changes"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class MergeReading:
    """One blind reading of a solved repair, or of an original that was mixed in."""

    task: str
    reader: str
    decision: MergeDecision
    attempt: str = ""
    """Empty for an original."""
    reason: str = ""


@dataclass(frozen=True)
class StudyData:
    """A study with its log, its tasks, and a row for each attempt."""

    study: Study
    ledger: Ledger
    tasks: Mapping[str, StudyTask]
    """By the whole id."""
    rows: tuple[AttemptRow, ...] = ()
    problems: tuple[str, ...] = ()
    """What could not be read or matched, a sentence each."""
    candidates: Mapping[str, tuple[Mapping[str, float], ...]] = field(default_factory=dict)
    """Metrics of all functions of each library, against whose 90th percentiles a task is hard."""

    decisions: tuple[ReviewerDecision, ...] = ()
    """Of reviewers on attempts: the last of each."""
    equivalences: tuple[RepairEquivalence, ...] = ()
    """At most one for each attempt."""
    readings: tuple[MergeReading, ...] = ()

    @property
    def counted(self) -> tuple[AttemptRow, ...]:
        """The rows that analyses use."""
        return tuple(row for row in self.rows if row.counted)
