"""A comparison of a repair with the original tries on the repair only the inputs that count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gistpoint.core.tasks.equivalence import Equivalence, EquivalenceReport
from gistpoint.core.trees import SourceTree, write_tar
from gistpoint.sandbox.equivalence import comparing
from gistpoint.sandbox.equivalence.calling import (
    CALL_LIMIT_S,
    FunctionSpan,
    RecordedCalls,
    Replayed,
    ReplayOutcome,
)
from gistpoint.sandbox.equivalence.comparing import _FunctionComparison

SPAN = FunctionSpan("shop.py", "price", 1, 4)
SOURCE = b"def price(n):\n    while n > 40:\n        pass\n    return n\n"
Answer = Callable[[int], ReplayOutcome | None]


@pytest.fixture(autouse=True)
def _fewer_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw fewer inputs, because drawing them takes most of the time."""
    monkeypatch.setattr(comparing, "VARIED", 60)


class _Runs:
    """Answers calls of `price` with a whole number, and records the runs."""

    def __init__(self, trees: dict[int, Answer], reordered: Answer, slowest_s: float) -> None:
        self.trees, self.reordered, self.slowest_s = trees, reordered, slowest_s
        self.made: list[tuple[int, list[Any], float]] = []

    def __call__(
        self,
        tree: SourceTree,
        inputs: Sequence[Any],
        describe: bool = False,
        lines: bool = False,
        limit_s: float = CALL_LIMIT_S,
        budget_s: float | None = None,
        hash_seed: int = 0,
    ) -> Replayed:
        numbers = [7 if isinstance(given, int) else given[0] for given in inputs]
        self.made.append((id(tree), numbers, limit_s))
        whole = [int(n[1]) if isinstance(n, list) and n[0] == "i" else None for n in numbers]
        values = [7 if n == 7 else value for n, value in zip(numbers, whole, strict=True)]
        answers = {
            at: ReplayOutcome("raised", "TypeError: no number", "x") if value is None else answer
            for at, value in enumerate(values)
            if (answer := (self.reordered if hash_seed else self.trees[id(tree)])(value or 0)) is not None
        }
        described: dict[int, Any] = {0: [["i", "7"]]} if describe else {}
        return Replayed(answers, {}, described, "", True, self.slowest_s)


def same(n: int) -> ReplayOutcome:
    """Return the answer of a function that returns its argument, and is late above 40."""
    return ReplayOutcome("late", "no answer in time") if n > 40 else ReplayOutcome("value", str(n), str(n))


def compared(
    tmp_path: Path, repair: Answer, *, reordered: Answer = same, slowest_s: float = 0.001
) -> tuple[EquivalenceReport, _Runs, tuple[int, int]]:
    trees = []
    for name in ("original", "repair"):
        path = tmp_path / f"{name}.tar"
        write_tar(SourceTree(path, {}).with_files({"shop.py": SOURCE}), path)
        trees.append(SourceTree.open(path))
    original, repaired = trees
    runs = _Runs({id(original): same, id(repaired): repair}, reordered, slowest_s)
    calls = RecordedCalls("shop", [1, [], False, False, ["n"]], ["gAFLBy4="])
    report = _FunctionComparison(original, repaired, SPAN, calls, runs).report()
    return report, runs, (id(original), id(repaired))


def test_inputs_that_the_original_does_not_answer_are_tried_once(tmp_path: Path) -> None:
    report, runs, (_, repaired) = compared(tmp_path, same)
    assert report.verdict is Equivalence.EQUIVALENT
    assert report.varied >= 20
    late = [n for tree, numbers, limit in runs.made for n in numbers if _above_40(n)]
    assert late
    assert len(late) == len(set(map(repr, late)))
    assert not [n for tree, numbers, _ in runs.made if tree == repaired for n in numbers if _above_40(n)]


def test_only_varied_calls_of_the_original_have_a_short_limit(tmp_path: Path) -> None:
    _, runs, (original, _) = compared(tmp_path, same, slowest_s=0.05)
    short = [tree for tree, _, limit in runs.made if limit < CALL_LIMIT_S]
    assert short
    assert set(short) == {original}
    assert {limit for _, _, limit in runs.made} == {0.5, CALL_LIMIT_S}


@pytest.mark.parametrize("answered", [0, 3])
def test_what_a_repair_does_not_reach_within_its_budget_is_no_difference(
    tmp_path: Path, answered: int
) -> None:
    report, _, _ = compared(tmp_path, lambda n: same(n) if n == 7 or n <= answered else None)
    assert report.verdict is Equivalence.EQUIVALENT
    assert report.passed_over > 0


def test_a_repair_that_is_late_where_the_original_answers_differs(tmp_path: Path) -> None:
    def late(n: int) -> ReplayOutcome:
        return ReplayOutcome("late", "no answer in time") if n > 30 else same(n)

    report, _, _ = compared(tmp_path, late)
    assert report.verdict is Equivalence.DIFFERS
    assert report.example is not None
    assert report.example.repair == "no answer in time"


def test_an_answer_that_the_original_gives_by_chance_is_no_difference(tmp_path: Path) -> None:
    """Two runs of the original agree, but a third one with the calls in another order does not."""

    def other(n: int) -> ReplayOutcome:
        return ReplayOutcome("value", "?", "?") if n <= 3 else same(n)

    def by_chance(n: int) -> ReplayOutcome:
        return ReplayOutcome("value", "!", "!") if n <= 2 else same(n)

    report, _, _ = compared(tmp_path, other)
    assert report.example is not None
    assert report.example.call == "price(0)"
    report, _, _ = compared(tmp_path, other, reordered=by_chance)
    assert report.example is not None
    assert report.example.call == "price(3)"
    report, _, _ = compared(tmp_path, lambda n: other(n) if n <= 2 else same(n), reordered=by_chance)
    assert report.verdict is Equivalence.EQUIVALENT


def _above_40(number: Any) -> bool:
    return isinstance(number, list) and number[0] == "i" and int(number[1]) > 40
