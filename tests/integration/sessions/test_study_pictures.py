"""Figures and tables of a study as files for a paper: sizes, grey, one style per solver, words, and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from study_rows import attempt_row, declared, study_data

from gistpoint.core.analysis.findings import (
    Bars,
    Curve,
    Findings,
    FindingsTable,
    Hexagons,
    Matrix,
    Number,
    Plot,
    Points,
    Violins,
)
from gistpoint.core.analysis.naming import in_words
from gistpoint.core.analysis.printing import Extent, extent_of_plot, number_words
from gistpoint.core.analysis.seeing import seen_in
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import ReportChoice
from gistpoint.sessions.exports.study.pictures import csv_of, escaped, latex_table
from gistpoint.sessions.exports.study.registry import StudyExport, study_exporter
from gistpoint.sessions.exports.study.report.figures import draw, rendered
from gistpoint.sessions.exports.study.report.styles import (
    COLOURS,
    GREYS,
    HATCHES,
    Look,
    SeriesStyles,
    colour_of,
    shape_of,
)


def _data(**changes: Any) -> StudyData:
    rows = [attempt_row(p, f"t{n}", (n + ord(p)) % 3 > 0) for p in "ABCD" for n in range(6)]
    rows += [
        attempt_row(task=f"t{n}", solver="model_x", attempt=f"m-{n}", solved=n % 2 == 0) for n in range(6)
    ]
    return study_data(rows, study=declared(report=ReportChoice(analyses=("bp-2",)), **changes))


def test_a_solver_has_one_style_in_all_figures() -> None:
    palette = SeriesStyles.of(_data())
    both = Plot("a", "A", "", "", (Bars("people", ("x",), (1,)), Bars("model_x", ("x",), (1,))))
    alone = Plot("b", "B", "", "", (Curve("model_x, alone", (0, 1), (0, 1)),))
    violins = Plot("c", "C", "", "", (Violins(("model_x", "people"), ((1.0,), (2.0,))),))
    assert palette.numbers(both) == {"people": 0, "model_x": 1}
    assert palette.numbers(alone) == {"model_x, alone": 1}
    assert palette.numbers(violins) == {"people": 0, "model_x": 1}
    dashed = Curve("people, giving up never solves", (0, 1), (0, 1), dashed=True)
    survival = Plot("d", "D", "", "", (Curve("people", (0, 1), (0, 1)), dashed))
    assert set(palette.numbers(survival).values()) == {0}
    other = Plot("e", "E", "", "", (Bars("people", ("x",), (1,)), Bars("people (settings 2)", ("x",), (1,))))
    assert len(set(palette.numbers(other).values())) == 2


def test_no_two_of_the_first_sixty_series_look_alike_in_grey_and_colour() -> None:
    styles = [(COLOURS[number % len(COLOURS)], shape_of(HATCHES, number)) for number in range(60)]
    assert len(set(styles)) == 60
    assert len({shape_of(HATCHES, number) for number in range(8)}) == 8  # so grey is enough for eight


def test_the_mark_of_simulated_data_covers_no_data() -> None:
    plot = Plot("a", "A", "place", "", (Bars("people", ("x",), (1,)),))
    text = draw(plot, Look(simulated=True))
    (height,) = re.findall(r'viewBox="0 0 [0-9.]+ ([0-9.]+)"', text)
    marks = re.findall(r'y="([0-9.]+)"[^>]*>SIMULATED</text>', text)
    (label,) = re.findall(r'y="([0-9.]+)"[^>]*>place</text>', text)
    assert len(marks) == 3
    assert all(float(label) < float(y) - 10 < float(height) for y in marks)
    assert "SIMULATED" not in draw(plot)


def test_figures_come_in_the_widths_of_a_paper(tmp_path: Any) -> None:
    files = dict(study_exporter("figures")(StudyExport(_data())))
    name = "bp-2-all"
    widths = {}
    for folder in ("column", "page"):
        svg = files[f"{folder}/{name}.svg"].decode()
        (width,) = re.findall(r'viewBox="0 0 ([0-9.]+)', svg)
        widths[folder] = float(width) / 72
        assert files[f"{folder}/{name}.pdf"].startswith(b"%PDF")
        assert b"/Type3" not in files[f"{folder}/{name}.pdf"]
    assert widths == {"column": pytest.approx(3.3), "page": pytest.approx(6.9)}
    rows = list(csv.DictReader(io.StringIO(files[f"values/{name}.csv"].decode(), newline="")))
    people = next(row for row in rows if row["series"] == "people")
    assert float(people["y"]) == pytest.approx(16 / 24)
    assert float(people["low"]) < 16 / 24 < float(people["high"])
    again = dict(study_exporter("figures")(StudyExport(_data())))
    assert files == again


def test_files_of_simulated_studies_say_so() -> None:
    data = study_data(
        [attempt_row(p, f"t{n}", simulated=True, actor="simulated") for p in "ABC" for n in range(4)],
        study=declared(simulated=True, report=ReportChoice(analyses=("bp-2",))),
    )
    for format in ("figures", "latex"):
        for name, content in study_exporter(format)(StudyExport(data)):
            assert "SIMULATED-" in name
            if name.endswith((".svg", ".tex")):
                assert b"SIMULATED" in content.split(b"\n", 3)[-1]


def test_tables_for_latex_escape_what_they_contain() -> None:
    number = Number(0.5, 0.25, 0.75, 8, 16, 64)
    rows = (("a & b_#1", number), (r"\input{x}", None), ("[bold]", None), ("*x", None))
    table = FindingsTable("50% of {x}_y", ("solver", "share"), rows)
    text = latex_table(table, Findings(), Extent(8, 16, 64), "t", simulated=True)
    assert r"a \& b\_\#1 & 0.500 {\footnotesize [0.250, 0.750]} \\" in text
    assert r"\textbackslash{}input\{x\} & -- \\" in text
    assert r"\caption{\textbf{SIMULATED} 50\% of \{x\}\_y (8 persons, 16 tasks, 64 attempts).}" in text
    assert "\\\\\n{}[bold] & -- \\\\\n{}*x & --" in text, "they would be arguments of the row above"
    assert escaped("a\x1b~^") == r"a␛\textasciitilde{}\textasciicircum{}"


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize("iid", [None, (0.125, 0.875)])
@pytest.mark.parametrize("bounds", [(None, None), (0.25, 0.75)])
def test_a_number_has_the_same_intervals_in_every_format(
    bounds: tuple[float | None, float | None], iid: tuple[float, float] | None, *, above: bool, below: bool
) -> None:
    """An end that is only known to lie beyond the data is not printed as if it were the bound."""
    above, below = above and bounds[1] is not None, below and bounds[0] is not None
    number = Number(0.5, *bounds, iid=iid, iid_label="Wald", above=above, below=below)
    table = FindingsTable("t", ("who", "share"), (("a", number), ("b", 0.5), ("c", None)))
    upper = "above 0.750" if above else "0.750"
    lower = "below 0.250" if below else "0.250"
    words = [f"[{lower}, {upper}]"] if bounds[0] is not None else []
    words += ["Wald [0.125, 0.875]"] if iid else []
    assert number_words(number) == " ".join(["0.500", *words])
    small = f" {{\\footnotesize {'; '.join(words)}}}" if words else ""
    assert f"a & 0.500{small} \\\\" in latex_table(table, Findings(), Extent(), "t")
    (cells, plain, empty) = csv.DictReader(io.StringIO(csv_of(table).decode()))
    low, high = ("" if below else "0.25", "" if above else "0.75") if bounds[0] is not None else ("", "")
    assert (cells["share"], cells["share, low"], cells["share, high"]) == ("0.5", low, high)
    if iid:
        assert (cells["share, other interval"], cells["share, other high"]) == ("Wald", "0.875")
    else:
        assert "share, other low" not in cells
    assert (plain["share"], empty["share"]) == ("0.5", "")


def test_what_a_figure_shows_is_said_from_its_values() -> None:
    bars = Plot("a", "A", "", "", (Bars("people", ("x", "y"), (0.25, 0.75)), Bars("m", ("x",), (0.5,))))
    assert seen_in(bars) == "The highest value is 0.750 (people: y), the lowest 0.250 (people: x)."
    curve = Plot("b", "B", "minutes", "", (Curve("people", (1, 2, 4), (0.5, float("nan"), 0.25)),))
    assert seen_in(curve) == "From 1 to 4 on the axis of minutes, people falls from 0.500 to 0.250."
    violins = Plot("c", "C", "", "", (Violins(("p", "m"), ((1.0, 3.0), (2.0,))),))
    assert seen_in(violins) == "Medians: p 2.00 (n = 2); m 2.00 (n = 1)."
    points = Plot("d", "D", "x", "y", (Points("p", (1.0,), (2.0,)),))
    assert seen_in(points) == "Y against x: p 2.00 against 1.00."
    assert seen_in(Plot("e", "E", "", "", ())) == ""


def test_names_of_metrics_become_words_and_other_text_stays() -> None:
    assert in_words("code_lines (z)") == "lines of code (z)"
    assert in_words("hard by cyclomatic and degree") == "hard by cyclomatic and degree"
    assert in_words("cyclomatic") == "cyclomatic complexity"
    assert in_words("src/code_lines.py my_code_lines") == "src/code_lines.py my_code_lines"


def test_a_pdf_of_a_plot_has_the_same_bytes_twice() -> None:
    plot = Plot("a", "A", "", "", (Bars("people", ("x",), (1,)),))
    assert rendered(plot, Look(), "pdf") == rendered(plot, Look(), "pdf")


def test_what_is_no_solver_is_grey_and_a_lone_series_of_solvers_has_their_styles() -> None:
    palette = SeriesStyles.of(_data())
    found = Plot("a", "A", "", "", (Bars("found", ("people",), (1,)), Bars("solved", ("people",), (1,))))
    numbers = palette.numbers(found)
    assert {colour_of(number) for number in numbers.values()} <= set(GREYS)
    assert len({colour_of(number) for number in numbers.values()}) == 2
    assert not set(GREYS) & set(COLOURS)
    fidelity = Plot("b", "B", "", "", (Bars("fidelity", ("people", "model_x"), (1, 2)),))
    drawn = draw(fidelity, Look(palette=palette))
    assert all(COLOURS[number].lower() in drawn for number in (0, 1))
    difference = Plot("c", "C", "", "", (Bars("", ("people minus model_x",), (1,)),))
    assert all(colour.lower() not in draw(difference, Look(palette=palette)) for colour in COLOURS[:6])


def test_the_legend_of_lines_has_their_markers() -> None:
    curves = tuple(Curve(name, (0.0, 1.0, 2.0), (0.0, 0.5, 1.0)) for name in ("people", "model_x"))
    marks = draw(Plot("a", "A", "", "", curves), Look(palette=SeriesStyles.of(_data()))).count("<use ")
    ticks = draw(Plot("a", "A", "", "", curves[:1]), Look()).count("<use ")
    assert marks == ticks + 2 * (3 + 1)


def test_a_plot_states_the_counts_of_its_own_attempts() -> None:
    findings = Findings({"people/remove": Number(0.5, persons=12, tasks=60, rows=120)})
    hexagons = Plot("a", "A", "", "", (Hexagons((1.0,), (1.0,), (1.0,)),), counts=(0, 29, 58))
    assert extent_of_plot(hexagons, findings, Extent()).words == "29 tasks, 58 attempts"
    numbers = {
        "people/several/read_file": Number(1.0, persons=1, tasks=1, rows=2),
        "people/remove/read_file": Number(1.0, persons=12, tasks=33, rows=41),
    }
    matrix = Plot("bp-11-several", "A", "", "", (Matrix(("people",), ("read_file",), ((1.0,),)),))
    assert extent_of_plot(matrix, Findings(numbers), Extent()).rows == 2
