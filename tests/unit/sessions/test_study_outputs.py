"""One study in every output: page, LaTeX, CSV, JSON, terminal, tidy tables and progress give equal numbers."""

from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser
from typing import Any

import pytest
from study_rows import World, attempt_row, declared, study_data

from gistpoint.core.analysis.catalogue import analyses
from gistpoint.core.analysis.findings import Findings, FindingsTable, Number
from gistpoint.core.analysis.naming import in_words
from gistpoint.core.analysis.printing import Extent, iid_words, interval_words, number_words, value_words
from gistpoint.core.analysis.running import RanAnalysis, run_analyses
from gistpoint.core.kinds.measures import Analysis
from gistpoint.core.study.data import ReviewDecision, ReviewerDecision, StudyData
from gistpoint.core.study.declaration import Condition, DeclaredSolver, Quality, Training
from gistpoint.core.study.progress import study_progress
from gistpoint.core.study.rows import FlagRow
from gistpoint.sessions.exports.study.pictures import csv_of, escaped, latex_table
from gistpoint.sessions.exports.study.registry import StudyExport, study_exporter
from gistpoint.sessions.exports.study.report.html import page
from gistpoint.sessions.exports.study.report.report import StudyReport
from gistpoint.sessions.exports.study.report.results import results
from gistpoint.tui.commands.study_report import _cell


