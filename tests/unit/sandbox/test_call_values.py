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
        call_values.made_method,
        call_values.named_object,
        call_values.set_state,
        call_values.set_contents,
    ):
        monkeypatch.setattr(made, "__module__", made.__module__)  # put back afterwards

    def kept(value: object) -> tuple[Any, int]:
        data, absent = call_values.dumps([value])
        (found,) = pickle.loads(data)
        return found, absent

    return kept


def _of_a_local_class() -> object:
    class Local:
        def __repr__(self) -> str:
            return "REMOVED"

    return Local()


MISSING, REMOVED = object(), _of_a_local_class()


def test_a_sentinel_of_a_module_stays_the_same_object(kept: Any) -> None:
    found, absent = kept(Holder(items=[MISSING, REMOVED, object()]))
    assert absent == 0
    assert (found.items[0] is MISSING, found.items[1] is REMOVED) == (True, True)
    assert found.items[2] is not MISSING


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


class Bell:
    """An object that holds its own methods, as observers do."""

    def __init__(self) -> None:
        self.rung = 0
        self.hooks = {"ring": self.ring, "private": self.__ring}

    def ring(self) -> int:
        self.rung += 1
        return self.rung

    def __ring(self) -> int:
        return -self.ring()


def test_a_bound_method_is_kept_with_its_object(kept: Any) -> None:
    found, absent = kept(Bell())
    assert absent == 0
    assert (found.hooks["ring"](), found.hooks["private"](), found.rung) == (1, -2, 2)
    method, absent = kept(Bell().ring)
    assert (method(), method.__self__.hooks["ring"](), absent) == (1, 2, 0)


def test_built_in_iterators_within_an_object_are_kept_where_they_are(kept: Any) -> None:
    listed, keys = iter([1, 2, 3]), iter({"a": 1, "b": 2})
    next(listed)
    held = Holder(
        listed=listed, keys=keys, numbers=iter(range(2)), text=iter("ab"), backwards=reversed([1, 2])
    )
    found, absent = kept(held)
    assert absent == 0
    parts = [list(getattr(found, name)) for name in ("listed", "keys", "numbers", "text", "backwards")]
    assert parts == [[2, 3], ["a", "b"], [0, 1], ["a", "b"], [2, 1]]
    assert [next(listed), next(keys)] == [2, "a"], "nothing was taken from the originals"
