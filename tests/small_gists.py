"""A small codebase, gists that reproduce its tests faithfully, and the judges of these tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from gistpoint.core.entrypoints.command import parse_entrypoint
from gistpoint.core.kinds.gist.intake import Examination, write_gist_task
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.score import GistJudgement
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner

SHAPES = '''class BadShape(ValueError):
    """No such shape."""


def area(side):
    if side < 0:
        raise BadShape(side)
    print("area of", side)
    return side * side
'''
TEST = """import pytest

from pkg.shapes import BadShape, area


@pytest.mark.parametrize("side", [2, 3])
def test_area(side):
    assert area(side) == side * side
    with pytest.raises(BadShape):
        area(-side)
"""
NAMED = """import pytest

import pkg
from pkg import shapes


@pytest.mark.parametrize("side", [2, 3])
def test_named(side):
    assert pkg.shapes.area(side) == shapes.area(side) == side * side
"""
MAIN = "import sys\n\nfrom pkg.shapes import area\n\nprint(area(int(sys.argv[1])))\n"
FILES = {
    "pkg/__init__.py": "",
    "pkg/shapes.py": SHAPES,
    "pkg/__main__.py": MAIN,
    "tests/test_shapes.py": TEST,
    "tests/test_named.py": NAMED,
}
HONEST = (
    "import pytest\n\n"
    + SHAPES
    + TEST.replace("import pytest\n\nfrom pkg.shapes import BadShape, area\n", "")
)
WRONG = HONEST.replace("return side * side", "return 0")
STUB = TEST.replace("from pkg.shapes import BadShape, area\n", "")
LIBRARY_TEST = """import math
import unittest
from math import isclose

from pkg.shapes import area


class TestLibrary(unittest.TestCase):
    def test_library(self):
        self.assertEqual(area(3), 9)
        assert math.isclose(area(2), 4) and isclose(area(2), 4) and len([area(2)]) == 1
        assert abs(area(2) - 4) < 1
"""
FILES["tests/test_library.py"] = LIBRARY_TEST
LIBRARY_GIST = SHAPES + "\n" + LIBRARY_TEST.replace("from pkg.shapes import area\n", "")
LIBRARY_COMMAND = "pytest tests/test_library.py::TestLibrary::test_library"
RICH = """import abc
import collections
import dataclasses
import enum
import functools
import typing

Pair = collections.namedtuple("_Pair", "x y")


class Named(typing.NamedTuple):
    a: int


@functools.total_ordering
class Size:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return isinstance(other, Size) and self.n == other.n

    def __lt__(self, other):
        return self.n < other.n

    __hash__ = None


@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = 0


class Colour(enum.Enum):
    RED = 1


Flat = enum.Enum("Flat", "A B")


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...


class Square(Shape, int):
    def area(self):
        return self * self


class Wrong(LookupError):
    pass


class Anything:
    def __eq__(self, other):
        return True


def local(n):
    class Inner:
        def __bool__(self):
            return n > 0

    return Inner()
"""
RICH_TEST = """import math
from unittest import mock

import pytest

from pkg.rich import Anything, Colour, Flat, Named, Pair, Point, Shape, Size, Square, Wrong, local


def check(left, right):
    assert left == right
    return left


@pytest.fixture
def made():
    return Size(1)


def test_rich(made, monkeypatch):
    assert check(Pair(1, 2), Pair(1, 2)) == (1, 2)
    assert Named(1) == (1,) and made == Size(1) and made <= Size(2)
    assert Point(1) < Point(2) and Point(1) in [Point(1)]
    assert Colour(1) is Colour.RED and Flat.A != Flat.B
    assert isinstance(Square(2), Shape) and Square(2).area() == 4 and math.isclose(Square(2), 2)
    with pytest.raises(Wrong, match="no"):
        raise Wrong("no")
    assert Anything() == 3 and local(1) and not local(0)
    assert {"a": 1.0} == {"a": pytest.approx(1)} and mock.ANY == 3
    called = mock.MagicMock(return_value=2)
    assert called(*[1], **{"x": 2}) == 2 and called.called
    assert [f"{n:>{3}}" for n in range(2) if n] == ["  1"]
    assert (lambda n: n + 1)(1) == 2 and sum(n for n in [1, 2]) == 3
"""
RICH_FILES = {"pkg/__init__.py": "", "pkg/rich.py": RICH, "tests/test_rich.py": RICH_TEST}
FILES.update(RICH_FILES)
METHODS = """import enum
import functools
import numbers
import reprlib
import typing


class Money:
    def __init__(self, n):
        self.n = n

    @reprlib.recursive_repr()
    def __repr__(self):
        return f"Money({self.n})"

    def __add__(self, other):
        return Money(self.n + other)

    __radd__ = __add__
    __bool__ = lambda self: self.n > 0
    __hash__ = object.__hash__

    @functools.lru_cache
    def __len__(self):
        return self.n


