"""The metrics on the overview of a task under validation, and the list of its tests."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from gistpoint.core.kinds.steadiness import TestSteadiness as Counts
from gistpoint.core.metrics.table import MetricRank
from gistpoint.tui.screens.validate.overview import MAIN_METRICS, _metrics
from gistpoint.tui.screens.validate.tests_page import TestList, TestRow

OTHERS = ("halstead_difficulty_paper", "halstead_volume_paper", "distance_discounted_centrality")


@pytest.mark.parametrize("width", [76, 95, 120, 200])
def test_names_of_metrics_are_whole_at_every_width(width: int) -> None:
    ranks = [MetricRank(name, 12.5, 50.0) for name in (*MAIN_METRICS, *OTHERS)]
    text = "\n".join(line.text for line in _metrics({"shop/prices.py::total": ranks}, width))
    assert "…" not in text
    for name in (*MAIN_METRICS, *OTHERS):
        assert name.replace("_", " ") in text


def test_metrics_in_one_column_have_their_bars_below_each_other() -> None:
    ranks = [MetricRank(name, 12.5, 50.0) for name in (*MAIN_METRICS, *OTHERS)]
    rows = [line.text for line in _metrics({"shop/prices.py::total": ranks}, 70)]
    assert len({row.index("12.5 ") for row in rows if "12.5 " in row}) == 1


def test_tests_that_differ_in_their_parameters_stay_different_in_a_narrow_list() -> None:
    tests = TestList()
    ids = [
        f"tests/test_crates.py::test_crates_are_filled_to_their_limit[weights{n}-lo\\xe5d]" for n in (2, 4)
    ]
    tests.rows = [TestRow(Counts(id, 8, 8, 0, 2), {}) for id in ids]
    drawn = ["".join(text for text, _ in tests.row(number, 56)) for number in (0, 1)]
    assert [cell_len(row) for row in drawn] == [56, 56]
    assert [row.rpartition("[")[2] for row in drawn] == ["weights2-loåd]", "weights4-loåd]"]
