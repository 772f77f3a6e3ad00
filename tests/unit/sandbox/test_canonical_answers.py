"""Different answers of a function have different strings, whatever their class."""

import os
import re
import threading
import types
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path
from typing import Any

import pytest

from gistpoint.sandbox.payload.call_replayer import outcome
from gistpoint.sandbox.payload.canonical_answers import Made, Unequal, canonical


class Number(int):
    pass


class Text(str):
    pass


class Listed(list):  # type: ignore[type-arg]
    pass


def with_unit(value: Any, unit: str) -> Any:
    value.unit = unit
    return value


def noted(error: Exception, note: str) -> Exception:
    error.add_note(note)
    return error


def items(*parts: object) -> Iterator[object]:
    yield from parts


async def later(*parts: object) -> AsyncIterator[object]:
    for part in parts:
        yield part


def match(pattern: str, text: str) -> re.Match[str]:
    found = re.search(pattern, text)
    assert found
    return found


UP = [lambda number: number + 1, lambda number: number + 2, lambda number: number - 1]
PAIRS: dict[str, Callable[[], tuple[object, object]]] = {
    "a match's groups": lambda: (match("(a)b?", "ab"), match("a(b)", "ab")),
    "a match's string": lambda: (match("a", "ab"), match("a", "ac")),
    "asynchronous generators": lambda: (later(1, 2), later(2, 1)),
    "generators": lambda: (items(1), items(2)),
    "a number with attributes": lambda: (with_unit(Number(1), "m"), with_unit(Number(1), "s")),
    "a string with attributes": lambda: (with_unit(Text("1"), "m"), with_unit(Text("1"), "s")),
    "a list with attributes": lambda: (with_unit(Listed([1]), "m"), with_unit(Listed([1]), "s")),
    "an exception with a note": lambda: (noted(ValueError(1), "a"), noted(ValueError(1), "b")),
    "an exception with attributes": lambda: (with_unit(ValueError(1), "m"), with_unit(ValueError(1), "s")),
    "keys of a dictionary": lambda: ({1: 2}.keys(), {2: 2}.keys()),
    "values of a dictionary": lambda: ({1: 2}.values(), {1: 3}.values()),
    "items of a dictionary": lambda: ({1: 2}.items(), {1: 3}.items()),
    "read-only dictionaries": lambda: (types.MappingProxyType({1: 2}), types.MappingProxyType({1: 3})),
    "views of bytes": lambda: (memoryview(b"a"), memoryview(b"b")),
    "lambdas of a module": lambda: (UP[0], UP[1]),
    "lambdas that differ in their operator": lambda: (UP[0], UP[2]),
    "methods of two objects": lambda: ([1].append, [2].append),
    "methods of two strings": lambda: ("a".join, "b".join),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
@pytest.mark.parametrize("inside", [lambda value: value, lambda value: [value]], ids=["alone", "in a list"])
def test_different_answers_have_different_strings(
    pair: Callable[[], tuple[object, object]], inside: Callable[[object], object]
) -> None:
    one, other = (canonical(inside(value), 0, ()) for value in pair())
    again = canonical(inside(pair()[0]), 0, ())
    assert one == again
    assert one != other


def made_function() -> object:
    return lambda: 1


def made_closure() -> object:
    number = 1
    return lambda: number


def made_class() -> object:
    class Made:
        pass

    return Made


def made_by_type() -> object:
    return type("Made", (), {})


MADE = [made_function, made_closure, made_class, made_by_type, threading.Lock]


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("count", [0, 1])
def test_an_answer_whose_string_says_nothing_of_it_is_not_compared(
    make: Callable[[], object], count: int
) -> None:
    shape = [count, [], False, False, ["given"][:count]]
    found = outcome((lambda given: make()) if count else make, shape, [None] * count, 5.0)
    assert found["kind"] == "lost", found


@pytest.mark.parametrize("value", [int, dict.get, len, threading.Thread, types.NoneType, re.Pattern, UP])
def test_what_has_a_name_of_its_own_is_compared(value: object) -> None:
    assert canonical(value, 0, ()) == canonical(value, 0, ())


def test_a_function_or_a_lock_that_a_call_leaves_in_an_argument_is_no_answer() -> None:
    def fill(held: dict[str, object]) -> int:
        held.update(action=lambda: 1, lock=threading.Lock(), kind=made_class())
        return len(held)

    found = outcome(fill, [1, [], False, False, ["held"]], [{}], 5.0)
    assert found["kind"] == "value", found
    assert found["shown"] == "3"


def test_a_given_function_is_compared_by_its_name() -> None:
    def chosen(functions: list[object]) -> object:
        return functions[0]

    given = [made_function(), made_closure()]
    assert outcome(chosen, [1, [], False, False, ["functions"]], [given], 5.0)["kind"] == "value"
    with pytest.raises(Unequal):
        canonical(made_function(), 0, ())


def refuses_by_itself(n: int) -> int:
    if n:
        raise KeyError(n)
    return n


def refuses_by_a_helper(n: int) -> int:
    return refuses_by_itself(n)


def asserts(n: int) -> None:
    assert not n


def raises_again(n: int) -> int:
    try:
        return int("x" * n)
    except ValueError:
        raise


def fails_in_a_call(n: int) -> int:
    return int("x" * n)


def fails_in_an_operator(n: int) -> int:
    return [][n]


@pytest.mark.parametrize("function", [refuses_by_itself, refuses_by_a_helper, asserts])
def test_what_a_statement_of_the_repository_raises_is_a_refusal(function: Any) -> None:
    shape = [1, [], False, False, ["n"]]
    root = str(Path(__file__).parent)
    assert outcome(function, shape, [1], 5.0, root)["is_refusal"]
    assert not outcome(function, shape, [1], 5.0, f"{root}/elsewhere")["is_refusal"]
    assert not outcome(function, shape, [0], 5.0, root)["is_refusal"]


@pytest.mark.parametrize("function", [raises_again, fails_in_a_call, fails_in_an_operator])
def test_what_fails_without_a_statement_for_it_is_no_refusal(function: Any) -> None:
    found = outcome(function, [1, [], False, False, ["n"]], [1], 5.0, str(Path(__file__).parent))
    assert (found["kind"], found["is_refusal"]) == ("raised", False)


def asks_the_environment(n: int) -> str:
    return os.environ[f"NO VARIABLE {n}"]


def assigns_to_what_is_frozen(n: int) -> None:
    Frozen(n).n = n  # type: ignore[misc]


@dataclass(frozen=True)
class Frozen:
    n: int


@pytest.mark.parametrize("function", [asks_the_environment, assigns_to_what_is_frozen])
def test_what_the_standard_library_raises_is_no_refusal(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).parent
    monkeypatch.chdir(root)  # as in the sandbox; frozen modules have names such as `<frozen os>`
    found = outcome(function, [1, [], False, False, ["n"]], [1], 5.0, str(root))
    assert (found["kind"], found["is_refusal"]) == ("raised", False)


def test_how_a_function_that_a_call_leaves_is_written_is_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = {"key": lambda x: x + 1}, {"key": lambda number: 1 + number}
    monkeypatch.setattr(Made, "by_name", True)  # as for the arguments after a call
    assert canonical(one, 0, ()) == canonical(other, 0, ())


class Colour(IntFlag):
    RED = 1
    GREEN = 2


def test_what_a_class_of_constants_keeps_for_itself_is_no_difference() -> None:
    before = canonical(Colour.RED, 0, ())
    assert Colour.RED & ~Colour.RED == 0  # the inverse is kept as an attribute of the member
    assert canonical(Colour.RED, 0, ()) == before != canonical(Colour.GREEN, 0, ())
    made = IntFlag("made", ["ONE", "TWO"])
    assert canonical(made.ONE, 0, ()) != canonical(made.TWO, 0, ())


class Waiting:
    def __anext__(self) -> None:
        raise AssertionError("nothing is taken from it")


def test_an_asynchronous_iterator_of_a_class_is_described_by_its_attributes() -> None:
    one, other = Waiting(), Waiting()
    other.place = 1  # type: ignore[attr-defined]
    assert canonical(one, 0, ()) != canonical(other, 0, ())


class Missing:
    __slots__ = ()


MISSING = Missing()
Kind = Missing
Missing = MISSING  # type: ignore[assignment, misc]


def test_an_object_is_known_though_its_class_is_bound_to_something_else() -> None:
    assert canonical(MISSING, 0, ()) == canonical(Kind(), 0, ())
