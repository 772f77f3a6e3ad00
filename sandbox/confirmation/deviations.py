"""Finds where a submission deviates from the true function in what it answers, sets or changes.

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
    texts_apart,
)
from gistpoint.sandbox.confirmation.pair import Exchange, PairReport

Message = Mapping[str, Any]

RAISES = "raises where the true function answers, and no test notices"
CHANGES_MORE = "changes what the true function never changes"
DOES_MORE = "answers differently, and prints, warns or logs what the true function does not"
LEAVES = "leaves an answer to other code, where the true function answers itself"
_REFERENCE = re.compile(r'\["#", (-?\d+)\]')
_WITH_DATA = frozenset(("value", "raised", "stop"))
_ATTRIBUTES = {"object": 2, "exception": 3}
"""The place of an object's attributes in its node, by the node's kind."""
_OF_EXCEPTION = {"args": 2, "__cause__": 4}
"""The places of an exception's other parts in its node, by the names under which changes are recorded."""


def first_deviation(
    functions: Sequence[FunctionName], test: str, true: PairReport, report: PairReport
) -> AnsweredCall | None:
    """Return the first call of a test that the true function answers differently.

    If no answer differs, return the first call with different effects; None if there is no such call either.
    Calls after the first different request are not compared.
    """
    pairs = list(zip(true.asked[test].exchanges, report.asked[test].exchanges, strict=False))
    other_effects: tuple[Exchange, Exchange] | None = None
    for expected, found in pairs:
        if _without_number(expected) != _without_number(found):
            break
        # Effects come second, because the first different answer explains a failure best.
        if not same_answer(expected.answer, found.answer):
            return shown_call(_asked(functions, expected), test, expected, expected, found)
        if other_effects is None and not same_effects(expected.answer, found.answer):
            other_effects = expected, found
    if other_effects is None:
        return None
    return shown_call(_asked(functions, other_effects[0]), test, other_effects[0], *other_effects)


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
        shown = texts_apart(expected.answer, found.answer, shown)
    if call.request != request:
        shown = [f"then {text}" for text in shown]
    return AnsweredCall(str(function), text, shown[0], shown[1], test)


# What only the submission sets, changes or leaves to other code


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
        if _is_not_implemented(mine.answer) and not _is_not_implemented(other.answer):
            return LEAVES
        if _has_more_effects(mine.answer, other.answer) and not same_data(
            mine.request, mine.answer, other.answer
        ):
            return DOES_MORE
    return CHANGES_MORE if changes_more(own, true, writes, free) else ""


def mark_without_counterpart(
    own: Sequence[Exchange], others: Sequence[Sequence[Exchange]], writes: Collection[str]
) -> str:
    """Return the mark of a call that the true function does not get, such as one with random arguments.

    `others` are the true function's own calls. The test could depend on anything that none of them does: the
    call may change an argument only if one of them changes the argument at that position, and may raise only
    if one of them raises.
    """
    function = own[0].request.get("function")
    same = [chain for chain in others if chain[0].request.get("function") == function]
    raises = any(exchange.answer["re"] == "raised" for chain in same for exchange in chain)
    true = [replace(exchange, answer=_without_effect(exchange, raises)) for exchange in own]
    places = frozenset(place for chain in same for place in _changed_places(chain))
    return mark_of(own, true, writes, _objects_at(own[0].request, places))


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


def _objects_at(request: Message, places: Collection[int]) -> frozenset[str]:
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
    """Return pairs of the exchanges, own and true, in which a call and its later requests end."""
    ends = [[part for part in side if part.answer["re"] in _WITH_DATA] for side in (own, true)]
    if len(ends[0]) != len(ends[1]):
        ends = [side[-1:] for side in ends]
    return list(zip(*ends, strict=False))


def _is_not_implemented(answer: Message) -> bool:
    """Whether an operator's method returns NotImplemented, so that Python tries another one."""
    return bool(answer["re"] == "value" and answer["roots"] == [["k", "NotImplemented"]])


def _has_more_effects(own: Message, true: Message) -> bool:
    """Whether a call has effects that are not among those of the true function."""
    texts = any(own.get(name, "") not in true.get(name, "") for name in ("out", "err"))
    return texts or any(
        row not in true.get(name, ()) for name in ("warnings", "logs") for row in own.get(name, ())
    )


