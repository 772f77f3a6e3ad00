"""The reasons why an attempt is paused, ends or is given up: closed sets, whose values journals store."""

from __future__ import annotations

from enum import StrEnum


class PauseReason(StrEnum):
    """The reason why the clock was stopped."""

    BREAK = "break"
    INTERRUPTED = "interrupted"
    QUESTION_TO_ORGANISER = "question_to_organiser"
    ENVIRONMENT_FAILURE = "environment_failure"
    HARNESS_SCORING = "harness_scoring"
    AWAY = "away"
    SUSPEND_DETECTED = "suspend_detected"
    CORRECTION = "correction"
    ENDPOINT_WAIT = "endpoint_wait"
    """The model's endpoint asked to be called later."""
    HANDOVER = "handover"
    QUESTIONNAIRE = "questionnaire"
    """A study asks questions about the task before work on it begins."""


SOLVER_PAUSE_REASONS = (
    PauseReason.BREAK,
    PauseReason.INTERRUPTED,
    PauseReason.QUESTION_TO_ORGANISER,
    PauseReason.ENVIRONMENT_FAILURE,
)
"""The reasons that a person can choose; the others are set by the program or an organiser."""


class EndReason(StrEnum):
    """The reason why an attempt ended: a closed set, because each is a distinct statistical event."""

    SOLVED = "solved"
    SUBMISSIONS_EXHAUSTED = "submissions_exhausted"
    CALLS_EXHAUSTED = "calls_exhausted"
    STEPS_EXHAUSTED = "steps_exhausted"
    TIME_CAP = "time_cap"
    GAVE_UP = "gave_up"
    SKIPPED = "skipped"
    FINAL_WRONG = "final_wrong"
    INFRASTRUCTURE = "infrastructure"
    WITHDRAWN = "withdrawn"
    DISQUALIFIED = "disqualified"
    CONTEXT_EXHAUSTED = "context_exhausted"
    """The conversation no longer fits the model's context."""
    TOKEN_CAP = "token_cap"
    SETTLED = "settled"
    """A model's halted attempt was ruled not solved; the code is the problem that halted it."""


class GiveUpCode(StrEnum):
    """The reason for giving up or skipping."""

    TOO_HARD = "too_hard"
    UNCLEAR = "unclear"
    BROKEN_TASK = "broken_task"
    TIRED = "tired"
    OUT_OF_TIME = "out_of_time"
    OTHER = "other"
    NO_TOOL_CALL = "no_tool_call"
    """The model's replies call no tool."""
    DECLINED = "declined"
    TRUNCATED = "truncated"
    NOT_SUPPORTED = "not_supported"
    """The built-in solver can't attempt tasks of this kind."""


SOLVER_GIVE_UP_CODES = (
    GiveUpCode.TOO_HARD,
    GiveUpCode.UNCLEAR,
    GiveUpCode.BROKEN_TASK,
    GiveUpCode.TIRED,
    GiveUpCode.OUT_OF_TIME,
    GiveUpCode.OTHER,
)
"""The codes that a person can choose; the others are set by the program for a model."""
SCAFFOLD_INTERRUPTED = "scaffold_interrupted"
"""The code of an attempt that ended because its scaffold stopped and can't continue (decision 153)."""
