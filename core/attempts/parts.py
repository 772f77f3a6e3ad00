"""The records in an attempt's state: calls, submissions, handovers, pauses, marks and costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET

from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.attempts.results import doubts
from gistpoint.core.chat import Usage
from gistpoint.core.confirmation.model import Confirmation
from gistpoint.core.tasks.budgets import NOTHING_LEFT, Remaining
from gistpoint.core.tools.declaration import NOTHING_REVEALED, Replacement, Revealed


@dataclass(frozen=True, slots=True)
class ModelSpending:
    """The cost of an attempt's model so far."""

    turns: int = 0
    replies: Usage = field(default_factory=Usage)
    """The usage of the replies."""
    failed: Usage = field(default_factory=Usage)
    """The usage of failed attempts at their requests."""
    retried: int = 0
    """The number of requests sent again."""
    malformed: int = 0
    """The number of calls that could not be carried out as requested."""

    @property
    def usage(self) -> Usage:
        """The usage of all requests."""
        return self.replies + self.failed


def spending_of(turns: Iterable[ModelTurn], malformed: int) -> ModelSpending:
    """Return the cost of replies; `malformed` is the number of their calls that could not be carried out."""
    turns = tuple(turns)
    replies = sum((turn.usage for turn in turns), Usage())
    failed = sum((turn.lost for turn in turns if turn.lost is not UNSET), Usage())
    retried = sum(len(turn.retried) for turn in turns)
    return ModelSpending(len(turns), replies, failed, retried, malformed)


REQUEST_ID = "request_id"
"""The member of a call's `extra` with the id of the call in the model's reply."""


@dataclass(frozen=True, slots=True)
class AttemptCall:
    """One tool call, with its result once there is one."""

    call_id: str
    turn: int
    tool: str
    arguments: Mapping[str, Any]
    text: str | None = None
    """The answer; None while the call runs."""
    refused: bool = False
    at_ms: int = 0
    """The active time of the call, in milliseconds."""
    duration_ms: int = 0
    remaining: Remaining = NOTHING_LEFT
    """The budgets that remain after the call."""
    revealed: Revealed = NOTHING_REVEALED
    thought: str = ""
    automatic: str = ""
    """The limit that made the program call; empty for a call by the solver."""
    number: int = 0
    """The number of the call in the attempt, counted from 1; calls of one reply share only their turn."""
    malformed: str = ""
    """The reason why the call can't be carried out (`malformed.Malformed`); empty if it can."""
    raw: str = ""
    """The text of a malformed call's arguments as received; empty if there was no such text."""
    code: str = ""
    """The `GiveUpCode` of a hand-in by which a solver gives up."""
    requested: bool = False
    """Whether a model's reply requested the call."""
    typed: bool = False
    """Whether the program made the call, to save what a person had typed."""


@dataclass(frozen=True, slots=True)
class Handover:
    """A change of the driver, with the numbers of turns and calls before it."""

    to: str
    by: str
    note: str
    turns: int
    calls: int


NOTHING_REPLACED = Replacement("", "", "")


@dataclass(frozen=True, slots=True)
class Submission:
    """One submission, with the result of its tests once there is one."""

    number: int
    call_id: str
    replacement: Replacement = NOTHING_REPLACED
    """The replacement; only in a repair."""
    gist: str = ""
    """The text handed in; only in a gist."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """A gist's score in the form of `core.kinds.gist.score`, with evidence by line under `lines`."""
    counts: bool = True
    """Whether it counts and costs a submission; false if the harness failed."""
    status: str = ""
    """The status of the run; empty while it runs."""
    reason: str = ""
    score: float | None = None
    solved: bool = False
    passed: int = 0
    failing: tuple[str, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    changed: tuple[str, ...] = ()
    """The corrupted functions whose text differs from the corrupted one, as `path::qualname`."""
    suspicious: tuple[str, ...] = ()
    """The marks found in the text of a pass; `doubts` decides whether they matter."""
    at_ms: int = 0
    seconds: float = 0.0
    confirmation: Confirmation | None = None
    """The confirmation of a pass, after the end of the attempt; None if none was requested."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """The reasons why a pass needs review before it counts."""
        return doubts(self.suspicious, self.confirmation)

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of the flags set in a gist's score; empty for a submission without such a score."""
        flags = self.metrics.get("flags")
        return (
            tuple(str(name) for name, value in flags.items() if value) if isinstance(flags, Mapping) else ()
        )


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause in progress."""

    reason: str
    text: str
    since_mono_ms: int


@dataclass(frozen=True, slots=True)
class Suspect:
    """A function that the solver marked as suspect, with the active time and number of calls until then."""

    name: str
    at_ms: int
    calls: int


@dataclass(frozen=True, slots=True)
class Ending:
    """The reason why the attempt ended, with the solver's words, if any."""

    reason: str
    code: str = ""
    text: str = ""
    settled_by: str | None = None
    """The person who settled a model's halted attempt, possibly empty; None for any other end."""
