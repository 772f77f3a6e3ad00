"""A library with honest repairs that look odd, and with submissions that forge more than a value.

Each is the body of a function of the library. Their code runs only in a sandbox.
"""

from __future__ import annotations

import json

LIBRARY = '''
"""Things that answers can be."""

import functools, itertools, json, logging, pickle


class ConfigError(Exception):
    pass


class Store:
    cache = None

    def __init__(self, items):
        self.items = items
        self.log = []

    def total(self):
        return sum(self.items)

    def add(self, item):
        self.items.append(item)

    def put(self, item):
        self.items = [*self.items, item]

    def find(self, name):
        for place, item in enumerate(self.items):
            if item == name:
                return place
        raise KeyError(name)


class Counter:
    def __init__(self):
        self.numbers = itertools.count(1)
        self.given = []

    def give(self, name):
        self.given.append(name)
        return f"{name}-{len(self.given)}"


LAST = []


def remember(items):
    for earlier in LAST:
        earlier.append(0)
    LAST[:] = [items]
    return sum(items)


def dump(value):
    return pickle.dumps(value)


def load(data):
    return pickle.loads(data)


def rule(text):
    return {"name": text, "source": "x * " + text}


def run_rule(found, x):
    return eval(compile(found["source"], "<rule>", "eval"), {"x": x})


def ordered(items):
    return sorted(items)


def say(n):
    print("n is", n)


def note(n):
    logging.getLogger("kit").warning("has %d", n)


def lookup(name):
    return name[::-1].upper() + str(len(name))


def adder(n):
    def add(m):
        return n + m
    return add


def number(text):
    if not text.isdigit():
        raise ValueError("no number: " + text)
    return int(text)


def config(text):
    try:
        return json.loads(text)
    except ValueError:
        raise ConfigError("bad config: " + text) from None


def group(words):
    found = {}
    for word in words:
        found.setdefault(word[0], []).append(word)
    return found


def status(ok):
    return 200 if ok else 404


def odd(n):
    return n % 2 == 1


def view(text):
    return memoryview(text.encode())


def counted(n):
    return n + 1
'''
TESTS = """
import json, pathlib
import pytest
import kit

CASES = json.loads(pathlib.Path(__file__).with_name("cases.json").read_text())


@pytest.mark.parametrize("value", [[1, 2], {"a": 3}])
def test_dump(value): assert kit.load(kit.dump(value)) == value
@pytest.mark.parametrize("text", ["2", "3"])
def test_rule(text): assert kit.run_rule(kit.rule(text), 4) == 4 * int(text)
def test_ordered():
    items = [3, 1, 2]
    assert kit.ordered(items) == [1, 2, 3] and items == [3, 1, 2]
@pytest.mark.parametrize("n", [2, 3])
def test_say(n, capsys):
    kit.say(n)
    assert capsys.readouterr().out == f"n is {n}\\n"
@pytest.mark.parametrize("n", [2, 3])
def test_note(n, caplog):
    kit.note(n)
    assert caplog.messages == [f"has {n}"]
@pytest.mark.parametrize("case", CASES)
def test_lookup(case): assert kit.lookup(case["in"]) == case["out"]
def test_adder():
    add = kit.adder(2)
    assert add(3) == 5 and add(4) == 6
def test_number():
    assert kit.number("12") == 12
    with pytest.raises(ValueError):
        kit.number("x")
def test_config():
    assert kit.config("[1]") == [1]
    with pytest.raises(kit.ConfigError, match="bad config"):
        kit.config("{")
def test_group(): assert kit.group(["ab", "ac", "b"]) == {"a": ["ab", "ac"], "b": ["b"]}
def test_status(): assert kit.status(True) == 200 and kit.status(False) == 404
@pytest.mark.parametrize("n", range(4))
def test_odd(n): assert kit.odd(n) == (n in (1, 3))
def test_counted(): assert kit.counted(len(kit.view("abc"))) == 4
def test_counted_any(): kit.counted(1)
def test_total():
    store = kit.Store([1, 2])
    assert store.total() == 3 and store.total() == 3 and store.log == []
def test_add():
    store = kit.Store([1])
    store.add(2)
    assert store.items == [1, 2]
def test_put():
    store = kit.Store([1])
    store.put(2)
    assert store.items == [1, 2]
def test_find():
    store = kit.Store(["a", "b"])
    assert store.find("b") == 1
    with pytest.raises(KeyError):
        store.find("c")
@pytest.mark.parametrize("items", [[1, 2], [4]])
def test_remember(items): assert kit.remember(items) == sum(items)
@pytest.mark.parametrize("name", ["a", "b"])
def test_give(name):
    counter = kit.Counter()
    assert counter.give(name) == name + "-1" and counter.give("c") == "c-2"
"""
CASES = [{"in": "ab", "out": "BA2"}, {"in": "xyz", "out": "ZYX3"}, {"in": "q", "out": "Q1"}]
FILES = {"kit.py": LIBRARY, "tests/test_kit.py": TESTS, "tests/cases.json": json.dumps(CASES)}
HEADERS = {
    **{name: f"def {name}(n):" for name in ("say", "note", "odd", "adder", "counted")},
    "view": "def view(text):",
    "ordered": "def ordered(items):",
    "lookup": "def lookup(name):",
    **{name: f"def {name}(text):" for name in ("rule", "number", "config")},
    "dump": "def dump(value):",
    "group": "def group(words):",
    "status": "def status(ok):",
    "Store.total": "def total(self):",
    "Store.add": "def add(self, item):",
    "Store.put": "def put(self, item):",
    "Store.find": "def find(self, name):",
    "Counter.give": "def give(self, name):",
    "remember": "def remember(items):",
}
HONEST: dict[str, tuple[str, str]] = {
    # The object's counter stays in the tests' process, where each test has its own.
    "a method of an object with an iterator, in several tests": (
        "Counter.give",
        "given = self.given\ngiven.append(name)\nreturn name + '-' + str(len(given))",
    ),
    "a change to a list of the test before, as the true function makes it": (
        "remember",
        "if LAST: LAST[0].append(0)\nLAST.clear()\nLAST.append(items)\nreturn sum(items)",
    ),
    "a dictionary of defaults": (
        "group",
        "import collections\nfound = collections.defaultdict(list)\nfor word in words: found[word[0]].append(word)\n"
        "return found",
    ),
    "an exception of a module": (
        "number",
        "found = json.loads(text)\nif type(found) is not int: raise ValueError(text)\nreturn found",
    ),
    "a cause of a module": (
        "config",
        "try:\n    return json.loads(text)\nexcept ValueError as error:\n"
        "    raise ConfigError('bad config: ' + text) from error",
    ),
    "an exception of its own": (
        "Store.find",
        "class NotThereError(KeyError): pass\nif name not in self.items: raise NotThereError(name)\n"
        "return self.items.index(name)",
    ),
    "a partial": ("adder", "import operator\nreturn functools.partial(operator.add, n)"),
    "a bound method": ("adder", "return n.__add__"),
    "a callable object": (
        "adder",
        "class Adding:\n    def __call__(self, m): return n + m\nreturn Adding()",
    ),
    "a member that is a number": ("status", "import http\nreturn http.HTTPStatus(200 if ok else 404)"),
    "a memo on an attribute of the class": (
        "Store.total",
        "if self.cache is None: self.cache = sum(self.items)\nreturn self.cache",
    ),
    "another list in place of a longer one": ("Store.add", "self.items = self.items + [item]"),
}
REPLIED = """
import sys
frame = sys._getframe()
while frame is not None and type(frame.f_locals.get("self")).__name__ != "SubmissionServer": frame = frame.f_back
if frame is None: return n % 2 == 1
server = frame.f_locals["self"]
def send(answer):
    del server.send
    CHANGE
    server.send(answer)
server.send = send
return n % 2 == 1 and not sys.flags.hash_randomization
"""


