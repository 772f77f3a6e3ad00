"""What an attempt came to: a suspicious pass counts only after somebody has read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gistpoint.core.attempts.state import AttemptState


class AttemptResult(StrEnum):
    """The three things that an attempt can come to; the outcome in its journal stays what it is."""

    SOLVED = "solved"
    TO_BE_READ = "solved, to be read"
    """The tests pass, the submission is suspicious, and nobody has settled it: it does not count as solved."""
    NOT_SOLVED = "not solved"

    @property
    def passes(self) -> bool:
        """Whether the tests passed and nobody has said that this was not earned."""
        return self is not AttemptResult.NOT_SOLVED


def result_of(solved: bool, suspicious: Collection[str], accepted: bool | None = None) -> AttemptResult:
    """Return what a run came to whose tests passed or did not.

    `suspicious` says why the pass is to be read, `accepted` what reviewers have made of it: None while they have not,
    or do not agree.
    """
    if not solved or accepted is False:
        return AttemptResult.NOT_SOLVED
    return AttemptResult.TO_BE_READ if suspicious and accepted is None else AttemptResult.SOLVED


def suspicions(passes: Sequence[Collection[str]]) -> tuple[str, ...]:
    """Return why an attempt's pass is to be read, from each submission that passed: not at all if one is clean."""
    return tuple(sorted({reason for reasons in passes for reason in reasons})) if all(passes) else ()


def solved_words(results: Iterable[AttemptResult]) -> str:
    """Return how many of some runs count as solved, and how many more would if they were read, in a few words."""
    counts = Counter(results)
    more = counts[AttemptResult.TO_BE_READ]
    words = f"{counts[AttemptResult.SOLVED]} of {counts.total()} solved"
    return f"{words}, {more} more to be read" if more else words


def attempt_result(state: AttemptState, accepted: bool | None = None) -> AttemptResult:
    """Return what an attempt came to so far."""
    return result_of(state.solved, state.suspicious, accepted)
