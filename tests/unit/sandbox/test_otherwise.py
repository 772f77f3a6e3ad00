"""What only a submission's answer sets or changes is seen, also where comparing the data would not show it."""

from __future__ import annotations

from typing import Any

import pytest

from gistpoint.sandbox.confirmation.otherwise import changes_more, new_attributes

OWN = ["object", "shop:Money", {"amount": 1}, "", None]
GIVEN = {"roots": [["#", 1], ["#", 2]], "heap": {"1": ["list", [1]], "2": OWN, "3": ["list", []]}}


def answer(heap: dict[str, Any]) -> dict[str, Any]:
    return {"re": "value", "roots": [None], "heap": heap}


def money(**attributes: object) -> list[Any]:
    return ["object", "shop:Money", attributes, "", None]


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "a list that is emptied": ({}, {"1": ["list", []]}, True),
    "an attribute": ({}, {"2": money(amount=2)}, True),
    "an attribute that is taken away": ({}, {"2": money()}, True),
    "one list in place of the other": ({"1": ["list", []]}, {"3": ["list", [1]]}, True),
    "the same change": ({"1": ["list", []]}, {"1": ["list", []]}, False),
    "another change of the same list": ({"1": ["list", []]}, {"1": ["list", [5]]}, False),
    "another attribute": ({}, {"2": money(amount=1, cache=2)}, False),
    "a kind of container that the true function never changes": ({}, {"1": ["dict", []]}, False),
    "something new": ({}, {"-1": ["list", [5]]}, False),
    "no answer": ({}, {"1": 5}, False),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_only_the_submission_changes(name: str) -> None:
    true, submitted, more = CHANGES[name]
    writes = {"list", "shop:Money.amount"}
    assert changes_more(GIVEN, answer(true), answer(submitted), writes) is more


def test_a_change_that_is_not_made_does_not_count() -> None:
    assert not changes_more(GIVEN, answer({}), answer({"1": ["list", []]}), {"dict"})


NEW: dict[str, tuple[dict[str, Any], dict[str, Any], set[str]]] = {
    "of a new object": ({"-1": money(amount=1)}, {"-9": money(amount=0, slack=9)}, {"shop:Money.slack"}),
    "of a given object": ({}, {"2": money(amount=1, slack=9)}, {"shop:Money.slack"}),
    "of a given object, which a new one has": (
        {"-1": money(amount=1, slack=0)},
        {"2": money(amount=1, slack=9)},
        {"shop:Money.slack"},
    ),
    "of a new object in place of a given one": ({}, {"-1": money(amount=1, slack=9)}, {"shop:Money.slack"}),
    "of an exception": (
        {"-1": ["exception", "shop:Error", ["t", []], {}, None, "ValueError"]},
        {"-1": ["exception", "shop:Error", ["t", []], {"code": 1}, None, "ValueError"]},
        {"shop:Error.code"},
    ),
    "none": ({"-1": money(amount=1, slack=0)}, {"-2": money(amount=1)}, set()),
    "the same": ({"2": money(amount=1, slack=9)}, {"2": money(amount=1, slack=8)}, set()),
}


@pytest.mark.parametrize("name", NEW)
def test_attributes_that_only_the_submission_sets(name: str) -> None:
    true, submitted, found = NEW[name]
    assert new_attributes(GIVEN, answer(true), answer(submitted)) == found
