"""The only writer and reader of CSV: no formulas, numbers stay numbers, and every string is read back."""

from __future__ import annotations

import csv
import io

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.csv_text import csv_line, csv_table, text_of_cell

BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def _read(line: str) -> list[str]:
    (row,) = csv.reader(io.StringIO(line, newline=""))
    return row


@pytest.mark.parametrize("begin", BEGINNINGS)
def test_no_cell_begins_a_formula(begin: str) -> None:
    for text in (begin, f"{begin}1+1", f'{begin}cmd|"/c calc"!A0', f"{begin}1,2"):
        if text != "-1,2" or begin != "-":
            assert _read(csv_line([text, "x"])) == [f"'{text}", "x"]


@pytest.mark.parametrize("divider", [";", "\t", ",", "\n"])
def test_no_formula_begins_behind_what_another_spreadsheet_divides_cells_at(divider: str) -> None:
    line = csv_line([f"x{divider}=1+1", "y"])
    assert line == f'"x{divider}=1+1",y\n'
    if divider in ";\t":  # as a spreadsheet set to this divider reads it
        assert next(csv.reader(io.StringIO(line, newline=""), delimiter=divider))[0] == f"x{divider}=1+1,y"


def test_numbers_stay_numbers() -> None:
    assert csv_line([-1, -0.5, -1e-9, 7, None, True, "-2.50", ""]) == "-1,-0.5,-1e-09,7,,True,-2.50,\n"


@examples(300)
@given(st.lists(st.text("'=\uff1d+-@\t\r\n,;\"a1.", max_size=6), min_size=2, max_size=4))
def test_every_text_comes_back(cells: list[str]) -> None:
    row = _read(csv_line(cells))
    assert [text_of_cell(cell) for cell in row] == cells
    for cell, given_text in zip(row, cells, strict=True):
        assert not cell.startswith(BEGINNINGS) or float(given_text) <= 0


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_table_is_read_whatever_ends_its_lines(end: str) -> None:
    lines = (" run , task", 'a,"x\r\ny"', "b", "c,d,e", "")
    columns, rows = csv_table(end.join(lines))
    assert columns == ["run", "task"]
    assert [row["run"] for row in rows] == ["a", "b", "c"]
    assert [row["task"] for row in rows] == ["x\r\ny", None, "d"]
    assert csv_table("") == ([], [])


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), min_size=1))
@examples(100)
def test_what_was_written_is_read_back(cells: list[list[str]]) -> None:
    _, rows = csv_table("".join(map(csv_line, [["a", "b"], *cells])))
    assert [[text_of_cell(row["a"]), text_of_cell(row["b"])] for row in rows] == cells


@pytest.mark.parametrize("text", [f"a,b\nx,{'y' * 131_073}\n", "y" * 131_073])
def test_an_endless_cell_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="it is not CSV"):
        csv_table(text)
