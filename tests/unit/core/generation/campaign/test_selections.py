"""Which proven candidates become tasks: by the order of verdicts, mostly subtle and hard to locate."""

from __future__ import annotations

from gistpoint.core.generation.campaign import CandidateVerdicts
from gistpoint.core.generation.verdicts import CandidateVerdict, ProvenCorruption, Reason


def verdict(names: str, *ranks: float | None, subtle: tuple[float, ...] = ()) -> CandidateVerdict:
    parts: list[dict[str, object]] = [{"evidence": {"rank": rank}} for rank in ranks]
    for part, value in zip(parts, subtle, strict=False):
        part["subtlety"] = {"value": value}
    return CandidateVerdict(
        names, tuple(names), Reason.KEPT, kept=ProvenCorruption((), (), (), False, {"parts": parts})
    )


def taken(count: int, *verdicts: CandidateVerdict) -> tuple[str, CandidateVerdicts]:
    """Return the selection and the keys of the accepted candidates in order.

    Those accepted later, to fill it, follow a bar.
    """
    selection = CandidateVerdicts(count)
    for item in verdicts:
        selection.take(item)
        if selection.full:
            return keys(selection.accepted), selection
    at_once = len(selection.accepted)
    selection.fill()
    return keys(selection.accepted[:at_once]) + "|" + keys(selection.accepted[at_once:]), selection


def keys(verdicts: list[CandidateVerdict]) -> str:
    return "".join(verdict.key for verdict in verdicts)


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


def test_what_is_not_subtle_enough_waits_until_nothing_else_is_left_and_the_most_subtle_fills_first() -> None:
    weak = [
        verdict("a", 9, subtle=(0.6,)),
        verdict("b", 9, subtle=(0.79,)),
        verdict("cd", 9, 9, subtle=(0.8, 0.7)),
    ]
    fine = [
        verdict("e", 9, subtle=(0.8,)),
        verdict("f", 9, subtle=(0.95,)),
        verdict("gh", 9, 9, subtle=(0.9, 0.9)),
    ]
    assert taken(9, *weak, *fine)[0] == "efgh|bcda"
    told, selection = taken(3, *weak, *fine)
    assert told == "efgh"
    assert [item.reason for item in selection.verdicts] == [Reason.NOT_SUBTLE] * 3 + [Reason.KEPT] * 3


def test_more_tasks_hold_those_of_fewer() -> None:
    found = [verdict("a", 9, subtle=(0.6,)), verdict("b", 1, subtle=(0.85,)), verdict("c", 9, subtle=(0.7,))]
    found += [verdict("d", 9, subtle=(0.9,)), verdict("e", 2, subtle=(0.9,))]
    orders = [taken(count, *found)[0].replace("|", "") for count in range(1, 6)]
    assert orders[-1] == "debca"
    assert all(orders[-1].startswith(order) for order in orders)


def test_groups_with_two_functions_of_a_kept_one_are_left_out() -> None:
    told, selection = taken(9, verdict("abc", 9, 9, 9), verdict("bcd", 9, 9, 9), verdict("cd", 9, 1))
    assert told == "abccd|"
    assert selection.verdicts[1].reason is Reason.OVERLAPS


def test_of_those_that_wait_the_one_that_readers_see_least_of_comes_first() -> None:
    seen = [
        verdict("a", 1, subtle=(0.7,)),
        verdict("b", 1, subtle=(0.6,)),
        verdict("cd", 1, 1, subtle=(0.9, 0.9)),
    ]
    for item, values in zip(seen, [(0.3,), (0.2,), (0.1, 0.2)], strict=True):
        assert item.kept is not None
        for part, value in zip(item.kept.provenance["parts"], values, strict=True):
            part["glance"] = {"value": value}
    assert taken(3, *seen)[0] == "|cdba"
