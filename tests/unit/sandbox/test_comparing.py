"""A comparison tries a repair with all inputs that count, and with no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
RECORDED = 7
LATE = ReplayOutcome("late", "no answer in time")
Answer = Callable[[int], ReplayOutcome | None]


@pytest.fixture(autouse=True)
def _fewer_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw fewer inputs, because drawing them takes most of the time."""
    monkeypatch.setattr(comparing, "VARIED", 60)


def same(n: int) -> ReplayOutcome:
    """Return the answer of a function that returns its argument, and is late above 40."""
    return LATE if n > 40 else answering(str(n))


def answering(text: str) -> ReplayOutcome:
    return ReplayOutcome("value", text, text)


def _number(given: Any) -> int | None:
    """Return the argument of `price` in an input; None if it is no whole number."""
    if isinstance(given, int):
        return RECORDED
    kind, *content = given[0]
    return int(content[0]) if kind == "i" else None


@dataclass
class _Run:
    of_repair: bool
    numbers: list[int | None]
    limit_s: float
    budget_s: float | None


@dataclass
class _Runs:
    """Answers calls to `price`, and records the runs."""

    repair: Answer
    traced: Answer
    """The answers of the repair while lines are recorded."""
    reordered: Answer
    """The answers of the original to the differing calls in reverse order."""
    problem: str = ""
    slowest_s: float = 0.001
    finished: bool = True
    timed_out: bool = False
    """Whether runs of the repair that record lines reach their time limit."""
    repaired: SourceTree | None = None
    original: Answer = same
    made: list[_Run] = field(default_factory=list)

    def __call__(
        self,
        tree: SourceTree,
        inputs: Sequence[Any],
        describe: bool = False,
        lines: str = "",
        limit_s: float = CALL_LIMIT_S,
        budget_s: float | None = None,
    ) -> Replayed:
        of_repair, numbers = tree is self.repaired, list(map(_number, inputs))
        self.made.append(_Run(of_repair, numbers, limit_s, budget_s))
        is_first = describe or budget_s is not None
        of_original = self.original if is_first or lines else self.reordered
        answer = (self.traced if lines else self.repair) if of_repair else of_original
        refused = ReplayOutcome("raised", "TypeError: no number", "x")
        found = {at: refused if n is None else answer(n) for at, n in enumerate(numbers)}
        answers = {at: outcome for at, outcome in found.items() if outcome is not None}
        described: dict[int, Any] = {0: [["i", str(RECORDED)]]} if describe else {}
        problem = self.problem if of_repair else ""
        is_cut = self.timed_out and of_repair and lines
        return Replayed(answers, {}, described, problem, self.finished, self.slowest_s, is_cut)


def compared(
    folder: Path,
    repair: Answer,
    *,
    traced: Answer | None = None,
    reordered: Answer = same,
    source: bytes = SOURCE,
    target: FunctionSpan = SPAN,
    recorded: int = 1,
    **known: Any,
) -> tuple[EquivalenceReport, list[_Run]]:
    trees = []
    for name, text in (("original", SOURCE), ("repair", source)):
        path = folder / f"{name}.tar"
        write_tar(SourceTree(path, {}).with_files({"shop.py": text}), path)
        trees.append(SourceTree.open(path))
    runs = _Runs(repair, traced or repair, reordered, repaired=trees[1], **known)
    calls = RecordedCalls("shop", [1, [], False, False, ["n"]], ["gAFLBy4="] * recorded)
    report = _FunctionComparison(trees[0], trees[1], SPAN, calls, runs, target).report()
    return report, runs.made


def test_inputs_that_the_original_does_not_answer_are_tried_once(tmp_path: Path) -> None:
    report, runs = compared(tmp_path, same)
    assert report.verdict is Equivalence.EQUIVALENT
    assert report.varied >= 20
    late = [n for run in runs for n in run.numbers if n is not None and n > 40]
    assert late
    assert len(late) == len(set(late))
    assert not [n for run in runs if run.of_repair for n in run.numbers if n is None or n > 40]


def test_only_varied_calls_of_the_original_have_a_short_limit_and_a_budget(tmp_path: Path) -> None:
    _, runs = compared(tmp_path, same, slowest_s=0.05)
    assert {(run.of_repair, run.limit_s, run.budget_s) for run in runs} == {
        (False, CALL_LIMIT_S, None),
        (False, 0.5, 10.0),
        (True, CALL_LIMIT_S, None),
    }


