"""Gists broken and padded by hand have the rates that a separate count of their lines gives."""

from __future__ import annotations

import ast
import contextlib
import io
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest
from examples import sampled
from small_gists import FILES, HONEST, STUB, TESTED, Prepared, error_of
from working_backends import on_one_backend

from gistpoint.core.kinds.gist.score import GistScore

Line = tuple[str, str]
"""The name of a block, and the text of a statement's header in it."""


def statements(body: list[ast.stmt], block: str = "") -> Iterator[tuple[Line, ast.stmt | ast.expr]]:
    """Yield the block, the header and the node of every statement, without bare strings, and decorator."""
    for one in body:
        if (
            isinstance(one, ast.Expr)
            and isinstance(one.value, ast.Constant)
            and isinstance(one.value.value, str)
        ):
            continue
        decorators: list[ast.expr] = getattr(one, "decorator_list", [])
        own = isinstance(one, (ast.FunctionDef, ast.ClassDef))
        within = (
            f"{block}.{one.name}".strip(".") if isinstance(one, (ast.FunctionDef, ast.ClassDef)) else block
        )
        for decorator in decorators:
            yield (within, f"@{ast.unparse(decorator)}"), decorator
        text = ast.unparse(one).split("\n")[len(decorators)]
        yield (within if own else block, text), one
        for part in ("body", "orelse", "finalbody"):
            yield from statements(getattr(one, part, []), within)


def spread(gist: str) -> ast.Module:
    """Return the gist's tree with one statement per line."""
    return ast.parse(ast.unparse(ast.parse(gist)))


def reckoned_existence(gist: str) -> float:
    """Return the share of the distinct lines that exist in the codebase, in percent."""
    there = {line for text in FILES.values() for line, _ in statements(ast.parse(text).body)}
    found = {line for line, _ in statements(spread(gist).body)}
    return 100 * len(found & there) / len(found)


def reckoned_execution(gist: str, sides: tuple[int, ...]) -> float:
    """Return the percentage of the distinct lines that run when the module is loaded and its test called.

    The test is called with each of `sides`. Lines with `pass` do not count.
    """
    text = ast.unparse(ast.parse(gist))
    seen: set[int] = set()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != "<reckoned>":
            return None
        if event in ("line", "call"):
            seen.add(frame.f_lineno)
        return trace

    names: dict[str, Any] = {"__name__": "reckoned"}
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, "<reckoned>", "exec"), names)
            for side in sides:
                with contextlib.suppress(Exception, pytest.fail.Exception):
                    names["test_area"](side)
    finally:
        sys.settrace(before)
    counted: dict[Line, bool] = {}
    for line, node in statements(ast.parse(text).body):
        if not isinstance(node, ast.Pass):
            counted[line] = counted.get(line, False) or node.lineno in seen
    return 100 * sum(counted.values()) / len(counted)


def changed(old: str, new: str) -> str:
    assert old in HONEST
    return HONEST.replace(old, new)


BROKEN = {
    "another result": (changed("return side * side", "return 0"), "assertion"),
    "a result off by one": (changed("return side * side", "return side * side + 1"), "assertion"),
    "no result": (changed("    return side * side\n", ""), "assertion"),
    "right for one instance": (changed("return side * side", "return 4"), "assertion"),
    "no check": (changed("    if side < 0:\n        raise BadShape(side)\n", ""), "assertion"),
    "a check that never holds": (changed("side < 0", "side < -9"), "assertion"),
    "another exception": (changed("raise BadShape(side)", "raise KeyError(side)"), "exception"),
    "a name that is missing": (changed("print(", "prints("), "exception"),
    "no function": (
        "import pytest\n\n\nclass BadShape(ValueError):\n    pass\n" + STUB.replace("import pytest\n", ""),
        "exception",
    ),
    "a skipped test": (HONEST + "pytestmark = pytest.mark.skip\n", "wrong_outcome"),
}
PADDED: dict[str, str] = {
    "a line of its own again": HONEST + "import pytest\n" * 50,
    "the same on one line": HONEST + "; ".join(["import pytest"] * 50) + "\n",
    "a function twice": HONEST + "\n\n" + HONEST[HONEST.index("def area") : HONEST.index("@pytest")],
    "comments and blank lines": HONEST.replace("\n", "  # a line\n\n"),
    "statements folded": changed('print("area of", side)\n    return', 'print("area of", side); return'),
    "a line of the codebase": HONEST + "import sys\n",
    "an invented line": HONEST + "value = 1\n",
    "an invented line fifty times": HONEST + "value = 1\n" * 50,
    "an invented function that never runs": HONEST
    + "\n\ndef idle(side):\n    value = side\n    return value\n",
    "invented lines in a function": changed("    print(", "    side = side\n    value = side\n    print("),
}


@on_one_backend
@pytest.mark.parametrize("name", sampled(BROKEN, 2))
def test_a_broken_gist_has_fidelity_0_and_the_rates_of_its_lines(name: str, judge: Prepared) -> None:
    gist, error = BROKEN[name]
    judgement = judge(TESTED).judge(gist, thorough=False)
    assert (judgement.score.execution_fidelity, error_of(judgement)) == (0, error)
    check_rates(gist, judgement.score, () if error == "wrong_outcome" else (2, 3))


@on_one_backend
@pytest.mark.parametrize("name", sampled(PADDED, 2))
def test_a_padded_gist_is_faithful_and_has_the_rates_of_its_distinct_lines(
    name: str, judge: Prepared
) -> None:
    score = judge(TESTED).judge(PADDED[name], thorough=False).score
    assert score.execution_fidelity == 1
    check_rates(PADDED[name], score, (2, 3))


def check_rates(gist: str, score: GistScore, sides: tuple[int, ...]) -> None:
    assert score.existence
    assert score.execution
    assert score.existence.rate == pytest.approx(reckoned_existence(gist))
    assert score.execution.rate == pytest.approx(reckoned_execution(gist, sides))
