"""The parts that a reduction removes from a gist, their order, and the end of the reduction."""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import pytest

from gistpoint.core.kinds.gist.reference.reduction import OracleVerdict, Reducer

Check = Callable[[dict[str, Any]], object]


@dataclass
class Here:
    """An oracle that executes gists in this process, and compares `check` of their names with `expected`."""

    check: Check
    expected: object
    texts: list[str] = field(default_factory=list)

    def __call__(self, text: str) -> OracleVerdict:
        self.texts.append(text)
        ran: set[int] = set()

        def trace(frame: FrameType, event: str, _: object) -> Any:
            if frame.f_code.co_filename != "<tried>":
                return None
            if event == "line":
                ran.add(frame.f_lineno)
            return trace

        before = sys.gettrace()
        try:
            names: dict[str, Any] = {"__name__": "tried"}
            with contextlib.redirect_stdout(io.StringIO()):
                sys.settrace(trace)
                exec(compile(text, "<tried>", "exec"), names)
                found = self.check(names)
        except Exception:
            return OracleVerdict(False)
        finally:
            sys.settrace(before)
        return OracleVerdict(found == self.expected, frozenset(ran))


def reduced(text: str, check: Check, expected: object, test: str = "") -> tuple[str, Here]:
    oracle = Here(check, expected)
    found, _ = Reducer(oracle, lambda: False, test).reduce(text, oracle(text))
    return found, oracle


def test_statements_that_ran_and_that_nothing_needs_go() -> None:
    text = "seen = []\nseen.append(1)\nfor n in (2, 3):\n    seen.append(n)\ndef f(x):\n    return len(seen) < x\n"
    found, _ = reduced(text, lambda names: names["f"](9), True)
    assert found == "seen = []\ndef f(x):\n    return len(seen) < x\n"


def test_functions_that_ran_keep_what_ran_in_them() -> None:
    text = "def f(x):\n    y = x\n    print(y)\n    return 1\n"
    assert reduced(text, lambda names: names["f"](9), 1)[0] == text


def test_methods_that_ran_stay_though_nothing_needs_them() -> None:
    text = "class A:\n    def __init__(self):\n        self.seen = []\n    def f(self):\n        return 2\n"
    assert reduced(text, lambda names: names["A"]().f(), 2)[0] == text


def test_statements_of_classes_go_but_not_the_last_one() -> None:
    text = "class A:\n    x = 1\n    y = x\n    def f(self):\n        return 2\nclass B(A):\n    z = A.x\n"
    found, _ = reduced(text, lambda names: (names["A"]().f(), names["B"].__name__), (2, "B"))
    assert found == "class A:\n    x = 1\n    def f(self):\n        return 2\nclass B(A):\n    z = A.x\n"


def test_names_that_only_need_each_other_go_in_one_query() -> None:
    chain = "".join(f"def f{n}():\n    return f{n + 1}()\n" for n in range(9))
    found, oracle = reduced(chain + "f9 = 1\ndef g():\n    return 5\n", lambda names: names["g"](), 5, "g")
    assert found == "def g():\n    return 5\n"
    assert len(oracle.texts) == 2


def test_branches_of_loops_that_never_ran_go() -> None:
    loop = "def f():\n    for x in (1, 2):\n        if x == 2:\n            break\n"
    text = f"{loop}    else:\n        x = 3\n    return x\n"
    found, _ = reduced(text, lambda names: names["f"](), 2)
    assert found == f"{loop}    return x\n"


def test_branches_of_asynchronous_loops_and_of_groups_go_too() -> None:
    start = (
        "async def g(n):\n    for x in range(n):\n        yield x\n"
        "async def f():\n    async for x in g(3):\n        if x == 2:\n            break\n"
    )
    group = "    try:\n        raise ValueError\n    except* ValueError:\n        x += 3\n"
    idle = "    async for y in g(0):\n        x = 4\n"
    text = f"{start}    else:\n        x = 3\n{idle}{group}    else:\n        x = 6\n    return x\n"
    found, _ = reduced(text, lambda names: asyncio.run(names["f"]()), 5)
    assert found == f"{start}{group}    return x\n"


def test_a_function_that_is_needed_and_never_runs_keeps_one_statement() -> None:
    text = "def f(x):\n    if x:\n        return 1\n    else:\n        return 2\ntable = {1: f}\n"
    assert (
        reduced(text, lambda names: list(names["table"]), [1])[0]
        == "def f(x):\n    return 1\ntable = {1: f}\n"
    )


def test_gaps_go_with_what_stood_between_them() -> None:
    text = "a = 1\n\n\ndef f():\n    pass\n\n\ndef g():\n    return a\n"
    assert reduced(text, lambda names: names["g"](), 1)[0] == "a = 1\n\n\ndef g():\n    return a\n"


@pytest.mark.parametrize("queries", range(1, 6))
def test_what_is_stopped_returns_the_last_text_that_held(queries: int) -> None:
    text = (
        "seen = []\n" + "".join(f"seen.append({n})\n" for n in range(6)) + "def f():\n    return seen[-1]\n"
    )
    oracle = Here(lambda names: names["f"](), 5)
    verdict = oracle(text)
    found, last = Reducer(oracle, lambda: len(oracle.texts) >= queries, "f").reduce(text, verdict)
    assert len(oracle.texts) == queries
    assert oracle(found) == last
    assert last.holds


def test_what_nothing_names_goes_though_no_time_is_left() -> None:
    oracle = Here(lambda names: names["g"](), 5)
    text = "def f():\n    return 1\nseen = []\nseen.append(1)\ndef g():\n    return 5\n"
    found, _ = Reducer(oracle, lambda: True, "g").reduce(text, oracle(text))
    assert found == "seen = []\nseen.append(1)\ndef g():\n    return 5\n"
    assert len(oracle.texts) == 2


def test_the_same_text_is_reduced_in_the_same_way() -> None:
    text = (
        "seen = []\n" + "".join(f"seen.append({n})\n" for n in range(20)) + "def f():\n    return seen[-1]\n"
    )
    first, second = (reduced(text, lambda names: names["f"](), 19) for _ in range(2))
    assert first[0] == "seen = []\nseen.append(19)\ndef f():\n    return seen[-1]\n"
    assert first[1].texts == second[1].texts
    assert len(first[1].texts) < 20
