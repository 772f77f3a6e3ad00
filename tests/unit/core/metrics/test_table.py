"""The table of functions: rows, order, CSV and the hard set."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.callgraph import build_call_graph
from gistpoint.core.metrics.bars import MetricBar, MetricEnd, at_bars
from gistpoint.core.metrics.table import (
    COLUMNS,
    ColumnError,
    FunctionMetrics,
    measure_functions,
    percentile,
    rows_to_csv,
    sort_rows,
)

FILES = {
    "m.py": b"""
def main():
    for x in (1, 2):
        if x:
            step(x)
            leaf()

def step(x):
    leaf()

def leaf():
    pass

class C:
    def m(self):
        main()

main()
""",
}


def rows() -> list[FunctionMetrics]:
    return measure_functions(build_call_graph(FILES), FILES)


def names(items: list[FunctionMetrics]) -> list[str]:
    return [item.function.removeprefix("m.py::") for item in items]


def test_every_function_has_a_row_and_module_code_has_none() -> None:
    assert names(rows()) == ["main", "step", "leaf", "C.m"]
    leaf = rows()[2]
    assert [leaf.cell(column) for column in ("in_degree", "out_degree", "line", "code_lines")] == [
        2,
        0,
        11,
        2,
    ]


def test_sorting() -> None:
    assert names(sort_rows(rows(), "in_degree")) == ["leaf", "main", "step", "C.m"]
    assert names(sort_rows(rows(), "function", descending=False)) == ["C.m", "leaf", "main", "step"]
    assert names(sort_rows(rows(), "eigenvector")) == ["C.m", "leaf", "main", "step"]


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(ColumnError):
        sort_rows(rows(), "colour")


def test_csv_holds_every_column_and_reads_back() -> None:
    read = list(csv.DictReader(io.StringIO(rows_to_csv(rows()))))
    assert list(read[0]) == list(COLUMNS)
    assert [row["function"] for row in read] == [row.function for row in rows()]
    assert float(read[0]["harmonic_out"]) == rows()[0].cell("harmonic_out")
    assert read[0]["eigenvector"] == ""


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0, 100))
def test_the_percentile_lies_between_its_neighbours(values: list[float], percent: float) -> None:
    found = percentile(values, percent)
    assert min(values) - 1e-6 <= found <= max(values) + 1e-6
    assert percentile(values, 0) == min(values)
    assert percentile(values, 100) == max(values)


def test_the_percentile_is_linear() -> None:
    assert percentile([1, 2, 3, 4], 90) == pytest.approx(3.7)
    assert percentile([10], 90) == 10
    with pytest.raises(ValueError, match="no values"):
        percentile([], 90)


def test_the_hard_set_is_taken_among_candidates_alone() -> None:
    everything = rows()
    assert names(at_bars(everything)) == ["main"]
    assert names(at_bars(everything[1:])) == ["step", "leaf"]
    assert names(at_bars(everything, [MetricBar("in_degree"), MetricBar("harmonic_in_raw")], 90)) == ["leaf"]
    assert names(at_bars(everything, [MetricBar("in_degree", MetricEnd.LOW)])) == ["C.m"]
    assert at_bars([]) == []
