"""Code swapped in existing functions, with the orders for it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from small_trees import tree_of

from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.tasks.model import Target
from gistpoint.sandbox.candidates.warm import Order, Orders
from gistpoint.sandbox.payload.code_swap import LiveFunctions, UnfitError

MODULE = '''\
from __future__ import annotations
import functools
import sys

def plain(x, y=1):
    """Doc."""
    return x + y

def counted(function):
    calls = 0
    @functools.wraps(function)
    def wrapper(*arguments):
        nonlocal calls
        calls += 1
        return function(*arguments), calls
    return wrapper

@functools.lru_cache
def cached(x):
    return x + 1

@counted
def decorated(x):
    return x + 1

class Base:
    def name(self):
        return "base"

class Outer(Base):
    __secret = 1

    class Inner:
        def value(self):
            return 1

    @property
    def secret(self):
        return self.__secret

    @secret.setter
    def secret(self, value):
        self.__secret = value

    @classmethod
    def made(cls):
        return cls.__name__

    @staticmethod
    def fixed():
        return 1

    def name(self):
        return "outer " + super().name()

    def fails(self):
        return [x / 0 for x in (1,)]

def numbers():
    yield 1
    yield 2

if sys.version_info > (3,):
    def conditional():
        text = """
not indented
"""
        return text
'''


@pytest.fixture
def module(tmp_path: Path) -> Iterator[ModuleType]:
    place = tmp_path / "root" / "mod.py"
    place.parent.mkdir()
    place.write_text(MODULE)
    spec = importlib.util.spec_from_file_location("swapped", place)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["swapped"] = made
    spec.loader.exec_module(made)
    yield made
    del sys.modules["swapped"]


Corrupt = Callable[..., Order]
Ask = Callable[[ModuleType], object]


@pytest.fixture
def corrupt(tmp_path: Path, module: ModuleType) -> Corrupt:
    """A function that corrupts functions of the module by replacing strings, and swaps their code.

    It returns the order that was executed.
    """

    def swap(*changes: tuple[str, str, str]) -> Order:
        tree = tree_of({"mod.py": MODULE}, tmp_path)
        targets = []
        for qualname, old, new in changes:
            original = index_source("mod.py", MODULE.encode()).get(qualname).dedented
            assert old in original
            targets.append(Target("mod.py", qualname, original, original.replace(old, new)))
        order = Orders(tree).make(targets)
        live = LiveFunctions(str(tmp_path / "root"))
        for item in order.swaps:
            live.swap(item.path, item.line, item.name, item.source)
        for move in order.moves:
            live.move(move.path, move.below, move.lines)
        return order

    return swap


CASES = [
    ("plain", "x + y", "x - y", lambda m: m.plain(3), 2),
    ("cached", "x + 1", "x + 2", lambda m: m.cached(1), 3),
    ("decorated", "x + 1", "x + 2", lambda m: m.decorated(1), (3, 1)),
    ("counted.<locals>.wrapper", "calls += 1", "calls += 2", lambda m: m.decorated(1), (2, 2)),
    (
        "counted.<locals>.wrapper",
        "return function(*arguments), calls",
        "return None",
        lambda m: m.decorated(1),
        None,
    ),
    ("counted", "function(*arguments), calls", "calls", lambda m: m.decorated(1), 1),
    ("counted", "calls = 0", "calls = 5", lambda m: m.counted(len)([]), (0, 6)),
    ("Outer.Inner.value", "1", "2", lambda m: m.Outer.Inner().value(), 2),
    ("Outer.secret", "self.__secret", "-self.__secret", lambda m: m.Outer().secret, -1),
    (
        "Outer.secret#2",
        "= value",
        "= value + 1",
        lambda m: setattr(o := m.Outer(), "secret", 1) or o.secret,
        2,
    ),
    ("Outer.made", "cls.__name__", "None", lambda m: m.Outer.made(), None),
    ("Outer.fixed", "1", "2", lambda m: m.Outer.fixed(), 2),
    ("Outer.name", '"outer " + super().name()', '"changed"', lambda m: m.Outer().name(), "changed"),
    ("Outer.name", "outer ", "inner ", lambda m: m.Outer().name(), "inner base"),
    ("numbers", "yield 2", "yield 3", lambda m: list(m.numbers()), [1, 3]),
    ("conditional", "return text", "return text * 2", lambda m: m.conditional(), "\nnot indented\n" * 2),
]


IDS = [f"{case[0]}: {case[2]}" for case in CASES]


@pytest.mark.parametrize(("qualname", "old", "new", "ask", "answer"), CASES, ids=IDS)
def test_functions_that_exist_run_the_new_code(
    module: ModuleType, corrupt: Corrupt, qualname: str, old: str, new: str, ask: Ask, answer: object
) -> None:
    assert corrupt((qualname, old, new)).unfit == ""
    assert ask(module) == answer


@pytest.mark.parametrize(("ask", "answer"), [case[3:] for case in CASES], ids=IDS)
def test_the_original_answers_otherwise(module: ModuleType, ask: Ask, answer: object) -> None:
    assert ask(module) != answer


def test_several_functions_of_a_file_at_once(module: ModuleType, corrupt: Corrupt) -> None:
    order = corrupt(("plain", "return x + y", "y += 1\n    return x + y"), ("numbers", "yield 2", "yield 3"))
    assert (module.plain(1), list(module.numbers())) == (3, [1, 3])
    assert len(order.files) == 1
    text = order.files["mod.py"].decode().split("\n")
    assert [text[lines.first - 1] for lines in order.lines] == ["def plain(x, y=1):", "def numbers():"]
    assert text[order.lines[1].last - 1] == "    yield 3"


def test_tracebacks_show_the_lines_of_the_new_file(module: ModuleType, corrupt: Corrupt) -> None:
    order = corrupt(("Outer.name", "return", "text = 1\n    return text /"))
    with pytest.raises(TypeError) as caught:
        module.Outer().name()
    line = caught.traceback[-1].lineno + 1
    assert order.files["mod.py"].decode().split("\n")[line - 1].lstrip().startswith("return text /")
    assert order.lines[0].first <= line <= order.lines[0].last


LONGER = ("plain", "return x + y", "y += 1\n    return x + y")
SHORTER = ("plain", '"""Doc."""\n    return', "return")
FAILING = [
    (lambda m: m.decorated(None), "return x + 1"),
    (lambda m: m.counted(len)(1, 2), "return function(*arguments), calls"),
    (lambda m: m.Outer().fails(), "return [x / 0 for x in (1,)]"),
]


@pytest.mark.parametrize(
    "changes", [(LONGER,), (SHORTER,), (SHORTER, ("Outer.made", "return", "x = 1\n    return"))]
)
@pytest.mark.parametrize(("fail", "text"), FAILING)
def test_tracebacks_show_the_lines_of_what_stands_below(
    module: ModuleType, corrupt: Corrupt, changes: tuple[tuple[str, str, str], ...], fail: Ask, text: str
) -> None:
    order = corrupt(*changes)
    with pytest.raises((TypeError, ZeroDivisionError)) as caught:
        fail(module)
    lines = order.files["mod.py"].decode().split("\n")
    shown = [entry for entry in caught.traceback if str(entry.path).endswith("mod.py")]
    assert lines[shown[-1].lineno].strip() == text


@pytest.mark.parametrize(
    ("qualname", "old", "new", "why"),
    [
        ("plain", "y=1", "y=2", "parameters"),
        ("cached", "@functools.lru_cache", "@functools.lru_cache()", "decorators"),
    ],
)
def test_what_is_evaluated_when_a_function_is_defined_is_no_matter_of_its_code(
    tmp_path: Path, qualname: str, old: str, new: str, why: str
) -> None:
    original = index_source("mod.py", MODULE.encode()).get(qualname).dedented
    target = Target("mod.py", qualname, original, original.replace(old, new))
    assert why in Orders(tree_of({"mod.py": MODULE}, tmp_path)).make([target]).unfit


@pytest.mark.parametrize(
    ("qualname", "old", "new"),
    [
        ("counted", "def wrapper(*arguments):", "def other(*arguments):"),
        ("counted", "nonlocal calls\n        calls += 1", "calls = 1"),
        ("decorated", "x + 1", "x + 1)("),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    module: ModuleType, corrupt: Corrupt, qualname: str, old: str, new: str
) -> None:
    with pytest.raises((UnfitError, CodeError)):
        corrupt((qualname, old, new))
    assert module.decorated(1) == (2, 1)


def test_a_function_that_is_gone_is_refused_and_a_file_that_is_not_imported_needs_nothing(
    module: ModuleType, tmp_path: Path
) -> None:
    live = LiveFunctions(str(tmp_path / "root"))
    live.swap("other.py", 1, "f", "def f(): pass\n")
    with pytest.raises(UnfitError):
        live.swap("mod.py", 2, "plain", "def plain(): pass\n")


def test_a_target_that_is_not_there_is_the_callers_mistake(tmp_path: Path) -> None:
    orders = Orders(tree_of({"mod.py": MODULE}, tmp_path))
    for target in (
        Target("none.py", "f", "", "def f(): pass"),
        Target("mod.py", "gone", "", "def gone(): pass"),
    ):
        with pytest.raises(CodeError):
            orders.make([target])
    with pytest.raises(CodeError):
        orders.make([Target("mod.py", "plain", "", "def other(): pass")])
