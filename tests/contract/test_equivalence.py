"""Repairs against their originals: equivalent ones are accepted, others get a small counterexample."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from examples import share
from working_backends import on_one_backend

from gistpoint.core.code.splice import with_definition
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.equivalence import Equivalence, EquivalenceReport
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.equivalence import SandboxEquivalenceTester, comparing

LIBRARY = """
import functools, random, time

def clamp(value, low, high):
    if value < low:
        return low
    return min(value, high)

def head(items, n=1, *rest, fill=None, **more):
    found = list(items[:n])
    return found + [fill] * (n - len(found))

def sorts(items):
    items.sort()

def evens(limit):
    for n in range(limit):
        if n % 2 == 0:
            yield n

@functools.lru_cache(maxsize=None)
def total(n):
    return 0 if n <= 0 else n + total(n - 1)

class Box:
    def __init__(self, size): self.size = size
    @property
    def area(self):
        return self.size * self.size
    @classmethod
    def twice(cls, size):
        return cls(size * 2)
    def __eq__(self, other): return self.size == other.size

async def later(n):
    return n + 1

def chance(n):
    return random.random() + time.time()

def takes_a_lock(lock):
    return 1

def counts(words):
    found = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found

def never_called(): return 1

def union(first, *others):
    if not others:
        return first[:]
    return list(dict.fromkeys([*first, *sum(others, [])]))

def itself(items):
    return items

def opened(code):
    if code[0] != 17:
        return "closed"
    if code[1] != 43:
        return "first"
    if code[2] != 71:
        return "second"
    return "open"

class Door:
    def __init__(self, key, turns, push):
        self.key = key
        self.turns = turns
        self.push = push
    def is_open(self):
        if self.key != 17:
            return False
        if self.turns != 43:
            return False
        return self.push == 71

def _require_positive(n):
    if n < 0:
        raise ValueError(n)

def halved(n):
    _require_positive(n)
    return n // 2

def attempted(call, default=None):
    try:
        return call()
    except KeyError:
        return default

def outer(n):
    def inner(m):
        return m + n
    return inner(1)
"""
TESTS = """
import asyncio, threading
import mod
def test_clamp(): assert [mod.clamp(n, 0, 10) for n in (-5, 5, 50)] == [0, 5, 10]
def test_head(): assert mod.head([1, 2], 3) == [1, 2, None] and mod.head((1, 2), n=1, fill=0, x=2) == [1]
def test_sorts():
    items = [3, 1, 2]
    mod.sorts(items)
    assert items == [1, 2, 3]