def same_request(own: Exchange, true: Exchange) -> bool:
    """Whether two runs made the same request; the numbers of objects that stay in a process may differ."""
    return _request_key(own.request) == _request_key(true.request)


def _request_key(request: Message) -> str:
    # Numbered by first occurrence, because a run that leaves tests out counts differently.
    return numbered_by_place(json.dumps({**request, "call": 0}, sort_keys=True))


def varying_tests(
    report: PairReport, later: Collection[PairReport], unsteady: Collection[str]
) -> Iterator[str]:
    """Yield the tests with a call that gets another answer in one of the later runs of the same submission.

    Each later run leaves out something that could hide a wrong answer: a submission could answer wrongly in
    the first run, and correctly once it is left out. Only calls before the first different request count, and
    no `unsteady` tests.
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
    if _changes_differently(own, true, _first_nodes(own).keys() - known.keys() - set(free), writes):
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
            is_changed = number in given and node != before[number]
            if not is_changed or not _is_made(before[number], node, writes):
                continue
            touched.append(number)
            is_own_change = _is_changed_alone(known, after_true, after_own, number, writes)
            if is_own_change and not _is_temporary_state(known, true, after_own, number):
                return True
    return any(_is_changed_alone(known, after_true, after_own, number, writes) for number in touched)


def _changes_differently(
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


def _is_changed_alone(
    known: Message,
    after_true: Mapping[str, Any],
    after_own: Mapping[str, Any],
    number: str,
    writes: Collection[str],
) -> bool:
    """Whether the submission, but not the true function, changed an object.

    A lost attribute counts even if the true function changes the object.
    """
    try:
        is_unchanged_by_true = _same(known, after_true, number)
        is_changed_by_own = not _same(after_true, after_own, number)
    except (LookupError, TypeError, ValueError, AttributeError):
        return True  # a submission can write anything in place of an answer
    is_changed_alone = is_unchanged_by_true and is_changed_by_own
    return is_changed_alone or _has_lost_attribute(after_true[number], after_own[number], writes)


def _is_temporary_state(
    known: Message, true: Sequence[Exchange], after_own: Mapping[str, Any], number: str
) -> bool:
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


def _has_lost_attribute(true: Sequence[Any], submitted: Sequence[Any], writes: Collection[str]) -> bool:
    """Whether an object has lost an attribute, one of `writes`, that it keeps in the true answer."""
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
    """The attributes, as `module:class.name`, that objects have only in the submission's answers.

    If other objects of the class have an attribute in the true answer to the same call, but not the one in
    the same place, it is `call/number module:class.name`, with the number of the object (decision 205).
    """

    def __init__(self) -> None:
        self._of_known_classes: set[str] = set()
        self._of_new_classes: set[str] = set()
        """The attributes of objects whose class does not occur in the true answer to the same call."""
        self._true: set[str] = set()

    def found(self) -> set[str]:
        """Return the attributes of all calls so far."""
        return self._of_known_classes | (self._of_new_classes - self._true)

    def add(self, own: Sequence[Exchange], true: Sequence[Exchange], calls: Collection[int] = ()) -> None:
        """Add the attributes in the exchanges of one call, equal to each of `calls`, their numbers.

        An object from the test is compared with itself in the true answers. A new object is compared with the
        one in the same place of the true answer, and with all new objects of its class in the true answers to
        the call, or to all calls if these have none.
        """
        given = _first_nodes(own)
        after_true: dict[str, Any] = {}
        for exchange in true:
            after_true.update(exchange.answer.get("heap", {}))
        known = _names_by_class(after_true, given)
        self._true.update(f"{name}.{part}" for name, parts in known.items() for part in parts)
        places = _same_places(own, true)
        for exchange in own:
            for number, node in _objects(exchange.answer.get("heap", {}), {}):
                is_from_test = number in given
                names = known.get(node[1])
                if is_from_test:
                    same = (after_true.get(number, given[number]), given[number])
                    names = {name for part in map(_as_object, same) if part for name in part[2]}
                new = _attributes_besides(node, names)
                if number in places and not is_from_test:
                    new = set() if node[1] == _NAMESPACE else new
                    self._add_placed(node, places[number], [f"{call}/{number}" for call in calls], new)
                (self._of_new_classes if names is None else self._of_known_classes).update(new)

    def _add_placed(
        self, node: Sequence[Any], true: Sequence[Any], objects: Sequence[str], known: Collection[str]
    ) -> None:
        by_place = _attributes_besides(node, set(true[2])).difference(known)
        self._of_known_classes.update(f"{one} {key}" for one in objects for key in by_place)


def _attributes_besides(node: Sequence[Any], names: Collection[str] | None) -> set[str]:
    """Return an object's attributes that are not in `names`, without containers' own."""
    return {f"{node[1]}.{name}" for name in node[2] if name not in (names or ())} - _OF_CONTAINERS


_OF_CONTAINERS = frozenset(
    (
        "collections:ChainMap.maps",
        "collections:UserDict.data",
        "collections:UserList.data",
        "collections:UserString.data",
    )
)
"""The attributes that hold the members of a container of the standard library."""


def _same_places(own: Sequence[Exchange], true: Sequence[Exchange]) -> dict[str, Sequence[Any]]:
    """Return the true objects in the same places of the answers to a call, by the submission's numbers.

    Objects of another class are left out, except for a namespace in place of one. A place is a position in a
    list or tuple, a key of a dictionary or the name of an attribute; members of sets have none.
    """
    found: dict[str, Sequence[Any]] = {}
    heaps: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for pair in zip(own, true, strict=False):
        for heap, exchange in zip(heaps, pair, strict=True):
            heap.update(exchange.request.get("heap", {}))
            heap.update(exchange.answer.get("heap", {}))
        waiting = [tuple(exchange.answer.get("roots", ()) for exchange in pair)]
        seen = set[tuple[str, str]]()
        while waiting:
            mine, other = waiting.pop()
            numbers = _number_of(mine), _number_of(other)
            if "" not in numbers:
                if numbers in seen:
                    continue
                seen.add(numbers)
                mine, other = (heap.get(number) for heap, number in zip(heaps, numbers, strict=True))
                one, same = _as_object(mine), _as_object(other)
                if one and same and one[1] in (same[1], _NAMESPACE):
                    found.setdefault(numbers[0], same)
            waiting += _parts_in_place(mine, other)
    return found


def _number_of(value: Any) -> str:
    return str(value[1]) if type(value) is list and len(value) == 2 and value[0] == "#" else ""


def _parts_in_place(mine: Any, other: Any) -> list[tuple[Any, ...]]:
    """Return the pairs of parts of two values that have the same place in them."""
    if type(mine) is dict and type(other) is dict:
        return [(mine[name], other[name]) for name in mine.keys() & other.keys()]
    both_are_lists = type(mine) is list and type(other) is list
    if not both_are_lists or mine[:1] in _WITHOUT_PLACES:
        return []
    both_are_mappings = mine[:1] == other[:1] and mine[:1] in _BY_KEY
    if both_are_mappings:
        return _parts_in_place(_by_key(mine), _by_key(other))
    return list(zip(mine, other, strict=False))


def _by_key(node: Any) -> dict[str, Any]:
    """Return the values of a mapping's node by the JSON form of their keys."""
    return {json.dumps(key): part for key, part in _pairs_of(node)}


