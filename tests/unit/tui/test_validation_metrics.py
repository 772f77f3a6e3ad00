"""The metrics on the overview of a task under validation."""

from __future__ import annotations

import pytest

from gistpoint.core.metrics.table import MetricRank
from gistpoint.tui.screens.validate.overview import MAIN_METRICS, _metrics

OTHERS = ("halstead_difficulty_paper", "halstead_volume_paper", "distance_discounted_centrality")


@pytest.mark.parametrize("width", [76, 95, 120, 200])
def test_names_of_metrics_are_whole_at_every_width(width: int) -> None:
    ranks = [MetricRank(name, 12.5, 50.0) for name in (*MAIN_METRICS, *OTHERS)]
    text = "\n".join(line.text for line in _metrics({"shop/prices.py::total": ranks}, width))
    assert "…" not in text
    for name in (*MAIN_METRICS, *OTHERS):
        assert name.replace("_", " ") in text
