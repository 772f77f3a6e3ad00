"""Faults by weaker idioms: calls that are as common as the right ones, but differ for some values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.shapes import elements, name_of
from gistpoint.core.corruption.subject import CorruptionTarget

_METHODS: Mapping[str, str] = {
    "rsplit": "split",
    "rpartition": "partition",
    "partition": "rpartition",
    "rfind": "find",
    "rindex": "index",
    "casefold": "lower",
    "rstrip": "strip",
    "lstrip": "strip",
    "strip": "rstrip",
    "isdecimal": "isdigit",
    "isnumeric": "isdigit",
    "capitalize": "title",
    "title": "capitalize",
    "removeprefix": "lstrip",
    "removesuffix": "rstrip",
    "deepcopy": "copy",
    "fullmatch": "match",
    "search": "match",
    "match": "search",
    "issubset": "issuperset",
    "issuperset": "issubset",
    "symmetric_difference": "difference",
    "bisect_left": "bisect_right",
    "bisect_right": "bisect_left",
    "insort_left": "insort_right",
    "realpath": "abspath",
    "isfile": "exists",
    "isdir": "exists",
    "is_file": "exists",
    "is_dir": "exists",
    "lexists": "exists",
    "resolve": "absolute",
    "starmap": "map",
    "zip_longest": "zip",
    "rjust": "ljust",
    "ljust": "rjust",
}
_PATTERN = frozenset({"match", "fullmatch", "search"})
_FUNCTIONS: Mapping[str, str] = {
    "sorted": "list",
    "round": "int",
    "repr": "str",
    "frozenset": "set",
    "zip_longest": "zip",
    "OrderedDict": "dict",
    "deepcopy": "copy",
    "floor": "int",
    "ceil": "round",
    "realpath": "abspath",
}
# `sorted(x, key=f)` or `round(x, 2)` would be invalid with the other function.
_SINGLE = frozenset({"sorted", "round", "floor", "ceil"})
_TYPES: Mapping[str, str] = {
    "Mapping": "dict",
    "MutableMapping": "dict",
    "Sequence": "list",
    "MutableSequence": "list",
    "Iterable": "list",
    "Set": "set",
    "Number": "int",
    "Real": "float",
    "Integral": "int",
    "Collection": "list",
    "Sized": "list",
}
_LIKE_PATTERN = re.compile(r"(^|_)(re|regexp?|pattern|rx|matcher)$")


@at_each(ast.Call)
def weaker_method(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that replace a method with a similar one: `split` for `rsplit`, `lower` for `casefold`."""
    match node.func:
        case ast.Attribute(attr=name) as called if name in _METHODS and _can_differ(subject, node, called):
            end = subject.span(called)[1]
            yield (TextEdit(end - len(name), end, _METHODS[name]),)


def _can_differ(subject: CorruptionTarget, node: ast.Call, called: ast.Attribute) -> bool:
    """Return whether the weaker method can differ: `rsplit` needs a limit, and `match` a pattern."""
    if called.attr == "rsplit":
        return len(node.args) + len(node.keywords) == 2
    return called.attr not in _PATTERN or _is_pattern(subject, called)


def _is_pattern(subject: CorruptionTarget, called: ast.Attribute) -> bool:
    """Return whether a call is evidently a method of a compiled regular expression."""
    last = subject.source(called.value).rpartition(".")[2]
    return last.isupper() or bool(_LIKE_PATTERN.search(last.lower()))


@at_each(ast.Call)
def weaker_function(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that replace a function with a similar one, such as `sorted` with `list`."""
    match node:
        case ast.Call(func=ast.Name(id="sorted")) if isinstance(subject.parent(node), ast.For):
            return  # left to `iteration.other_order`, which leaves out the whole call
        case ast.Call(func=ast.Name(id=name) as called, args=[_], keywords=[]) if name in _FUNCTIONS:
            yield subject.replaced(called, _FUNCTIONS[name])
        case ast.Call(func=ast.Name(id=name) as called) if name in _FUNCTIONS and name not in _SINGLE:
            yield subject.replaced(called, _FUNCTIONS[name])


@at_each(ast.Call)
def narrower_type(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that replace an abstract class in a type check with a common one: `Mapping` with `dict`."""
    match node:
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
            for kind in elements(kinds):
                if name_of(kind) in _TYPES:
                    yield subject.replaced(kind, _TYPES[name_of(kind)])


@at_each(ast.Call)
def part_of_duration(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that replace `total_seconds()` with `seconds`, which leaves out the days of a duration."""
    match node.func:
        case ast.Attribute(value=value, attr="total_seconds"):
            yield subject.replaced_after(value, node, ".seconds")


OPERATORS = (
    Operator("weaker method", 0.3, weaker_method, in_rewritten=True),
    Operator("weaker function", 0.3, weaker_function, in_rewritten=True),
    Operator("narrower type", 0.3, narrower_type, in_rewritten=True),
    Operator("part of a duration", 0.3, part_of_duration),
)