def a_study() -> StudyData:
    """Return a study with training, exclusions, unlike reviewers, a thin condition, and runs without result."""
    world = World(
        people=10, tasks=14, per_person=12, cap=25.0, assisted=True, metric_slope=0.5, model_rate=0.5
    )
    rows, metrics = world.rows(3)
    kinds = list(ReviewDecision)
    decisions = tuple(
        ReviewerDecision(row.attempt, name, kinds[place * n // 3 % 3], 60.0 if place % 9 == n else None)
        for place, row in enumerate(rows)
        if not row.solver
        for n, name in enumerate(("anna", "Bert"), 1)
    )
    uncounted: dict[str, Any] = {"counted": False, "solved": False}
    flag = (FlagRow(flag="exposed"),)
    rows += [
        attempt_row("P01", "practice", counted=False, exclusion="role_training", role="training"),
        attempt_row("P02", "t001", attempt="u1", exclusion="unfinished", end="", **uncounted),
        attempt_row(
            "P03", "t002", attempt="u2", exclusion="infrastructure", end="infrastructure", **uncounted
        ),
        attempt_row("P04", "t003", attempt="u3", exclusion="exposed", flags=flag, **uncounted),
        *(attempt_row("P05", f"t{n:03}", n > 1, condition="third") for n in range(1, 4)),
        attempt_row(task="practice", solver="model-x", exclusion="training_task", **uncounted),
        attempt_row(task="t001", solver="model-x", attempt="u4", exclusion="no_verdict", end="", **uncounted),
    ]
    study = declared(
        condition=(Condition(id="alone"), Condition(id="assisted"), Condition(id="third")),
        training=Training(tasks=("practice",)),
        quality=Quality(exclude_on=("exposed",)),
        solver=(DeclaredSolver(name="model-x", runs=("runs/*",), condition="alone"),),
    )
    return study_data(rows, study=study, metrics=metrics, decisions=decisions)


@pytest.fixture(scope="module")
def report() -> StudyReport:
    data = a_study()
    return StudyReport(data, run_analyses(data, [one for one in analyses() if one.id != "time-mixed"]))


class Cells(HTMLParser):
    """The cells of the tables in the sections of analyses, by rows, without footnotes and extents."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._section = self._cell = False
        self._mute = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "section":
            self._section = True
        if not self._section:
            return
        if tag == "tbody":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag == "td":
            self._cell = True
            self.tables[-1][-1].append("")
        elif tag == "sup":
            self._mute += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "section":
            self._section = False
        elif tag == "td":
            self._cell = False
        elif tag == "sup" and self._section:
            self._mute -= 1

    def handle_data(self, data: str) -> None:
        if self._cell and not self._mute:
            self.tables[-1][-1][-1] += data


def tables_of(report: StudyReport) -> list[tuple[RanAnalysis, FindingsTable]]:
    ordered = [*report.confirmatory, *report.exploratory]
    return [(ran, table) for ran in ordered if ran.printed for table in ran.findings.printed_tables]


def words_of(number: Number) -> list[str]:
    return [
        words
        for words in (value_words(number.value), interval_words(number), iid_words(number))
        if words and words != "–"
    ]


def test_every_cell_is_the_same_in_every_output(report: StudyReport) -> None:
    shown = Cells("".join(page(report))).tables
    found = json.loads(json.dumps(results(report)))
    tables = tables_of(report)
    assert len(shown) == len(tables) > 20
    whole = {(one["id"], table["title"]): table for one in found["analyses"] for table in one["tables"]}
    for (ran, table), on_page in zip(tables, shown, strict=True):
        in_json = whole[ran.analysis.id, table.title]
        tex = latex_table(table, ran.findings, Extent(), "x")
        in_csv = list(csv.DictReader(io.StringIO(csv_of(table).decode(), newline="")))
        for place, row in enumerate(table.rows):
            for column, cell, html, value in zip(
                table.columns, row, on_page[place], in_json["rows"][place], strict=True
            ):
                if isinstance(cell, Number):
                    assert (value["value"], value["low"], value["high"]) == (cell.value, cell.low, cell.high)
                    for words in words_of(cell):
                        assert words in html
                        assert escaped(words) in tex
                        assert words in _cell(cell) == number_words(cell)
                    bounds = (None if cell.below else cell.low, None if cell.above else cell.high)
                    cells = [in_csv[place][f"{column}{end}"] for end in ("", ", low", ", high")]
                    assert [float(one) if one else None for one in cells] == [cell.value, *bounds]
                else:
                    assert value == cell
                    assert in_words(value_words(cell)) in html
                    assert in_csv[place][column] == ("" if cell is None else str(cell))


def test_every_number_of_a_table_has_a_key(report: StudyReport) -> None:
    cells = results(report)["cells"]
    numeric = [
        cell
        for _, table in tables_of(report)
        for row in table.rows
        for cell in row
        if isinstance(cell, Number | float | int)
    ]
    assert len(cells) == len(numeric) > 300
    assert cells["bp-2/Solved, by solver and mode/people, third/remove/attempts"] == 3
    assert cells["bp-2/Solved, by solver and mode/people, third/remove/share, all tasks"]["value"] is None


def test_numbers_without_a_table_are_in_every_output() -> None:
    number = Number(0.25, 0.125, 0.5, tasks=4)
    ran = RanAnalysis(Analysis("x", "X", "", ""), Findings({"a/b": number}))
    (table,) = ran.findings.printed_tables
    (shown,) = Cells("".join(page(StudyReport(study_data(), (ran,))))).tables
    assert shown == [["a/b", "0.250 [0.125, 0.500]"]]
    assert "0.250" in latex_table(table, ran.findings, Extent(), "x")
    assert b"0.25,0.125,0.5" in csv_of(table)


def test_the_same_quantity_has_one_value_in_all_analyses_and_exports(report: StudyReport) -> None:
    data, facts = report.data, report.facts
    numbers = {
        f"{ran.analysis.id}/{key}": one for ran in report.ran for key, one in ran.findings.numbers.items()
    }

    def value(key: str) -> float | None:
        return numbers[key].value

    files = dict(study_exporter("tidy")(StudyExport(data, {}, {})))

    def tidy(name: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(files[f"{name}.csv"].decode(), newline="")))

    people = [row for row in data.rows if not row.solver]
    progress = study_progress(data.study, data.tasks, data.ledger, people)
    attempts = [row for row in tidy("attempts") if row["participant"]]
    counted = [row for row in attempts if row["counted"] == "true"]
    main = [row for row in attempts if row["role"] != "training"]
    assert (
        facts["attempts/counted"]
        == value("flow/counted")
        == len(counted)
        == sum(task.counted for task in progress.tasks)
        == progress.pace.attempts
        == sum(int(row["attempts"]) for row in tidy("tasks"))
        == 123
    )
    assert (
        facts["attempts/solved"]
        == sum(row["solved"] == "true" for row in counted)
        == sum(task.solved for task in progress.tasks)
        == sum(int(row["solved"]) for row in tidy("tasks"))
    )
    assert facts["attempts/people"] == value("flow/attempts of people") == len(main)
    assert (
        facts["attempts/excluded"]
        == value("flow/not counted")
        == sum(bool(row["exclusion"]) for row in main)
        == sum(number.value or 0 for key, number in numbers.items() if "flow/not counted because/" in key)
        == 3
    )
    assert facts["attempts/training"] == value("flow/training attempts") == len(attempts) - len(main) == 1
    assert (
        facts["tasks/number"]
        == len(progress.tasks)
        == sum(row["training"] == "false" for row in tidy("tasks"))
    )
    (model,) = tidy("solvers")
    own = [row for row in data.rows if row.solver and row.counted]
    assert facts["solvers/model-x/attempts"] == facts["attempts/models"] == int(model["counted"]) == len(own)
    assert facts["solvers/model-x/tasks"] == int(model["tasks"]) == len({row.task for row in own})
    alone = numbers["bp-2/people, alone/remove/all"]
    again = numbers["bp-4.4/people, alone/remove/solved"]
    assert (alone.value, alone.low, alone.high, alone.iid) == (again.value, again.low, again.high, again.iid)
    thin = [numbers[key] for key in ("bp-2/people, third/remove/all", "bp-4.4/people, third/remove/solved")]
    assert {(number.value, number.low, number.note) for number in thin} == {
        (None, None, "2 of 3: no rate from fewer than 5 attempts")
    }


def test_kappa_can_be_computed_from_the_tidy_table(report: StudyReport) -> None:
    files = dict(study_exporter("tidy")(StudyExport(report.data, {}, {})))
    by_reviewer: dict[str, dict[str, str]] = {}
    for row in csv.DictReader(io.StringIO(files["decisions.csv"].decode(), newline="")):
        by_reviewer.setdefault(row["reviewer"], {})[row["attempt"]] = row["decision"]
    one, other = (by_reviewer[name] for name in sorted(by_reviewer))
    shared = sorted(one.keys() & other.keys())
    agreed = sum(one[key] == other[key] for key in shared) / len(shared)
    of = {name: [sum(given[key] == name for key in shared) / len(shared) for given in (one, other)]
          for name in ReviewDecision}  # fmt: skip
    chance = sum(a * b for a, b in of.values())
    (ran,) = (ran for ran in report.ran if ran.analysis.id == "agreement")
    number = ran.findings.numbers["R1 and R2"]
    assert number.value == pytest.approx((agreed - chance) / (1 - chance))
    cells = results(report)["cells"]
    assert cells["agreement/Agreement of reviewers on attempts/R1 and R2/kappa"]["value"] == number.value
    assert cells["agreement/Agreement of reviewers on attempts/R1 and R2/share agreed"] == pytest.approx(
        agreed
    )
