"""Finds where a submission answers, sets or changes something unlike the true function, and shows both.

A test may pass only because of what a submission sets or changes, although no part of the answer that both
functions have differs: a comparison of the library may read an attribute that the true function never sets,
and a test may compare with an argument that the submission has emptied (decision 135).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from gistpoint.core.confirmation.differences import FunctionName
from gistpoint.core.confirmation.likeness import same_data, same_node
from gistpoint.core.confirmation.model import AnsweredCall
from gistpoint.core.confirmation.showing import (
    EFFECTS,
    ValueRenderer,
    answer_text,
    call_text,
    effects_text,
    numbered_by_place,
    same_answer,
    same_effects,
    same_without_order,
)
from gistpoint.sandbox.confirmation.pair import Exchange, PairReport

Message = Mapping[str, Any]

RAISES = "raises where the true function answers, and no test notices"
CHANGES_MORE = "changes what the true function never changes"
DOES_MORE = "answers otherwise, and prints, warns or logs what the true function does not"
LEAVES = "leaves an answer to other code, where the true function answers itself"
_REFERENCE = re.compile(r'\["#", (-?\d+)\]')
_WITH_DATA = frozenset(("value", "raised", "stop"))
_ATTRIBUTES = {"object": 2, "exception": 3}
"""The place of an object's attributes in its node, by the node's kind."""
_OF_EXCEPTION = {"args": 2, "__cause__": 4}
"""The places of what else belongs to an exception, by the names under which changes are recorded."""


def answered_otherwise(
    functions: Sequence[FunctionName], test: str, true: PairReport, report: PairReport
) -> AnsweredCall | None:
    """Return the first call of a test that the true function answers differently.

    If no answer differs, return the first call with different effects; None if there is no such call either.
    Calls after the first different request are not compared.
    """
    pairs = list(zip(true.asked[test].exchanges, report.asked[test].exchanges, strict=False))
    otherwise: tuple[Exchange, Exchange] | None = None
    for expected, found in pairs:
        if _without_number(expected) != _without_number(found):
            break
        # Effects come second, because the first different answer explains a failure best.
        if not same_answer(expected.answer, found.answer):
            return shown_call(_asked(functions, expected), test, expected, expected, found)
        if otherwise is None and not same_effects(expected.answer, found.answer):
            otherwise = expected, found
    if otherwise is None:
        return None
    return shown_call(_asked(functions, otherwise[0]), test, otherwise[0], *otherwise)


def _without_number(exchange: Exchange) -> Mapping[str, object]:
    return {name: value for name, value in exchange.request.items() if name != "call"}


def _asked(functions: Sequence[FunctionName], exchange: Exchange) -> FunctionName:
    place: int = exchange.request.get("function", 0)
    return functions[place]


def shown_call(
    function: FunctionName, test: str, call: Exchange, expected: Exchange, found: Exchange
) -> AnsweredCall:
    """Return a call with its expected and its found answer as strings.

    If these strings are equal, the effects of the call, such as its output and changed arguments, take their
    place. `expected` and `found` are exchanges of the call itself, or of a later request to what it answered
    with; the strings of a later request begin with `then`.
    """
    request = expected.request
    first, second = ValueRenderer(), ValueRenderer()
    text = call_text(function.qualname, call.request, first)
    for renderer in (first, second):
        renderer.take(call.request)
        renderer.take(request)
    shown = [answer_text(expected.answer, first), answer_text(found.answer, second)]
    if shown[0] == shown[1]:
        shown = [effects_text(request, expected.answer, first), effects_text(request, found.answer, second)]
    if call.request != request:
        shown = [f"then {text}" for text in shown]
    return AnsweredCall(str(function), text, shown[0], shown[1], test)


# What the submission alone sets, changes or leaves to others


def mark_of(
    own: Sequence[Exchange],
    true: Sequence[Exchange],
    writes: Collection[str],
    free: Collection[str] = (),
) -> str:
    """Return the mark that keeps a call with these exchanges from being confirmed; empty if there is none.

    `writes` are the changes that the true function was seen to make in any call, and `free` the numbers of
    objects that may change.
    """
    for mine, other in _ends(own, true):
        if mine.answer["re"] == "raised" and other.answer["re"] == "value":
            return RAISES
        if _is_left_to_others(mine.answer) and not _is_left_to_others(other.answer):
            return LEAVES
        if _does_more(mine.answer, other.answer) and not same_data(mine.request, mine.answer, other.answer):
            return DOES_MORE
    return CHANGES_MORE if changes_more(own, true, writes, free) else ""


def mark_alone(own: Sequence[Exchange], others: Sequence[Sequence[Exchange]], writes: Collection[str]) -> str:
    """Return the mark of a call that the true function does not get, such as one with random arguments.

    The call may change only those arguments, by position, that the true function changes in one of its own
    calls, `others`, and may raise only if it raises in one of them: the test could depend on anything more.
    """
    function = own[0].request.get("function")
    same = [chain for chain in others if chain[0].request.get("function") == function]
    raises = any(exchange.answer["re"] == "raised" for chain in same for exchange in chain)
    true = [replace(exchange, answer=_without_effect(exchange, raises)) for exchange in own]
    places = frozenset(place for chain in same for place in _changed_places(chain))
    return mark_of(own, true, writes, _reached(own[0].request, places))


def _without_effect(exchange: Exchange, raises: bool) -> Message:
    kind = "callback" if exchange.answer["re"] == "callback" else "raised" if raises else "value"
    own = {name: part for name, part in exchange.answer.items() if name in EFFECTS}
    return {**own, "re": kind, "roots": [None], "heap": {}}


def _changed_places(exchanges: Sequence[Exchange]) -> Iterator[int]:
    """Yield the positions of the arguments that a call changes, themselves or in their contents."""
    first = exchanges[0].request
    before: Message = {"roots": [], "heap": {}}
    for place, root in enumerate(first.get("roots", ())):
        for exchange in exchanges:
            after = {"roots": [], "heap": exchange.answer.get("heap", {})}
            if type(root) is list and root[0] == "#" and not same_node(first, before, after, root[1]):
                yield place
                break


def _reached(request: Message, places: Collection[int]) -> frozenset[str]:
    """Return the numbers of the arguments at these positions and of the objects in them."""
    heap = request.get("heap", {})
    queue = [root for place, root in enumerate(request.get("roots", ())) if place in places]
    found: set[str] = set()
    while queue:
        new = set(_REFERENCE.findall(json.dumps(queue.pop()))) - found
        found |= new
        queue += [heap[number] for number in new if number in heap]
    return frozenset(found)


def _ends(own: Sequence[Exchange], true: Sequence[Exchange]) -> list[tuple[Exchange, Exchange]]:
    """Return the exchanges in which a call and its later requests end, each with the true one."""
    ends = [[part for part in side if part.answer["re"] in _WITH_DATA] for side in (own, true)]
    if len(ends[0]) != len(ends[1]):
        ends = [side[-1:] for side in ends]
    return list(zip(*ends, strict=False))


def _is_left_to_others(answer: Message) -> bool:
    """Whether an operator's method leaves its answer to another method, which Python then asks."""
    return bool(answer["re"] == "value" and answer["roots"] == [["k", "NotImplemented"]])


