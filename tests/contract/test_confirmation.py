"""Confirmation on each backend: true functions of many shapes are confirmed, and forgeries are not."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from examples import sampled
from tiny_tasks import Maker
from working_backends import on_one_backend

from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import remove_body, with_definition
from gistpoint.core.confirmation.model import Confirmation, Confirmed, Controls, Unconfirmable
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.tasks.model import Answer, Target, Task
from gistpoint.core.tasks.trees import corrupted_tree, repaired_tree
from gistpoint.core.trees import SourceTree, write_tar
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.confirmation import SandboxConfirmer
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.testruns import SuiteRunner

SHAPES = '''
import collections, contextlib, functools, itertools, logging, threading, warnings


class ShapeError(Exception):
    def __init__(self, code, hint):
        super().__init__(code)
        self.hint = hint


class ShapeWarning(UserWarning):
    pass


def scaled(factor):
    def around(function):
        @functools.wraps(function)
        def scaling(*args, **kwargs):
            return factor * function(*args, **kwargs)
        return scaling
    return around


class Box:
    sides = 4

    def __init__(self, width, height=1):
        self.width = width
        self.height = height

    def grow(self, by):
        self.width += by
        return self

    @classmethod
    def square(cls, side):
        return cls(side, side)

    @staticmethod
    def larger(first, second):
        return first if first.area > second.area else second

    @property
    def area(self):
        return self.width * self.height

    @area.setter
    def area(self, value):
        self.width = value // self.height

    def __eq__(self, other):
        return type(other) is Box and (self.width, self.height) == (other.width, other.height)

    def __iter__(self):
        yield self.width
        yield self.height


class Locked:
    def __init__(self):
        self.lock = threading.Lock()
        self.count = 0

    def add(self, n):
        with self.lock:
            self.count += n
        return self.count


def evens(limit):
    """Yield even numbers."""
    for n in range(limit):
        if n % 2 == 0:
            yield n


def lazily(items):
    return map(str, items)


@contextlib.contextmanager
def opened(log, name):
    log.append("open " + name)
    try:
        yield name.upper()
    finally:
        log.append("close " + name)


@functools.lru_cache(maxsize=None)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@scaled(3)
def tripled(n):
    return n + 1


def named(first, /, second=2, *rest, third, fourth=4, **more):
    return [first, second, rest, third, fourth, sorted(more.items())]


def applied(function, items):
    return [function(item) for item in items]


def adder(n):
    def add(m):
        return n + m
    return add


def drained(iterator, count):
    return list(itertools.islice(iterator, count))


def refused(code):
    if code > 3:
        raise ShapeError(code, hint="less")
    return code


def chained(text):
    try:
        return int(text)
    except ValueError as error:
        raise KeyError(text) from error


def warned(n):
    warnings.warn("too many", ShapeWarning, stacklevel=2)
    return n * 2


def logged(n):
    logging.getLogger("shapes").warning("has %d", n)
    return n * 2


def printed(n):
    print("n is", n)
    return n * 2


def sorts(items):
    items.sort()


def counted(words):
    return collections.Counter(words)


def nested(tree):
    """Return a copy in which each list knows its parent."""
    copy = {"items": [], "up": None}
    for part in tree:
        if isinstance(part, list):
            below = nested(part)
            below["up"] = copy
            copy["items"].append(below)
        else:
            copy["items"].append(part)
    return copy
'''
SHAPE_TESTS = """
import itertools, logging, threading
import pytest
import shapes
from shapes import Box, Locked


def test_init(): assert Box(3).height == 1 and Box(3, 2).width == 3
def test_grow():
    box = Box(1)
    assert box.grow(2) is box and box.width == 3
def test_square(): assert Box.square(2) == Box(2, 2)
def test_larger():
    first, second = Box(2), Box(3)
    assert Box.larger(first, second) is second
def test_area(): assert Box(2, 3).area == 6
def test_area_setter():
    box = Box(2, 3)
    box.area = 12
    assert box.width == 4
def test_iter(): assert list(Box(2, 3)) == [2, 3]
def test_add(): assert Locked().add(2) == 2
def test_evens():
    assert list(shapes.evens(5)) == [0, 2, 4]
    assert next(shapes.evens(9)) == 0
def test_lazily(): assert list(shapes.lazily([1, 2])) == ["1", "2"]
def test_opened():
    log = []
    with shapes.opened(log, "a") as name:
        assert (name, log) == ("A", ["open a"])
    assert log == ["open a", "close a"]
    with pytest.raises(KeyError):
        with shapes.opened(log, "b"):
            raise KeyError
    assert log[-1] == "close b"