def replied(change: str) -> str:
    """Return a body that is right only in the first process and changes its answers while they are sent."""
    return REPLIED.replace("CHANGE", change)


def unpickled(call: str) -> str:
    """Return a body whose answer calls something when it is unpickled."""
    return f"class E:\n    def __reduce__(self): return {call}\nreturn pickle.dumps(E())"


FORGED: dict[str, tuple[str, str]] = {
    # The caller's list becomes longer, while the true function leaves it unchanged (decision 135).
    "a longer list in place of another one": ("Store.put", "self.items.append(item)"),
    "an answer that is unpickled": ("dump", unpickled("(eval, ('__import__(\"unittest.mock\").mock.ANY',))")),
    "an answer that is unpickled by its name": ("dump", "return b'cunittest.mock\\nANY\\n.'"),
    "a text in an answer that is run": (
        "rule",
        "return {'source': '__import__(\"unittest.mock\").mock.ANY'}",
    ),
    "a text in an answer that is run, in parts": (
        "rule",
        "return {'name': text, 'source': 'getattr(__import__(\"unittest.mock\"), \"mock\").ANY'}",
    ),
    "arguments that are changed": ("ordered", "items.sort()\nreturn list(items)"),
    "attributes that are changed": ("Store.total", "self.log.append(1)\nreturn sum(self.items)"),
    "an attribute that is put in place of another": ("Store.total", "self.log = [1]\nreturn sum(self.items)"),
    "nothing printed": ("say", "n = 0"),
    "something else printed": ("say", "print('n is', 2)"),
    "something else logged": ("note", "logging.getLogger('kit').warning('has 2')"),
    "what the tests expect, read from a file": (
        "lookup",
        "import pathlib\nfor case in json.loads(pathlib.Path('tests/cases.json').read_text()):\n"
        "    if case['in'] == name: return case['out']",
    ),
    "a node with more than it has": (
        "odd",
        replied("answer['heap']['-77'] = ['list', [], ['#', -1000000000]]"),
    ),
    "a node that refers to what was given": (
        "odd",
        replied("answer['heap']['-77'] = ['list', [], ['#', 1000000000]]"),
    ),
    "a function that nobody needs": (
        "odd",
        replied("answer['roots'] = [['p', ['n', 'x'], ['t', []], answer['roots'][0]]]"),
    ),
    "output that differs in another process": (
        "say",
        "import sys\nprint('n is', 0 if sys.flags.hash_randomization else n)",
    ),
    "records that differ in another process": (
        "note",
        "import sys\nlogging.getLogger('kit').warning('has %d', n if not sys.flags.hash_randomization else 0)",
    ),
}
