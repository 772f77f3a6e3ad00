"""The question that a reviewer answers about a run, and its possible answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gistpoint.sessions.annotations.reviews import (
    AGENT_WORDS,
    DEFAULT_WORDS,
    ExcludeReason,
    FailureReason,
    RunVerdict,
    RunVerdictGiven,
    VerdictReason,
    VerdictWord,
    reasons_of,
)
from gistpoint.sessions.records.model import Actor

_EXCLUSIONS: Mapping[VerdictReason, str] = {
    ExcludeReason.EXPOSURE: "The solver had seen the answer",
    ExcludeReason.AID: "The solver had help that is not allowed",
    ExcludeReason.SHORTCUT: "The tests pass without a repair",
    ExcludeReason.ENVIRONMENT: "The environment failed",
    ExcludeReason.NOT_SERIOUS: "The solver did not really try",
}
_FAILURES: Mapping[VerdictReason, str] = {
    FailureReason.WRONG_THEORY: "It kept a wrong theory",
    FailureReason.WRONG_PLACE: "It changed the wrong place",
    FailureReason.INCOMPLETE: "Part of the fault remains",
    FailureReason.REGRESSION: "It broke something else",
    FailureReason.SHORTCUT: "The tests pass without a repair",
    FailureReason.GAVE_UP: "It gave up",
    FailureReason.OUT_OF_BUDGET: "It ran out of budget",
    FailureReason.HARNESS_FAULT: "The harness failed",
}


@dataclass(frozen=True, slots=True)
class VerdictForm:
    """The question about a run of a person or of an agent, and its possible answers."""

    title: str
    verdicts: Mapping[RunVerdict, str]
    words: tuple[VerdictWord, ...]
    """The verdicts that can be given with one key, unless `review.toml` defines others."""


OF_A_PERSON = VerdictForm(
    "Does this attempt count?",
    {
        RunVerdict.ACCEPT: "Accept: it counts as it is",
        RunVerdict.ACCEPT_CORRECTED_TIME: "Accept with a corrected time, in seconds",
        RunVerdict.EXCLUDE: "Exclude, for the reasons below",
        RunVerdict.NEEDS_SECOND_REVIEWER: "Needs a second reviewer",
    },
    DEFAULT_WORDS,
)
OF_AN_AGENT = VerdictForm(
    "Did this run solve its task?",
    {
        RunVerdict.SOLVED: "Solved",
        RunVerdict.NOT_SOLVED: "Not solved, for the reasons below",
        RunVerdict.EXCLUDE: "Exclude, for the reasons below",
        RunVerdict.NEEDS_SECOND_REVIEWER: "Needs a second reviewer",
    },
    AGENT_WORDS,
)
REASONS: Mapping[RunVerdict, Mapping[VerdictReason, str]] = {
    RunVerdict.EXCLUDE: _EXCLUSIONS,
    RunVerdict.NOT_SOLVED: _FAILURES,
}
"""The reasons to choose from, for each verdict that needs one."""


def form_for(actor: Actor) -> VerdictForm:
    """Return the form for a run of a person or of an agent."""
    return OF_A_PERSON if actor is Actor.PERSON else OF_AN_AGENT


@dataclass(frozen=True, slots=True)
class GivenVerdict:
    """A verdict as the reviewer entered it. The corrected time is in seconds."""

    verdict: RunVerdict
    reasons: tuple[VerdictReason, ...] = ()
    note: str = ""
    corrected_s: float | None = None
    words: str = ""
    """The words of the `VerdictWord` whose key was pressed; empty if the verdict was given in the dialog."""

    @classmethod
    def of(cls, recorded: RunVerdictGiven) -> GivenVerdict:
        """Return a recorded verdict as it would be entered."""
        return cls(recorded.verdict, recorded.reasons, recorded.note, recorded.corrected_time_s)

    @classmethod
    def by_word(cls, word: VerdictWord) -> GivenVerdict:
        """Return the verdict that a verdict word denotes."""
        return cls(word.means, reasons_of(word.means, word.reasons), words=word.words)
