"""One row for each attempt: of people, models and simulated people alike.

Every number of a report comes from rows.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gistpoint.core.attempts.results import Standing, standing_in


class SubmissionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One submission of an attempt."""

    number: int
    at_s: float | None = None
    """Active seconds when it was made."""
    counts: bool = True
    score: float | None = None
    solved: bool = False
    status: str = ""
    changed: tuple[str, ...] = ()
    """Corrupted functions whose text differs, as `path::qualname`."""


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call of an attempt."""

    number: int
    tool: str
    kind: str = ""
    """Of the step that it is: view, search, execute, edit, submit or other; derived in foreign runs."""
    at_s: float | None = None
    refused: bool = False
    automatic: bool = False
    seconds: float = 0.0


class FlagRow(msgspec.Struct, frozen=True, kw_only=True):
    """One flag of an attempt, with the numbers of the events that show it."""

    flag: str
    events: tuple[int, ...] = ()
    words: str = ""


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt. Times are seconds; None for what is not known or does not apply."""

    attempt: str
    """Its id, or a foreign run's key."""
    study: str
    simulated: bool = False
    actor: str = "person"
    """`person`, `model` or `simulated`."""
    solver: str = ""
    """The name of the model as the study declares it; empty for people."""
    participant: str = ""
    stratum: str = ""
    task: str
    source: str = ""
    mode: str = ""
    condition: str = ""
    condition_key: str = ""
    """Rows are pooled only if their keys are equal: budgets, limit, tools, template;
    a model's settings after ` | `."""
    assignment: str = ""
    position: int | None = None
    sitting: int | None = None
    role: str = ""
    counted: bool = True
    """Whether analyses use it: a first exposure, assigned, in role, not excluded."""
    exclusion: str = ""
    """Why it is excluded: a flag, or an organiser's reason."""
    end: str = ""
    end_code: str = ""
    solved: bool = False
    """As the task's kind counts it: a gist's only at fidelity 1 without mocks."""
    by_tests: bool = False
    """Whether the tests alone passed, whatever reviewers or a confirmation say."""
    confirmation: str = ""
    """How a pass stands (`core.attempts.results.Standing`);
    empty without one, and where none is confirmed."""
    score: float | None = None
    """Of the last submission."""
    best_score: float | None = None
    outcome_of_last: str = ""
    measures: dict[str, Any] = {}
    """What the task's kind measures, by the names of its `TaskKind.measures`;
    without those that are not known."""
    tool_uses: int = 0
    submissions: int = 0
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
    """The corrected time on the clock that the study declares primary, to the first solve or to the end."""
    censored: str = ""
    """Empty if solved; `censored` at a limit, `competing` if given up or skipped."""
    instructions_s: float | None = None
    first_submission_s: float | None = None
    solved_s: float | None = None
    first_view_s: float | None = None
    """Until a corrupted function was first shown."""
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
    """To the questionnaires of this task, by column, as `after.ease`."""

    @property
    def standing(self) -> Standing | None:
        """How its pass stands; None if the tests alone do not call it solved."""
        return standing_in(self.confirmation, passes=self.solved or self.by_tests)

    @property
    def by_the_tests(self) -> AttemptRow:
        """The row as the tests alone have it: solved whatever reviewers or a confirmation say."""
        return msgspec.structs.replace(self, solved=self.solved or self.by_tests)

    @property
    def budget_key(self) -> str:
        """The part of the condition's key that people and models share:
        what a comparison of them must have equal.
        """
        return self.condition_key.partition(" | ")[0]

    @property
    def who(self) -> str:
        """The name of the solver's group in a figure: the model's, or `people`; simulated ones say so."""
        name = self.solver or "people"
        return f"simulated {name}" if self.simulated else name

    def number(self, measure: str) -> float | None:
        """Return a number that the task's kind measures;
        None if it is not known, or if another kind measures it.
        """
        value = self.measures.get(measure)
        return value if isinstance(value, int | float) else None

    def says(self, measure: str) -> bool:
        """Whether a measure that is yes or no is yes."""
        return bool(self.measures.get(measure))

    def text(self, measure: str) -> str:
        """Return a text that the task's kind measures; empty if it is not known."""
        return str(self.measures.get(measure, ""))

    def names(self, measure: str) -> tuple[str, ...]:
        """Return the names that a measure lists."""
        return tuple(self.measures.get(measure, ()))
