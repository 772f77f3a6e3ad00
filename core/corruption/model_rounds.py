"""What is settled before a model corrupts a function, and what is recorded of it: limits, rounds, how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from gistpoint.core.corruption.evidence import FEW_FAILING, band
from gistpoint.core.corruption.model_template import NAME, template_sha256
from gistpoint.core.ports import ChatProblem, Usage
from gistpoint.core.tasks.model import Failure, Target


class Keep(StrEnum):
    """Which of the accepted submissions becomes the corruption."""

    BEST = "best"
    """The most subtle one."""
    FINAL = "final"
    """The last one, as in the paper."""


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """The limits of one loop. The paper: five rounds of feedback, at least two failing tests."""

    feedback_rounds: int = 5
    tool_calls: int = 30
    min_failing: int = FEW_FAILING[0]
    most_failing: int = FEW_FAILING[1]
    """Above this many failing tests a corruption is called too loud; the aim is told to the model."""
    keep: Keep = Keep.BEST
    max_tokens: int | None = 500_000
    """Of all requests together, sent and received."""
    max_cost_usd: float | None = None

    @classmethod
    def for_tasks(cls, min_failing: int, **changes: Any) -> LoopSettings:
        """Return the settings for tasks that need `min_failing` failing tests: 2 to 15 are aimed at, or 5 to 40."""
        least, most = band(min_failing)
        return cls(min_failing=least, most_failing=most, **changes)


class Verdict(StrEnum):
    """What became of a submission."""

    ACCEPTED = "accepted"
    TOO_FEW_FAILING = "too_few_failing"
    NO_DEFINITION = "no_single_definition"
    UNCHANGED = "unchanged"
    CLUE = "leaves_a_clue"
    BREAKS_COLLECTION = "breaks_collection_only"
    HANGS = "hangs_or_exhausts_memory"
    COULD_NOT_RUN = "suite_could_not_run"

    @property
    def tried(self) -> bool:
        """Whether the tests were run on it."""
        return self not in (Verdict.NO_DEFINITION, Verdict.UNCHANGED, Verdict.CLUE)


class End(StrEnum):
    """How a loop ended; whatever was accepted by then can still be kept."""

    FINAL_SUBMISSION = "final_submission"
    STOPPED_BY_MODEL = "stopped_by_model"
    TOOL_CALLS = "tool_calls_used_up"
    NO_TOOL_CALL = "no_tool_call"
    TRUNCATED = "truncated_replies"
    REFUSED = "refused"
    TOKEN_CAP = "token_cap"
    COST_CAP = "cost_cap"
    COST_UNKNOWN = "cost_unknown"
    RATE_LIMITED = ChatProblem.RATE_LIMITED.value
    SERVER_ERROR = ChatProblem.SERVER_ERROR.value
    TIMED_OUT = ChatProblem.TIMED_OUT.value
    NO_CONNECTION = ChatProblem.NO_CONNECTION.value
    MALFORMED_REPLY = ChatProblem.MALFORMED_REPLY.value
    NOT_AUTHORISED = ChatProblem.NOT_AUTHORISED.value
    REJECTED = ChatProblem.REJECTED.value


@dataclass(frozen=True, slots=True)
class Trial:
    """What the tests show on a corrupted function."""

    verdict: Verdict
    failing: int = 0
    tests: int = 0
    by_assertion: int | None = None
    """Of the failing tests; None where nobody looked."""
    through_target: int | None = None
    """Failing tests whose traceback passes through the function; None where nobody looked."""
    failing_ids: frozenset[str] = frozenset()
    messages: int = 0
    """Distinct last lines of the failures."""
    failures: tuple[Failure, ...] = ()
    subtlety: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    detail: str = ""


TryOut = Callable[[Target], Trial]
"""Runs the tests that can see a function. Raises `CancelledError` when stopped."""


@dataclass(frozen=True, slots=True)
class Round:
    """One submission of a model, and what became of it."""

    number: int
    call: int
    """Which tool call it was, counted from 1."""
    code: str
    """As the model sent it."""
    verdict: Verdict
    detail: str = ""
    target: Target | None = None
    trial: Trial | None = None

    @property
    def accepted(self) -> bool:
        """Whether it may be kept."""
        return self.verdict is Verdict.ACCEPTED

    @property
    def subtlety(self) -> float:
        """The score of its trial, 0 without one."""
        return self.trial.subtlety if self.trial else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return it as it is recorded."""
        row: dict[str, Any] = {"number": self.number, "call": self.call, "verdict": self.verdict.value}
        row["code"] = self.code
        if self.detail:
            row["detail"] = self.detail
        if self.trial is not None:
            row["failing"], row["subtlety"] = self.trial.failing, round(self.trial.subtlety, 4)
            row["parts"] = {name: round(value, 4) for name, value in self.trial.parts.items()}
        return row


@dataclass(frozen=True, slots=True)
class LoopResult:
    """A loop from its prompt to its end."""

    model: str
    settings: LoopSettings
    end: End
    detail: str
    """What ended it, in a sentence, where its name does not say it all."""
    rounds: tuple[Round, ...]
    tool_calls: int
    requests: int
    usage: Usage
    prompt_sha256: str
    models: tuple[str, ...] = ()
    """The names under which the endpoint answered."""
    retried: Mapping[str, int] = field(default_factory=dict)
    """Requests that had to be sent again, by what had gone wrong."""

    @property
    def kept(self) -> Round | None:
        """The submission that becomes the corruption, by the rule of the settings; None where none may."""
        tried = [item for item in self.rounds if item.verdict.tried]
        if self.settings.keep is Keep.FINAL:
            return tried[-1] if tried and tried[-1].accepted else None
        return max((item for item in tried if item.accepted), key=lambda item: item.subtlety, default=None)

    def as_json(self) -> dict[str, Any]:
        """Return everything that a task records of it."""
        kept = self.kept
        return {
            "model": self.model,
            "answered_as": list(self.models),
            "template": NAME,
            "template_sha256": template_sha256(),
            "prompt_sha256": self.prompt_sha256,
            "settings": {**asdict(self.settings), "keep": self.settings.keep.value},
            "end": self.end.value,
            "detail": self.detail,
            "rounds": [item.as_json() for item in self.rounds],
            "kept": kept.number if kept else None,
            "tool_calls": self.tool_calls,
            "requests": self.requests,
            "retried": dict(self.retried),
            "usage": {**asdict(self.usage), "tokens": self.usage.tokens},
        }