def test_fibonacci(): assert shapes.fibonacci(12) == 144
def test_tripled(): assert shapes.tripled(2) == 9
def test_named(): assert shapes.named(1, 5, 6, third=3, z=9) == [1, 5, (6,), 3, 4, [("z", 9)]]
def test_applied():
    seen = []
    def note(item):
        seen.append(item)
        return item * 2
    assert shapes.applied(note, [1, 2]) == [2, 4] and seen == [1, 2]
    assert shapes.applied(abs, [-1]) == [1]
def test_adder(): assert shapes.adder(2)(3) == 5
def test_drained():
    numbers = itertools.count()
    assert shapes.drained(numbers, 3) == [0, 1, 2] and next(numbers) >= 3
    assert shapes.drained((n * n for n in range(9)), 3) == [0, 1, 4]
def test_refused():
    assert shapes.refused(2) == 2
    with pytest.raises(shapes.ShapeError) as caught:
        shapes.refused(4)
    assert caught.value.hint == "less" and caught.value.args == (4,)
def test_chained():
    with pytest.raises(KeyError) as caught:
        shapes.chained("x")
    assert isinstance(caught.value.__cause__, ValueError)
def test_warned():
    with pytest.warns(shapes.ShapeWarning, match="many"):
        assert shapes.warned(2) == 4
def test_logged(caplog):
    assert shapes.logged(2) == 4 and caplog.messages == ["has 2"]
def test_printed(capsys):
    assert shapes.printed(2) == 4 and capsys.readouterr().out == "n is 2\\n"
def test_sorts():
    items = [2, 1]
    assert shapes.sorts(items) is None and items == [1, 2]
def test_counted(): assert shapes.counted("aab").most_common(1) == [("a", 2)]
def test_nested():
    copy = shapes.nested([1, [2]])
    assert copy["items"][1]["up"] is copy and copy["items"][1]["items"] == [2]
"""
TESTED = {
    "test_init": "Box.__init__",
    "test_grow": "Box.grow",
    "test_square": "Box.square",
    "test_larger": "Box.larger",
    "test_area": "Box.area",
    "test_area_setter": "Box.area#2",
    "test_iter": "Box.__iter__",
    "test_add": "Locked.add",
    **{
        f"test_{name}": name
        for name in (
            *(
                "evens",
                "lazily",
                "opened",
                "fibonacci",
                "tripled",
                "named",
                "applied",
                "adder",
                "drained",
                "refused",
            ),
            *("chained", "warned", "logged", "printed", "sorts", "counted", "nested"),
        )
    },
}
SHOP = '''
"""Orders and ledgers."""


class Ledger:
    tolerance = 0
    strict = None

    def __init__(self, prices):
        self.prices = prices
        self.entries = []

    def last(self):
        return self.entries[-1]


class Quote:
    tolerance = 0

    def __init__(self, name, amount):
        self.name = name
        self.amount = amount

    def __eq__(self, other):
        return self.name == other.name and abs(self.amount - other.amount) <= self.tolerance

    def doubled(self):
        return self.amount * 2


def total(orders, ledger, notify=None):
    owed = 0
    for name, count in orders:
        owed += count * ledger.prices[name]
        if notify is not None:
            notify(name, count)
    ledger.entries.append(owed)
    return owed


def quote(name, ledger):
    return Quote(name, ledger.prices[name] + 1)


def price(amount, rate):
    return amount * rate
'''
SHOP_TESTS = """
import pytest
from shop import Ledger, Quote, price, quote, total

PRICES = {"nail": 2, "screw": 5}


@pytest.fixture
def ledger():
    return Ledger(dict(PRICES))


@pytest.mark.parametrize(("orders", "expected"), [([("nail", 3)], 6), ([("nail", 1), ("screw", 2)], 12)])
def test_total(ledger, orders, expected):
    assert total(orders, ledger) == expected
    assert ledger.last() == expected and ledger.prices == PRICES


def test_told(ledger):
    seen = []
    assert total([("screw", 2)], ledger, lambda name, count: seen.append((name, count))) == 10
    assert seen == [("screw", 2)]


def test_unknown(ledger):
    with pytest.raises(KeyError, match="bolt"):
        total([("bolt", 1)], ledger)
    assert ledger.entries == []


@pytest.mark.parametrize(("name", "expected"), [("nail", 3), ("screw", 6)])
def test_quote(ledger, name, expected):
    found = quote(name, ledger)
    assert found == Quote(name, expected)
    assert found.doubled() == 2 * expected


