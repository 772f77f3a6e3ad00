"""What an attempt comes to, and words for several; a list needs no more of an attempt's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum


class AttemptResult(StrEnum):
    """The three possible results of an attempt; the outcome in its journal is never changed."""

    SOLVED = "solved"
    TO_BE_READ = "solved, to be read"
    """The tests pass, the submission is suspicious, and no reviewers have settled it: it does not count as solved."""
    NOT_SOLVED = "not solved"

    @property
    def passes(self) -> bool:
        """Whether the tests passed and no reviewer has judged the pass unearned."""
        return self is not AttemptResult.NOT_SOLVED


def result_of(solved: bool, suspicious: Collection[str], accepted: bool | None = None) -> AttemptResult:
    """Return the result of a run whose tests passed or did not.

    `suspicious` says why the pass is to be read; `accepted` is the decision of the reviewers: None if there is none
    yet, or if they disagree.
    """
    if not solved or accepted is False:
        return AttemptResult.NOT_SOLVED
    return AttemptResult.TO_BE_READ if suspicious and accepted is None else AttemptResult.SOLVED


def suspicions(passes: Sequence[Collection[str]]) -> tuple[str, ...]:
    """Return why an attempt's pass is to be read, from each submission that passed; empty if one is clean."""
    return tuple(sorted({reason for reasons in passes for reason in reasons})) if all(passes) else ()


def solved_words(results: Iterable[AttemptResult]) -> str:
    """Return in a few words how many runs count as solved, and how many more still have to be read."""
    counts = Counter(results)
    more = counts[AttemptResult.TO_BE_READ]
    words = f"{counts[AttemptResult.SOLVED]} of {counts.total()} solved"
    return f"{words}, {more} more to be read" if more else words
