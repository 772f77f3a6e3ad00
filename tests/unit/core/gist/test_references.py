"""The maker of reference gists: its results if a gist is faithful, if none is, and if it is stopped."""

from __future__ import annotations

import ast
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from gist_tasks import FAITHFUL, FILES, TRACE, FakeEntrypoints, build_gist_task

from gistpoint.core.errors import CancelledError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import ReferenceGist, gist_answer
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.making import is_better
from gistpoint.core.kinds.gist.references import ReferenceMaker
from gistpoint.core.running import CancelToken

UNUSED = "Basket.rates = []\nBasket.rates.append(1)\n"
"""Statements about names that the test needs, although it does not need the statements themselves."""
PATHS = ("shop/prices.py", "tests/test_prices.py")


def judge(folder: Path, **changes: str) -> GistJudge:
    """Return a judge of the tiny task with a trace in which every line of both files ran."""
    files = {
        **FILES,
        **{PATHS[0]: changes.get("shop", FILES[PATHS[0]]), PATHS[1]: changes.get("test", FILES[PATHS[1]])},
    }
    task = build_gist_task(folder, files=files)
    order = [
        [path, node.lineno] for path in PATHS for node in [*ast.parse(files[path]).body, ast.Pass(lineno=0)]
    ]
    lines = {path: list(range(1, len(files[path].splitlines()) + 1)) for path in PATHS}
    answer = gist_answer(read_answer(task))
    assert answer.test is not None
    test = replace(answer.test, source=files[PATHS[1]])
    return GistJudge(
        task, replace(answer, test=test, trace={**TRACE, "order": order, "lines": lines}), FakeEntrypoints()
    )


def test_a_reference_has_its_figures(tmp_path: Path) -> None:
    found = ReferenceMaker(judge(tmp_path, shop=FILES[PATHS[0]] + UNUSED), lambda: 0.0).make()
    assert (found.faithful, found.how, found.line_execution, found.line_existence) == (
        True,
        "needed",
        100,
        100,
    )
    assert ast.dump(ast.parse(found.text)) == ast.dump(ast.parse(FAITHFUL))


def test_without_a_reference_the_limit_and_the_last_failure_are_told(tmp_path: Path) -> None:
    test = FILES[PATHS[1]].replace("    basket =", '    __import__("shop.prices")\n    basket =')
    broken = judge(tmp_path, test=test.replace("== 30", "== 31"))
    found = ReferenceMaker(broken, lambda: 0.0).make()
    assert not found.faithful
    assert found.reason.startswith(
        "The test expects names of modules (tests/test_prices.py:5, 'shop.prices')"
    )
    assert "The last try: " in found.reason


def test_one_that_is_stopped_keeps_what_has_held(tmp_path: Path) -> None:
    token = CancelToken()

    def stop(query: int, _: int) -> None:
        if query == 2:
            token.cancel()

    maker = ReferenceMaker(
        judge(tmp_path, shop=FILES[PATHS[0]] + UNUSED), lambda: 0.0, on_query=stop, cancel=token
    )
    assert maker.make().faithful
    assert maker.queries == 2


def test_one_that_is_stopped_before_any_held_has_nothing(tmp_path: Path) -> None:
    token = CancelToken()
    token.cancel()
    waiting = judge(tmp_path)
    assert isinstance(waiting.runner, FakeEntrypoints)
    waiting.runner.gate = threading.Event()
    with pytest.raises(CancelledError):
        ReferenceMaker(waiting, lambda: 0.0, cancel=token).make()


@pytest.mark.parametrize(
    ("known", "found", "better"),
    [
        (("a\nb", True), ("a", True), False),
        (("a", True), ("a\nb", True), True),
        (("a", True), ("b", True), False),
        (("a\nb", True), ("a", False), True),
        (("a", False), ("a\nb", True), False),
        (("a", False), ("b", False), False),
    ],
)
def test_a_stored_gist_is_replaced_by_one_that_is_not_worse(
    known: tuple[str, bool], found: tuple[str, bool], better: bool
) -> None:
    assert is_better(ReferenceGist(*known), ReferenceGist(*found)) is better
