"""Values that only a submission's answer sets or changes are seen, even where the data compare as equal."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small_trees import tree_of

from gistpoint.sandbox.confirmation.deviations import (
    CHANGES_MORE,
    DOES_MORE,
    LEAVES,
    RAISES,
    NewAttributes,
    changes_more,
    mark_of,
    mark_without_counterpart,
    same_request,
    varying_tests,
)
from gistpoint.sandbox.confirmation.pair import Exchange
from gistpoint.sandbox.confirmation.readable import readable

OWN = ["object", "shop:Money", {"amount": 1}, "", None]
GIVEN = {"roots": [["#", 1], ["#", 2]], "heap": {"1": ["list", [1]], "2": OWN, "3": ["list", []]}}


def answer(heap: dict[str, Any]) -> dict[str, Any]:
    return {"re": "value", "roots": [None], "heap": heap}


def asked(*heaps: dict[str, Any]) -> list[Exchange]:
    """Return the exchanges of a call whose answers hold these objects; all but the last are questions."""
    kinds = ["callback"] * (len(heaps) - 1) + ["value"]
    requests = [GIVEN] + [{"do": "return", "roots": [None], "heap": {}}] * (len(heaps) - 1)
    return [
        Exchange(request, {**answer(heap), "re": kind})
        for request, kind, heap in zip(requests, kinds, heaps, strict=True)
    ]


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
    "what no honest process writes": ({}, {"1": ["list", [["f", "x"]]], "3": ["list", [["#", [1]]]]}, True),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_only_the_submission_changes(name: str) -> None:
    true, submitted, more = CHANGES[name]
    writes = {"list", "shop:Money.amount"}
    assert changes_more(asked(submitted), asked(true), writes) is more


def test_a_change_that_is_not_made_does_not_count() -> None:
    assert not changes_more(asked({"1": ["list", []]}), asked({}), {"dict"})


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
    attributes = NewAttributes()
    attributes.add(asked(submitted), asked(true))
    assert attributes.found() == found


QUESTIONS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], bool]] = {
    "with a question": ([{}, {}], [{"1": ["list", []]}, {}], True),
    "until a question was answered": ([{}, {}], [{"1": ["list", []]}, {"1": ["list", [1]]}], True),
    "before other questions": ([{}, {}, {}], [{"1": ["list", []]}, {}], True),
    "earlier than the true function": ([{}, {"1": ["list", []]}], [{"1": ["list", []]}, {}], False),
    "for a time, as the true function does": (
        [{"1": ["list", []]}, {"1": ["list", [1]]}],
        [{"1": ["list", []]}, {"1": ["list", [1]]}],
        False,
    ),
    "for good, where the true function does it for a time": (
        [{"1": ["list", []]}, {"1": ["list", [1]]}],
        [{"1": ["list", []]}, {}],
        True,
    ),
    "for a time, otherwise than the true function": (
        [{"1": ["list", []]}, {"1": ["list", [1]]}],
        [{"1": ["list", [5]]}, {"1": ["list", [1]]}],
        True,
    ),
    "later than the true function": ([{"1": ["list", []]}, {}], [{}, {"1": ["list", []]}], False),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_changed_when_a_function_of_the_test_is_called(name: str) -> None:
    true, submitted, more = QUESTIONS[name]
    assert changes_more(asked(*submitted), asked(*true), {"list"}) is more


def replied(change: dict[str, Any], *values: int) -> list[Exchange]:
    """Return a call that asks a function of the test; the replies hold new objects, which the last changes."""
    exchanges = [Exchange(GIVEN, {"re": "callback", "heap": {}})]
    for number, value in enumerate(values, 5):
        node = ["object", "shop:Money", {"amount": value}, "", None]
        reply = {"do": "return", "roots": [["#", number]], "heap": {str(number): node}}
        exchanges.append(Exchange(reply, {"re": "callback", "heap": {}}))
    exchanges[-1] = Exchange(exchanges[-1].request, answer(change))
    return exchanges


def test_what_is_changed_after_another_question_is_compared_by_its_kind() -> None:
    writes, other = {"shop:Money.amount", "list"}, ["object", "shop:Money", {"amount": 0}, "", None]
    changed, unchanged = {"6": other}, {"5": ["object", "shop:Money", {"amount": 1}, "", None]}
    assert changes_more(replied(changed, 7, 2), replied({}, 1, 2), writes), (
        "the true function changes nothing"
    )
    assert not changes_more(replied(changed, 7, 2), replied(changed, 1, 2), writes)
    assert not changes_more(replied(unchanged, 1, 2), replied({}, 3, 2), writes)
    assert not changes_more(replied(changed, 7, 2), replied({}, 1, 2), {"list"}), "it is not made"
    emptied = {"5": ["list", []]}
    assert changes_more(replied({"1": ["list", []]}, 7, 2), replied(changed, 1, 2), writes)
    assert changes_more(replied({**changed, **emptied}, 7, 2), replied(changed, 1, 2), writes)


ENDS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an exception in place of a value": ({"re": "value"}, {"re": "raised"}, RAISES),
    "the same exception": ({"re": "raised"}, {"re": "raised"}, ""),
    "a value in place of an exception": ({"re": "raised"}, {"re": "value"}, ""),
    "an operator that is left to another": ({"re": "value"}, {"roots": [["k", "NotImplemented"]]}, LEAVES),
    "an operator that leaves it likewise": (
        {"roots": [["k", "NotImplemented"]]},
        {"roots": [["k", "NotImplemented"]]},
        "",
    ),
    "a value that is printed instead": ({"roots": ["n"]}, {"out": "n"}, DOES_MORE),
    "a value that is logged instead": ({"roots": ["n"]}, {"logs": [["kit", 30, "n"]]}, DOES_MORE),
    "another text that is printed": ({"out": "n"}, {"out": "m"}, ""),
    "the same text that is printed": ({"roots": ["n"], "out": "n"}, {"out": "n"}, ""),
    "a change": ({}, {"heap": {"1": ["list", []]}}, CHANGES_MORE),
}


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("questions", [0, 2])
def test_a_call_is_judged_by_all_of_its_exchanges(name: str, questions: int) -> None:
    true, submitted, mark = ENDS[name]
    calls = [asked(*[{}] * (questions + 1)) for _ in range(2)]
    for call, end in zip(calls, (true, submitted), strict=True):
        call[-1] = Exchange(call[-1].request, {**call[-1].answer, **end})
    assert mark_of(calls[1], calls[0], {"list"}) == mark
    assert mark_of(calls[1], calls[0][-1:], {"list"}) == ("" if questions and mark == CHANGES_MORE else mark)


def test_a_call_that_can_not_be_compared_may_do_what_the_true_function_does_in_another() -> None:
    none, other = asked({}), asked({"1": ["list", [7]]})
    raised = asked({}, {})
    raised[-1] = Exchange(raised[-1].request, {"re": "raised", "roots": [["#", -1]], "heap": {}})
    left = asked({})
    left[-1] = Exchange(GIVEN, {"re": "value", "roots": [["k", "NotImplemented"]], "heap": {}})
    emptied, other_emptied = asked({"1": ["list", []]}, {}), asked({"3": ["list", [1]]}, {})
    held = asked({"2": money(amount=9)})
    writes = {"list", "shop:Money.amount"}
    for true in ([], [none]):
        assert mark_without_counterpart(asked({}, {"-1": ["list", [5]]}), true, writes) == ""
        assert mark_without_counterpart(emptied, true, writes) == CHANGES_MORE
        assert mark_without_counterpart(raised, true, writes) == RAISES
        assert mark_without_counterpart(left, true, writes) == LEAVES
    assert mark_without_counterpart(emptied, [none, other], writes) == ""
    assert mark_without_counterpart(held, [none, other], writes) == CHANGES_MORE
    assert mark_without_counterpart(other_emptied, [none, other], writes) == CHANGES_MORE
    assert mark_without_counterpart(raised, [none, raised], writes) == ""


def test_a_class_that_the_true_function_does_not_answer_with_in_the_same_call() -> None:
    attributes = NewAttributes()
    attributes.add(asked({"-1": ["object", "shop:Price", {"amount": 1, "slack": 9}, "", None]}), asked({}))
    assert attributes.found() == {"shop:Price.amount", "shop:Price.slack"}
    known = ["object", "shop:Price", {"amount": 1}, "", None]
    attributes.add(asked({"-1": known}), asked({"-1": known}))
    assert attributes.found() == {"shop:Price.slack"}


def in_one(*nodes: list[Any]) -> list[Exchange]:
    """Return the exchanges of a call whose answer is a list with these new objects."""
    heap = {"-1": ["list", [["#", -2 - place] for place in range(len(nodes))]]}
    heap.update({str(-2 - place): node for place, node in enumerate(nodes)})
    return [Exchange(GIVEN, {**answer(heap), "roots": [["#", -1]]})]


ONE, LOOSE = money(amount=1), money(amount=1, slack=9)
PLACED: dict[str, tuple[list[Exchange], list[Exchange], set[str]]] = {
    "the other object": (in_one(LOOSE, ONE), in_one(ONE, LOOSE), {"4/-3 shop:Money.slack"}),
    "both objects": (in_one(LOOSE, ONE), in_one(LOOSE, LOOSE), {"4/-3 shop:Money.slack"}),
    "the same object": (in_one(LOOSE, ONE), in_one(LOOSE, ONE), set()),
    "an object of another place": (in_one(LOOSE), in_one(ONE, LOOSE), set()),
    "a namespace in place of an object": (
        in_one(ONE),
        in_one(["namespace", [["amount", 1], ["slack", 9]]]),
        {"4/-2 types:SimpleNamespace.slack"},
    ),
    "a namespace in place of nothing": (
        in_one(),
        in_one(["namespace", [["slack", 9], [1], 5]]),
        {"types:SimpleNamespace.slack"},
    ),
    "a namespace in place of one": (
        in_one(["namespace", [["slack", 1]]]),
        in_one(["namespace", [["slack", 9]]]),
        set(),
    ),
    "a container of the standard library": (
        in_one(["dict", []]),
        in_one(["object", "collections:UserDict", {"data": ["#", -3]}, "", None], ["dict", []]),
        set(),
    ),
    "objects under keys": (
        [Exchange(GIVEN, {**answer({"-1": ["dict", [["a", ["#", -2]], ["b", ["#", -3]]]], "-2": ONE, "-3": LOOSE}),
                          "roots": [["#", -1]]})],
        [Exchange(GIVEN, {**answer({"-1": ["dict", [["b", ["#", -2]], ["a", ["#", -3]]]], "-2": LOOSE, "-3": LOOSE}),
                          "roots": [["#", -1]]})],
        {"4/-3 shop:Money.slack"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACED)
def test_attributes_that_only_the_object_in_the_same_place_lacks(name: str) -> None:
    true, submitted, found = PLACED[name]
    attributes = NewAttributes()
    attributes.add(submitted, true, [4])
    assert attributes.found() == found


READERS: dict[str, str] = {
    "by its name": "one.slack",
    "as text": "getattr(one, 'slack')",
    "by a name that is made": "getattr(one, f'{name}ck')",
    "whether there is one": "hasattr(one, name)",
    "all at once": "vars(one)",
    "by their dictionary": "one.__dict__",
    "by their names": "[name for name in dir(one)]",
    "by the standard library": "inspect.getmembers(one)",
    "by a name that begins with a text": "getattr(one, 'sl' + name)",
    "by a name that is filled in": "getattr(one, 'sl%s' % name)",
    "of what a call returns": "getattr(one.of(1), name)",
    "by a function that is passed on": "[*map(getattr, [one], [name])]",
    "all by a function that is passed on": "[*map(vars, [one])]",
    "by a getter": "operator.attrgetter('sl' + name)(one)",
    "by one of several names of a getter": "operator.attrgetter('amount', name)(one)",
    "by a method's name": "operator.methodcaller(name)(one)",
    "all by a data class": "dataclasses.astuple(one)",
}


@pytest.mark.parametrize("reader", READERS)
def test_an_attribute_can_be_read_by_any_module(reader: str, tmp_path: Path) -> None:
    files = {"shop.py": "class Money: pass\n", "base.py": f"def read(one, name): return {READERS[reader]}\n"}
    assert readable(tree_of(files, tmp_path), {"shop:Money.slack"}) == ["shop:Money.slack"]
    assert readable(tree_of(files, tmp_path), set()) == []


def test_an_attribute_can_be_read_by_a_template_and_by_an_import_under_another_name(tmp_path: Path) -> None:
    for number, files in enumerate(
        (
            {"shop.html": "{{ one.slack }}"},
            {"base.py": "from operator import attrgetter as get\nread = get(f'{1}ck')\n"},
            {"base.py": "def read(one):\n  return getattr(one, 'a')\n print 'Python 2: getattr'\n"},
        )
    ):
        (tmp_path / str(number)).mkdir()
        tree = tree_of({"shop.py": "class Money: pass\n", **files}, tmp_path / str(number))
        assert readable(tree, {"shop:Money.slack"}) == ["shop:Money.slack"], files


def test_an_attribute_that_no_code_names_is_only_read_by_the_submission(tmp_path: Path) -> None:
    known = "getattr(self, 'amount', 0) + attrgetter('amount')(self.of(1))"
    files = {"shop.py": f"class Money:\n    def known(self): return {known}\n", "a.html": "{{ one.amount }}"}
    tree = tree_of(files, tmp_path)
    assert readable(tree, {"shop:Money.slack", "shop:Money.__len__"}) == ["shop:Money.__len__"]


def test_an_attribute_is_found_in_code_of_another_encoding(tmp_path: Path) -> None:
    code = "# coding: latin-1\nclass Geld: pass\ndef read(one): return one.größe\n"
    tree = tree_of({"shop.py": code.encode("latin-1")}, tmp_path)
    assert readable(tree, {"shop:Geld.größe", "shop:Geld.höhe"}) == ["shop:Geld.größe"]


def request(function: int = 1_000_000_000, **others: object) -> Exchange:
    heap = {"1": ["list", [["#", function]]], str(function): ["function", "f", None]}
    return Exchange({"do": "call", "call": function, "roots": [["#", 1]], "heap": heap, **others}, {})


def test_a_run_that_leaves_tests_out_makes_the_same_requests() -> None:
    assert same_request(request(), request(1_000_000_017))
    assert same_request(request(do="apply", of=-1_000_000_000), request(do="apply", of=-1_000_000_009))
    assert not same_request(request(), request(roots=[["#", 2]]))
    assert not same_request(request(function=1_000_000_000), request(do="next"))
    assert not same_request(request(roots=[1_000_000_000]), request(roots=[1_000_000_001]))


def test_a_later_run_with_other_answers_to_the_same_calls_is_found() -> None:
    def run(*roots: object, given: object = GIVEN) -> Any:
        exchanges = [Exchange(dict(given), {**answer({}), "roots": [root]}) for root in roots]  # type: ignore[call-overload]
        return SimpleNamespace(asked={"test": SimpleNamespace(exchanges=exchanges)})

    first = run(1, 2)
    assert list(varying_tests(first, [run(1, 2), run(1)], ())) == []
    assert list(varying_tests(first, [run(1, 3)], ())) == ["test"]
    assert list(varying_tests(first, [run(1, 3)], {"test"})) == []
    assert list(varying_tests(first, [run(5, 2, given={**GIVEN, "roots": []})], ())) == []


def test_changes_of_an_exceptions_arguments_and_cause_are_changes() -> None:
    given: list[Any] = ["exception", "shop:Error", ["t", ["x"]], {}, None, "ValueError"]
    request = {"roots": [["#", 1]], "heap": {"1": given}}
    for place, name in ((2, "args"), (4, "__cause__")):
        changed = [*given[:place], ["t", []], *given[place + 1 :]]
        own, true = ([Exchange(request, answer(heap))] for heap in ({"1": changed}, {}))
        assert changes_more(own, true, {f"shop:Error.{name}"})
        assert not changes_more(own, true, {"shop:Error.other"})


ERROR = ["exception", "shop:Error", ["t", ["x"]], {"code": 1}, None, "ValueError"]
ALTERED: dict[str, tuple[list[Any], list[Any], bool]] = {
    "the order of a dictionary": (["dict", [["a", 1], ["b", 2]]], ["dict", [["b", 2], ["a", 1]]], True),
    "the last digits of a float": (
        ["list", [["f", (0.3).hex()]]],
        ["list", [["f", (0.1 + 0.2).hex()]]],
        True,
    ),
    "the arguments of an exception": (ERROR, [*ERROR[:2], ["t", ["y"]], *ERROR[3:]], False),
    "an attribute of an exception": (ERROR, [*ERROR[:3], {"code": 2}, *ERROR[4:]], True),
    "another attribute of it": (ERROR, [*ERROR[:3], {"code": 1, "seen": 2}, *ERROR[4:]], False),
    "a function of another kind": (["list", [["n", "shop:price"]]], ["list", [["m", 1, "price"]]], True),
    "a new object that is equal": (["list", [["#", 7]]], ["list", [["#", -3]]], False),
    "a new object that is not": (["list", [["#", 7]]], ["list", [["#", -4]]], True),
}


@pytest.mark.parametrize("name", ALTERED)
def test_an_argument_that_was_altered_is_compared_exactly(name: str) -> None:
    before, after, more = ALTERED[name]
    request = {"roots": [["#", 1]], "heap": {"1": before, "7": ["list", [5]]}}
    more_objects = {"-3": ["list", [5]], "-4": ["list", [6]]}
    true, own = ([Exchange(request, answer(heap))] for heap in ({}, {"1": after, **more_objects}))
    writes = {"list", "dict", "shop:Error.code"}
    assert changes_more(own, true, writes) is more
