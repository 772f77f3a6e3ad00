"""Compares two answers to one call by the plain data in them, and not by any `__eq__` (decision 131).

Differences that an honest repair may cause do not count: the order of dictionaries and sets, the last digits
of floats, attributes that only one of two objects has, the messages of exceptions, and functions, which could
only be compared by calling them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

Message = Mapping[str, Any]

_CLOSE = 1e-9
_DEEPEST = 60
_DICTIONARIES = frozenset(("dict", "ordered", "default", "counter", "namespace"))
_CALLABLE = frozenset(("m", "p", "a", "n"))
"""The tags of values that can be functions."""
_UNANSWERED = frozenset(("callback", "unplain", "gone", "done"))
_STAYING = -1_000_000_000
"""The highest number of an object that stays in the submission's process (`plain_sides.py` counts down)."""
_ABSENT = object()


def same_data(request: Message, first: Message, second: Message) -> bool:
    """Return whether two answers to one request hold the same data, and leave the same data in arguments.

    Answers that can't be compared, such as a callback or a missing answer, count as the same, but malformed
    answers do not.
    """
    if not _UNANSWERED.isdisjoint((first.get("re"), second.get("re"))):
        return True
    if first.get("re") != second.get("re"):
        return False
    try:
        return _Comparison(request, first, second).is_same()
    except (LookupError, TypeError, ValueError, AttributeError):
        return False  # a submission can write anything in place of an answer


def same_node(request: Message, first: Message, second: Message, number: int) -> bool:
    """Return whether the object with this number holds the same data after both answers."""
    return _Comparison(request, first, second).same(["#", number], ["#", number])


class _Comparison:
    """The comparison of two answers to a request."""

    def __init__(self, request: Message, first: Message, second: Message) -> None:
        given = request.get("heap", {})
        self.roots = first.get("roots", []), second.get("roots", [])
        self.given: Mapping[str, Any] = given
        self.heaps = {**given, **first.get("heap", {})}, {**given, **second.get("heap", {})}
        self.seen: dict[tuple[int, int], None] = {}
        """Pairs of the numbers of two objects that have been, or are being, compared, in their order."""

    def is_same(self) -> bool:
        if not self.all_same(*self.roots):
            return False
        # The arguments count too, because changing them is part of a function's behaviour.
        return all(self.same(["#", int(number)], ["#", int(number)]) for number in self.given)

    def all_same(self, first: Sequence[Any], second: Sequence[Any], depth: int = 0) -> bool:
        pairs = zip_longest(first, second, fillvalue=_ABSENT)
        return all(self.same(one, other, depth) for one, other in pairs)

    def same(self, first: Any, second: Any, depth: int = 0) -> bool:
        """Return whether two values are the same data; below the deepest compared level, all are."""
        if depth > _DEEPEST:
            return True
        tag, other_tag = _tag(first), _tag(second)
        if tag == other_tag == "#":
            return self.same_objects(first[1], second[1], depth + 1)
        if tag == "e" != other_tag:
            return self.same_member(first, second, depth + 1)
        if other_tag == "e" != tag:
            return self.same_member(second, first, depth + 1)
        # Two functions of different kinds, such as a partial and a closure, may behave identically.
        both_are_functions = self.can_be_called(first) and self.can_be_called(second)
        if both_are_functions and tag != other_tag:
            return True
        if type(first) is not type(second):
            return False
        if type(first) is not list:  # a plain JSON value, not a tagged one
            return bool(first == second)
        compare = _VALUES.get(first[0])
        if first[0] != second[0] or compare is None:
            return json.dumps(first) == json.dumps(second)
        return compare(self, first, second, depth + 1)

    def can_be_called(self, value: Any) -> bool:
        """Return whether a value may be a function, which could only be compared by calling it."""
        if _tag(value) != "#":
            return _tag(value) in _CALLABLE
        nodes = (heap.get(str(value[1])) for heap in self.heaps)
        return any(node is not None and node[0] == "function" for node in nodes)

    def same_member(self, member: Any, other: Any, depth: int) -> bool:
        """Return whether the enum of `member` extends a built-in class and `member` has the value `other`."""
        return bool(member[3]) and self.same(member[2], other, depth)

    # Objects

    def same_objects(self, first: int, second: int, depth: int) -> bool:
        """Return whether two numbered objects hold the same data; a pair seen before counts as the same."""
        if (first, second) in self.seen:
            return True
        self.seen[first, second] = None
        one, other = self.heaps[0].get(str(first)), self.heaps[1].get(str(second))
        if one is None or other is None:
            # An object that stays in the submission's process has the same number in the requests to both
            # sides.
            both_are_unknown = one is other
            return first == second and (both_are_unknown or first <= _STAYING)
        is_object = "object" in (one[0], other[0])
        if is_object and one[:2] != other[:2]:
            one, other = _as_plain(one), _as_plain(other)
        if one[0] in _DICTIONARIES and other[0] in _DICTIONARIES:
            return self.same_pairs(one[1], other[1], depth)
        if one[0] != other[0]:
            return False
        compare = _NODES.get(one[0])
        return compare(self, one, other, depth) if compare else True

    def same_instances(self, one: Sequence[Any], other: Sequence[Any], depth: int) -> bool:
        if one[1] != other[1]:
            return False
        held, found = one[2], other[2]
        # An attribute that only one of them has may be a cache, or may be set only when it is needed.
        common = held.keys() & found.keys()
        if not all(self.same(held[name], found[name], depth) for name in common):
            return False
        if not one[3]:
            return True
        return self.same_contents(_as_plain(one), _as_plain(other), depth)

    def same_contents(self, one: Sequence[Any], other: Sequence[Any], depth: int) -> bool:
        if one[0] in _DICTIONARIES:
            return self.same_pairs(one[1], other[1], depth)
        if one[0] == "set":
            return self.same_members(one[1], other[1], depth)
        if one[0] in ("list", "deque"):
            return self.all_same(one[1], other[1], depth)
        return self.same(one[1], other[1], depth)

    def same_exceptions(self, one: Sequence[Any], other: Sequence[Any], _: int) -> bool:
        """Return whether two exceptions have the same class, or extend the same built-in one."""
        return bool(one[1] == other[1] or one[5] == other[5])

    def same_pairs(self, first: Sequence[Any], second: Sequence[Any], depth: int) -> bool:
        """Return whether two lists of a dictionary's keys and values have the same pairs, in any order."""
        return self.same_members(first, second, depth, self.all_same, lambda pair: json.dumps(pair[0]))

    def same_members(
        self,
        first: Sequence[Any],
        second: Sequence[Any],
        depth: int,
        same: Callable[[Any, Any, int], bool] | None = None,
        key: Callable[[Any], str] = json.dumps,
    ) -> bool:
        """Return whether two collections without an order have the same members, as compared by `same`.

        Members with the same `key` are compared first, because comparing each with each takes too long.
        """
        same = same or self.same
        left = dict(enumerate(second))
        alike: dict[str, list[int]] = {}
        for place, other in left.items():
            alike.setdefault(key(other), []).append(place)
        for part in first:
            likely = (place for place in alike.get(key(part), ()) if place in left)
            found = next(
                (place for place in chain(likely, left) if self.tried(same, part, left[place], depth)), None
            )
            if found is None:
                return False
            del left[found]
        return not left

    def tried(self, same: Callable[[Any, Any, int], bool], first: Any, second: Any, depth: int) -> bool:
        """Return whether `same` finds two values the same. If not, forget the pairs that it has compared."""
        known = len(self.seen)
        found = same(first, second, depth)
        if not found:
            while len(self.seen) > known:
                self.seen.popitem()
        return found


