"""The events of an attempt. An attempt is the list of them, and nothing of it is stored anywhere else.

Every event carries its place, two clocks and the hash of the line before it; its own data is a JSON object whose keys
the fold in `state` reads. Types that a reader does not know are kept and shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

SCHEMA_VERSION = 1


class EventType(StrEnum):
    """The types that this version writes."""

    ATTEMPT_STARTED = "attempt_started"
    PROCESS_STARTED = "process_started"
    VIEW = "view"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    SUBMIT = "submit"
    TEST_RUN = "test_run"
    SCORE = "score"
    PAUSE = "pause"
    RESUME = "resume"
    IDLE_PROMPT = "idle_prompt"
    NOTE = "note"
    EDIT_BUFFER = "edit_buffer"
    COMFORT = "comfort"
    SUSPECT = "suspect"
    HEARTBEAT = "heartbeat"
    QUESTIONNAIRE = "questionnaire"
    CORRECTION = "correction"
    CRASH = "crash"
    ATTEMPT_ENDED = "attempt_ended"


class PauseReason(StrEnum):
    """Why the clock stands still."""

    BREAK = "break"
    INTERRUPTED = "interrupted"
    QUESTION_TO_ORGANISER = "question_to_organiser"
    ENVIRONMENT_FAILURE = "environment_failure"
    HARNESS_SCORING = "harness_scoring"
    AWAY = "away"
    SUSPEND_DETECTED = "suspend_detected"
    CORRECTION = "correction"


SOLVER_PAUSE_REASONS = (
    PauseReason.BREAK,
    PauseReason.INTERRUPTED,
    PauseReason.QUESTION_TO_ORGANISER,
    PauseReason.ENVIRONMENT_FAILURE,
)
"""The reasons that a person is offered; the others are set by the program or an organiser."""


class EndReason(StrEnum):
    """Why an attempt ended: a closed set, because each is another statistical event."""

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


class GiveUpCode(StrEnum):
    """Why a solver gave up or skipped."""

    TOO_HARD = "too_hard"
    UNCLEAR = "unclear"
    BROKEN_TASK = "broken_task"
    TIRED = "tired"
    OUT_OF_TIME = "out_of_time"
    OTHER = "other"


class Pane(StrEnum):
    """What has the focus; it decides which clock runs."""

    BRIEF = "brief"
    TREE = "tree"
    CODE = "code"
    CONSOLE = "console"
    RESULT = "result"
    EDITOR = "editor"
    NOTES = "notes"


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a journal. Times are milliseconds; `prev` is the sha256 of the line before, without its newline."""

    seq: int
    type: str
    utc_ms: int
    mono_ms: int
    data: Mapping[str, Any] = field(default_factory=dict)
    prev: str = ""
