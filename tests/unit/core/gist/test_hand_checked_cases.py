"""Cases with exact figures calculated by hand: existence, execution and fidelity."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import FrameType
from typing import Any

import pytest

from gistpoint.core.kinds.gist.rates import Originals, line_execution, line_existence, unfolded


@dataclass
class Case:
    name: str
    repo: Mapping[str, str]
    gist: str
    test: str
    existence: tuple[int, int]
    execution: tuple[int, int]
    test_imports: str = ""
    calls: list[tuple[Any, ...]] = field(default_factory=lambda: [()])


def _case(name: str, repo: Mapping[str, str], gist: str, test: str, *figures: Any, **more: Any) -> Case:
    dedent = textwrap.dedent
    return Case(name, {p: dedent(t) for p, t in repo.items()}, dedent(gist), dedent(test), *figures, **more)


AREA = """
import math
def area(r):
    return math.pi * r * r
"""
ACC = """
class Acc:
    rate = 2
    def __init__(self, n):
        self.n = n
    def twice(self):
        return self.n * self.rate
    def never(self):
        self.n = 0
        return None
"""
LOGGED = """
import functools
def logged(fn):
    @functools.wraps(fn)
    def inner(*a):
        if not a:
            raise ValueError("none")
        return fn(*a)
    return inner
@logged
def inc(x): return x + 1
"""
ENC = """
import os, sys
from json import (
    dumps,
    loads,
)
LIMITS = {
    "a": 1,  # the first
    "b": 2,
}
def enc(x,
        y=1):
    # a comment
    return dumps(
        [x, y]
    )
"""
ENC_GIST = """
from json import dumps
import sys
LIMITS = {"a": 1, "b": 2}
def enc(x, y = 1):
    return dumps([x,y])   # short
"""
NORM = """
def _norm(s):
    s = s.strip()
    return s.lower()
def key(s):
    return _norm(s)
"""
STEPS = """
def a(x):
    x += 1
    return x
def b(x):
    return x * 2
"""
STEPS_GIST = """
def b(x):
    x += 1
    x -= 1
    return x * 2
"""
TO_INT = """
def to_int(s, default=0):
    try:
        v = int(s)
    except ValueError:
        v = default
        print("bad")
    else:
        v += 0
    finally:
        done = True
    if done:
        return v
    return None
"""
HOOK = '''
"""A module."""
class Base(Exception):
    """The base."""
class Err(Base): pass
def hook(): ...
def go(x):
    """Go."""
    global LAST
    LAST = x
    hook()
    return LAST
'''
HOOK_GIST = HOOK.replace("The base.", "Something else.").replace("Go.", "Went.") + "# a comment\n"
POOL = """
import asyncio
class Pool:
    async def __aenter__(self):
        return self
    async def __aexit__(self, *a):
        return None
    async def get(self, n):
        await asyncio.sleep(0)
        return n
async def fetch(ns):
    out = []
    async with Pool() as p:
        for n in ns:
            out.append(await p.get(n))
    return out
"""
ORDER = """
KEY = lambda p: (
    p[1],
    p[0],
)
def order(ps):
    ps = [p for p in ps if p]
    return sorted(ps, key=KEY)
"""
ORDER_GIST = """
KEY = lambda p: (p[1], p[0])
def order(ps):
    ps = list(ps)
    return sorted(ps, key=KEY)
"""
SHAPES = """
def area(shape):
    match shape:
        case ("sq", n):
            return n * n
        case ("re", a, b) if a > 0:
            return a * b
        case _:
            return None
"""
SHAPES_TEST = """
@pytest.mark.parametrize("shape, want", [(("sq", 2), 4), (("re", 2, 3), 6)])
def test_it(shape, want):
    assert area(shape) == want
"""
CONV_X = """
class Conv:
    def run(self, v):
        return v
"""
CONV_Y = """
class Conv:
    factor = 10
    def run(self, v):
        if v < 0:
            return -1
        elif v > 100:
            v = 100
        return v * self.factor
