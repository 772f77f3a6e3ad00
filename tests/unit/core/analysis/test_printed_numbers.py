"""The table of the numbers printed in both papers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from breakpoint_records import record_of
from studies.printed_numbers import (
    AGREES,
    NOT_HERE,
    TABLE_1,
    WRONG,
    PrintedNumber,
    breakpoint_data,
    part_of,
    printed_numbers,
    wholes,
)


def row(rows: list[PrintedNumber], what: str) -> PrintedNumber:
    (found,) = (one for one in rows if one.what == what)
    return found


def test_every_number_is_computed_and_agrees_or_says_why_not() -> None:
    rows = printed_numbers()
    assert all(one.why for one in rows)
    assert not [one for one in rows if one.why.startswith(WRONG)]
    assert row(rows, "McFadden R2, both").ours == "0.2208"
    assert row(rows, "p of harmonic beside the other").ours == "LR 23.7, z 4.87, p 1.1e-06"
    assert row(rows, "p of code lines beside the other").ours.startswith("LR 201.5")
    assert row(rows, "solved tasks behind p .019 and r .21").ours == "N 125"
    assert row(rows, "missing test, GPT-5-mini").ours == "74.2 of 97"
    assert row(rows, "tasks of the hard subset").ours.startswith("30 + 28 + 6 = 64")
    assert row(rows, "p of r .76 of test score and fidelity").ours.startswith("0.0107 for n = 10")


def test_twenty_one_of_24_fidelities_are_parts_of_150() -> None:
    cells = [value for one in TABLE_1.values() for value in one[:2]]
    assert len(cells) == 24
    assert sorted({value for value in cells if part_of(value, 150) is None}) == [17.1, 30.9, 51.0]
    assert [part_of(value, 150) for value in (24.0, 54.0, 38.7, 55.3, 58.7, 60.7, 61.3)] == [
        36,
        81,
        58,
        83,
        88,
        91,
        92,
    ]
    assert wholes(14.6, 50)[0] == 48


def test_the_public_data_set_is_read_where_it_is(tmp_path: Path) -> None:
    """Without the data set, the rows contain a note; with it, they contain the values of its records."""
    assert all(one.ours == NOT_HERE for one in breakpoint_data(None))
    assert all(one.ours == NOT_HERE for one in breakpoint_data(tmp_path))
    made = []
    for n in range(1, 9):
        source = (
            b"def f(a):\n"
            + b"".join(b"    a = a + %d if a else a\n" % k for k in range(n))
            + b"    return a\n"
        )
        one = record_of(source, "shop/f.py", "f", url="https://github.com/some/shop", commit=f"{n:040x}")
        centrality = one["complexity_info"]["centrality"]
        centrality |= {"harmonic": n / 10, "distance_discount": -n, "degree": 1 + n, "in_degree": n}
        made.append(one)
    (tmp_path / "remove-data.json").write_text(json.dumps(made))
    rows = {one.what: one for one in breakpoint_data(tmp_path)}
    assert rows["tasks"].ours == "8"
    assert rows["r of degree and in_degree"].ours == "1.000 on 8"
    assert rows["r of harmonic and distance_discount"].why.startswith("differs by more")
    assert rows["r of code_line_count and cyclomatic"].ours == "1.000 on 8"


@pytest.mark.parametrize("start", [AGREES, *WRONG])
def test_reasons_are_told_apart_by_how_they_begin(start: str) -> None:
    assert sum(start.startswith(other) for other in (AGREES, *WRONG)) == 1
