"""Finds what the true function answers differently, sets or changes, and shows calls with both answers.

A test may pass only because of what a submission sets or changes, although no part of the answer that both
functions have differs: a comparison of the library may read an attribute that the true function never sets,
and the value that a test compares with may be an argument that was emptied (decision 135).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gistpoint.core.confirmation.differences import FunctionName
from gistpoint.core.confirmation.likeness import same_node
from gistpoint.core.confirmation.model import AnsweredCall
from gistpoint.core.confirmation.showing import (
    ValueRenderer,
    answer_text,
    call_text,
    effects_text,
    same_answer,
    same_effects,
)
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.confirmation.pair import Exchange, PairReport

Message = Mapping[str, Any]

_ATTRIBUTES = {"object": 2, "exception": 3}
"""The place of an object's attributes in its node, by the node's kind."""
_READS_ALL = re.compile(r"__dict__|\bvars\(|\b__getattr")


def answered_otherwise(
    functions: Sequence[FunctionName], test: str, true: PairReport, report: PairReport
) -> AnsweredCall | None:
    """Return the first call of a test that the true function answers differently.

    If no answer differs, it is the first call with different effects; None if there is none either. Calls
    after the first different request are not compared.
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
    """Return a call with its expected and its found answer as texts.

    If these texts are equal, the effects of the call, such as its output and changed arguments, take their
    place. `expected` and `found` are exchanges of the call itself, or of a later request to what it answered
    with; the texts of a later request begin with `then`.
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


# What only the submission sets or changes


def changes_more(request: Message, true: Message, submitted: Message, writes: Collection[str]) -> bool:
    """Whether a submission changes more in the objects that it was given than the true function does.

    True if it changes an argument, or an object inside one, that the true function leaves as it was, or if it
    removes an attribute that the true function keeps. Only changes that could be made in the tests' process
    count: `writes` are those that the true function was seen to make in any call. A malformed answer is
    compared only up to the malformed part.
    """
    given: Mapping[str, Any] = request.get("heap", {})
    before: Message = {"roots": [], "heap": {}}
    try:
        for number, node in submitted.get("heap", {}).items():
            if number not in given or node == given[number] or not _is_made(given[number], node, writes):
                continue
            is_left = same_node(request, before, true, int(number))
            is_changed = not same_node(request, true, submitted, int(number))
            true_node = true.get("heap", {}).get(number, given[number])
            if (is_left and is_changed) or _lost(true_node, node, writes):
                return True
    except (LookupError, TypeError, ValueError, AttributeError):
        pass  # a submission can write anything in place of an answer
    return False


def _lost(true: Sequence[Any], submitted: Sequence[Any], writes: Collection[str]) -> bool:
    """Whether an object has lost an attribute that it keeps in the true answer, and that may be changed."""
    place = _ATTRIBUTES.get(true[0])
    if place is None or true[:2] != submitted[:2]:
        return False
    lost = set(true[place]) - set(submitted[place])
    return any(f"{true[1]}.{name}" in writes for name in lost)


def _is_made(before: Sequence[Any], after: Sequence[Any], writes: Collection[str]) -> bool:
    """Whether the tests' process makes a change of this node, at least in part."""
    place = _ATTRIBUTES.get(after[0])
    if place is None or before[0] != after[0]:
        return after[0] in writes
    held, wanted = before[place], after[place]
    names = (name for name in held if held[name] != wanted.get(name))
    is_attribute = any(f"{before[1]}.{name}" in writes for name in names)
    return is_attribute or (after[0] == "object" and before[4] != after[4] and after[3] in writes)


def new_attributes(request: Message, true: Message, submitted: Message) -> set[str]:
    """Return the attributes, as `module:class.name`, that objects have only in the submission's answer.

    A given object is compared with itself, a new one with all new objects of its class in the true answer.
    Empty for a malformed answer.
    """
    try:
        return set(_new_attributes(request.get("heap", {}), true.get("heap", {}), submitted.get("heap", {})))
    except (LookupError, TypeError, ValueError, AttributeError):
        return set()  # a submission can write anything in place of an answer


def _new_attributes(given: Message, true: Message, submitted: Message) -> Iterator[str]:
    known: dict[str, set[str]] = {}
    # Given objects count only for classes of which the true answer has no new one.
    for number, node in (*_objects(true, given), *_objects(given, {})):
        if node[1] not in known or number not in given:
            known.setdefault(node[1], set()).update(node[_ATTRIBUTES[node[0]]])
    for number, node in submitted.items():
        place = _ATTRIBUTES.get(node[0])
        if place is None:
            continue
        same = true.get(number, given[number]) if number in given else None
        names = known.get(node[1]) if same is None else set(same[place]) | set(given[number][place])
        if names is not None:
            yield from (f"{node[1]}.{name}" for name in node[place] if name not in names)


def _objects(heap: Message, without: Message) -> Iterator[tuple[str, Sequence[Any]]]:
    return (
        (number, node) for number, node in heap.items() if node[0] in _ATTRIBUTES and number not in without
    )


def readable(tree: SourceTree, attributes: Iterable[str]) -> list[str]:
    """Return those of the attributes that code of `tree`, including its tests, could read.

    That is the case if the name occurs anywhere in the code, if the module of the class reads all attributes
    of an object at once, or if the name begins with two underscores.
    """
    sources: dict[str, str] = {}
    found = []
    for attribute in sorted(attributes):
        place, _, name = attribute.rpartition(".")
        if not sources:
            sources = {
                path: tree.read(path).decode("utf-8", "replace")
                for path in tree.files()
                if path.endswith(".py")
            }
        is_named = re.compile(rf"\b{re.escape(name)}\b").search
        reads_all = any(_READS_ALL.search(sources[path]) for path in _files_of(place, sources))
        if name.startswith("__") or reads_all or any(map(is_named, sources.values())):
            found.append(attribute)
    return found


def _files_of(class_name: str, paths: Iterable[str]) -> list[str]:
    """Return the paths that may be the module of a class."""
    module = class_name.partition(":")[0].replace(".", "/")
    return [path for path in paths if f"/{path}".endswith((f"/{module}.py", f"/{module}/__init__.py"))]