"""

CASES = [
    _case("plain", {"a.py": AREA}, AREA, "def test_it():\n    assert area(1) > 3\n", (5, 5), (5, 5)),
    _case(
        "method never called",
        {"a.py": ACC},
        ACC,
        "def test_it():\n    assert Acc(3).twice() == 6\n",
        (11, 11),
        (9, 11),
    ),
    _case(
        "decorator", {"a.py": LOGGED}, LOGGED, "def test_it():\n    assert inc(1) == 2\n", (13, 13), (12, 13)
    ),
    _case(
        "reflowed", {"a.py": ENC}, ENC_GIST, 'def test_it():\n    assert enc(2) == "[2, 1]"\n', (7, 7), (7, 7)
    ),
    _case(
        "renamed",
        {"a.py": NORM},
        NORM.replace("_norm", "norm"),
        'def test_it():\n    assert key(" A") == "a"\n',
        (3, 7),
        (7, 7),
    ),
    _case(
        "line of another block",
        {"a.py": STEPS},
        STEPS_GIST,
        "def test_it():\n    assert b(2) == 4\n",
        (4, 6),
        (6, 6),
    ),
    _case("try", {"a.py": TO_INT}, TO_INT, 'def test_it():\n    assert to_int("7") == 7\n', (12, 12), (8, 9)),
    _case(
        "docstrings", {"a.py": HOOK}, HOOK_GIST, "def test_it():\n    assert go(1) == 1\n", (12, 12), (9, 9)
    ),
    _case(
        "async",
        {"a.py": POOL},
        POOL,
        "def test_it():\n    assert asyncio.run(fetch([1, 2])) == [1, 2]\n",
        (17, 17),
        (17, 17),
    ),
    _case(
        "lambda",
        {"a.py": ORDER},
        ORDER_GIST,
        "def test_it():\n    assert order([(1, 2), (0, 1)]) == [(0, 1), (1, 2)]\n",
        (5, 6),
        (6, 6),
    ),
    _case(
        "match",
        {"a.py": SHAPES},
        "import pytest\n" + SHAPES,
        SHAPES_TEST,
        (12, 12),
        (10, 12),
        test_imports="import pytest",
        calls=[(("sq", 2), 4), (("re", 2, 3), 6)],
    ),
    _case(
        "two originals",
        {"x.py": CONV_X, "y.py": CONV_Y},
        CONV_Y,
        "def test_it():\n    assert Conv().run(2) == 20\n",
        (10, 10),
        (8, 10),
    ),
]


def _executed(source: str, calls: list[tuple[Any, ...]]) -> set[int]:
    """Return the lines of `source` that run, once it has one statement per line."""
    lines: set[int] = set()

    def trace(frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename != "<gist>":
            return None
        if event == "line":
            lines.add(frame.f_lineno)
        return trace

    namespace: dict[str, Any] = {"__name__": "gist", "pytest": pytest}
    code = compile(unfolded(source), "<gist>", "exec")
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(code, namespace)
        for arguments in calls:
            namespace["test_it"](*arguments)
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_figures_are_exact(case: Case) -> None:
    module = next(iter(case.repo)).removesuffix(".py")
    sources = {**case.repo, "test_a.py": f"from {module} import *\n{case.test_imports}\n{case.test}"}
    gist = case.gist + case.test
    existence = line_existence(gist, Originals(sources), test="test_it")
    execution = line_execution(gist, _executed(gist, case.calls), test="test_it")
    assert (existence.existing, existence.counted) == case.existence
    assert (execution.executed, execution.executable) == case.execution
    assert (
        existence.paper.part,
        existence.paper.whole,
    ) == case.existence  # no case has the same line twice in a block
    assert (execution.paper.part, execution.paper.whole) == case.execution
    assert existence.rate == pytest.approx(float(100 * Fraction(*case.existence)))
    assert execution.rate == pytest.approx(float(100 * Fraction(*case.execution)))


def test_counting_the_handler_would_give_another_figure() -> None:
    case = next(case for case in CASES if case.name == "try")
    report = line_execution(case.gist + case.test, _executed(case.gist + case.test, case.calls))
    assert [line.line.text for line in report.lines if not line.counts] == [
        "except ValueError:",
        "v = default",
        "print('bad')",
    ]
    assert (sum(line.ran for line in report.lines), len(report.lines)) == (8, 12)


def test_rates_without_the_test_leave_its_lines_out() -> None:
    case = next(case for case in CASES if case.name == "renamed")
    gist = case.gist + case.test
    existence = line_existence(gist, Originals({**case.repo, "t.py": case.test}), test="test_it")
    assert existence.rate_without_test == pytest.approx(100 * 1 / 5)
    execution = line_execution(gist, _executed(gist, case.calls), test="test_it")
    assert execution.rate_without_test == 100


def test_evidence_names_the_original_line_and_the_reason() -> None:
    sources = {"pkg/a.py": STEPS.lstrip()}
    gist = (
        "import sys\npkg = sys.modules[__name__]\nimport json\n"
        + STEPS_GIST.lstrip()
        + "def new():\n    return 1\n"
    )
    report = line_existence(gist, Originals(sources))
    told = [
        (e.line.text, e.reason.name, e.original and (e.original.path, e.original.line)) for e in report.lines
    ]
    assert told == [
        ("import sys", "GLUE", None),
        ("pkg = sys.modules[__name__]", "GLUE", None),
        ("import json", "NOT_IN_TOP_LEVEL", None),
        ("def b(x):", "IN_BLOCK", ("pkg/a.py", 4)),
        ("x += 1", "NOT_IN_BLOCK", ("pkg/a.py", 4)),
        ("x -= 1", "NOT_IN_BLOCK", ("pkg/a.py", 4)),
        ("return x * 2", "IN_BLOCK", ("pkg/a.py", 5)),
        ("def new():", "NO_BLOCK", None),
        ("return 1", "NO_BLOCK", None),
    ]
    assert [e.line.text for e in report.glue] == ["import sys", "pkg = sys.modules[__name__]"]


HARD_CODED = "def area(r):\n    return {1: 3.2}[r]\n"
CALL = "def test_it():\n    assert area(1) > 3\n"
PADDED = {
    "as it stands": "import math\n",
    "on one line": "import math; import math\n",
    "in one statement": "import math, math\n",
    "spaced and commented": "import  math   # again\n",
    "in blocks": "if True:\n    import math\n",
    "the block again": HARD_CODED,
    "the test again": CALL,
}


@pytest.mark.parametrize("padding", PADDED.values(), ids=PADDED.keys())
def test_lines_that_are_there_many_times_over_count_once(padding: str) -> None:
    originals = Originals({"a.py": AREA, "test_a.py": CALL})

    def figures(gist: str) -> tuple[tuple[int, int], tuple[int, int]]:
        existence = line_existence(gist, originals, test="test_it")
        execution = line_execution(gist, _executed(gist, [()]), test="test_it")
        return (existence.existing, existence.counted), (execution.executed, execution.executable)

    bare, padded = HARD_CODED + CALL + padding, HARD_CODED + CALL + padding * 300
    assert figures(padded) == figures(bare)
    report = line_existence(padded, originals)
    assert report.paper.whole >= 300
    assert report.paper.rate != report.rate


def test_alike_lines_of_different_blocks_stay_apart() -> None:
    source = "def a(x):\n    return None\ndef b(x):\n    return None\n"
    gist = source + "def test_it():\n    assert a(1) is None\n"
    existence = line_existence(gist, Originals({"a.py": source}), test="test_it")
    assert (existence.existing, existence.counted) == (4, 6)
    execution = line_execution(gist, _executed(gist, [()]), test="test_it")
    assert (execution.executed, execution.executable) == (5, 6)


def test_of_alike_lines_in_a_block_one_that_ran_is_enough() -> None:
    source = "def a(x):\n    if x:\n        return 1\n    y = 2\n    return 1\n"
    gist = source + "def test_it():\n    assert a(0) == 1\n"
    execution = line_execution(gist, _executed(gist, [()]), test="test_it")
    assert (execution.executed, execution.executable) == (6, 6)
    assert (execution.paper.part, execution.paper.whole) == (6, 7)
    assert [line.line.first for line in execution.lines if not line.ran] == [3]


SPREAD = """
def never(x):
    y = x + 1
    return y
class Idle:
    def go(self):
        return 1
def area(r):
    if r > 5:
        raise ValueError(r)
    return 4
"""
FOLDED = """
def never(x): y = x + 1; return y
class Idle:
    def go(self): return 1
def area(r):
    if r > 5: raise ValueError(r)
    return 4
"""


def test_folding_statements_onto_one_line_gains_nothing() -> None:
    spread, folded = (line_execution(text + CALL, _executed(text + CALL, [()])) for text in (SPREAD, FOLDED))
    assert (spread.executed, spread.executable) == (8, 12)
    assert (folded.executed, folded.executable) == (8, 12)
    assert folded.paper.rate == 100, "the paper's tracer tells of physical lines"
    assert spread.paper.rate == pytest.approx(100 * 8 / 12)
