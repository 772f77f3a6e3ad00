"""Submissions that pass are compared beyond the tests: notes on a pass, and further inputs (decision 131)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from examples import sampled, share
from tiny_tasks import Maker
from working_backends import on_one_backend

from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import remove_body, with_definition
from gistpoint.core.confirmation.model import Confirmation, Confirmed, Unconfirmable
from gistpoint.core.kinds.confirming import confirmation_lines
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.equivalence import Equivalence, EquivalenceReport
from gistpoint.core.tasks.model import Target
from gistpoint.core.tasks.trees import corrupted_tree, repaired_tree
from gistpoint.core.trees import SourceTree, write_tar
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.confirmation import SandboxConfirmer
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.equivalence import SandboxEquivalenceTester, comparing
from gistpoint.sandbox.testruns import SuiteRunner

SHOP = """
import math


class Money:
    def __init__(self, amount, off=0):
        self.amount = amount
        self.off = off

    def __eq__(self, other):
        return abs(self.amount - other.amount) <= max(self.off, other.off)

    @property
    def whole(self):
        return self.amount // 10

    @whole.setter
    def whole(self, value):
        self.amount = value * 10

    def root(self):
        return math.isqrt(self.amount)


class Order:
    def __init__(self, price, names):
        self.price = price
        self.names = names

    def total(self):
        return self.price.amount * len(self.names)

    def first(self):
        return self.names[0] if self.names else "none"


def priced(n):
    return Money(n * 2)


def counted(items):
    for n, item in enumerate(items):
        yield n, item


def doubled(n):
    return n * 2


def version(text):
    return text[2:] if text.startswith("v-") else text


def named(value):
    return "money" if isinstance(value, Money) else "other"


def encoded(text):
    if isinstance(text, str):
        text = text.encode()
    return text + b"!"


def shown(value):
    if value is None:
        return "nothing"
    return str(value)


def outer(n):
    def inner(m):
        return abs(m)
    return inner(n)
"""
TESTS = """
import random
import pytest
import shop

@pytest.mark.parametrize("n", [1, 2, 3])
def test_priced(n): assert shop.priced(n) == shop.Money(n * 2)
def test_counted(): assert list(shop.counted("ab")) == [(0, "a"), (1, "b")]
def test_named(): assert shop.named(shop.Money(3)) == "money" and shop.named(3) == "other"
def test_doubled():
    for _ in range(20):
        n = random.randrange(1_000_000)
        assert shop.doubled(n) == 2 * n
def test_money():
    money = shop.Money(40)
    assert money.whole == 4
    money.whole = 3
    assert money.amount == 30 and shop.Money(9).root() == 3
def test_order():
    order = shop.Order(shop.Money(5), ["a", "b"])
    assert order.total() == 10 and order.first() == "a"
