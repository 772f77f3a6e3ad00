"""The budgets of an attempt: tool uses and submissions, counted alike for people, models and replays."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_STEPS = 50


@dataclass(frozen=True, slots=True)
class Budgets:
    """The tool uses, submissions and working time with which an attempt starts."""

    tool_uses: int = 16
    submissions: int = 4
    time_limit_s: int | None = None
    """The limit in seconds on the active clock; None for no limit."""
    scores: int | None = 0
    """The number of permitted uses of `score_gist`; None for no limit.

    Attempts set it from the task's gist settings.
    """

    @classmethod
    def of(cls, tool_uses: int, submissions: int | None = None, time_limit_s: int | None = None) -> Budgets:
        """Return budgets, by default with N/4 submissions for N tool uses, at least 1 (specs: budgets)."""
        return cls(tool_uses, max(1, tool_uses // 4) if submissions is None else submissions, time_limit_s)

    @classmethod
    def of_steps(cls, steps: int = DEFAULT_STEPS, time_limit_s: int | None = None) -> Budgets:
        """Return a gist's budgets: one step per tool call, and a single hand-in (specs: gistify)."""
        return cls(steps, 1, time_limit_s)


DEFAULT_BUDGETS = Budgets(16, 4)
SEVERAL_CORRUPTIONS_BUDGETS = Budgets(32, 8)


@dataclass(frozen=True, slots=True)
class Remaining:
    """The remaining budgets."""

    tool_uses: int
    submissions: int
    scores: int | None = 0
    """The number of remaining uses of `score_gist`; None for no limit."""

    def spend(self, *, tool_uses: int = 0, submissions: int = 0, scores: int = 0) -> Remaining:
        """Return the budgets that remain after spending these amounts; none falls below 0."""
        left = None if self.scores is None else max(0, self.scores - scores)
        return Remaining(max(0, self.tool_uses - tool_uses), max(0, self.submissions - submissions), left)


NOTHING_LEFT = Remaining(0, 0)
