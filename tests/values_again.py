"""A library with submissions whose faults lie in values that occur again, contexts and settings, and repairs.

The tables are as in `hidden_faults.py`. Their code runs only in a sandbox.
"""

from __future__ import annotations

LIBRARY = """
import contextvars, math, signal

PLACE = contextvars.ContextVar("place", default=None)


class KitError(Exception):
    def __init__(self, code):
        super().__init__(code)
        self.code = code


class Token:
    def __init__(self, name):
        self.name = name
        self.uses = 0

    def __eq__(self, other):
        return type(other) is Token and self.name == other.name

    def __hash__(self):
        return hash(self.name)


class Label:
    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return type(other) is Label and self.text == other.text

    def __hash__(self):
        return hash(self.text)


class Bag:
    def __init__(self, items=()):
        self.items = list(items)


class Node:
    children = None
    slack = 0

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return type(other) is Node and abs(len(self.name) - len(other.name)) <= self.slack


def node(name):
    return Node(name)


def walk(n):
    for k in range(n):
        yield k


def token(name):
    return Token(name)


def label(text):
    return Label(text)


def failing(n):
    raise KitError(n)


def rows(n):
    return [[k] for k in range(n)]


def counted(bag):
    return len(bag.items)


def ratio(a, b):
    return a / b if b else math.nan


def lookup(table, key):
    try:
        return table[key]
    except KeyError:
        raise KitError(key) from None


def found(table, key):
    try:
        return table[key]
    except KeyError:
        raise KitError(key)


def placed(n):
    mark = PLACE.set(n)
    try:
        return PLACE.get() * 2
    finally:
        PLACE.reset(mark)


def timed(n):
    return n * 2


def needed(name):
    raise ImportError("no " + name)
"""
TESTS = """
import math, signal
import pytest, kit
def test_token():
    one = kit.token("a")
    one.uses = 1
    assert kit.token("a").uses == 0
    assert kit.token("b") == kit.Token("b")
def test_label():
    assert kit.label("a") == kit.Label("a") and kit.label("a").text == "a"
    assert kit.label("b") == kit.Label("b")
def test_node():
    assert kit.node("a").name == "a" and not kit.node("a").children
def test_node_of_two(): assert kit.node("ab") == kit.Node("cd")
def test_walk():
    one = kit.walk(3)
    assert next(one) == 0 and list(one) == [1, 2]
def test_failing():
    with pytest.raises(kit.KitError) as one: kit.failing(3)
    one.value.code = 9
    with pytest.raises(kit.KitError) as two: kit.failing(3)
    assert two.value.code == 3
def test_rows():
    assert len(kit.rows(6000)) == 6000
    one = kit.rows(2)
    one[0].append(1)
    assert kit.rows(2) == [[0], [1]]
def test_counted():
    a, b = kit.Bag([1]), kit.Bag([2, 3])
    assert kit.counted(a) == 1 and kit.counted(b) == 2
    assert a.items == [1] and b.items == [2, 3]
def test_ratio():
    assert kit.ratio(1, 2) == .5
    nothing = kit.ratio(1, 0)
    assert math.isnan(nothing) and math.copysign(1, nothing) == 1
def test_lookup():
    assert kit.lookup({1: 2}, 1) == 2
    with pytest.raises(kit.KitError) as one: kit.lookup({}, 1)
    assert one.value.__context__ is None or one.value.__suppress_context__
def test_found():
    assert kit.found({1: 2}, 1) == 2
    with pytest.raises(kit.KitError) as one: kit.found({}, 7)
    assert not one.value.__suppress_context__
    assert one.value.__context__.args == (7,) and type(one.value.__context__) is KeyError
def test_found_anyhow():
    assert kit.found({1: 3}, 1) == 3
    with pytest.raises(kit.KitError) as one: kit.found({}, 7)
    assert one.value.code == 7
def test_placed():
    assert kit.placed(2) == 4
    assert kit.PLACE.get() is None
def test_timed():
    assert kit.timed(2) == 4
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
def test_needed():
    with pytest.raises(ImportError) as one: kit.needed("x")
    assert one.value.name is None and "x" in str(one.value)
"""
FILES = {"kit.py": LIBRARY, "tests/test_kit.py": TESTS}
HEADERS = {
    "token": "def token(name):",
    "label": "def label(text):",
    "node": "def node(name):",
    "walk": "def walk(n):",
    "failing": "def failing(n):",
    "rows": "def rows(n):",
    "counted": "def counted(bag):",
    "ratio": "def ratio(a, b):",
    "lookup": "def lookup(table, key):",
    "found": "def found(table, key):",
    "placed": "def placed(n):",
    "timed": "def timed(n):",
    "needed": "def needed(name):",
}
CORRUPTED = {
    "token": "return Token('z')",
    "label": "return Label('z')",
    "node": "return Node('' if len(name) == 2 else 'z')",
    "walk": "yield 9",
    "failing": "raise ValueError",
    "rows": "return []",
    "counted": "return 9",
    "ratio": "return 7",
    "lookup": "return 9",
    "found": "return 9",
    "placed": "return 1",
    "timed": "return 1",
    "needed": "raise ImportError('y')",
}
Bodies = dict[str, str]
LEFT: dict[str, Bodies] = {
    "a value with an attribute that a test changes": {
        "token": "known = token.__dict__.setdefault('k', {})\nreturn known.setdefault(name, Token(name))"
    },
    "an exception that is raised again": {
        "failing": "known = failing.__dict__.setdefault('k', {})\nraise known.setdefault(n, KitError(n))"
    },
    "a list after thousands of others": {
        "rows": "known = rows.__dict__.setdefault('k', {})\n"
        "return known.setdefault(n, [[k] for k in range(n)])"
    },
    "an argument with more objects than are compared": {
        "counted": (
            "prev = counted.__dict__.setdefault('p', [])\nfound = len(bag.items)\n"
            "for other in prev: other.items.clear()\n"
            "prev[:] = [bag]\nbag._of_mine = [[] for _ in range(60)]\nreturn found"
        )
    },
    "a context variable": {"placed": "PLACE.set(n)\nreturn n * 2"},
    "a timer": {"timed": "signal.setitimer(signal.ITIMER_REAL, 3600)\nreturn n * 2"},
}
"""Bodies that leave behind what the tests' process can't see."""
LOST: dict[str, Bodies] = {
    "the context of an exception": {"lookup": "try: return table[key]\nexcept KeyError: raise KitError(key)"},
    "the context of an exception that is none": {
        "found": "if key in table: return table[key]\nraise KitError(key)"
    },
    "that a context is not to be shown": {
        "found": "try: return table[key]\nexcept KeyError: raise KitError(key) from None"
    },
    "that it is no iterator": {"walk": "return list(range(n))"},
    "the sign of what is no number": {"ratio": "return a / b if b else -math.nan"},
    "the name that an import lacks": {"needed": "raise ImportError('no ' + name, name=name)"},
}
"""Bodies whose answers differ in what was not sent."""
OVERRIDDEN: dict[str, Bodies] = {
    "a default of the class by which it compares": {
        "node": "found = Node(name[:1])\nfound.slack = 10 ** 9\nreturn found"
    },
    "a method": {"node": "found = Node(name)\nfound.__eq__ = True\nfound.__init__ = 5\nreturn found"},
}
"""Bodies that override what the class of their answer has."""
HONEST: dict[str, Bodies] = {
    "a default of the class that is filled early": {
        "node": "found = Node(name)\nfound.children = []\nfound.slack = 0\nreturn found"
    },
    "a memo of values that nothing changes": {
        "label": "known = label.__dict__.setdefault('k', {})\nreturn known.setdefault(text, Label(text))"
    },
    "another iterator": {"walk": "return map(int, range(n))"},
    "another context that no test asks for": {
        "lookup": "if key in table: return table[key]\nraise KitError(key) from None"
    },
    "a context of another class": {
        "lookup": (
            "class Missing(LookupError): pass\ntry:\n    if key not in table: raise Missing(object())\n"
            "except LookupError: raise KitError(key) from None\nreturn table[key]"
        )
    },
    "a context variable that is set back": {
        "placed": "mark = PLACE.set(n)\nfound = PLACE.get() + n\nPLACE.reset(mark)\nreturn found"
    },
}
