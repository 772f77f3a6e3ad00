"""The records that an attempt's state is made of: calls, submissions, handovers, pauses, marks and costs."""

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
    usage: Usage = field(default_factory=Usage)
    """Of all replies, including failed tries."""
    retried: int = 0
    """Requests that were sent again."""
    malformed: int = 0
    """Calls that could not be carried out as requested."""


def spending_of(turns: Iterable[ModelTurn], malformed: int) -> ModelSpending:
    """Return the cost of replies; `malformed` counts their calls that could not be carried out."""
    turns = tuple(turns)
    costs = (part for turn in turns for part in (turn.usage, turn.lost) if part is not UNSET)
    return ModelSpending(len(turns), sum(costs, Usage()), sum(len(turn.retried) for turn in turns), malformed)


REQUEST_ID = "request_id"
"""The member of a call's `extra` that holds the id by which a model's reply asked for it."""


@dataclass(frozen=True, slots=True)
class AttemptCall:
    """One tool call, and its result once there is one."""

    call_id: str
    turn: int
    tool: str
    arguments: Mapping[str, Any]
    text: str | None = None
    """The answer; None while the call runs."""
    refused: bool = False
    at_ms: int = 0
    """Active milliseconds when the call was made."""
    duration_ms: int = 0
    remaining: Remaining = NOTHING_LEFT
    """The budgets left after it."""
    revealed: Revealed = NOTHING_REVEALED
    thought: str = ""
    automatic: str = ""
    """The limit that made the program call; empty for a call by the solver."""
    number: int = 0
    """Its number among the calls of the attempt, from 1; the calls of one reply share their turn."""
    malformed: str = ""
    """Why it can't be carried out (`malformed.Malformed`); empty for a sound call."""
    raw: str = ""
    """The text of a malformed call's arguments as received, if there was one."""
    code: str = ""
    """The `GiveUpCode` of a hand-in by which a solver gives up."""
    requested: bool = False
    """Whether a model's reply requested it."""


@dataclass(frozen=True, slots=True)
class Handover:
    """A change of the driver, with the number of turns and of calls before it."""

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
    """The replacement that a repair submits."""
    gist: str = ""
    """The text of a gist's hand-in."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """A gist's score as `core.kinds.gist.score` spells it, with the evidence by line under `lines`."""
    counts: bool = True
    """False if the harness failed: it cost nothing."""
    status: str = ""
    """The run's status; empty while it runs."""
    reason: str = ""
    score: float | None = None
    solved: bool = False
    passed: int = 0
    failing: tuple[str, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    changed: tuple[str, ...] = ()
    """Corrupted functions whose text differs from the corrupted one, as `path::qualname`."""
    suspicious: tuple[str, ...] = ()
    """What the text of a pass shows; `doubts` says whether that matters."""
    at_ms: int = 0
    seconds: float = 0.0
    confirmation: Confirmation | None = None
    """Of a pass, after the attempt has ended; None if nobody requested one."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why a pass is to be read before it counts."""
        return doubts(self.suspicious, self.confirmation)

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of a gist's score."""
        given = self.metrics.get("flags")
        return (
            tuple(str(name) for name, value in given.items() if value) if isinstance(given, Mapping) else ()
        )


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause in progress."""

    reason: str
    text: str
    since_mono_ms: int


@dataclass(frozen=True, slots=True)
class Suspect:
    """A function that the solver marked as suspect, and when."""

    name: str
    at_ms: int
    calls: int


@dataclass(frozen=True, slots=True)
class Ending:
    """Why the attempt ended, with the solver's own words if there are any."""

    reason: str
    code: str = ""
    text: str = ""
