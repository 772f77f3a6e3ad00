"""Which proven candidates become tasks: the order of the verdicts decides, and most are hard to locate."""

from __future__ import annotations

from gistpoint.core.generation.campaign.selection import Selection
from gistpoint.core.generation.campaign.verdicts import Kept, Reason, Verdict


def verdict(names: str, *ranks: float | None) -> Verdict:
    parts = [{"evidence": {"rank": rank}} for rank in ranks]
    return Verdict(names, tuple(names), Reason.KEPT, kept=Kept((), (), (), False, {"parts": parts}))


def taken(count: int, *verdicts: Verdict) -> tuple[str, Selection]:
    """The keys of the accepted ones in the order in which they were, those that filled it up behind a bar."""
    selection = Selection(count)
    told = ""
    for item in verdicts:
        told += "".join(accepted.key for accepted in selection.take(item))
        if selection.full:
            return told, selection
    return told + "|" + "".join(accepted.key for accepted in selection.fill()), selection


def test_what_has_no_rank_is_taken_as_it_comes() -> None:
    assert taken(2, verdict("a"), verdict("b"), verdict("c"))[0] == "ab"


def test_what_is_located_waits_until_more_than_half_is_not() -> None:
    ranks = {"a": 1, "b": 9, "c": 9, "d": None, "e": 6, "f": 2}
    told, selection = taken(9, *(verdict(name, rank) for name, rank in ranks.items()))
    assert told == "bcaed|f"
    assert [item.kept is not None for item in selection.verdicts] == [True] * 6


def test_what_waited_in_vain_is_counted_as_located() -> None:
    told, selection = taken(2, verdict("a", 5), verdict("b", 5.5), verdict("c", 7))
    assert told == "bc"
    assert [item.reason for item in selection.verdicts] == [Reason.LOCATED, Reason.KEPT, Reason.KEPT]
    assert selection.verdicts[0].kept is None


def test_places_are_filled_with_those_that_wait_when_nothing_else_is_left() -> None:
    told, selection = taken(2, verdict("a", 1), verdict("b", 1), verdict("c", 1))
    assert told == "|ab"
    assert [item.reason for item in selection.verdicts] == [Reason.KEPT, Reason.KEPT, Reason.LOCATED]


def test_groups_with_two_functions_of_a_kept_one_are_left_out() -> None:
    told, selection = taken(9, verdict("abc", 9, 9, 9), verdict("bcd", 9, 9, 9), verdict("cd", 9, 1))
    assert told == "abccd|"
    assert selection.verdicts[1].reason is Reason.OVERLAPS