def _does_more(own: Message, true: Message) -> bool:
    """Whether a call has effects that are not among those of the true function."""
    texts = any(own.get(name, "") not in true.get(name, "") for name in ("out", "err"))
    return texts or any(
        row not in true.get(name, ()) for name in ("warnings", "logs") for row in own.get(name, ())
    )


def same_request(own: Exchange, true: Exchange) -> bool:
    """Whether two runs made the same request, however each numbered the objects that stay in its process."""
    return _request_key(own.request) == _request_key(true.request)


def _request_key(request: Message) -> str:
    # Numbered by first occurrence, because a run that leaves tests out counts differently.
    return numbered_by_place(json.dumps({**request, "call": 0}, sort_keys=True))


def changing(report: PairReport, later: Collection[PairReport], unsteady: Collection[str]) -> Iterator[str]:
    """Yield the tests with a call that gets another answer in one of the later runs of the same submission.

    The submission could otherwise answer wrongly while something hides that, and correctly once that is left
    out. Calls after the first that is not the same in both runs do not count, nor do `unsteady` tests.
    """
    for again in later:
        for test in again.asked.keys() & report.asked.keys():
            pairs = zip(report.asked[test].exchanges, again.asked[test].exchanges, strict=False)
            same = takewhile(lambda pair: same_request(*pair), pairs)
            if test not in unsteady and any(
                not same_without_order(one.answer, other.answer) for one, other in same
            ):
                yield test


