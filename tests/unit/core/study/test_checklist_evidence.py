"""The words for the evidence of the checklist."""

from __future__ import annotations

import pytest

from gistpoint.core.study.checklist_evidence import ComparedHashes


@pytest.mark.parametrize(("equal", "words"), [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks")])
def test_the_number_of_tasks_agrees_with_its_noun(equal: int, words: str) -> None:
    found = ComparedHashes(equal, 1, 0).words
    assert found == f"equal for {words}, unequal for 1, not recorded for 0"
