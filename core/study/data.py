"""The data that a study's analyses read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gistpoint.core.study.declaration import Study, StudyTask
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.rows import AttemptRow


class ReviewDecision(StrEnum):
    """A reviewer's decision on an attempt."""

    ACCEPT = "accept"
    EXCLUDE = "exclude"
    REJECT_PASS = "reject_pass"
    """Only the pass is rejected: the attempt still counts, as not solved."""


@dataclass(frozen=True, slots=True)
class ReviewerDecision:
    """A reviewer's last decision on whether an attempt counts, blind to participant and outcome."""

    attempt: str
    reviewer: str
    decision: ReviewDecision
    active_s: float | None = None
    """The active time in seconds with which the reviewer accepts the attempt; None for the recorded one."""


@dataclass(frozen=True, slots=True)
class RepairEquivalence:
    """The comparison of a solved attempt's repair with the original, on recorded and varied inputs."""

    attempt: str
    task: str
    verdict: str
    """`equivalent`, `differs` or `not_comparable`."""
    inputs: int = 0
    """The number of calls compared."""
    example: str = ""
    """The smallest call whose results differ, or the reason why nothing could be compared."""


class MergeDecision(StrEnum):
    """The merge decision of a reader who can't distinguish repairs from originals."""

    MERGE = "merge"
    MERGE_AFTER_CHANGES = "merge_after_changes"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class MergeReading:
    """A blind reading of a solved repair, or of an original mixed in among the repairs."""

    task: str
    reader: str
    decision: MergeDecision
    attempt: str = ""
    """The id of the attempt; empty for an original."""
    reason: str = ""


@dataclass(frozen=True)
class StudyData:
    """A study with its log, its tasks, and a row for each attempt."""

    study: Study
    ledger: Ledger
    tasks: Mapping[str, StudyTask]
    """The tasks by full id."""
    rows: tuple[AttemptRow, ...] = ()
    problems: tuple[str, ...] = ()
    """Sentences on data that could not be read or matched."""
    candidates: Mapping[str, tuple[Mapping[str, float], ...]] = field(default_factory=dict)
    """The metrics of all functions of each library, for the percentiles that define hard tasks."""

    decisions: tuple[ReviewerDecision, ...] = ()
    """The last decision of each reviewer on each attempt."""
    equivalences: tuple[RepairEquivalence, ...] = ()
    """The comparisons of repairs, at most one per attempt."""
    readings: tuple[MergeReading, ...] = ()

    @property
    def counted(self) -> tuple[AttemptRow, ...]:
        """The rows that count in analyses."""
        return tuple(row for row in self.rows if row.counted)