def test_version(): assert shop.version("1.2") == "1.2"
def test_encoded(): assert shop.encoded(b"a") == b"a!"
def test_shown(): assert shop.shown(3) == "3"
def test_outer(): assert shop.outer(3) == 3
"""
FILES = {"shop.py": SHOP, "tests/test_shop.py": TESTS}
HEADERS = {"priced": "def priced(n):", "counted": "def counted(items):", "doubled": "def doubled(n):"}
Confirm = Callable[[str, str], Confirmation]


@pytest.fixture
def confirm(backend: Backend, environments: EnvironmentStore, tmp_path_factory: Any) -> Confirm:
    """A function that tries to confirm a body for a function of the shop."""
    folder = tmp_path_factory.mktemp("shop")
    made = Maker(folder, SuiteRunner(backend, environments)).task(FILES, "shop.py::doubled")
    known = replace(read_answer(made), entered={})
    original = repaired_tree(SourceTree.open(made.tree_path), known.targets)
    confirmer = SandboxConfirmer(backend, environments)

    def confirmed(qualname: str, body: str) -> Confirmation:
        index = index_source("shop.py", original.read("shop.py"))
        definition = index.get(qualname)
        target = Target("shop.py", qualname, definition.dedented, remove_body(index, definition))
        write_tar(corrupted_tree(original, (target,)), folder / qualname / "workspace" / "tree.tar")
        task, answer = replace(made, folder=folder / qualname), replace(known, targets=(target,))
        controls = confirmer.control(task, answer, measured_here=True)
        assert controls.confirmable, controls
        code = f"{HEADERS[qualname]}\n{textwrap.indent(body, '    ')}\n"
        submitted = with_definition(SourceTree.open(task.tree_path), "shop.py", qualname, code)
        return confirmer.confirm(task, answer, controls, submitted)

    return confirmed


@on_one_backend
def test_a_pass_by_a_tolerant_comparison_is_noted(confirm: Confirm) -> None:
    found = confirm("priced", "return Money(0, 10**9)")
    assert found.result is Confirmed.CONFIRMED, found
    assert found.beyond is not None
    assert found.beyond.test.startswith("tests/test_shop.py::test_priced[")
    assert found.beyond.original in (
        "Money(amount=2, off=0)",
        "Money(amount=4, off=0)",
        "Money(amount=6, off=0)",
    )
    assert "amount=0" in found.beyond.submission
    assert any("which this test does not reveal" in line for line in confirmation_lines(found))


@on_one_backend
def test_what_an_honest_repair_does_otherwise_is_not_noted(confirm: Confirm) -> None:
    found = confirm("priced", "found = Money(n + n)\nfound._cache = [n]\nreturn found")
    assert (found.result, found.beyond, found.marks) == (Confirmed.CONFIRMED, None, ()), found


@on_one_backend
def test_what_an_iterator_yields_is_asked_for_again(confirm: Confirm) -> None:
    body = "import sys\nfor n, item in enumerate(items):\n    yield (0 if sys.flags.hash_randomization else n), item"
    found = confirm("counted", body)
    assert (found.result, found.reason) == (Confirmed.UNCONFIRMED, Unconfirmable.STATE_OUTSIDE), found
    assert found.marks


@on_one_backend
def test_an_iterator_that_is_made_otherwise_is_confirmed(confirm: Confirm) -> None:
    found = confirm("counted", "yield from zip(range(len(items)), items)")
    assert (found.result, found.beyond, found.marks) == (Confirmed.CONFIRMED, None, ()), found


@on_one_backend
def test_a_wrong_answer_to_a_random_input_is_marked(confirm: Confirm) -> None:
    found = confirm("doubled", "return n * 2 + n % 2")
    assert found.result is Confirmed.UNCONFIRMED, found
    # The watched run has other inputs, so the test may fail there too.
    assert "answers a call of a failing test differently from the true function" in found.marks
    assert found.beyond is not None
    assert found.beyond.original != found.beyond.submission


WRONG = {
    "a property of an object": (
        "Money.whole",
        "@property\ndef whole(self):\n    return abs(self.amount) // 10",
    ),
    "a setter": (
        "Money.whole#2",
        "@whole.setter\ndef whole(self, value):\n    self.amount = abs(value) * 10",
    ),
    "an object within an object": (
        "Order.total",
        "def total(self):\n    return max(5, self.price.amount) * len(self.names)",
    ),
    "an empty list of an object": ("Order.first", "def first(self):\n    return self.names[0]"),
    "a text that begins with a literal": ("version", "def version(text):\n    return text"),
    "a text in place of bytes": ("encoded", 'def encoded(text):\n    return text + b"!"'),
    "a text of a subclass": (
        "encoded",
        'def encoded(text):\n    if type(text) is str:\n        text = text.encode()\n    return text + b"!"',
    ),
    "an object of a subclass": (
        "named",
        'def named(value):\n    return "money" if type(value) is Money else "other"',
    ),
    "None, which the source asks for": ("shown", "def shown(value):\n    return str(value)"),
    "a number that the repair asks for": (
        "doubled",
        "def doubled(n):\n    return 7 if n == 712345 else n * 2",
    ),
}
SAME = {
    "Money.whole": "@property\ndef whole(self):\n    return int(self.amount // 10)",
    # A negative amount is refused, so an answer to it is not a fault.
    "Money.root": "def root(self):\n    return math.isqrt(self.amount) if self.amount > 0 else 0",
    "Order.total": "def total(self):\n    return len(self.names) * self.price.amount",
}
Compare = Callable[[Mapping[str, str]], EquivalenceReport]


@pytest.fixture
def compare(
    backend: Backend, environments: EnvironmentStore, make_tree: Callable[[Mapping[str, str]], SourceTree]
) -> Compare:
    def compared(repairs: Mapping[str, str]) -> EquivalenceReport:
        original = repaired = make_tree(FILES)
        for qualname, code in repairs.items():
            repaired = with_definition(repaired, "shop.py", qualname, code)
        tester = SandboxEquivalenceTester(backend, environments)
        names = [f"shop.py::{qualname}" for qualname in repairs]
        return tester.compare(original, repaired, EnvironmentPins(), names, (), timeout_s=120)

    return compared


@on_one_backend
@pytest.mark.parametrize("name", sampled(WRONG, 2))
def test_a_fault_that_no_test_shows_is_found(compare: Compare, name: str) -> None:
    qualname, code = WRONG[name]
    report = compare({qualname: code})
    assert report.verdict is Equivalence.DIFFERS, report
    assert not report.recorded_differing
    assert report.example is not None


@on_one_backend
def test_objects_in_other_states_keep_what_is_equivalent(
    compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "VARIED", min(comparing.VARIED, max(120, share(150))))
    report = compare(SAME)
    assert report.verdict is Equivalence.EQUIVALENT, report
    assert report.varied > 50


PARSER = """
import zlib


