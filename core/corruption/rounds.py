"""The rounds of a corrupting model: its submissions, the decisions on them, and the end of the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import msgspec

from gistpoint.core.chat import ChatProblem, Usage
from gistpoint.core.corruption.blind import GlanceScore
from gistpoint.core.corruption.evidence import FEW_FAILING, band
from gistpoint.core.corruption.prompt import TEMPLATE, template_sha256
from gistpoint.core.tasks.model import Failure, Target


class Keep(StrEnum):
    """The rule by which an accepted submission becomes the corruption."""

    BEST = "best"
    """The submission that is hidden best, by the tests and the predicted visibility; see `Round.merit`."""
    FINAL = "final"
    """The last submission, as in the paper."""


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """The limits of one loop.

    The paper has five rounds of feedback and at least two failing tests.
    """

    feedback_rounds: int = 5
    tool_calls: int = 30
    min_failing: int = FEW_FAILING[0]
    most_failing: int = FEW_FAILING[1]
    """With more failing tests, a corruption is too obvious; the model is shown the desired range."""
    keep: Keep = Keep.BEST
    max_tokens: int | None = 500_000
    """The maximum number of tokens in all requests together, sent and received; None for no limit."""
    max_cost_usd: float | None = None

    @property
    def aim(self) -> str:
        """The desired range of failing tests in words."""
        return f"{self.min_failing} to {self.most_failing} failing tests"

    @classmethod
    def for_tasks(cls, min_failing: int, **changes: Any) -> LoopSettings:
        """Return the settings for tasks that need at least `min_failing` failing tests.

        `band` determines the desired range of failing tests; as in the paper, a model has to break at least
        two. `changes` are other settings.
        """
        least, most = band(min_failing)
        return cls(min_failing=max(least, FEW_FAILING[0]), most_failing=most, **changes)


class SubmissionVerdict(StrEnum):
    """The decision on a submission."""

    ACCEPTED = "accepted"
    TOO_FEW_FAILING = "too_few_failing"
    NO_DEFINITION = "no_single_definition"
    UNCHANGED = "unchanged"
    CLUE = "leaves_a_clue"
    BREAKS_COLLECTION = "breaks_collection_only"
    HANGS = "hangs_or_exhausts_memory"
    COULD_NOT_RUN = "suite_could_not_run"
    UNUSABLE = "unusable"
    """A rewrite can't run, for example because of unknown names, or compiles to the same code."""

    @property
    def tried(self) -> bool:
        """Whether the submission got as far as a run of the tests."""
        return self not in (
            SubmissionVerdict.NO_DEFINITION,
            SubmissionVerdict.UNCHANGED,
            SubmissionVerdict.CLUE,
            SubmissionVerdict.UNUSABLE,
        )


class End(StrEnum):
    """The reason why a loop ended; submissions accepted by then can still be kept."""

    FINAL_SUBMISSION = "final_submission"
    STOPPED_BY_MODEL = "stopped_by_model"
    TOOL_CALLS = "tool_calls_used_up"
    NO_TOOL_CALL = "no_tool_call"
    NO_DEFINITION = "no_definition"
    """No reply contained the definition requested from a rewriting model."""
    SENT_AGAIN = "sent_the_same_again"
    TRUNCATED = "truncated_replies"
    REFUSED = "refused"
    TOKEN_CAP = "token_cap"
    COST_CAP = "cost_cap"
    COST_UNKNOWN = "cost_unknown"
    SET_CAP = "cap_of_the_set"
    RATE_LIMITED = ChatProblem.RATE_LIMITED.value
    SERVER_ERROR = ChatProblem.SERVER_ERROR.value
    TIMED_OUT = ChatProblem.TIMED_OUT.value
    NO_CONNECTION = ChatProblem.NO_CONNECTION.value
    MALFORMED_REPLY = ChatProblem.MALFORMED_REPLY.value
    NOT_AUTHORISED = ChatProblem.NOT_AUTHORISED.value
    ACCOUNT_EMPTY = ChatProblem.ACCOUNT_EMPTY.value
    UNKNOWN_MODEL = ChatProblem.UNKNOWN_MODEL.value
    CONTEXT_FULL = ChatProblem.CONTEXT_FULL.value
    REJECTED = ChatProblem.REJECTED.value


_FAULTS = (
    *(End.NO_TOOL_CALL, End.NO_DEFINITION, End.TRUNCATED, End.REFUSED),
    *(End.SENT_AGAIN, End.MALFORMED_REPLY, End.REJECTED),
)
"""Ends for which the model or its endpoint is to blame even if a submission was tried.

If no submission was tried, they are to blame for most other ends too (see `LoopResult.fault`).
"""


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """The results of the tests on a corrupted function."""

    verdict: SubmissionVerdict
    failing: int = 0
    tests: int = 0
    by_assertion: int | None = None
    """The number of tests that fail by an assertion; None if not examined."""
    through_target: int | None = None
    """The number of tests whose traceback passes through the function; None if not examined."""
    failing_ids: frozenset[str] = frozenset()
    messages: int = 0
    """The number of different last lines of the failures."""
    failures: tuple[Failure, ...] = ()
    subtlety: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Appearance:
    """The visibility of a corruption to a reader of its text."""

    rules: tuple[str, ...] = ()
    """The broken rules for corruptions without a model, in words."""
    glance: GlanceScore | None = None
    seen: bool = False
    """Whether a reader is likely to see the corruption at a glance."""


Reader = Callable[[Target], Appearance]
"""Returns the appearance of a corruption."""
TryOut = Callable[[Target], ModelTrial]
"""Runs the tests that can see a function. Raises `CancelledError` when stopped."""