def compared(kind):
    def same(self, other):
        return self.n == other.n

    kind.__eq__ = same
    return kind


@compared
class Length(Money):
    pass


class Kind(type):
    def __contains__(cls, item):
        return item in cls.items

    def __new__(mcs, name, bases, space):
        space["__lt__"] = lambda self, other: self.n < other.n
        return super().__new__(mcs, name, bases, space)


class Held(metaclass=Kind):
    items = (1, 2)

    class Part:
        def __eq__(self, other):
            return self is other

    def __init__(self, n):
        self.n = n


class Base:
    def __init_subclass__(cls):
        cls.__eq__ = Base.same

    def same(self, other):
        return type(self) is type(other)


class Derived(Base):
    __slots__ = ()


class Level(enum.IntFlag):
    LOW = 1
    HIGH = 2


class Word(str, enum.Enum):
    ONE = "one"


class Number(enum.IntEnum):
    ONE = 1


class Asked:
    def __getattr__(self, name):
        return name

    def __enter__(self):
        return self

    def __exit__(self, *of):
        return True


class Box(typing.Generic[typing.TypeVar("T")]):
    @property
    def value(self):
        return 3


Text = type("Text", (str,), {"__len__": lambda self: 1})


def made(n):
    class Made(Money):
        __eq__ = Money.__eq__

        def __int__(self):
            return n

    return Made(n)


class Failed(Exception):
    def __str__(self):
        return "failed"


@functools.total_ordering
class Version(numbers.Number):
    __hash__ = None

    def __init__(self, text):
        self.parts = text.split(".")

    if True:

        def __eq__(self, other):
            return self.parts == other.parts

    def __lt__(self, other):
        return self.parts < other.parts
"""
METHODS_TEST = """import dataclasses

import pytest

from pkg.methods import Asked, Box, Derived, Failed, Held, Length, Level, Money, Number, Text, Version, Word, made


@dataclasses.dataclass
class Case:
    n: int


class Helper:
    def __eq__(self, other):
        return other == 2


def test_methods():
    class Own:
        def __eq__(self, other):
            return True

    assert 1 + Money(2) != 3 and Money(2) and repr(Money(1)) == "Money(1)" and len(Money(3)) == 3
    assert Length(1) == Length(1) and 1 in Held and Held(1) < Held(2) and Held.Part() != Held.Part()
    assert Derived() == Derived() and Level.LOW | Level.HIGH == 3
    with Asked() as asked:
        assert asked.name == "name" and Box[int]().value == Box().value == 3
    assert Text("ab") == "ab" and len(Text("ab")) == 1 and int(made(4)) == 4 and made(1) != made(2)
    with pytest.raises(Failed) as caught:
        raise Failed
    assert str(caught.value) == "failed" and Version("1") < Version("2") and Version("1") == Version("1")
    assert Word.ONE == "one" and f"{Word.ONE!r} {Number.ONE}" == "<Word.ONE: 'one'> 1" and Number.ONE == 1
    assert Case(1) == Case(1) and Helper() == 2 and Own() == 3
"""
FILES.update({"pkg/methods.py": METHODS, "tests/test_methods.py": METHODS_TEST})
METHODS_GIST = METHODS + "\n" + re.sub("from pkg.methods .*\n", "", METHODS_TEST)
NAMES = "import Anything, Colour, Flat, Named, Pair, Point, Shape, Size, Square, Wrong, local\n"
RICH_GIST = RICH + "\n" + RICH_TEST.replace("from pkg.rich " + NAMES, "")
TESTED = "pytest tests/test_shapes.py::test_area"
HONEST_GISTS = {
    "plain": (TESTED, HONEST),
    "rich": ("pytest tests/test_rich.py::test_rich", RICH_GIST),
    "methods": ("pytest tests/test_methods.py::test_methods", METHODS_GIST),
    "library": (LIBRARY_COMMAND, LIBRARY_GIST),
}
"""Commands, and gists that reproduce them with the codebase's lines only."""
Prepared = Callable[[str], GistJudge]
"""A function that returns the judge of a command of the codebase."""


def judge_of(command: str, folder: Path, backend: Backend, environments: EnvironmentStore) -> GistJudge:
    """Return the judge of a command of the codebase, which is written to `folder`."""
    for path, text in FILES.items():
        (folder / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "tree" / path).write_text(text)
    write_tree(folder / "tree", folder / "tree.tar")
    tree = SourceTree.open(folder / "tree.tar")
    repository = Repository(Source("folder", "pkg", "1"), tree, EnvironmentPins())
    runner, entrypoint = GistRunner(backend, environments), parse_entrypoint(command)
    answer = Examination(repository, runner).examine(entrypoint)
    task = write_gist_task(repository, entrypoint, answer, folder / "tasks")
    return GistJudge(task, answer, runner)


def error_of(judgement: GistJudgement) -> str:
    """Return the kind of a judgement's error, or else its category; empty if there is none."""
    error = judgement.score.error
    return "" if error is None else str(error.kind or error.category)