class Source:
    def __init__(self, text):
        self.lines = text.split('\\n')
        self.at = 0
        self.check = zlib.crc32(text.encode())


def parsed(text):
    source, found = Source(text), []
    while source.at < len(source.lines):
        found.append(block(source))
    return found


def block(source):
    text, begin = '\\n'.join(source.lines), source.at
    if source.check != zlib.crc32(text.encode()) or begin < 0:
        raise ValueError(text)
    source.at += 1
    while source.at < len(source.lines) and not begins(source.lines[source.at]):
        source.at += 1
    return source.lines[begin:source.at]


def begins(line):
    return line[:1] in "#>" or not line
"""
PARSER_TESTS = """
import parser_of_lines

def test_heading(): assert parser_of_lines.parsed("# a\\nb") == [["# a", "b"]]
def test_quote(): assert parser_of_lines.parsed("> a\\n> b") == [["> a"], ["> b"]]
def test_text(): assert parser_of_lines.parsed("a\\nb\\n\\nc") == [["a", "b"], ["", "c"]]
"""


@on_one_backend
def test_a_fault_that_only_objects_whose_attributes_fit_show_is_found_at_a_caller(
    backend: Backend, environments: EnvironmentStore, make_tree: Callable[[Mapping[str, str]], SourceTree]
) -> None:
    original = make_tree({"parser_of_lines.py": PARSER, "tests/test_parser.py": PARSER_TESTS})
    wrong = PARSER[PARSER.index("def block") : PARSER.index("def begins")].replace(
        "not begins(source.lines[source.at])", "source.lines[source.at][:1] not in ('', '>')"
    )
    repaired = with_definition(original, "parser_of_lines.py", "block", wrong)
    tester = SandboxEquivalenceTester(backend, environments)
    names = ["parser_of_lines.py::block"]
    report = tester.compare(original, repaired, EnvironmentPins(), names, (), timeout_s=120)
    assert report.verdict is Equivalence.DIFFERS, report
    assert report.example is not None
    assert report.example.function == "parser_of_lines.py::parsed"
