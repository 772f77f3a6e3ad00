"""A function's rank in its library, calculated by hand, and read back from a task."""

from __future__ import annotations

import pytest

from gistpoint.core.callgraph import build_call_graph
from gistpoint.core.metrics.table import (
    MetricRank,
    measure_functions,
    percentile_rank,
    standings,
    standings_from_json,
)

FILES = {
    "a.py": b"""
def leaf():
    return 1

def middle(x):
    if x:
        return leaf()
    return 2

def top(x):
    for n in range(x):
        if n and x:
            middle(n)
    return leaf()
"""
}


def test_ranks_are_shares_at_or_below() -> None:
    assert percentile_rank([1, 2, 3, 4], 3) == 75
    assert percentile_rank([5, 5, 5], 5) == 100
    assert percentile_rank([1.0, 2], 0.5) == 0
    with pytest.raises(ValueError, match="no values"):
        percentile_rank([], 1)


def test_the_most_complex_function_stands_highest() -> None:
    rows = measure_functions(build_call_graph(FILES), FILES)
    found = standings(rows, ["a.py::top", "a.py::leaf", "a.py::nowhere"])
    assert set(found) == {"a.py::top", "a.py::leaf"}
    by_metric = {name: {s.metric: s for s in standing} for name, standing in found.items()}
    assert by_metric["a.py::top"]["cyclomatic"].percentile == 100
    assert by_metric["a.py::leaf"]["cyclomatic"].percentile == pytest.approx(100 / 3)
    written = {
        name: {s.metric: {"value": s.value, "percentile": s.percentile} for s in standing}
        for name, standing in found.items()
    }
    for metrics in (written, {"functions": written, "population": 3}):
        assert standings_from_json(metrics, "a.py::top") == found["a.py::top"]


def test_plain_numbers_and_nonsense_are_borne() -> None:
    metrics = {
        "f": {"degree": 3, "x": None, "y": "z", "v": {"percentile": 3}, "w": {"value": 1.5}, "b": True}
    }
    assert standings_from_json(metrics, "f") == (MetricRank("degree", 3), MetricRank("w", 1.5))
    assert standings_from_json(metrics, "g") == ()
    assert standings_from_json({"f": [1]}, "f") == ()
