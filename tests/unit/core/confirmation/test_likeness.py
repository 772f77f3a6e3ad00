"""Answers are compared by their data, ignoring what an honest repair may do differently."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gistpoint.core.confirmation.likeness import same_data

GIVEN = {"roots": [["#", 1]], "heap": {"1": ["list", [1]]}}


def answer(root: Any, heap: dict[str, Any] | None = None, re: str = "value") -> dict[str, Any]:
    return {"re": re, "roots": [root], "heap": heap or {}}


def money(amount: Any, **more: Any) -> dict[str, Any]:
    return {"-1": ["object", "shop:Money", {"amount": amount, **more}, "", None]}


def raised(name: str, base: str = "ValueError", text: str = "x") -> dict[str, Any]:
    return answer(["#", -1], {"-1": ["exception", name, ["t", [text]], {}, None, base]}, "raised")


OBJECT = ["#", -1]
PAIRS = [["a", 1], ["b", ["#", -2]]]
SAME = {
    "numbers": (answer(["#", -1], {"-1": ["list", [1, "a"]]}), answer(["#", -7], {"-7": ["list", [1, "a"]]})),
    "the last digits of a float": (answer(["f", (0.3).hex()]), answer(["f", (0.1 + 0.2).hex()])),
    "nan": (answer(["f", "nan"]), answer(["f", "nan"])),
    "the order of a dictionary": (
        answer(OBJECT, {"-1": ["dict", PAIRS], "-2": ["list", []]}),
        answer(OBJECT, {"-1": ["default", PAIRS[::-1], ["n", "builtins:list"]], "-2": ["list", []]}),
    ),
    "the order of a set": (
        answer(OBJECT, {"-1": ["set", [["#", -2], ["#", -3]]], **{"-2": ["list", [1]], "-3": ["list", [2]]}}),
        answer(OBJECT, {"-1": ["set", [["#", -2], ["#", -3]]], **{"-2": ["list", [2]], "-3": ["list", [1]]}}),
    ),
    "an attribute that is set when needed": (answer(OBJECT, money(1)), answer(OBJECT, money(1, cache=5))),
    "a member that is a number": (answer(200), answer(["e", "http:HTTPStatus", 200, "int"])),
    "the text of an exception": (raised("builtins:ValueError"), raised("builtins:ValueError", text="y")),
    "an exception of another class": (raised("builtins:ValueError"), raised("kit:Refused")),
    "functions": (answer(["m", 1, "__add__"]), answer(["p", ["n", "operator:add"], ["t", [1]], ["t", []]])),
    "a call-back": (answer(1), {"re": "callback", "do": "apply", "of": 1, "roots": [], "heap": {}}),
    "no answer": (answer(1), {"re": "gone"}),
    "itself": (answer(OBJECT, {"-1": ["list", [OBJECT]]}), answer(OBJECT, {"-1": ["list", [OBJECT]]})),
    "a class that extends a list": (
        answer(OBJECT, {"-1": ["object", "kit:Items", {}, "list", [1]]}),
        answer(OBJECT, {"-1": ["list", [1]]}),
    ),
}
OTHER = {
    "what a tolerant comparison hides": (answer(OBJECT, money(1)), answer(OBJECT, money(2))),
    "an object within": (
        answer(OBJECT, {"-1": ["list", [["#", -2]]], "-2": ["object", "a:B", {"n": 1}, "", None]}),
        answer(OBJECT, {"-1": ["list", [["#", -2]]], "-2": ["object", "a:B", {"n": 2}, "", None]}),
    ),
    "an exception in place of a value": (answer(1), raised("builtins:ValueError")),
    "an exception with another base": (raised("builtins:ValueError"), raised("kit:Lost", "KeyError")),
    "an argument that was changed": (answer(None), answer(None, {"1": ["list", [1, 2]]})),
    "an argument that was not changed": (answer(None, {"1": ["list", [1, 2]]}), answer(None)),
    "a number that is a truth value": (answer(1), answer(True)),
    "one more": (answer(["t", [1]]), answer(["t", [1, 1]])),
    "a set": (answer(OBJECT, {"-1": ["set", [1, 2]]}), answer(OBJECT, {"-1": ["set", [1, 3]]})),
    "a key": (answer(OBJECT, {"-1": ["dict", [["f", 1]]]}), answer(OBJECT, {"-1": ["dict", [["t", 1]]]})),
    "a class": (answer(["n", "kit:A"]), answer(["n", "kit:B"])),
    "a float": (answer(["f", (1.5).hex()]), answer(["f", (1.6).hex()])),
    "the end of an iterator": (answer(None, re="stop"), answer(None)),
    "what is no data": (answer(1), {"re": "value", "roots": [["f"]], "heap": {}}),
    "a node that is none": (answer(OBJECT, money(1)), answer(OBJECT, {"-1": ["object", "shop:Money"]})),
}


@pytest.mark.parametrize("name", SAME)
def test_what_an_honest_repair_may_do_otherwise_is_the_same(name: str) -> None:
    first, second = SAME[name]
    assert same_data(GIVEN, first, second)
    assert same_data(GIVEN, second, first)


@pytest.mark.parametrize("name", OTHER)
def test_other_data_are_not_the_same(name: str) -> None:
    first, second = OTHER[name]
    assert not same_data(GIVEN, first, second)
    assert not same_data(GIVEN, second, first)


def test_what_stays_in_its_process_has_the_number_of_the_submission_in_a_request() -> None:
    request = holding(-1_000_000_685)
    own = answer(None, {"-1000000685": ["function", "<lambda>", None]})
    true = answer(None, {"-1000000090": ["function", "<lambda>", None]})
    assert same_data(request, own, true)
    # Other objects of an answer have numbers by their order, and one that is resent has been changed.
    changed = answer(None, {"-5": ["list", [1]]})
    assert not same_data(holding(-5), changed, answer(None))
    assert not same_data(holding(-5), answer(None), changed)


def holding(number: int) -> dict[str, Any]:
    return {"roots": [["#", 1]], "heap": {"1": ["object", "kit:Table", {"key": ["#", number]}, "", None]}}


def test_large_collections_in_another_order_are_compared_in_time() -> None:
    pairs = [[number, ["t", [number, ["#", -number]]]] for number in range(1, 4_000)]
    lists = {str(-number): ["list", [number]] for number in range(1, 4_000)}
    began = time.process_time()
    for kind, parts in (("dict", pairs), ("set", [pair[1] for pair in pairs])):
        for first in (pairs[7][1], ["t", [0, ["#", -1]]]):
            heaps = [{**lists, "1": [kind, list(order)]} for order in (parts, parts[::-1])]
            heaps[1]["1"][1].append([0, first] if kind == "dict" else first)
            answers = [{"re": "value", "roots": [["#", 1]], "heap": heap} for heap in heaps]
            assert not same_data(GIVEN, *answers)
            del heaps[1]["1"][1][-1]
            assert same_data(GIVEN, *answers)
    assert time.process_time() - began < 10