def test_evens(): assert list(mod.evens(5)) == [0, 2, 4]
def test_total(): assert mod.total(4) == 10
def test_box(): assert mod.Box(3).area == 9 and mod.Box.twice(2) == mod.Box(4)
def test_counts(): assert mod.counts(["b", "a", "b"]) == {"a": 1, "b": 2}
def test_later(): assert asyncio.run(mod.later(1)) == 2
def test_chance(): assert mod.chance(1)
def test_lock(): assert mod.takes_a_lock(threading.Lock()) == 1
def test_outer(): assert mod.outer(1) == 2
def test_union(): assert mod.union([1]) == [1] and mod.union([1], [2, 1]) == [1, 2]
def test_itself(): assert mod.itself([1]) == [1]
def test_opened(): assert mod.opened([1, 2, 3]) == "closed"
def test_halved(): assert mod.halved(4) == 2
def test_attempted(): assert mod.attempted(globals) is not None and mod.attempted({}.popitem, 2) == 2
def test_door(): assert not mod.Door(1, 2, 3).is_open()
"""
FILES = {"mod.py": LIBRARY, "tests/test_a.py": TESTS}
Compare = Callable[[Mapping[str, str]], EquivalenceReport]
SAME = {
    "head": "def head(items, n=1, *_, fill=None, **__):\n    return [*items[:n], *[fill] * (n - len(items[:n]))]",
    "sorts": "def sorts(items):\n    items[:] = sorted(items)",
    "evens": "def evens(limit):\n    yield from range(0, limit, 2)",
    "Box.area": "@property\ndef area(self):\n    return self.size ** 2",
    "counts": "def counts(words):\n    return {word: words.count(word) for word in sorted(words)}",
    "attempted": (
        "def attempted(call, default=None):\n    import contextlib\n"
        "    with contextlib.suppress(KeyError):\n        return call()\n    return default"
    ),
    "halved": "def halved(n):\n    if n >= 0:\n        return n // 2\n    raise ValueError",
    "later": "async def later(n):\n    return 1 + n",
}


@pytest.fixture
def compare(
    backend: Backend, environments: EnvironmentStore, make_tree: Callable[[Mapping[str, str]], SourceTree]
) -> Compare:
    def compared(repairs: Mapping[str, str]) -> EquivalenceReport:
        original = repaired = make_tree(FILES)
        for qualname, code in repairs.items():
            repaired = with_definition(repaired, "mod.py", qualname, code) if code else repaired
        tester = SandboxEquivalenceTester(backend, environments)
        names = [f"mod.py::{qualname}" for qualname in repairs]
        return tester.compare(original, repaired, EnvironmentPins(), names, (), timeout_s=120)

    return compared


@on_one_backend
def test_another_way_to_do_the_same_is_equivalent(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "VARIED", min(comparing.VARIED, max(120, share(150))))
    report = compare(SAME)
    assert report.verdict is Equivalence.EQUIVALENT, report
    assert report.recorded >= 2 + 1 + 1 + 1 + 1 + 1
    assert report.varied > 100
    assert not report.recorded_differing + report.varied_differing
    assert not report.reason


@on_one_backend
@pytest.mark.parametrize(
    ("qualname", "code", "call", "original", "repair"),
    [
        (
            "clamp",
            "def clamp(value, low, high):\n    return max(0, min(value, 10))",
            "clamp(1, 0, 0)",
            "0",
            "1",
        ),
        (
            "sorts",
            "def sorts(items):\n    return items.sort() if len(items) > 2 else None",
            "sorts([1, 0])",
            "None, and leaves [[0, 1]]",
            "None, and leaves [[1, 0]]",
        ),
        (
            "evens",
            "def evens(limit):\n    return iter([0, 2, 4][:limit])",
            "evens(2)",
            "<yields 0>",
            "<yields 0, 2>",
        ),
        (
            "halved",
            "def halved(n):\n    return n // 2",
            "halved(-1)",
            "ValueError: -1",
            "-1",
        ),
    ],
)
def test_a_repair_that_passes_its_tests_and_is_wrong_is_found(
    compare: Compare, qualname: str, code: str, call: str, original: str, repair: str
) -> None:
    report = compare({qualname: code})
    assert report.verdict is Equivalence.DIFFERS
    assert report.recorded
    assert not report.recorded_differing
    found = report.example
    assert found is not None
    assert (found.call, found.original, found.repair) == (call, original, repair)


@on_one_backend
@pytest.mark.parametrize(
    ("qualname", "code", "call", "answers"),
    [
        (
            "opened",
            'def opened(code):\n    if code[0] == 17:\n        return "first" if code[1] != 43 else "second"\n'
            '    return "closed"',
            "opened([17, 43, 71])",
            ("'open'", "'second'"),
        ),
        (
            "Door.is_open",
            "def is_open(self):\n    return False",
            "Door.is_open(<mod.Door of call 1 with key=17, turns=43, push=71>)",
            ("True", "False"),
        ),
    ],
)
def test_a_fault_behind_several_conditions_is_found(
    compare: Compare, qualname: str, code: str, call: str, answers: tuple[str, str]
) -> None:
    """Each condition is satisfied by varying an input that satisfied the one before (decision 180)."""
    found = compare({qualname: code}).example
    assert found is not None
    assert (found.call, (found.original, found.repair)) == (call, answers)


@on_one_backend
@pytest.mark.parametrize("caught", ["except Exception", "except"])
def test_a_repair_that_catches_more_exceptions_of_a_given_function_differs(
    compare: Compare, caught: str
) -> None:
    body = f"    try:\n        return call()\n    {caught}:\n        return default"
    code = f"def attempted(call, default=None):\n{body}"
    found = compare({"attempted": code}).example
    assert found is not None
    assert found.call.startswith("attempted(<a function that raises Planted")
    assert found.original.startswith("Planted")
    assert "Planted" not in found.repair


@on_one_backend
def test_a_repair_that_returns_an_argument_in_place_of_a_copy_differs(compare: Compare) -> None:
    joined = "list(dict.fromkeys([*first, *sum(others, [])]))"
    shared = f"def union(first, *others):\n    return {joined} if others else first"
    found = compare({"union": shared}).example
    assert found is not None
    assert (found.call, found.original, found.repair) == (
        "union([], ())",
        "[], a new object",
        "[], the argument itself",
    )
    # A copy in place of the argument is just as good.
    assert compare({"itself": "def itself(items):\n    return [*items]"}).verdict is Equivalence.EQUIVALENT


@on_one_backend
def test_what_can_not_be_compared_is_told(compare: Compare) -> None:
    report = compare(dict.fromkeys(("chance", "takes_a_lock", "never_called"), ""))
    assert report.verdict is Equivalence.NOT_COMPARABLE
    for why in (
        "No call of chance could be repeated with an answer that can be compared.",
        "No call of takes_a_lock could be recorded: TypeError: cannot pickle '_thread.lock' object",
        "No test calls never_called.",
    ):
        assert why in report.reason


@on_one_backend
def test_a_function_that_can_not_be_called_alone_is_compared_through_its_caller(compare: Compare) -> None:
    report = compare({"outer.<locals>.inner": ""})
    assert report.verdict is Equivalence.EQUIVALENT
    assert "outer.<locals>.inner can't be called on its own" in report.reason
    assert report.varied


REPLAYER = """def clamp(value, low, high):
    import os, sys
    frame = sys._getframe()
    while "order" not in frame.f_locals:
        frame = frame.f_back
    order, put = frame.f_locals["order"], frame.f_locals["put"]
    {does}
    return max(low, min(high, value))"""
"""A repair that answers correctly and does something in the frame of the program that calls it."""
ENDING = {
    "the process ends": ("def clamp(value, low, high):\n    import os\n    os._exit(0)", 3),
    "the run is reported as finished": (REPLAYER.format(does="put('finish', slowest=0.0); os._exit(0)"), 3),
    "the budget is spent": (REPLAYER.format(does="order['budget_s'] = -1.0"), 2),
    "inputs are removed": (REPLAYER.format(does="del order['inputs'][1:]"), 2),
}
"""Repairs of `clamp`, each with the number of the three recorded calls that it leaves unanswered."""


@on_one_backend
@pytest.mark.parametrize(("body", "unanswered"), ENDING.values(), ids=ENDING)
def test_a_repair_that_ends_the_run_early_differs(compare: Compare, body: str, unanswered: int) -> None:
    ends = compare({"clamp": body})
    assert ends.verdict is Equivalence.DIFFERS
    assert ends.recorded_differing == unanswered