def test_price():
    for n in range(1, 7):
        assert price(n, 10) == n * 10
"""
FILES = {
    "shapes.py": SHAPES,
    "shop.py": SHOP,
    "tests/test_shapes.py": SHAPE_TESTS,
    "tests/test_shop.py": SHOP_TESTS,
}
HEADERS = {
    "total": "def total(orders, ledger, notify=None):",
    "quote": "def quote(name, ledger):",
    "price": "def price(amount, rate):",
}
CORRUPTED = {
    "total": "return sum(count for _, count in orders)",
    "quote": "return Quote(name, ledger.prices[name] - 1)",
    "price": "return amount + rate",
}
"""The bodies in the discovery tasks; those in the remove tasks are empty."""


@dataclass(frozen=True)
class Bench:
    """A task on one backend; tasks for other functions are made from it without running the suite again."""

    task: Task
    answer: Answer
    confirmer: SandboxConfirmer
    folder: Path
    known: dict[tuple[str, ...], tuple[Task, Answer, Controls]]

    @property
    def original(self) -> SourceTree:
        return repaired_tree(SourceTree.open(self.task.tree_path), self.answer.targets)

    def case(self, path: str, bodies: Mapping[str, str]) -> tuple[Task, Answer, Controls]:
        """Return a task with these bodies (`pass` removes the function's), its answer and its controls."""
        key = (path, *bodies, *bodies.values())
        if key not in self.known:
            tree = self.original
            targets = tuple(_target(tree, path, name, body) for name, body in bodies.items())
            folder = self.folder / f"case-{len(self.known)}"
            write_tar(corrupted_tree(tree, targets), folder / "workspace" / "tree.tar")
            task, answer = replace(self.task, folder=folder), replace(self.answer, targets=targets)
            self.known[key] = (task, answer, self.confirmer.control(task, answer, measured_here=True))
        return self.known[key]

    def confirmed(self, qualname: str, body: str, *, removed: bool = True) -> Confirmation:
        """Return the confirmation of a body for a function of the shop."""
        given = "pass" if removed else CORRUPTED[qualname]
        task, answer, controls = self.case("shop.py", {qualname: given})
        assert controls.confirmable, controls
        code = f"{HEADERS[qualname]}\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
        submitted = with_definition(SourceTree.open(task.tree_path), "shop.py", qualname, code)
        return self.confirmer.confirm(task, answer, controls, submitted)


def _target(tree: SourceTree, path: str, qualname: str, body: str) -> Target:
    index = index_source(path, tree.read(path))
    definition = index.get(qualname)
    removed = remove_body(index, definition)
    corrupted = removed if body == "pass" else f"{HEADERS[qualname]}\n    {body}\n"
    return Target(path, qualname, definition.dedented, corrupted)


@pytest.fixture(scope="module")
def benches() -> dict[str, Bench]:
    return {}


@pytest.fixture
def bench(
    backend: Backend, environments: EnvironmentStore, benches: dict[str, Bench], tmp_path_factory: Any
) -> Iterator[Bench]:
    if backend.name not in benches:
        folder = tmp_path_factory.mktemp(backend.name)
        task = Maker(folder, SuiteRunner(backend, environments)).task(FILES, "shop.py::price")
        task = replace(task, suite=replace(task.suite, timeout_s=8.0))
        confirmer = SandboxConfirmer(backend, environments)
        answer = replace(read_answer(task), entered={})
        benches[backend.name] = Bench(task, answer, confirmer, folder, {})
    return benches[backend.name]


@on_one_backend
def test_true_functions_of_many_shapes_are_confirmed(bench: Bench) -> None:
    task, answer, controls = bench.case("shapes.py", dict.fromkeys(TESTED.values(), "pass"))
    assert controls.confirmable, controls
    counting = {id.rpartition("::")[2] for id in controls.telling}
    assert set(TESTED) - counting == set(), controls
    found = bench.confirmer.confirm(task, answer, controls, bench.original)
    assert found.result is Confirmed.CONFIRMED, found
    assert found.tests == len(TESTED)


@on_one_backend
@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize("qualname", sampled(HEADERS, 1))
def test_the_true_function_is_confirmed_and_wrong_ones_are_contradicted(
    bench: Bench, qualname: str, removed: bool
) -> None:
    task, answer, controls = bench.case("shop.py", {qualname: "pass" if removed else CORRUPTED[qualname]})
    assert controls.confirmable, controls
    true = bench.confirmer.confirm(task, answer, controls, bench.original)
    assert (true.result, true.marks) == (Confirmed.CONFIRMED, ()), true
    for wrong in (CORRUPTED[qualname], "return None"):
        found = bench.confirmed(qualname, wrong, removed=removed)
        assert found.result is Confirmed.CONTRADICTED, found
        assert found.contradiction is not None
        assert found.contradiction.function == f"shop.py::{qualname}"


RAW = """
import json, os, sys
frame = sys._getframe()
while frame is not None and type(frame.f_locals.get("self")).__name__ != "SubmissionServer":
    frame = frame.f_back
if frame is None:
    return 6
server = frame.f_locals["self"]
def send(answer):
    del server.send
    for line in LINES:
        os.write(server.results, line + b"\\n")
server.send = send
"""


def raw(*lines: str) -> str:
    """Return a body that writes these lines as its answers."""
    return RAW.replace("LINES", repr([line.encode() for line in lines]))


def value(root: str, heap: str = "{}", beside: str = "") -> str:
    """Return a body that answers with a root and a heap in their transport form."""
    return raw(f'{{"re": "value", "roots": [{root}], "heap": {heap}{beside}}}')


def everywhere(data: bytes) -> str:
    """Return a body that writes data to the descriptors below 300, and returns the answer of one test."""
    tried = f"    try: os.write(fd, {data!r} * 9)\n    except OSError: pass\n"
    return f"import os\nfor fd in range(1, 300):\n{tried}return 10"


def quoted(attributes: str) -> str:
    """Return the body of a function that answers with a quote that has further attributes."""
    return f"found = Quote(name, 0)\n{attributes}\nreturn found"


COUNTED = "import sys\nsys.count = getattr(sys, 'count', 0) + 1\n"
FORGED: dict[str, tuple[str, list[str]]] = {
    "an object that equals all": (
        "price",
        [
            "class A:\n    def __eq__(self, other): return True\nreturn A()",
            "return type('A', (), {'__eq__': bool, '__ne__': lambda s, o: False})()",
            "import unittest.mock\nreturn unittest.mock.ANY",
            "class M(type):\n    def __eq__(self, other): return True\n    __hash__ = type.__hash__\n"
            "class A(metaclass=M): pass\nreturn A",
        ],
    ),
    "a number or text that equals all": (
        "price",
        [
            "class A(int):\n    def __eq__(self, other): return True\nreturn A(3)",
            "class A(str):\n    def __eq__(self, other): return True\n    __hash__ = str.__hash__\nreturn A('x')",
            "class A(float):\n    __eq__ = bool\nreturn A(1)",
            "class A(dict):\n    def __eq__(self, other): return 1\nreturn A()",
        ],
    ),
    "frames": (
        "price",
        [
            "import sys\nf = sys._getframe(1)\nwhile f and 'n' not in f.f_locals: f = f.f_back\n"
            "return f.f_locals['n'] * 10 if f else 0",
            "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    f = e.__traceback__.tb_frame.f_back\n"
            "return f.f_locals.get('n', 0) * 10 if f else 0",
            "import inspect\nreturn max(f.frame.f_locals.get('n', 0) for f in inspect.stack()) * 10",
            "import gc\nreturn max([x for x in gc.get_objects() if type(x) is int] or [0])",
        ],
    ),
    "tests that are read": (
        "price",
        [
            "import pathlib\nreturn len(''.join(p.read_text() for p in pathlib.Path('tests').glob('*.py')))",
            "import linecache\nreturn len(linecache.getline('tests/test_shop.py', 1))",
            "import glob\nreturn eval(open(glob.glob('**/test_shop.py', recursive=True)[0]).readline() or '0')",
            "import importlib\nreturn importlib.import_module('tests.test_shop').PRICES['nail']",
        ],
    ),
    "pytest that is patched": (
        "price",
        [
            "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\nreturn 0",
            "import sys\nsys.modules['_pytest.python'].Function.runtest = lambda self: None\nreturn 0",
            "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\nreturn 0",
            "import pytest\npytest.skip('no')",
        ],
    ),
    "the end of the process": (
        "price",
        [
            "import os\nos._exit(0)",
            "raise SystemExit(0)",
            "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
            "import sys\nsys.setrecursionlimit(1 << 30)\ndef f(): return f()\nreturn f()",
        ],
    ),
    "no answer": (
        "price",
        [
            "while True: pass",
            "import time\ntime.sleep(60)",
            "import threading\nthreading.Event().wait()",
            "import re\nreturn bool(re.match('(a+)+$', 'a' * 40 + 'b'))",
        ],
    ),
    "lines on all descriptors": (
        "price",
        [
            everywhere(b'{"re":"value","roots":[10],"heap":{}}\n'),
            everywhere(b'{"kind":"test","outcome":"passed"}\n' * 3),
            everywhere(b"\x00" * 1000 + b"\n"),
            everywhere(b"[" * 1000 + b"\n"),
        ],
    ),
    "the pipe of requests": (
        "price",
        [
            "import os\nos.closerange(0, 300)\nreturn 0",
            RAW.replace("LINES", "[]") + "return server.requests.readline()",
            RAW.replace("LINES", "[b'{}']") + "server.requests.close()\nreturn 0",
            "import os\nnull = os.open(os.devnull, os.O_RDWR)\nfor fd in range(300):\n"
            "    if fd != null:\n        try: os.dup2(null, fd)\n        except OSError: pass\nreturn 0",
        ],
    ),
    "lines that are no answer": (
        "price",
        [
            raw("[" * 3000 + "]" * 3000),
            value("[" * 9000 + "]" * 9000),
            raw('{"re": "value"}'),
            raw('{"re": "value", "roots": [], "heap": {}}'),
            raw('{"re": "value", "roots": {"a": 1}, "heap": [1]}'),
            value("1", '{"-5": []}'),
            value("1", '{"-5": ["dict", 5]}'),
            value('["#", -5]', '{"-5": ["object", 1, 2, 3, 4]}'),
            raw('{"re": "unplain", "reason": "bogus", "words": "x"}'),
            raw('{"re": "unplain", "reason": ["x"], "words": 5}'),
            raw(
                '{"re": "callback", "do": "apply", "of": 1000000000, "roots": [["t", []], ["t", []]], "heap": {}}'
            ),
            raw('{"re": "callback", "do": "next"}'),
            value("10", beside=', "out": 5'),
            value("10", beside=', "logs": [[5, "x", []]]'),
            value("10", beside=', "warnings": [["antigravity:", "x", 0]]'),
            raw("{" + '"re": "value", "roots": [1' + "0" * 5000 + '], "heap": {}}'),
        ],
    ),
    "what was never answered": (
        "price",
        [
            "return exec",
            "return lambda *a: 10",
            "return iter([10])",
            "import io, sys\nreturn sys.modules",
            value('["n", "os:system"]'),
            value('["v", "__class__", 1]'),
            value('["e", "shop:Ledger", 5]'),
            value('["#", -5]', '{"-5": ["object", "unittest.mock:_ANY", {}, "", null]}'),
            value('["#", -1000000000]', '{"-1000000000": ["function", "f", null]}'),
        ],
    ),
    "attributes that hide the class's": (
        "quote",
        [
            quoted("found.doubled = lambda: 6"),
            quoted("found.tolerance = 10 ** 9"),
            quoted("found.__dict__['__eq__'] = lambda other: True"),
            quoted("found.__class__ = type('Q', (Quote,), {'__eq__': lambda s, o: True})"),
            "found = Quote(name, 3)\nfound.name = type('N', (str,), {'__eq__': lambda s, o: True})(name)\nreturn found",
        ],
    ),
    "changes that the true function never makes": (
        "total",
        [
            "ledger.prices.clear()\nledger.entries.append(6)\nreturn 6",
            "ledger.tolerance = 10 ** 9\nledger.last = lambda: 12\nreturn 12",
            "ledger.entries = type('L', (list,), {'__eq__': lambda s, o: True})([6])\nreturn 6",
            "orders[:] = []\nledger.__dict__.clear()\nreturn 0",
        ],
    ),
    "odd call-backs": (
        "total",
        [
            "notify and notify(object(), print)\nreturn 10",
            "return notify(type('A', (), {'__eq__': bool})(), 2) if notify else 6",
            "while notify: notify('screw', 2)\nreturn 10",
            "return notify(notify, notify) if notify else 12",
        ],
    ),
    "deep and large answers": (
        "price",
        [
            "found = []\nfor _ in range(100000): found = [found]\nreturn found",
            "found = ()\nfor _ in range(100000): found = (found,)\nreturn found",
            "return 'x' * (1 << 26)",
            "def f(n): return f(n + 1)\nreturn f(0)",
        ],
    ),
    "modules that are taken away": (
        "price",
        [
            "import sys\nsys.modules.clear()\nreturn 0",
            "import sys\ndel sys.modules['shop']\nreturn 0",
            "import builtins\nbuiltins.isinstance = lambda *a: True\nreturn 0",
            "import json\njson.dumps = json.loads = lambda *a, **k: '{}'\nreturn 0",
        ],
    ),
    "threads and what runs at the end": (
        "price",
        [
            "import threading, os\nthreading.Thread(target=lambda: os._exit(0), daemon=True).start()\nreturn 0",
            "import atexit, os\natexit.register(os._exit, 0)\nreturn 0",
            "import os\nif os.fork() == 0: return 10\nreturn 0",
            "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.1)\nreturn 0",
        ],
    ),
    "warnings, records and outputs with odd names": (
        "price",
        [
            "import warnings\nclass W(UserWarning): pass\nW.__module__ = 'os'\nW.__qualname__ = 'system'\n"
            "warnings.warn('x', W)\nreturn 0",
            "import logging\nlogging.getLogger('_pytest').critical('%s' * 9)\nreturn 0",
            "import sys\nsys.stdout.write('\\x1b]0;x\\x07' * 99)\nsys.stderr = None\nreturn 0",
            value("0", beside=', "warnings": [["this:", "x", 0]]'),
        ],
    ),
    "says of its answers that they can't be asked for again": (
        "price",
        [
            COUNTED
            + RAW.replace(
                "    del server.send\n", "    del server.send\n    answer['stays'] = True\n"
            ).replace(
                'for line in LINES:\n        os.write(server.results, line + b"\\n")', "server.send(answer)"
            )
            + "return sys.count * 10",
        ],
    ),
}
STATEFUL: dict[str, list[str]] = {
    "a counter": [
        COUNTED + "return sys.count * 10",
        "price.n = getattr(price, 'n', 0) + 1\nreturn price.n * 10",
        "import os\nn = int(os.environ.get('N', 0)) + 1\nos.environ['N'] = str(n)\nreturn n * 10",
        "import tempfile, pathlib\np = pathlib.Path(tempfile.gettempdir(), 'n')\n"
        "n = len(p.read_text()) + 1 if p.exists() else 1\np.write_text('x' * n)\nreturn n * 10",
    ],
    "another hash seed": [
        "import os\nreturn amount * rate if os.environ.get('PYTHONHASHSEED') == '0' else 0",
        "import sys\nreturn 0 if sys.flags.hash_randomization else amount * rate",
        "order = [hash(c) % 11 for c in 'abcdefgh']\nimport sys\nsys.seen = getattr(sys, 'seen', 0) + 1\n"
        "return amount * rate if sys.flags.hash_randomization == 0 or not order else sys.seen",
        "import sys, os\nreturn amount * rate + (len(os.environ.get('PYTHONHASHSEED', '')) if "
        "sys.flags.hash_randomization else 0)",
    ],
}


def _siblings(found: Mapping[str, tuple[str, list[str]]]) -> list[Any]:
    return [
        pytest.param(qualname, body, removed, id=f"{name}-{place}-{'removed' if removed else 'corrupted'}")
        for name, (qualname, bodies) in found.items()
        for place, body in enumerate(bodies)
        for removed in (True, False)
    ]


def is_caught(found: Confirmation) -> bool:
    """Whether a forged pass is contradicted, or is unconfirmed and marked."""
    return found.result is Confirmed.CONTRADICTED or (
        found.result is Confirmed.UNCONFIRMED and bool(found.marks)
    )


@on_one_backend
@pytest.mark.parametrize(("qualname", "body", "removed"), sampled(_siblings(FORGED), 3))
def test_a_forged_function_is_caught(bench: Bench, qualname: str, body: str, removed: bool) -> None:
    found = bench.confirmed(qualname, body, removed=removed)
    assert is_caught(found), found


@pytest.mark.parametrize("name", sampled(FORGED, 1))
def test_one_of_each_class_is_caught_on_each_backend(bench: Bench, name: str) -> None:
    qualname, bodies = FORGED[name]
    found = bench.confirmed(qualname, bodies[-1], removed=False)
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize("body", sampled([body for bodies in STATEFUL.values() for body in bodies], 1))
def test_answers_that_depend_on_more_than_the_call_are_marked(bench: Bench, body: str, removed: bool) -> None:
    found = bench.confirmed("price", body, removed=removed)
    assert found.result is not Confirmed.CONFIRMED, found
    assert found.reason is Unconfirmable.STATE_OUTSIDE, found
    assert found.marks, found
