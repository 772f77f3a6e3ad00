"""Budgets of an attempt: tool uses and submissions, counted in one place for a person, a model and a replay."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_STEPS = 50


@dataclass(frozen=True, slots=True)
class Budgets:
    """How many tool uses and submissions an attempt starts with, and how long its solver may work."""

    tool_uses: int = 16
    submissions: int = 4
    time_limit_s: int | None = None
    """Seconds on the active clock; None for no limit."""
    scores: int | None = 0
    """Uses of `score_gist`; None for any number. Set for attempts; a task has it in its gist settings."""

    @classmethod
    def of(cls, tool_uses: int, submissions: int | None = None, time_limit_s: int | None = None) -> Budgets:
        """Return budgets; N tool uses give N/4 submissions by default (specs: budgets)."""
        return cls(tool_uses, max(1, tool_uses // 4) if submissions is None else submissions, time_limit_s)

    @classmethod
    def of_steps(cls, steps: int = DEFAULT_STEPS, time_limit_s: int | None = None) -> Budgets:
        """Return the budgets of a gist: one tool call is one step, and there is one hand-in (specs: gistify)."""
        return cls(steps, 1, time_limit_s)


DEFAULT_BUDGETS = Budgets(16, 4)
SEVERAL_CORRUPTIONS_BUDGETS = Budgets(32, 8)


@dataclass(frozen=True, slots=True)
class Remaining:
    """The remaining budgets."""

    tool_uses: int
    submissions: int
    scores: int | None = 0
    """Uses of `score_gist`; None for any number."""

    def spend(self, *, tool_uses: int = 0, submissions: int = 0, scores: int = 0) -> Remaining:
        """Return the budgets after spending; never below zero."""
        left = None if self.scores is None else max(0, self.scores - scores)
        return Remaining(max(0, self.tool_uses - tool_uses), max(0, self.submissions - submissions), left)


NOTHING_LEFT = Remaining(0, 0)
