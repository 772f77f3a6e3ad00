"""Calls are chosen for repetition so that those that could hide a wrong answer are never left out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gistpoint.sandbox.confirmation.pair import Exchange
from gistpoint.sandbox.confirmation.repeating import MOST_COMPARED, PlainCall, plain_calls, sample


def call(number: int, **answer: Any) -> PlainCall:
    request = {"do": "call", "call": number, "roots": [number], "heap": {"1": ["list", [number]]}}
    return PlainCall("test", Exchange(request, {"re": "value", "roots": [0], "heap": {}, **answer}))


SUSPECTED: dict[str, dict[str, Any]] = {
    "an exception": {"re": "raised"},
    "an operator that is left to others": {"roots": [["k", "NotImplemented"]]},
    "an argument that was changed": {"heap": {"1": ["list", []]}},
    "an object with another attribute": {"heap": {"-1": ["object", "kit:Box", {"slack": 1}, "", None]}},
}


@pytest.mark.parametrize("name", SUSPECTED)
def test_a_call_that_could_cover_for_a_wrong_answer_is_in_each_sample(name: str) -> None:
    for place in (0, 3000, 5999):
        calls = [call(number) for number in range(6000)]
        calls[place] = call(place, **SUSPECTED[name])
        chosen = sample(calls, f"seed {place}")
        assert len(chosen) == MOST_COMPARED
        assert calls[place] in chosen


def report(*exchanges: Exchange) -> Any:
    return SimpleNamespace(asked={"test": SimpleNamespace(exchanges=exchanges)})


def made(number: int, argument: int, given: int = 2) -> list[Exchange]:
    """Return a call whose answer is a function, and one call of that function."""
    kept = -1_000_000_000 - number
    node = {str(kept): ["function", "add", None]}
    first = {"re": "value", "roots": [["#", kept]], "heap": node, "stays": True}
    then = {"do": "apply", "of": kept, "call": number, "roots": [argument], "heap": {}}
    return [
        Exchange({"do": "call", "call": number, "roots": [given], "heap": {}}, first),
        Exchange(then, {"re": "value", "roots": [argument + given], "heap": {}}),
    ]


def test_equal_calls_are_repeated_once_if_their_answers_were_asked_the_same() -> None:
    same = plain_calls(report(*made(1, 3), *made(2, 3)), steps=True)
    assert [found.numbers for found in same] == [{1, 2}]
    others = plain_calls(report(*made(1, 3), *made(2, 4)), steps=True)
    assert [[step.request["roots"] for step in found.steps] for found in others] == [[[3]], [[4]]]