def test_recorded_calls_of_a_caller_have_a_budget_too(tmp_path: Path) -> None:
    target = FunctionSpan("shop.py", "cost", 5, 6)
    first = [compared(tmp_path, same, target=chosen)[1][0].budget_s for chosen in (SPAN, target)]
    assert first == [None, 5.0]


@pytest.mark.parametrize("target", [SPAN, FunctionSpan("shop.py", "cost", 5, 6)])
def test_a_caller_without_a_recorded_call_that_counts_is_not_varied(
    tmp_path: Path, target: FunctionSpan
) -> None:
    def lost(n: int) -> ReplayOutcome:
        return ReplayOutcome("lost", "no name") if n == RECORDED else same(n)

    report, runs = compared(tmp_path, same, original=lost, target=target)
    is_varied = any(set(run.numbers) != {RECORDED} for run in runs)
    assert (report.verdict is Equivalence.NOT_COMPARABLE, is_varied) == ((target != SPAN), (target == SPAN))


def test_recorded_calls_that_are_not_reached_are_not_repeated(tmp_path: Path) -> None:
    def spent(n: int) -> ReplayOutcome | None:
        reached.append(n)
        return same(n) if len(reached) <= 2 else None

    reached: list[int] = []
    report, runs = compared(tmp_path, same, original=spent, recorded=5)
    assert report.passed_over >= 3
    of_repair = [run.numbers for run in runs if run.of_repair and run.numbers[0] == RECORDED]
    assert of_repair[0] == [RECORDED] * 2


def test_calls_have_the_usual_limit_if_it_is_unknown_how_long_they_take(tmp_path: Path) -> None:
    _, runs = compared(tmp_path, same, finished=False, slowest_s=0.0)
    assert {run.limit_s for run in runs} == {CALL_LIMIT_S}


@pytest.mark.parametrize("problem", ["", "ImportError: no pytest"])
@pytest.mark.parametrize("answered", [-1, 3, RECORDED])
def test_what_a_repair_leaves_unanswered_differs(tmp_path: Path, answered: int, problem: str) -> None:
    """Only the repair's own process reports that it has finished."""
    report, _ = compared(tmp_path, lambda n: same(n) if n <= answered else None, problem=problem)
    assert report.verdict is Equivalence.DIFFERS


def test_a_slow_repair_is_tried_with_as_many_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick, _ = compared(tmp_path, same)
    now = [0.0]
    monkeypatch.setattr(comparing, "monotonic", lambda: now[0])

    def slow(n: int) -> ReplayOutcome:
        now[0] += 5
        return same(n)

    report, _ = compared(tmp_path, slow)
    assert report.varied == quick.varied


def test_inputs_are_not_varied_again_if_the_original_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, quick = compared(tmp_path, same)
    clock = iter(range(1_000))
    monkeypatch.setattr(comparing, "monotonic", lambda: 10.0 * next(clock))
    _, slow = compared(tmp_path, same)
    assert len(slow) < len(quick)


def test_a_repair_that_is_late_where_the_original_answers_differs(tmp_path: Path) -> None:
    report, _ = compared(tmp_path, lambda n: LATE if n > 30 else same(n))
    assert report.verdict is Equivalence.DIFFERS
    assert report.example is not None
    assert report.example.repair == "no answer in time"


def test_calls_that_are_late_only_while_lines_are_recorded_are_repeated(tmp_path: Path) -> None:
    report, _ = compared(tmp_path, same, traced=lambda n: same(n) if n == RECORDED else LATE)
    assert report.verdict is Equivalence.EQUIVALENT
    assert report.varied >= 20


def test_calls_that_a_run_with_lines_does_not_reach_in_time_are_repeated(tmp_path: Path) -> None:
    def traced(n: int) -> ReplayOutcome | None:
        return same(n) if n <= RECORDED else None

    report, _ = compared(tmp_path, same, traced=traced, timed_out=True)
    assert report.verdict is Equivalence.EQUIVALENT
    assert report.varied >= 20
    report, _ = compared(tmp_path, same, traced=traced)
    assert report.verdict is Equivalence.DIFFERS