@dataclass(frozen=True, slots=True)
class Round:
    """One submission of a model, and the decision on it."""

    number: int
    call: int
    """The number of its tool call, counted from 1."""
    code: str
    """The code as the model sent it; empty if the code was too long."""
    verdict: SubmissionVerdict
    detail: str = ""
    target: Target | None = None
    trial: ModelTrial | None = None
    appearance: Appearance = field(default_factory=Appearance)
    again: int | None = None
    """The number of an earlier submission with the same text, which is not run again; None for a new text."""

    @property
    def accepted(self) -> bool:
        """Whether the submission can be kept."""
        return self.verdict is SubmissionVerdict.ACCEPTED

    @property
    def subtlety(self) -> float:
        """The score of its trial; 0 without a trial."""
        return self.trial.subtlety if self.trial else 0.0

    def merit(self, settings: LoopSettings) -> tuple[bool, bool, float]:
        """Return a sort key that is the largest for the best submission.

        Submissions whose number of failing tests is within the aim come first, then those not seen at a
        glance, then those with the highest product of subtlety in the tests and probability that a reader
        misses them.
        """
        loud = self.trial is None or self.trial.failing > settings.most_failing
        glance = self.appearance.glance
        return not loud, not self.appearance.seen, self.subtlety * (1 - (glance.value if glance else 0.0))

    def as_json(self) -> dict[str, Any]:
        """Return the round as a JSON object."""
        row: dict[str, Any] = {"number": self.number, "call": self.call, "verdict": self.verdict.value}
        row["code"] = self.code
        if self.detail:
            row["detail"] = self.detail
        if self.trial is not None:
            row["failing"], row["subtlety"] = self.trial.failing, round(self.trial.subtlety, 4)
            row["parts"] = {name: round(value, 4) for name, value in self.trial.parts.items()}
        if self.appearance.rules:
            row["rules"] = list(self.appearance.rules)
        if self.appearance.glance is not None:
            row["glance"] = self.appearance.glance.value
        if self.again is not None:
            row["again"] = self.again
        return row


_COUNTED = (
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "estimated",
    "cached_tokens",
    "reasoning_tokens",
    "tokens",
)
"""The parts of the usage in a task's record, in its order; journals have other names for them."""


@dataclass(frozen=True, slots=True)
class LoopResult:
    """The result of a loop, from its prompt to its end."""

    model: str
    settings: LoopSettings
    end: End
    detail: str
    """The reason why the loop ended, in a sentence; empty if `end` says enough."""
    rounds: tuple[Round, ...]
    tool_calls: int
    requests: int
    usage: Usage
    prompt_sha256: str
    """The hash of the prompt as it was sent, including the examples."""
    models: tuple[str, ...] = ()
    """The model names with which the endpoint answered."""
    retried: Mapping[str, int] = field(default_factory=dict)
    """The number of repeated requests, by kind of failure."""
    chosen: int | None = None
    """The number of the submission that is kept in place of the one that the settings choose, or None."""
    template: str = TEMPLATE

    @property
    def kept(self) -> Round | None:
        """The submission that becomes the corruption; None if there is none.

        It is `chosen` if that is set; otherwise the rule of the settings decides.
        """
        if self.chosen is not None:
            return self.rounds[self.chosen - 1]
        # The last tried submission counts, accepted or not: as in the paper, no earlier one replaces it.
        tried = [item for item in self.rounds if item.verdict.tried]
        if self.settings.keep is Keep.FINAL:
            return tried[-1] if tried and tried[-1].accepted else None
        accepted = [item for item in tried if item.accepted]
        return max(accepted, key=lambda item: item.merit(self.settings), default=None)

    @property
    def in_turn(self) -> list[LoopResult]:
        """A result for each submission that can be kept, with that submission chosen; the kept one is first.

        With the rule `Keep.FINAL`, only the kept submission has a result. Empty if none is kept.
        """
        first = self.kept
        if first is None:
            return []
        others = [item for item in self.rounds if item.accepted and item.again is None and item is not first]
        others.sort(key=lambda item: item.merit(self.settings), reverse=True)
        if self.settings.keep is Keep.FINAL:
            others = []
        return [self, *(replace(self, chosen=item.number) for item in others)]

    @property
    def fault(self) -> str:
        """The reason why the model or its endpoint made the loop useless, in words; empty if it was not."""
        # Neither the model nor its endpoint is to blame for a cap of the whole set or a missing price.
        if self.kept is not None or self.end in (End.SET_CAP, End.COST_UNKNOWN):
            return ""
        # A rewrite that equals the original is final, although no test was run.
        of_use = self.end is End.FINAL_SUBMISSION or any(item.verdict.tried for item in self.rounds)
        return self.end.value.replace("_", " ") if not of_use or self.end in _FAULTS else ""

    def as_json(self) -> dict[str, Any]:
        """Return the record that a task stores, as a JSON object."""
        kept = self.kept
        return {
            "model": self.model,
            "answered_as": list(self.models),
            "template": self.template,
            "template_sha256": template_sha256(self.template),
            "prompt_sha256": self.prompt_sha256,
            "settings": msgspec.to_builtins(self.settings),
            "end": self.end.value,
            "detail": self.detail,
            "rounds": [item.as_json() for item in self.rounds],
            "kept": kept.number if kept else None,
            "tool_calls": self.tool_calls,
            "requests": self.requests,
            "retried": dict(self.retried),
            "usage": {name: getattr(self.usage, name) for name in _COUNTED},
        }
