"""Passing repairs of a study are compared with the originals and read without knowing their authors."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders import REPAIR
from unit.sessions.test_study_loading import Held

from gistpoint.core.study.data import MergeDecision
from gistpoint.core.tasks.equivalence import DifferingCall, Equivalence, EquivalenceReport
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.studies.repairs import (
    PassingAttempt,
    compare_attempt,
    journals_of,
    passing_attempts,
    reading_queue,
    record_reading,
)

OTHER = REPAIR.replace("price - price * percent // 100", "price * (100 - percent) // 100")


@dataclass
class FakeTester:
    """Reports that code differs unless it is literally the original's."""

    asked: list[dict[str, Any]] = field(default_factory=list)

    def compare(
        self, original: SourceTree, repaired: SourceTree, environment: object, functions: Collection[str],
        tests: Collection[str], **given: Any,
    ) -> EquivalenceReport:  # fmt: skip
        self.asked.append({"functions": [*functions], "tests": [*tests], **given})
        path = next(iter(functions)).partition("::")[0]
        if original.read(path) == repaired.read(path):
            return EquivalenceReport(Equivalence.EQUIVALENT, recorded=3, varied=20)
        example = DifferingCall(f"{path}::discount", "discount(1, 1)", "1", "0", made_simpler=True)
        return EquivalenceReport(Equivalence.DIFFERS, 3, 20, varied_differing=2, example=example)


def passing(held: Held) -> list[PassingAttempt]:
    held.folder.reload()
    return list(passing_attempts(journals_of(held.folder, held.load().solvers)))


def test_results_of_a_comparison_are_the_attempts_and_go_with_the_person(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    discovery, remove = held.tasks
    same, other = held.attempt("P01", remove), held.attempt("P02", remove, OTHER)
    held.attempt("P01", discovery, REPAIR.replace("100", "99"))
    tester = FakeTester()
    for one in passing(held):
        compare_attempt(held.folder, one, tester)
    data = held.load().data
    found = {result.attempt: (result.verdict, result.inputs, result.example) for result in data.equivalences}
    assert found == {
        same: ("equivalent", 23, ""),
        other: ("differs", 23, "discount(1, 1): 1, not 0"),
    }
    assert all(asked["functions"] == ["shop/prices.py::discount"] for asked in tester.asked)
    held.folder.erase("P02")
    held.folder.reload()
    assert [result.attempt for result in held.load().data.equivalences] == [same]


def test_readers_get_each_change_once_the_originals_among_them(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    _, remove = held.tasks
    same, other = held.attempt("P01", remove), held.attempt("P02", remove, OTHER)
    twice = held.attempt("P03", remove, OTHER)
    queues = {name: reading_queue(held.folder, passing(held), name) for name in "abcdefgh"}
    keys = {tuple(item.repair.key for item in queue) for queue in queues.values()}
    assert len(keys) > 1  # each reader has a different order
    assert {len(queue) for queue in queues.values()} == {2}
    ours, original = sorted(queues["a"], key=lambda item: "- price" in item.repair.replacements[0].code)
    record_reading(held.folder, "reader", ours, MergeDecision.REJECT, "no")
    record_reading(held.folder, "reader", ours, MergeDecision.MERGE_AFTER_CHANGES, "rounding")
    record_reading(held.folder, "reader", original, MergeDecision.MERGE, "")
    readings = held.load().data.readings
    assert {(reading.attempt, reading.decision, reading.reason) for reading in readings} == {
        (other, MergeDecision.MERGE_AFTER_CHANGES, "rounding"),
        (twice, MergeDecision.MERGE_AFTER_CHANGES, "rounding"),
        (same, MergeDecision.MERGE, ""),
        ("", MergeDecision.MERGE, ""),
    }