def test_an_answer_that_the_original_gives_by_chance_is_no_difference(tmp_path: Path) -> None:
    """Two runs of the original agree, but a third one with the calls in another order does not."""

    def other(n: int) -> ReplayOutcome:
        return answering("?") if n <= 3 else same(n)

    def by_chance(n: int) -> ReplayOutcome:
        return answering("!") if n <= 2 else same(n)

    def shown(repair: Answer, **known: Any) -> str:
        example = compared(tmp_path, repair, **known)[0].example
        return example.call if example is not None else ""

    assert shown(other) == "price(0)"
    assert shown(other, reordered=by_chance) == "price(3)"
    assert not shown(lambda n: other(n) if n <= 2 else same(n), reordered=by_chance)


def test_a_difference_stays_if_the_original_does_not_answer_again(tmp_path: Path) -> None:
    report, _ = compared(tmp_path, lambda n: answering("?"), reordered=lambda n: None)
    assert report.verdict is Equivalence.DIFFERS


def test_the_words_of_an_exception_do_not_make_an_answer_unsteady() -> None:
    first, second = (ReplayOutcome("raised", f"ValueError: no {at}", "h") for at in ("0x1", "0x2"))
    assert comparing._steady(first, second) is first
    assert comparing._steady(first, ReplayOutcome("raised", "ValueError: no 0x1", "other")) is None
    assert comparing._steady(answering("[]"), ReplayOutcome("value", "[]", "[]", is_given=True)) is None
    assert comparing._steady(LATE, LATE) is None


@pytest.mark.parametrize("by_statement", [True, False])
def test_what_a_statement_refuses_differs_only_if_the_repair_answers(
    tmp_path: Path, by_statement: bool
) -> None:
    refused = ReplayOutcome("raised", "ValueError: negative", "v", is_refusal=by_statement)
    otherwise = ReplayOutcome("raised", "TypeError: negative", "t")

    def refusing(n: int, answer: ReplayOutcome = refused) -> ReplayOutcome:
        return answer if n < 0 else same(n)

    def verdict(repair: Answer) -> Equivalence:
        return compared(tmp_path, repair, original=refusing, reordered=refusing)[0].verdict

    assert verdict(refusing) is Equivalence.EQUIVALENT
    assert verdict(lambda n: refusing(n, otherwise)) is Equivalence.EQUIVALENT
    assert verdict(same) is (Equivalence.DIFFERS if by_statement else Equivalence.EQUIVALENT)


PLANTED = [["r", "PlantedError"]]


def raising(name: str, *, calls: bool = True, arguments: str = "") -> ReplayOutcome:
    return ReplayOutcome("raised", f"{name}: ", f"{name} {arguments}", name, calls_planted=calls)


@pytest.mark.parametrize(
    ("original", "repair", "differs"),
    [
        (raising("PlantedError"), raising("PlantedError"), False),
        (raising("PlantedError"), raising("PlantedError", arguments="half changed"), False),
        (raising("PlantedError"), raising("ValueError"), True),
        (raising("ValueError"), raising("PlantedError"), True),
        (raising("ValueError", calls=False), raising("PlantedError"), False),
        (raising("PlantedError"), raising("ValueError", calls=False), False),
        (raising("ValueError"), raising("TypeError"), False),
    ],
)
def test_an_exception_that_only_one_version_lets_through_differs_if_both_call_the_function(
    tmp_path: Path, original: ReplayOutcome, repair: ReplayOutcome, differs: bool
) -> None:
    path = tmp_path / "tree.tar"
    write_tar(SourceTree(path, {}).with_files({"shop.py": SOURCE}), path)
    tree = SourceTree.open(path)
    calls = RecordedCalls("shop", [1, [], False, False, ["n"]], ["gAFLBy4="])
    comparison = _FunctionComparison(tree, tree, SPAN, calls, lambda *_, **__: Replayed(), SPAN)
    found = comparison._is_compared(PLANTED, False, original, repair)
    pair = comparing._Pair(PLANTED, 0, original, repair, False)
    assert (found and pair.differs) is differs


def test_literals_of_a_repair_take_no_place_from_the_originals_inputs(tmp_path: Path) -> None:
    literals = [5003, *range(6000, 9000, 50)]
    crowded = SOURCE.replace(b"return n", b"return n if n not in %r else n" % literals)

    def tried(source: bytes) -> list[list[int | None]]:
        runs = compared(tmp_path, same, source=source)[1]
        return [run.numbers for run in runs if run.budget_s is not None]

    plain, full = tried(SOURCE), tried(crowded)
    assert {39, 40, 41} <= set(plain[0])
    assert full[0] == plain[0]
    assert 5003 in full[1]
