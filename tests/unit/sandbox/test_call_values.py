"""The parts that are kept of arguments that can't be pickled as a whole."""

from __future__ import annotations

import pickle
import re
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from gistpoint.sandbox.payload import call_values


class Holder:
    """An object that holds one value."""

    def __init__(self, **held: object) -> None:
        self.__dict__.update(held)


class Observed(dict):  # type: ignore[type-arg]
    """A dictionary that reports each item that is set, even during unpickling."""

    def __init__(self, *arguments: object, told: list[object], **more: object) -> None:
        super().__init__(*arguments, **more)
        self.told = told

    def __setitem__(self, key: object, value: object) -> None:
        self.told.append(key)
        super().__setitem__(key, value)


class Counted(list):  # type: ignore[type-arg]
    """A list that counts appended items."""

    __slots__ = ("count",)

    def append(self, value: object) -> None:
        self.count += 1
        super().append(value)

    def extend(self, values: object) -> None:
        raise AssertionError("no method of it may run")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, call_values._NAME, call_values)
    for made in (
        call_values.Absent,
        call_values.made_function,
        call_values.set_state,
        call_values.set_contents,
    ):
        monkeypatch.setattr(made, "__module__", made.__module__)  # put back afterwards

    def kept(value: object) -> tuple[Any, int]:
        data, absent = call_values.dumps([value])
        (found,) = pickle.loads(data)
        return found, absent

    return kept


def test_what_can_not_be_pickled_within_an_object_is_absent(kept: Any) -> None:
    class Local:
        pass

    held = Holder(names=["a"], items=(n for n in ()), local=Local(), pattern=re.compile("a"))
    found, absent = kept(held)
    assert absent == 2
    assert (found.names, found.pattern) == (["a"], re.compile("a"))
    assert {type(found.items), type(found.local)} == {call_values.Absent}
    with pytest.raises(AttributeError):
        next(found.local.items)


def test_locks_and_weak_references_are_made_again(kept: Any) -> None:
    held = Holder(lock=threading.Lock(), again=threading.RLock())
    held.itself = weakref.ref(held)  # type: ignore[attr-defined]
    found, absent = kept(held)
    assert absent == 0
    assert found.itself() is found
    with found.lock, found.again:
        assert not found.lock.acquire(blocking=False)


def _items() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize("value", [threading.Lock(), _items()])
def test_an_argument_itself_is_never_absent(kept: Any, value: object) -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        kept(value)


def test_members_are_put_back_without_the_methods_of_their_class(kept: Any) -> None:
    found, absent = kept(Observed({"a": 1, "b": []}, told=[]))
    assert (found, found.told, absent) == ({"a": 1, "b": []}, [], 0)
    counted = Counted()
    counted.count = 0
    counted.append(5)
    found, absent = kept(counted)
    assert (list(found), found.count, absent) == ([5], 1, 0)
    itself = Observed(told=[])
    dict.__setitem__(itself, "itself", itself)
    found, _ = kept(itself)
    assert found["itself"] is found
