"""The choice of inputs that are varied again (decision 180)."""

from __future__ import annotations

from gistpoint.sandbox.equivalence.encoded import Encoded, as_example, as_input, with_attributes
from gistpoint.sandbox.equivalence.varying import ReachedInput, changed_lines, worth_varying

NONE: frozenset[int] = frozenset()


def reached(value: str, original: set[int], repair: set[int]) -> ReachedInput:
    return ReachedInput([["s", value]], frozenset(original), frozenset(repair))


def test_changed_lines_are_those_of_each_version() -> None:
    before = b"a\nb\nc\nd\n"
    assert changed_lines(before, before) == (NONE, NONE)
    assert changed_lines(before, b"a\nB\nc\nd\n") == ({2}, {2})
    assert changed_lines(before, b"a\nb\nd\n") == ({3}, {2, 3})
    assert changed_lines(before, b"a\nb\nnew\nc\nd\n") == ({2, 3}, {3})


def test_inputs_that_reach_the_change_come_first_then_rare_ways() -> None:
    items = [
        *(reached("common" + "x" * n, {1, 2}, {1, 2}) for n in range(5)),
        reached("rare", {1, 3}, {1, 3}),
        reached("at the change", {1, 4}, {1, 4}),
        reached("at", {1, 4}, {1, 4}),
    ]
    chosen = worth_varying(items, (frozenset({4}), frozenset({4})), 3)
    assert chosen == [[["s", "at"]], [["s", "rare"]], [["s", "common"]]]
    assert worth_varying(items, (frozenset({4}), frozenset({4})), 1) == [[["s", "at"]]]


def test_the_repair_alone_may_reach_its_change() -> None:
    items = [reached("a", {1}, {1}), reached("b", {1}, {1, 9})]
    assert worth_varying(items, (NONE, frozenset({9})), 1) == [[["s", "b"]]]


RECORDED: Encoded = ["o", 3, [0], "shop.Order", [["price", ["i", "5"]], ["names", ["l", [["s", "a"]]]]]]


def test_what_an_input_has_set_stays_set_when_it_is_varied_again() -> None:
    varied = with_attributes(RECORDED, [["price", ["i", "0"]]])
    example = as_example(varied, lambda call, way: RECORDED)
    assert as_input(example) == varied
    assert with_attributes(example, [["names", ["l", []]]]) == [
        *RECORDED[:4],
        [["price", ["i", "0"]], ["names", ["l", []]]],
    ]
    assert with_attributes(example, [["price", ["i", "7"]]]) == [*RECORDED[:4], [["price", ["i", "7"]]]]


def test_an_object_without_a_description_stays_as_it_was() -> None:
    inside: Encoded = ["l", [RECORDED[:4], ["d", [[["s", "k"], RECORDED[:4]]]]]]
    assert as_input(as_example(inside, lambda call, way: None)) == inside
