"""The result of an attempt, and summaries of several results, independent of an attempt's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum

from gistpoint.core.confirmation.model import Confirmation, Confirmed


class AttemptResult(StrEnum):
    """The result of an attempt; the outcome in its journal is never changed."""

    SOLVED = "solved"
    TO_BE_READ = "solved, to be read"
    """The tests pass, but the pass is suspicious and not yet reviewed, so it does not count as solved."""
    NOT_SOLVED = "not solved"

    @property
    def passes(self) -> bool:
        """Whether the tests passed and reviewers have not rejected the pass."""
        return self is not AttemptResult.NOT_SOLVED


def result_of(solved: bool, suspicious: Collection[str], accepted: bool | None = None) -> AttemptResult:
    """Return the result of a run.

    `solved` says whether its tests passed; `suspicious` are the reasons why the pass needs review; `accepted`
    is the reviewers' decision, or None if there is none yet or they disagree.
    """
    if not solved or accepted is False:
        return AttemptResult.NOT_SOLVED
    return AttemptResult.TO_BE_READ if suspicious and accepted is None else AttemptResult.SOLVED


class Standing(StrEnum):
    """The confirmation status of a pass, whose confirmation may not have been requested."""

    CONFIRMED = Confirmed.CONFIRMED.value
    CONTRADICTED = Confirmed.CONTRADICTED.value
    UNCONFIRMED = Confirmed.UNCONFIRMED.value
    NOT_ASKED = "not asked"
    EXEMPT = "of a kind that is not confirmed"


def standing_of(confirmation: Confirmation | None) -> Standing:
    """Return the standing of a pass with this confirmation; None means that the pass has none."""
    return Standing.NOT_ASKED if confirmation is None else Standing(confirmation.result.value)


def standing_in(words: str, *, passes: bool) -> Standing | None:
    """Return the standing in a run's words on its confirmation, such as `unconfirmed (too_slow)`.

    Without words, a run that `passes` belongs to a kind without confirmations. The result is None without a
    pass.
    """
    name = words.partition(" (")[0]
    if name in frozenset(Standing):
        return Standing(name)
    return Standing.EXEMPT if passes else None


def doubts(marks: Collection[str], confirmation: Confirmation | None) -> tuple[str, ...]:
    """Return the reasons why a pass needs review before it counts.

    The result is empty if there are none. `marks` are the marks in its text. A confirmed pass counts despite
    any marks if all tests that enter the changed functions confirm it: a submission that is correct in only
    some of them may have patched the judge of the others. A contradicted pass needs a reviewer.
    """
    if confirmation is None:
        return tuple(marks)
    standing = standing_of(confirmation)
    if standing is Standing.CONFIRMED and not confirmation.uncovered:
        return ()
    seen = confirmation.marks
    contradicted = standing is Standing.CONTRADICTED
    return tuple(dict.fromkeys([*([CONTRADICTED] if contradicted else []), *marks, *seen]))


CONTRADICTED = "contradicted where the submission can't see the tests"
"""The reason for the review of a contradicted pass."""


def suspicions(passes: Sequence[Collection[str]]) -> tuple[str, ...]:
    """Return the reasons why an attempt's pass needs review; empty if a pass has no such reason."""
    return tuple(sorted({reason for reasons in passes for reason in reasons})) if all(passes) else ()


def solved_words(results: Iterable[AttemptResult]) -> str:
    """Return a summary of how many runs are solved and how many more need review."""
    counts = Counter(results)
    if not counts:
        return "none has ended"
    more = counts[AttemptResult.TO_BE_READ]
    words = f"{counts[AttemptResult.SOLVED]} of {counts.total()} solved"
    return f"{words}, {more} more to be read" if more else words


def by_tests_words(standings: Iterable[Standing | None]) -> str:
    """Return a summary of how many runs pass the tests, by standing.

    The standing of a run that did not pass is None. The summary is empty if no run passed, or if only runs of
    kinds without confirmations did.
    """
    found = list(standings)
    counts = Counter(standing for standing in found if standing is not None)
    if not counts.keys() - {Standing.EXEMPT}:
        return ""
    parts = ", ".join(f"{counts[standing]} {standing}" for standing in Standing if counts[standing])
    return f"{counts.total()} of {len(found)} by the tests alone: {parts}"


def solved_and_by_tests(results: Sequence[AttemptResult], confirmations: Sequence[str]) -> str:
    """Return a summary of how many runs are solved, and how many pass the tests; empty without runs.

    `confirmations` are the runs' words on their confirmations, which `standing_in` parses.
    """
    if not results:
        return ""
    pairs = zip(results, confirmations, strict=True)
    by_tests = by_tests_words(standing_in(words, passes=result.passes) for result, words in pairs)
    return "; ".join(filter(None, [solved_words(results), by_tests]))
