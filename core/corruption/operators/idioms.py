"""Weaker idioms: another call that is as usual, and differs only for some values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_METHODS: Mapping[str, tuple[str, ...]] = {
    "rsplit": ("split",), "rpartition": ("partition",), "partition": ("rpartition",), "rfind": ("find",),
    "find": ("rfind",), "rindex": ("index",), "index": ("rindex",), "casefold": ("lower",), "splitlines": ("split",),
    "rstrip": ("strip",), "lstrip": ("strip",), "strip": ("rstrip",), "isdecimal": ("isdigit",),
    "isnumeric": ("isdigit",), "isdigit": ("isalnum",), "isalpha": ("isalnum",), "isidentifier": ("isalnum",),
    "capitalize": ("title",), "title": ("capitalize",), "removeprefix": ("lstrip",), "removesuffix": ("rstrip",),
    "deepcopy": ("copy",), "fullmatch": ("match",), "search": ("match",), "match": ("search",),
    "issubset": ("issuperset",), "issuperset": ("issubset",), "symmetric_difference": ("difference",),
    "bisect_left": ("bisect_right",), "bisect_right": ("bisect_left",), "insort_left": ("insort_right",),
    "realpath": ("abspath",), "isfile": ("exists",), "isdir": ("exists",), "is_file": ("exists",),
    "is_dir": ("exists",), "resolve": ("absolute",), "lexists": ("exists",), "starmap": ("map",),
    "zip_longest": ("zip",), "popitem": ("pop",), "rjust": ("ljust",), "ljust": ("rjust",), "extend": ("update",),
    "most_common": ("items",),
}  # fmt: skip
_ARGUMENTS: Mapping[str, tuple[int, int]] = {
    "splitlines": (9, 9), "removeprefix": (1, 1), "removesuffix": (1, 1), "popitem": (9, 9), "extend": (9, 9),
    "most_common": (9, 9), "strip": (0, 1), "rsplit": (2, 2),
}  # fmt: skip
"""The least and most arguments with which a method can become another one, if not any number."""
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
        name, number = node.func.attr, len(node.args) + len(node.keywords)
        least, most = _ARGUMENTS.get(name, (0, 9))
        if not least <= number <= most or (name in _PATTERN and not _is_pattern(subject, node.func)):
            continue
        end = subject.span(node.func)[1]
        yield from ((TextEdit(end - len(name), end, other),) for other in _METHODS.get(name, ()))


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