def changes_more(
    own: Sequence[Exchange],
    true: Sequence[Exchange],
    writes: Collection[str],
    free: Collection[str] = (),
) -> bool:
    """Whether a submission changes an argument, or an object in one, that the true function leaves unchanged.

    These are the exchanges of one call: a change counts in each of them, because a callback of the test may
    look at the argument in between. Only changes that could be made in the tests' process count: `writes` are
    those that the true function was seen to make in any call.
    """
    pairs = zip(own, true, strict=False)
    # After the first request that differs, the same number may be that of another object.
    known = _first_nodes([mine for mine, _ in takewhile(lambda pair: same_request(*pair), pairs)])
    if _changes_otherwise(own, true, _first_nodes(own).keys() - known.keys() - set(free), writes):
        return True
    given = {number: node for number, node in known.items() if number not in free}
    after_true, after_own = dict(known), dict(known)
    for exchange in true:
        after_true.update(_heap_of(exchange.request))
        after_true.update(_heap_of(exchange.answer))
    touched: list[str] = []
    for exchange in own:
        after_own.update(_heap_of(exchange.request))
        before, heap = dict(after_own), _heap_of(exchange.answer)
        after_own.update(heap)
        for number, node in heap.items():
            if number not in given or node == before[number] or not _is_made(before[number], node, writes):
                continue
            touched.append(number)
            if _is_more(known, after_true, after_own, number, writes) and not _was_so(
                known, true, after_own, number
            ):
                return True
    return any(_is_more(known, after_true, after_own, number, writes) for number in touched)


def _changes_otherwise(
    own: Sequence[Exchange], true: Sequence[Exchange], later: Collection[str], writes: Collection[str]
) -> bool:
    """Whether a submission changes objects `later` in a way in which the true function changes no object.

    These objects came after a request that the true function did not get, so they have no counterparts.
    """
    if not later or not same_request(own[0], true[0]):
        return False
    return not _keys_of_changes(own, later) & set(writes) <= _keys_of_changes(true, _first_nodes(true))


def _heap_of(message: Message) -> Message:
    heap: Message = message.get("heap", {})
    return heap


def _is_more(
    known: Message,
    after_true: Mapping[str, Any],
    after_own: Mapping[str, Any],
    number: str,
    writes: Collection[str],
) -> bool:
    """Whether an object is as it was after the true function, but not after the submission.

    An attribute that it has lost counts even if the true function changes the object.
    """
    try:
        is_left = _same(known, after_true, number)
        is_more = is_left and not _same(after_true, after_own, number)
    except (LookupError, TypeError, ValueError, AttributeError):
        return True  # a submission can write anything in place of an answer
    return is_more or _lost(after_true[number], after_own[number], writes)


def _was_so(known: Message, true: Sequence[Exchange], after_own: Mapping[str, Any], number: str) -> bool:
    """Whether an object is in a state in which the true function leaves it temporarily.

    A context manager changes an argument until the test leaves its block.
    """
    state = dict(known)
    for exchange in true:
        state.update(_heap_of(exchange.request))
        state.update(_heap_of(exchange.answer))
        if number in _heap_of(exchange.answer) and _same(state, after_own, number):
            return True
    return False


def _same(first: Message, second: Message, number: str) -> bool:
    """Whether an object is exactly the same in two heaps, besides attributes that only one of them has.

    The order of dictionaries, the last digits of floats and the contents of exceptions count, unlike in
    `core/confirmation/likeness.py`: nothing changes them by itself.
    """
    waiting, seen = [(number, number)], set[tuple[str, str]]()
    while waiting:
        pair = waiting.pop()
        if pair in seen:
            continue
        seen.add(pair)
        nodes = _with_common_attributes(first.get(pair[0]), second.get(pair[1]))
        texts = [json.dumps(node, sort_keys=True) for node in nodes]
        is_unknown = nodes[0] is None and pair[0] != pair[1]
        if is_unknown or _REFERENCE.sub("#", texts[0]) != _REFERENCE.sub("#", texts[1]):
            return False
        waiting += zip(*map(_REFERENCE.findall, texts), strict=True)
    return True


def _with_common_attributes(one: Any, other: Any) -> tuple[Any, Any]:
    """Return two nodes; if they are objects of one class, without the attributes that only one has."""
    place = _ATTRIBUTES.get(one[0]) if one and other and one[:2] == other[:2] else None
    if place is None:
        return one, other
    common = one[place].keys() & other[place].keys()
    first, second = (
        [*node[:place], {name: node[place][name] for name in common}, *node[place + 1 :]]
        for node in (one, other)
    )
    return first, second