def _pairs_of(node: Sequence[Any]) -> list[list[Any]]:
    return [pair for pair in node[1] if type(pair) is list and len(pair) == 2]


_BY_KEY = (["dict"], ["ordered"], ["default"], ["counter"], ["namespace"])
"""How the nodes of mappings begin: their parts belong together by key."""
_WITHOUT_PLACES = (["set"], ["z"])
"""How the nodes of sets begin, whose parts have no places."""
_NAMESPACE = "types:SimpleNamespace"


def _as_object(node: Any) -> Sequence[Any] | None:
    """Return the kind, the class and the attributes of an object's node; None for another node."""
    if type(node) is list and node[0] == "namespace":
        return ["object", _NAMESPACE, {name: part for name, part in _pairs_of(node) if type(name) is str}]
    place = _ATTRIBUTES.get(node[0]) if type(node) is list else None
    return None if place is None else [node[0], node[1], node[place]]


def _first_nodes(exchanges: Sequence[Exchange]) -> dict[str, Any]:
    """Return the nodes that a test passed in a call, each in its state when first passed."""
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
            known.setdefault(node[1], set()).update(node[2])
    return known


def _objects(heap: Message, without: Message) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the numbers of the objects in a heap, with their kinds, classes and attributes."""
    for number, node in heap.items():
        found = None if number in without else _as_object(node)
        if found is not None:
            yield number, found
