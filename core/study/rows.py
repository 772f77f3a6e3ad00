"""The rows from which reports are computed: one per attempt of a person, model or simulated person.

Rows are computed each time from the journal and the log, and stored nowhere (decision 81).
"""

from __future__ import annotations

from typing import Any

import msgspec

from gistpoint.core.attempts.results import Standing, standing_in

JUDGED, RECORDED, DERIVED = "judged", "recorded", "derived"
"""The origins of a verdict (`AttemptRow.verdict_from`)."""


class SubmissionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One submission of an attempt."""

    number: int
    at_s: float | None = None
    """The active time of the submission, in seconds."""
    counts: bool = True
    score: float | None = None
    solved: bool = False
    status: str = ""
    changed: tuple[str, ...] = ()
    """The corrupted functions whose text differs, as `path::qualname`."""


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call of an attempt."""

    number: int
    tool: str
    kind: str = ""
    """The kind of step: view, search, execute, edit, submit or other; derived for foreign runs."""
    at_s: float | None = None
    refused: bool = False
    automatic: bool = False
    seconds: float = 0.0


class FlagRow(msgspec.Struct, frozen=True, kw_only=True):
    """One flag of an attempt, with the numbers of its events."""

    flag: str
    events: tuple[int, ...] = ()
    words: str = ""


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt. Times are in seconds; None means unknown or not applicable."""

    attempt: str
    """The attempt's id, or the key of a foreign run."""
    study: str
    simulated: bool = False
    actor: str = "person"
    """`person`, `model` or `simulated`."""
    solver: str = ""
    """The model's name in the declaration; empty for people."""
    participant: str = ""
    stratum: str = ""
    task: str
    source: str = ""
    mode: str = ""
    condition: str = ""
    condition_key: str = ""
    """The key that pooled rows share: budgets, tools, template and help; after ` | `, a model's settings."""
    assignment: str = ""
    position: int | None = None
    sitting: int | None = None
    role: str = ""
    counted: bool = True
    """Whether analyses use the row, which is the case if it has no `exclusion`."""
    exclusion: str = ""
    """The code of the reason why it is not counted (`core.study.exclusions`); empty if it is counted."""
    end: str = ""
    end_code: str = ""
    solved: bool = False
    """Whether it counts as solved by the task's kind: for a gist, fidelity 1 without mocks."""
    by_tests: bool = False
    """Whether it is solved by the tests alone, before reviewers and confirmations."""
    verdict_from: str = ""
    """The origin of `solved`: `judged` by gistpoint, `recorded` by another program, or `derived`.

    It is derived if another program's file has only a score or a reward, and empty if there is no result.
    """
    confirmation: str = ""
    """The standing of a pass (`core.attempts.results.Standing`); empty without a pass to be confirmed."""
    score: float | None = None
    """The score of the last submission; None if there is no submission, or it has no score."""
    best_score: float | None = None
    outcome_of_last: str = ""
    measures: dict[str, Any] = {}
    """The known measures of the kind by their names in `TaskKind.measures`."""
    tool_uses: int | None = 0
    """The number of tool uses; None if another program's file records no call."""
    submissions: int | None = 0
    """The number of submissions; None if another program's file records neither a number nor a call."""
    tool_use_budget: int | None = None
    submission_budget: int | None = None
    time_limit_s: float | None = None
    reading_s: float | None = None
    exploring_s: float | None = None
    editing_s: float | None = None
    waiting_s: float | None = None
    paused_s: float | None = None
    idle_s: float | None = None
    asleep_s: float | None = None
    away_s: float | None = None
    active_s: float | None = None
    active_corrected_s: float | None = None
    primary_s: float | None = None
    """The corrected time on the declared primary clock, until the first solve or the end."""
    censored: str = ""
    """`competing` if given up or skipped, `censored` after another end that counts.

    Empty if it is solved, unfinished, or ended by infrastructure, withdrawal or disqualification.
    """
    instructions_s: float | None = None
    first_submission_s: float | None = None
    solved_s: float | None = None
    first_view_s: float | None = None
    """The active time until a corrupted function was first shown."""
    first_mark_s: float | None = None
    first_touch_s: float | None = None
    comforts: dict[str, int] = {}
    assist_messages: int = 0
    assist_tokens: int = 0
    assist_cost_usd: float | None = None
    resumes: int = 0
    brief_sha256: str = ""
    tools_sha256: str = ""
    protocol_sha256: str = ""
    backend: str = ""
    gistpoint: str = ""
    journal_head: str = ""
    started_utc: str = ""
    tokens: int | None = None
    cost_usd: float | None = None
    scaffold: str = ""
    submitted: tuple[SubmissionRow, ...] = ()
    calls: tuple[CallRow, ...] = ()
    flags: tuple[FlagRow, ...] = ()
    answers: dict[str, Any] = {}
    """Answers to the task's questionnaires by column, such as `after.ease`."""

    @property
    def standing(self) -> Standing | None:
        """The confirmation status of the attempt's pass; None if its tests do not pass."""
        return standing_in(self.confirmation, passes=self.solved or self.by_tests)

    @property
    def has_known_calls(self) -> bool:
        """Whether its calls are recorded, even if there are none; some programs leave them out."""
        return bool(self.calls) or self.verdict_from not in (RECORDED, DERIVED)

    @property
    def by_the_tests(self) -> AttemptRow:
        """The row with `solved` decided by the tests alone."""
        return msgspec.structs.replace(self, solved=self.solved or self.by_tests)

    @property
    def counted_score(self) -> float:
        """The best score, 0 to 1; it is 1 only if the attempt is solved, and 0 if its pass does not count."""
        if self.solved:
            return 1.0
        best = self.best_score or 0.0
        return best if best < 1 else 0.0

    @property
    def budget_key(self) -> str:
        """The part of the condition's key that must be equal in comparisons of people and models."""
        return self.condition_key.partition(" | ")[0]

    @property
    def who(self) -> str:
        """The group's name in figures: the model's name or `people`, marked if simulated."""
        name = self.solver or "people"
        return f"simulated {name}" if self.simulated else name

    def number(self, measure: str) -> float | None:
        """Return a numeric measure; None if it is unknown or belongs to another kind."""
        value = self.measures.get(measure)
        return value if isinstance(value, int | float) else None

    def is_true(self, measure: str) -> bool:
        """Return whether a yes-or-no measure is yes; false if it is unknown."""
        return bool(self.measures.get(measure))

    def text(self, measure: str) -> str:
        """Return a text measure; empty if it is unknown."""
        return str(self.measures.get(measure, ""))

    def names(self, measure: str) -> tuple[str, ...]:
        """Return the names in a measure that lists names; empty if it is unknown."""
        return tuple(self.measures.get(measure, ()))