def _tag(value: Any) -> str:
    return value[0] if type(value) is list and value and type(value[0]) is str else ""


def _as_plain(node: Sequence[Any]) -> Sequence[Any]:
    """Return an object's node as a node of the built-in class that its class extends; others unchanged."""
    return [node[3], node[4]] if node[0] == "object" and node[3] else node


def _same_float(_: _Comparison, first: Any, second: Any, __: int) -> bool:
    one, other = (float.fromhex(value[1]) for value in (first, second))
    return one == other or (one != one and other != other) or math.isclose(one, other, rel_tol=_CLOSE)


def _same_name(_: _Comparison, first: Any, second: Any, __: int) -> bool:
    return bool(first[1] == second[1])


def _same_by_parts(comparison: _Comparison, first: Any, second: Any, depth: int) -> bool:
    return comparison.all_same(first[1:], second[1:], depth)


def _same_inside(comparison: _Comparison, first: Any, second: Any, depth: int) -> bool:
    return comparison.all_same(first[1], second[1], depth)


def _same_set(comparison: _Comparison, first: Any, second: Any, depth: int) -> bool:
    return comparison.same_members(first[1], second[1], depth)


_Compare = Callable[[_Comparison, Any, Any, int], bool]
_VALUES: Mapping[str, _Compare] = {
    "f": _same_float,
    "n": _same_name,
    "t": _same_inside,
    "z": _same_set,
    **dict.fromkeys(("c", "s", "m", "e", "x", "mp", "v", "w"), _same_by_parts),
    # Two functions that were made in the call could only be compared by calling them.
    **dict.fromkeys(("p", "a"), lambda *_: True),
}
"""For each tag, a function that compares two values with it; values with other tags are compared as text."""
_NODES: Mapping[str, _Compare] = {
    "list": _same_inside,
    "deque": _same_inside,
    "set": _same_set,
    "bytearray": lambda comparison, one, other, depth: bool(one[1] == other[1]),
    "text file": lambda comparison, one, other, depth: bool(one[1] == other[1]),
    "byte file": lambda comparison, one, other, depth: bool(one[1] == other[1]),
    "object": _Comparison.same_instances,
    "exception": _Comparison.same_exceptions,
}
"""For each kind, a function that compares two nodes of it; nodes of other kinds, such as locks, are equal."""
