"""Methods of dataclasses, which are compiled when they are first called (decision 164)."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from gistpoint.tui import starting

pytestmark = pytest.mark.skipif(
    not hasattr(dataclasses, "_create_fn"), reason="this Python compiles all methods of a class at once"
)

starting._OWNERS |= {__name__.partition(".")[0]}  # the records below represent gistpoint's


@dataclass(frozen=True, slots=True)
class Point:
    """A record with defaults; its fields have the names of a method's own parameters."""

    self: int
    name: str = "origin"
    given: tuple[int, ...] = field(default_factory=tuple)

    def __post_init__(self_) -> None:
        if self_.self < 0:
            raise ValueError("negative")


@dataclass(frozen=True, slots=True)
class Place(Point):
    """A record that inherits fields and methods."""

    height: int = 0


@dataclass
class Box:
    """A record that can change."""

    items: list[int] = field(default_factory=list, compare=False)
    label: str = ""


@dataclass(order=True)
class Ranked:
    """A record with an order."""

    rank: int


def test_records_behave_as_the_standard_librarys_do() -> None:
    place = Place(1, "here", height=3)
    assert place == Place(self=1, name="here", given=(), height=3)
    assert place != replace(place, height=4)
    assert place != Point(1, "here")
    assert hash(place) == hash(copy.copy(place))
    assert repr(place) == "Place(self=1, name='here', given=(), height=3)"
    assert pickle.loads(pickle.dumps(place)) == place
    for change in (lambda: setattr(place, "name", ""), lambda: delattr(place, "name")):
        with pytest.raises(FrozenInstanceError):
            change()
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        Place(1, depth=2)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="negative"):
        Point(-1)
    assert Ranked(1) < Ranked(2)
    box = Box([1], "a")
    box.label = "b"
    assert box == Box([2], "b")
    with pytest.raises(TypeError, match="unhashable"):
        hash(box)


def test_a_method_is_compiled_at_its_first_call_and_takes_its_own_place() -> None:
    @dataclass
    class Fresh:
        value: int

    assert Fresh.__init__.__code__.co_filename == starting.__file__
    assert Fresh(1) == Fresh(1)
    assert Fresh.__init__.__code__.co_filename == "<string>"
    assert Fresh.__eq__.__code__.co_filename == "<string>"
    assert Fresh.__init__.__qualname__.endswith("Fresh.__init__")


def test_the_dataclasses_of_other_packages_are_left_alone() -> None:
    class Foreign:
        value: int

    Foreign.__module__ = "json"
    made = dataclass(Foreign)
    assert made.__init__.__code__.co_filename == "<string>"


def test_where_the_standard_library_has_no_such_function_nothing_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(dataclasses, "_create_fn")
    starting.compile_methods_when_called()
    assert not hasattr(dataclasses, "_create_fn")
