"""Calls are chosen for repetition so that those that could hide a wrong answer are never left out."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from gistpoint.core.confirmation.showing import unordered_key
from gistpoint.sandbox.confirmation import repeating
from gistpoint.sandbox.confirmation.pair import Exchange
from gistpoint.sandbox.confirmation.repeating import (
    MOST_COMPARED,
    PlainCall,
    plain_calls,
    repeated,
    sample,
)


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


def pair_of_boxes(number: int, *attributes: str) -> PlainCall:
    """Return a call that answers with two boxes, with a further attribute each."""
    numbers = range(-number * 2 - 2, -number * 2)
    heap = {
        str(one): ["object", "kit:Box", {"value": one, name: 0}, "", None]
        for one, name in zip(numbers, attributes, strict=True)
    }
    return call(number, roots=[["t", [["#", one] for one in numbers]]], heap=heap)


def test_an_attribute_in_another_place_is_in_each_sample() -> None:
    calls = [pair_of_boxes(number, "slack", "name") for number in range(6000)]
    calls[4000] = pair_of_boxes(4000, "name", "slack")
    assert calls[4000] in sample(calls, "seed")


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


class Asking:
    """A process that asks the questions of a call in the reverse order."""

    def __init__(self, questions: list[dict[str, Any]]) -> None:
        self.answers = [*questions[::-1], {"re": "value", "roots": [0], "heap": {}}]
        self.given: list[Any] = []

    def answer_call(self, request: dict[str, Any]) -> bytes:
        self.given.append(request["roots"])
        return json.dumps(self.answers[len(self.given) - 1]).encode()

    def answer(self, line: bytes) -> bytes:
        return b'{"re": "done"}'


def test_questions_in_another_order_are_found_without_comparing_each_with_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[object] = []

    def counted(reply: dict[str, Any]) -> str:
        compared.append(reply)
        return unordered_key(reply)

    monkeypatch.setattr(repeating, "unordered_key", counted)
    count = 2_000
    questions = [
        {"re": "callback", "do": "apply", "of": 1, "roots": [["t", [n]], ["t", []]], "heap": {}}
        for n in range(count)
    ]
    replies = [{"do": "return", "roots": [n], "heap": {}} for n in range(count)]
    requests = [{"do": "call", "call": 1, "function": 0, "roots": [], "heap": {}}, *replies]
    answers = [*questions, {"re": "value", "roots": [0], "heap": {}}]
    exchanges = [Exchange(*pair) for pair in zip(requests, answers, strict=True)]
    process = Asking(questions)
    call = PlainCall("test", exchanges[0], tuple(exchanges[1:]))
    assert repeated(process, call, lambda recorded, answer: recorded.answer["re"] == answer["re"]) is None  # type: ignore[arg-type]
    assert process.given[1:] == [[n] for n in range(count)][::-1], "each question gets its own reply"
    assert len(compared) < 4 * count


def test_later_requests_to_answers_are_looked_for_once() -> None:
    exchanges = [exchange for number in range(3_000) for exchange in made(number, number)]
    looked: list[int] = []

    class Request(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:
            looked.append(1)
            return super().get(name, default)

        def __getitem__(self, name: str) -> Any:
            looked.append(1)
            return super().__getitem__(name)

    watched = [Exchange(Request(exchange.request), exchange.answer) for exchange in exchanges]
    found = plain_calls(report(*watched), steps=True)
    assert [len(call.steps) for call in found] == [1] * 3_000
    assert len(looked) < 20 * len(watched)
