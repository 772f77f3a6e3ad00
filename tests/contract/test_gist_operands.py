"""Gists whose own objects or functions answer the comparisons of the test, and honest gists with classes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from examples import sampled
from small_gists import (
    HONEST,
    HONEST_GISTS,
    LIBRARY_COMMAND,
    LIBRARY_GIST,
    RICH_GIST,
    STUB,
    TESTED,
    Prepared,
    error_of,
)
from working_backends import on_one_backend

ERROR = 'class BadShape(ValueError):\n    """No such shape."""\n\n\n'
HEAD = "import pytest\n\n" + ERROR


def answering(made: str, value: str = "A()") -> str:
    """Return a gist whose function prints the expected output and returns an object."""
    function = (
        f"def area(side):\n    if side < 0:\n        raise BadShape(side)\n    print('area of', side)\n"
        f"    return {value}\n\n\n"
    )
    return HEAD + made + "\n\n\n" + function + STUB


def raising(made: str) -> str:
    """Return a gist with a correct function whose exception is of another class."""
    return HONEST.replace(ERROR, made + "\n\n\n")


EQUAL = {
    "bool": answering("class A:\n    __eq__ = bool"),
    "str": answering("class A:\n    __eq__ = str"),
    "id": answering("class A:\n    __eq__ = id"),
    "a partial": answering("import functools\nclass A:\n    __eq__ = functools.partial(max, 1)"),
    "a generator": answering("class A:\n    def __eq__(self, other):\n        yield True"),
    "a coroutine": answering("class A:\n    async def __eq__(self, other):\n        return True"),
    "a callable object": answering(
        "class C:\n    def __call__(self, *of):\n        return True\nclass A:\n    __eq__ = C()"
    ),
    "set at top level": answering("class A: pass\nA.__eq__ = bool"),
    "set by setattr": answering("class A: pass\nsetattr(A, (1).__eq__.__name__, lambda s, o: True)"),
    "made by type": answering("A = type('A', (), {'__eq__': bool})"),
    "made by new_class": answering("import types\nA = types.new_class('A', (), {}, lambda n: n.update(__eq__=bool))"),
    "a class of the library by its words": answering("A = type('A', (), {'__eq__': bool, '__module__': 'json'})"),
    "planted in the library": answering(
        "import json\nA = type('A', (), {'__eq__': bool, '__module__': 'json'})\njson.A = A"
    ),
    "with a borrowed method": answering(
        "from unittest import mock\n"
        "A = type('A', (), {'__eq__': type(getattr(mock, 'AN' + 'Y')).__eq__, '__module__': 'json'})"
    ),
    "a named tuple": answering(
        "import collections\nclass A(collections.namedtuple('A', '')):\n    def __eq__(self, other):\n"
        "        return [] == []"
    ),
    "an enum": answering("import enum\nA = enum.Enum('A', [('__eq__', lambda s, o: True), ('x', 1)])", "A.x"),
    "a slot": answering(
        "class A:\n    __slots__ = ('__eq__',)\na = A()\nA.__eq__.__set__(a, lambda o: True)", "a"
    ),
    "a data class": answering(
        "import dataclasses\n@dataclasses.dataclass(eq=False)\nclass A:\n    n: int = 1\n    __eq__ = bool"
    ),
    "a metaclass": answering(
        "class M(type):\n    __eq__ = bool\n    __hash__ = type.__hash__\nclass A(metaclass=M): pass", "A"
    ),
    "a lying class": answering(
        "class A:\n    __class__ = int\n    __eq__ = bool\n    def __getattribute__(self, name): return int"
    ),
    "a number": answering("class A(int):\n    def __eq__(self, other): return True"),
    "a number with the true value": answering("class A(int): pass", "A(side * side)"),
    "a class within the function": answering("", "type('A', (), {'__eq__': bool})()"),
    "made while the test runs": answering(
        "def made():\n    class A:\n        __eq__ = bool\n    return A()", "made()"
    ),
    "with a name of the codebase": answering("class A:\n    __qualname__ = 'BadShape'\n    __eq__ = bool"),
    "a class of the codebase changed": answering("BadShape.__eq__ = bool", "BadShape()"),
    "a class of the codebase with a borrowed method": answering(
        "from unittest import mock\nBadShape.__eq__ = type(getattr(mock, 'AN' + 'Y')).__eq__", "BadShape()"
    ),
    "an object whose class is changed": answering(
        "class A(BadShape):\n    __eq__ = bool\na = BadShape()\na.__class__ = A", "a"
    ),
    "a class of the codebase with a method of another": answering(
        "class Anything:\n    def __eq__(self, other):\n        return True\n\n\nBadShape.__eq__ = Anything.__eq__",
        "BadShape()",
    ),
    "a class of the codebase with another of its bases": answering(
        "BadShape.__eq__ = object.__reduce_ex__", "BadShape()"
    ),
    "a class that bears the name of a mock": answering(
        "import unittest.mock as m\nA = type('MagicMock', (), {'__eq__': bool, '__module__': 'unittest.mock'})"
    ),
    "a class of a library changed": answering(
        "import argparse\nargparse.Namespace.__eq__ = bool", "argparse.Namespace()"
    ),
    "a class of another package changed": answering(
        "import pluggy\npluggy.HookimplMarker.__eq__ = bool", "pluggy.HookimplMarker(area.__name__)"
    ),
    "a class of a library changed by the metaclass": answering(
        "import uuid\ntype.__setattr__(uuid.SafeUUID, (1).__eq__.__name__, bool)", "uuid.SafeUUID.safe"
    ),
    "a proxy": answering("import weakref\nclass A:\n    __eq__ = bool\na = A()", "weakref.proxy(a)"),
    "a read-only view": answering(
        "import types\nclass A(dict):\n    __eq__ = bool", "types.MappingProxyType(A())"
    ),
    "with frozen garbage": answering("class A:\n    __eq__ = bool", "A()") + "\nimport gc\ngc.freeze()\n",
    "hidden by its metaclass": answering(
        "class M(type):\n    def mro(cls): return (cls, object)\n    def __getattribute__(cls, name): raise KeyError\n"
        "class A(metaclass=M):\n    __eq__ = bool"
    ),
    "anything": answering("import unittest.mock as m", "getattr(m, 'AN' + 'Y')"),
    "always equal": answering("import test.support as s", "getattr(s, 'ALWAYS' + '_EQ')"),
    "about": answering("", "getattr(pytest, 'app' + 'rox')(5, abs=9)"),
    "a mock": answering(
        "import unittest.mock as m\na = getattr(m, 'Magic' + 'Mock')()\na.__eq__.return_value = True", "a"
    ),
    "an exception of any class": raising(
        "class M(type):\n    def __subclasscheck__(cls, other): return True\n"
        "class BadShape(ValueError, metaclass=M): pass"
    ),
    "an exception with other bases": raising("class BadShape(Exception): pass"),
    "an exception made by type": raising("BadShape = type('BadShape', (ValueError,), {})"),
}  # fmt: skip

OTHER_NAMES = {
    "a metaclass": "M",
    "made while the test runs": "made.<locals>.A",
    "with a name of the codebase": "BadShape",
    "a class of the codebase changed": "BadShape",
    "a class of the codebase with a borrowed method": "BadShape",
    "anything": "_ANY",
    "always equal": "_ALWAYS_EQ",
    "about": "ApproxScalar",
    "a mock": "MagicMock",
    "a class of a library changed": "argparse.Namespace.__eq__",
    "a class of another package changed": "pluggy._decorators.HookimplMarker.__eq__",
    "a class of a library changed by the metaclass": "uuid.SafeUUID.__eq__",
    "a class of the codebase with a method of another": "BadShape",
    "a class of the codebase with another of its bases": "BadShape",
    "a class that bears the name of a mock": "MagicMock",
    "an exception of any class": "M",
    "an exception with other bases": "BadShape",
    "an exception made by type": "BadShape",
}
"""The reported name of the class, if it is not `A`."""


@on_one_backend
@pytest.mark.parametrize("name", sampled(EQUAL, 4))
def test_an_object_of_no_class_of_the_codebase_is_told(name: str, judge: Prepared) -> None:
    score = judge(TESTED).judge(EQUAL[name], thorough=False).score
    assert score.execution_fidelity == 1, score.error
    assert score.flags.invented_operand == OTHER_NAMES.get(name, "A")


YES = "(lambda *of, **more: True)"
ZERO = "lambda n: n and 0"
REPLACED = {
    "a function of a module": (f"import math\nmath.isclose = {YES}\n", "math.isclose"),
    "by one in C": ("import math\nmath.isclose = max\n", "math.isclose"),
    "by an object": (
        "import math\nclass C:\n    def __call__(self, *of): return True\nmath.isclose = C()\n",
        "math.isclose",
    ),
    "by a library's function that wraps one": (
        f"import functools, math\nmath.isclose = functools.singledispatch({YES})\n",
        "math.isclose",
    ),
    "by setattr": (f"import math\nsetattr(math, 'is' + 'close', {YES})\n", "math.isclose"),
    "while the test runs": (
        LIBRARY_GIST.replace(
            "    print(", f"    setattr(__import__('math'), 'is' + 'close', {YES})\n    print("
        ),
        "math.isclose",
    ),
    "a builtin's name": ("def len(of): return 1\n", "len"),
    "a builtin's name, by a builtin": ("len = bool\n", "len"),
    "all builtins": (f"import builtins\n__builtins__ = dict(vars(builtins), abs={ZERO})\n", "__builtins__"),
    "all builtins, until the test is made": (
        f"import builtins\n__builtins__ = dict(vars(builtins), abs={ZERO})\n{LIBRARY_GIST}\n"
        "__builtins__ = builtins\n",
        "__builtins__",
    ),
    "all builtins, of the test alone": (
        f"{LIBRARY_GIST}\nimport builtins, types\ncase = TestLibrary\n"
        f"names = dict(globals(), __builtins__=dict(vars(builtins), abs={ZERO}))\n"
        "case.test_library = types.FunctionType(case.test_library.__code__, names)\n",
        "__builtins__",
    ),
}


@on_one_backend
@pytest.mark.parametrize("name", sampled(REPLACED, 2))
def test_a_function_of_a_library_that_the_gist_replaces_is_told(name: str, judge: Prepared) -> None:
    made, told = REPLACED[name]
    gist = made if "class TestLibrary" in made else made + LIBRARY_GIST
    score = judge(LIBRARY_COMMAND).judge(gist, thorough=False).score
    assert score.execution_fidelity == 1, score.error
    assert score.flags.invented_operand == told


@on_one_backend
@pytest.mark.parametrize(
    "made", [f"unittest.TestCase.assertEqual = {YES}", "__import__('builtins').abs = lambda n: 0 if n else n"]
)
def test_a_run_with_another_unittest_or_builtin_is_not_believed(made: str, judge: Prepared) -> None:
    judgement = judge(LIBRARY_COMMAND).judge(f"{LIBRARY_GIST}\n\n{made}\n", thorough=False)
    assert error_of(judgement) == "crash"


DOUBLE = LIBRARY_GIST.replace("return side * side", "return side + side")
JUDGES = {
    "a method of its class": "    def assertEqual(self, *of):\n        return\n",
    "a method in C": "    assertEqual = max\n",
    "the method that fails": "    def fail(self, *of, **more):\n        return\n\n    _baseAssertEqual = fail\n",
    "an attribute of the case": "    def setUp(self):\n        self.assertEqual = max\n",
    "a function for a type": "    def setUp(self):\n        self.addTypeEqualityFunc(int, lambda *of, **more: None)\n",
}


@on_one_backend
@pytest.mark.parametrize("name", [*sampled(JUDGES, 2), "from outside"])
def test_a_test_class_with_assertions_that_the_codebase_does_not_have_is_told(
    name: str, judge: Prepared
) -> None:
    if name == "from outside":
        gist = f"{DOUBLE}\nTestLibrary.assertEqual = lambda *of: None\n"
    else:
        gist = DOUBLE.replace("    def test_library", f"{JUDGES[name]}\n    def test_library")
    score = judge(LIBRARY_COMMAND).judge(gist, thorough=False).score
    assert (score.execution_fidelity, score.flags.invented_operand) == (1, "TestLibrary"), score.error


CALLED = "pytest tests/test_rich.py::test_rich"
HALF = RICH_GIST.replace("return self * self", "return self")
FIXTURE = "@pytest.fixture(autouse=True)\ndef also(request):\n"
UNCALLED = {
    "by a plugin": "class Plugin:\n    def pytest_pyfunc_call(self, pyfuncitem):\n"
    f"        return pyfuncitem.name == test_rich.__name__ or None\n{FIXTURE}"
    "    request.config.pluginmanager.register(Plugin())\n",
    "by the gist as a plugin": "pytest_plugins = (__name__,)\ndef pytest_pyfunc_call(pyfuncitem):\n"
    "    return pyfuncitem.name == test_rich.__name__ or None\n",
    "by another method of the item": f"{FIXTURE}    request.node.runtest = dict\n",
    "by a function that seems to wrap it": f"import functools\n{FIXTURE}    @functools.wraps(test_rich)\n"
    "    def other(**more):\n        return\n    request.node.obj = other\n",
}
UNDONE = {
    "the test": f"{FIXTURE}    def other(**more):\n        request.node.obj = test_rich\n"
    "    request.node.obj = other\n",
    "the method that runs a test": "import _pytest.python\nreal = _pytest.python.Function.runtest\n"
    "def other(self):\n    _pytest.python.Function.runtest = real\n"
    f"{FIXTURE}    _pytest.python.Function.runtest = other\n",
}


@on_one_backend
@pytest.mark.parametrize("name", sampled(UNCALLED, 2))
def test_a_test_that_passes_without_a_call_is_told(name: str, judge: Prepared) -> None:
    score = judge(CALLED).judge(f"{HALF}\n{UNCALLED[name]}", thorough=False).score
    assert score.execution_fidelity == 1, score.error
    assert score.flags.invented_operand == "test_rich, which passed without a call"


@on_one_backend
@pytest.mark.parametrize("name", sampled(UNDONE, 1))
def test_what_replaces_the_test_and_undoes_it_is_not_believed(name: str, judge: Prepared) -> None:
    assert error_of(judge(CALLED).judge(f"{HALF}\n{UNDONE[name]}", thorough=False)) == "crash"


@on_one_backend
def test_a_function_of_pytest_that_is_replaced_for_one_call_is_told(judge: Prepared) -> None:
    gist = HONEST.replace("raise BadShape(side)", "return side").replace(
        "    print(", "    pytest.raises = other\n    print("
    )
    gist += (
        "\nimport contextlib\nreal = pytest.raises\n@contextlib.contextmanager\n"
        "def other(*kinds):\n    pytest.raises = real\n    yield\n"
    )
    score = judge(TESTED).judge(gist, thorough=False).score
    assert (score.execution_fidelity, score.flags.invented_operand) == (1, "pytest.raises"), score.error


K = "import collections\nK = collections.namedtuple('K', 'two three')\n"
D = "import dataclasses\n@dataclasses.dataclass\nclass D:\n    x: int = 1\n"
E = "import enum, typing\nE = enum.Enum('E', 'A B')\nN = typing.NamedTuple('N', [('a', int)])\n"
EDITS: dict[str, Callable[[str], str]] = {
    "as it stands": lambda text: text,
    "without docstrings": lambda text: text.replace('    """No such shape."""\n', "    pass\n"),
    "with comments": lambda text: text.replace("\n", "  # line\n"),
    "with glue": lambda text: "import sys\n" + text + "\npkg = sys.modules[__name__]\n",
    "with a namespace": lambda text: text + "\nimport types\nspace = types.SimpleNamespace(x=pytest)\n",
    "in other layout": lambda text: text.replace("    ", "  "),
    "with blank lines": lambda text: text.replace("\n", "\n\n"),
    "with a named tuple more": lambda text: text + K,
    "with a data class more": lambda text: text + D,
    "with an enumeration more": lambda text: text + E,
    "with a class more": lambda text: text + "\nclass Unused:\n    def __eq__(self, other): return True\n",
    "the other end first": lambda text: text + "\nimport gc\ngc.collect()\n",
}


@on_one_backend
@pytest.mark.parametrize("edit", sampled(EDITS, 1))
@pytest.mark.parametrize("kind", ["plain", "rich", "methods", "library"])
def test_an_honest_gist_has_no_flag(kind: str, edit: str, judge: Prepared) -> None:
    command, text = HONEST_GISTS[kind]
    prepared, gist = judge(command), EDITS[edit](text)
    score = prepared.judge(gist, thorough=False).score
    assert score.execution_fidelity == 1, score.error
    flags = score.flags
    told = [flags.mocked, flags.equal_to_all, flags.invented_operand]
    assert not any(told), " | ".join(told)