def _lost(true: Sequence[Any], submitted: Sequence[Any], writes: Collection[str]) -> bool:
    """Whether an object has lost an attribute that it keeps in the true answer, and that may be changed."""
    place = _ATTRIBUTES.get(true[0])
    if place is None or true[:2] != submitted[:2]:
        return False
    lost = set(true[place]) - set(submitted[place])
    return any(f"{true[1]}.{name}" in writes for name in lost)


def _is_made(before: Sequence[Any], after: Sequence[Any], writes: Collection[str]) -> bool:
    """Whether the tests' process makes a change of this node, at least in part."""
    return not _changed_keys(before, after).isdisjoint(writes)


def _changed_keys(before: Sequence[Any], after: Sequence[Any]) -> set[str]:
    """Return the keys under which the tests' process records a change of a node (`Learned.writes`)."""
    place = _ATTRIBUTES.get(after[0])
    if place is None or before[0] != after[0]:
        return {after[0]}
    held, wanted = before[place], after[place]
    names = {name for name in held if held[name] != wanted.get(name)}
    if after[0] == "exception":
        names.update(name for name, at in _OF_EXCEPTION.items() if before[at] != after[at])
    keys = {f"{before[1]}.{name}" for name in names}
    return keys | {after[3]} if after[0] == "object" and before[4] != after[4] else keys


def _keys_of_changes(exchanges: Sequence[Exchange], numbers: Collection[str]) -> set[str]:
    """Return the keys of all changes to the objects with these numbers, which a test passed."""
    found: set[str] = set()
    state: dict[str, Any] = {}
    for exchange in exchanges:
        state.update(_heap_of(exchange.request))
        for number, node in _heap_of(exchange.answer).items():
            if number in numbers and number in state and state[number] != node:
                found |= _changed_keys(state[number], node)
            state[number] = node
    return found


class NewAttributes:
    """The attributes, as `module:class.name`, that objects have only in the submission's answers."""

    def __init__(self) -> None:
        self._of_known: set[str] = set()
        self._of_others: set[str] = set()
        """Those of objects whose class does not occur in the true answer to the same call."""
        self._true: set[str] = set()

    def found(self) -> set[str]:
        """Return the attributes of all calls so far."""
        return self._of_known | (self._of_others - self._true)

    def add(self, own: Sequence[Exchange], true: Sequence[Exchange]) -> None:
        """Add the attributes in the exchanges of one call.

        An object from the test is compared with itself, a new object with all new objects of its class in the
        true answers to the call, or in all calls if these have none.
        """
        given = _first_nodes(own)
        after_true: dict[str, Any] = {}
        for exchange in true:
            after_true.update(exchange.answer.get("heap", {}))
        known = _names_by_class(after_true, given)
        self._true.update(f"{name}.{part}" for name, parts in known.items() for part in parts)
        for exchange in own:
            for number, node in _objects(exchange.answer.get("heap", {}), {}):
                place = _ATTRIBUTES[node[0]]
                names = known.get(node[1])
                if number in given:
                    same = (after_true.get(number, given[number]), given[number])
                    names = {name for part in same if part[0] == node[0] for name in part[place]}
                new = {f"{node[1]}.{name}" for name in set(node[place]).difference(names or ())}
                (self._of_others if names is None else self._of_known).update(new)


def _first_nodes(exchanges: Sequence[Exchange]) -> dict[str, Any]:
    """Return the nodes that a test passed in a call, each as it was when it was first passed."""
    given: dict[str, Any] = {}
    for exchange in exchanges:
        for number, node in exchange.request.get("heap", {}).items():
            given.setdefault(number, node)
    return given


def _names_by_class(answered: Message, given: Message) -> dict[str, set[str]]:
    """Return the attribute names of new objects by class, or of objects from the test if none is new."""
    known: dict[str, set[str]] = {}
    for number, node in (*_objects(answered, given), *_objects(given, {})):
        if node[1] not in known or number not in given:
            known.setdefault(node[1], set()).update(node[_ATTRIBUTES[node[0]]])
    return known


def _objects(heap: Message, without: Message) -> Iterator[tuple[str, Sequence[Any]]]:
    return (
        (number, node) for number, node in heap.items() if node[0] in _ATTRIBUTES and number not in without
    )
