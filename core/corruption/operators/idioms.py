"""Weaker idioms: another call that is as usual, and differs only for some values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_METHODS: Mapping[str, str] = {
    "rsplit": "split", "rpartition": "partition", "partition": "rpartition", "rfind": "find", "rindex": "index",
    "casefold": "lower", "rstrip": "strip", "lstrip": "strip", "strip": "rstrip", "isdecimal": "isdigit",
    "isnumeric": "isdigit", "capitalize": "title", "title": "capitalize", "removeprefix": "lstrip",
    "removesuffix": "rstrip", "deepcopy": "copy", "fullmatch": "match", "search": "match", "match": "search",
    "issubset": "issuperset", "issuperset": "issubset", "symmetric_difference": "difference",
    "bisect_left": "bisect_right", "bisect_right": "bisect_left", "insort_left": "insort_right",
    "realpath": "abspath", "isfile": "exists", "isdir": "exists", "is_file": "exists", "is_dir": "exists",
    "lexists": "exists", "resolve": "absolute", "starmap": "map", "zip_longest": "zip", "rjust": "ljust",
    "ljust": "rjust",
}  # fmt: skip
_PATTERN = frozenset({"match", "fullmatch", "search"})
_FUNCTIONS: Mapping[str, str] = {
    "sorted": "list", "round": "int", "repr": "str", "frozenset": "set", "zip_longest": "zip", "OrderedDict": "dict",
    "deepcopy": "copy", "floor": "int", "ceil": "round", "realpath": "abspath",
}  # fmt: skip
_SINGLE = frozenset({"sorted", "round", "floor", "ceil"})
_TYPES: Mapping[str, str] = {
    "Mapping": "dict", "MutableMapping": "dict", "Sequence": "list", "MutableSequence": "list", "Iterable": "list",
    "Set": "set", "Number": "int", "Real": "float", "Integral": "int", "Collection": "list", "Sized": "list",
}  # fmt: skip
_LIKE_PATTERN = re.compile(r"(^|_)(re|regexp?|pattern|rx|matcher)$")


def weaker_method(subject: CorruptionTarget) -> Iterator[Edits]:
    """A method that does nearly the same: `split` for `rsplit`, `lower` for `casefold`, `match` for `fullmatch`."""
    for node in subject.of(ast.Call):
        if not isinstance(node.func, ast.Attribute):
            continue
        name = node.func.attr
        other, end = _METHODS.get(name), subject.span(node.func)[1]
        if other is None or (name in _PATTERN and not _is_pattern(subject, node.func)):
            continue
        if name != "rsplit" or len(node.args) + len(node.keywords) == 2:
            yield (TextEdit(end - len(name), end, other),)


def _is_pattern(subject: CorruptionTarget, called: ast.Attribute) -> bool:
    """Whether a method is visibly one of a regular expression."""
    last = subject.source(called.value).rpartition(".")[2]
    return last.isupper() or bool(_LIKE_PATTERN.search(last.lower()))


def weaker_function(subject: CorruptionTarget) -> Iterator[Edits]:
    """A built-in function that does nearly the same: `list` for `sorted`, `int` for `round`, `str` for `repr`."""
    for node in subject.of(ast.Call):
        if not isinstance(node.func, ast.Name):
            continue
        name = node.func.id
        if name in _SINGLE and (len(node.args) != 1 or node.keywords):
            continue
        other = _FUNCTIONS.get(name)
        if other is not None and not (name == "sorted" and isinstance(subject.parent(node), ast.For)):
            yield subject.replaced(node.func, other)


def narrower_type(subject: CorruptionTarget) -> Iterator[Edits]:
    """The usual class for an abstract one: `isinstance(x, dict)` for `isinstance(x, Mapping)`."""
    for node in subject.of(ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass") and len(node.args) == 2:
            kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
            for kind in kinds:
                name = kind.id if isinstance(kind, ast.Name) else getattr(kind, "attr", "")
                if name in _TYPES and isinstance(kind, ast.Name | ast.Attribute):
                    yield subject.replaced(kind, _TYPES[name])


def part_of_duration(subject: CorruptionTarget) -> Iterator[Edits]:
    """The seconds of a duration without its days."""
    for node in subject.of(ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "total_seconds":
            start = subject.span(node.func.value)[1]
            yield (TextEdit(start, subject.span(node)[1], ".seconds"),)


OPERATORS = (
    Operator("weaker method", 0.3, weaker_method, in_rewritten=True),
    Operator("weaker function", 0.3, weaker_function, in_rewritten=True),
    Operator("narrower type", 0.3, narrower_type, in_rewritten=True),
    Operator("part of a duration", 0.3, part_of_duration),
)
