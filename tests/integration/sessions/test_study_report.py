"""The report: one page without scripts or links, in which everything external is plain text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from study_rows import World, attempt_row, declared, study_data

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
    Shortfall,
    Violins,
)
from gistpoint.core.analysis.running import RanAnalysis
from gistpoint.core.kinds.measures import Analysis
from gistpoint.core.study.declaration import Protocol, StudyTask
from gistpoint.sessions.exports.study.report.figures import draw
from gistpoint.sessions.exports.study.report.html import POLICY, page
from gistpoint.sessions.exports.study.report.report import StudyReport
from gistpoint.sessions.exports.study.report.results import results
from gistpoint.sessions.exports.study.report.styles import Look, SeriesStyles

EVIL = '</title><script src="http://evil.test/x.js">alert(1)</script><img src=x onerror=y>&\u202e\x1b[31m$\\frac{1}{0}$'
PLOTS = (
    Plot("bp-2", "Rate", "mode", "share", (Bars("people", ("a", "b"), (0.5, None), (0.4, None), (0.6, None)),)),
    Plot("many", EVIL, EVIL, EVIL, (Bars(EVIL, tuple(f"{EVIL}{n}" for n in range(9)), (1.0,) * 9),)),
    Plot(
        "time-km", "Time", "minutes", "share",
        (Curve("a", (0, 1, 2), (1, 0.5, 0), steps=True),
         Curve("_b", (0, 1), (1, 0.7), (0.9, 0.6), (1, 0.8), dashed=True)),
        at_risk={"a": (3, 2), "_b": (4, 1)}, risk_times=(0, 1),
    ),
    Plot("bp-10", "P", "x", "y", (Points(EVIL, (1, 2), (3, float("nan")), (2, 1), (4, 2), (EVIL, "b")),), log_x=True),
    Plot("bp-4", "H", "x", "y", (Hexagons((1, 2, 3), (1, 2, 3), (0, 1, 1)), Curve("line", (1, 3), (3, 1)))),
    Plot("bp-12", "M", "", "", (Matrix((EVIL, "b"), ("c", "d"), ((1, None), (-0.5, 0.2)), ((4, 0), (3, 3))),)),
    Plot("bp-13", "V", "", "y", (Violins((EVIL, "b"), ((1, 2, 3, 4, 5, 9), (2,))),)),
    Plot("nothing", "N", "x", "y", ()),
)  # fmt: skip


class Tags(HTMLParser):
    """The tags and attributes of a page, and whether they are closed in order."""

    VOID = frozenset({"meta", "br", "!doctype"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self.open and tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def evil_report(simulated: bool) -> StudyReport:
    number = Number(0.5, 0.4, 0.6, 8, 16, 64, (0.45, 0.55), EVIL)
    findings = Findings(
        {EVIL: number},
        (FindingsTable(EVIL, (EVIL, "b"), ((number, EVIL), (None, 3)), EVIL),),
        PLOTS,
        (EVIL,),
        (Shortfall(EVIL, "tasks", 10, 7),),
    )
    data = study_data(
        [attempt_row("P1", EVIL, simulated=simulated, source=EVIL, mode=EVIL, end=EVIL, backend=EVIL)],
        study=declared(
            title=EVIL,
            simulated=simulated,
            protocol=Protocol(question=EVIL, hypotheses=(EVIL,), power=EVIL),
            checklist={"1.9": EVIL},
        ),
        tasks={EVIL: StudyTask(id=EVIL, mode=EVIL, source=EVIL)},
        problems=(EVIL,),
    )
    return StudyReport(
        data,
        (
            RanAnalysis(Analysis("primary", EVIL, EVIL, ""), findings),
            RanAnalysis(Analysis("bad", "Bad", "", ""), failed=EVIL),
            RanAnalysis(Analysis("none", "No data", "", "")),
        ),
    )


@pytest.fixture(scope="module")
def simulated_page() -> str:
    return "".join(page(evil_report(simulated=True)))


@pytest.fixture(scope="module")
def real_page() -> str:
    return "".join(page(evil_report(simulated=False)))


def test_no_text_from_outside_becomes_markup(real_page: str) -> None:
    found = Tags(real_page)
    assert found.open == []
    assert not {"script", "img", "iframe", "link", "object", "image", "a:href"} & set(found.tags)
    assert {name for name, _ in found.attributes if name.startswith("on")} == set()
    linked = {value for name, value in found.attributes if name in ("href", "src", "xlink:href")}
    assert all((value or "").startswith("#") for value in linked)
    assert "\u202e" not in real_page
    assert "\x1b" not in real_page
    assert not any("http" in (value or "") for name, value in found.attributes if name != "xmlns")


def test_its_ids_are_its_own_and_its_links_lead_somewhere(real_page: str) -> None:
    found = Tags(real_page)
    repeated = {identity for identity in found.ids if found.ids.count(identity) > 1}
    assert repeated == set()
    assert {(v or "")[1:] for n, v in found.attributes if n == "href"} <= set(found.ids)


def test_the_policy_allows_neither_scripts_nor_the_network(real_page: str) -> None:
    assert POLICY == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    found = Tags(real_page)
    assert ("content", POLICY) in found.attributes


def test_simulated_is_said_on_the_page_in_each_figure_and_caption(
    simulated_page: str, real_page: str
) -> None:
    assert "SIMULATED" not in real_page
    figures = re.findall(r"<figure>.*?</figure>", simulated_page, re.DOTALL)
    assert len(figures) == len(PLOTS)
    for figure in figures:
        drawing, _, caption = figure.partition("<figcaption>")
        assert re.search(r"<text [^>]*>SIMULATED</text>", drawing)
        assert "SIMULATED" in caption
    captions = re.findall(r"<caption>.*?</caption>", simulated_page, re.DOTALL)
    assert len(captions) == 5
    assert all("SIMULATED" in caption for caption in captions)
    assert '<p class="banner">SIMULATED.' in simulated_page
    assert "<title>SIMULATED: " in simulated_page


def test_tables_and_figures_tell_persons_and_tasks(real_page: str) -> None:
    for caption in re.findall(r"<(?:fig)?caption>.*?</(?:fig)?caption>", real_page, re.DOTALL):
        assert re.search(r"\d+ persons?, \d+ tasks?", caption)


def test_what_failed_or_is_missing_is_said(real_page: str) -> None:
    assert "is not estimated: it needs at least 10 tasks, and there are 7." in real_page
    assert "This analysis failed: " in real_page
    assert "Without data in this study: No data." in real_page
    assert (
        real_page.index('class="box wrong"')
        < real_page.index('id="confirmatory"')
        < real_page.index('id="exploratory"')
    )
    assert real_page.index("Still to be filled in") < real_page.index("<h3>All items</h3>")


def test_a_primary_analysis_without_data_is_not_a_heading_alone() -> None:
    report = StudyReport(study_data(), (RanAnalysis(Analysis("primary", "P", "", "")),))
    text = "".join(page(report))
    assert "There is no attempt that counts to estimate it from." in text
    assert "Without data in this study" not in text


def test_the_same_figure_has_the_same_bytes(simulated_page: str) -> None:
    look = Look(palette=SeriesStyles.of(evil_report(simulated=True).data), simulated=True)
    assert all(draw(plot, look) in simulated_page for plot in PLOTS)


def test_a_figure_that_can_not_be_drawn_is_told() -> None:
    broken = Plot("x", "X", "", "", (Matrix(("a", "b"), ("c",), ((1,), (1, 2))),))
    report = StudyReport(study_data(), (RanAnalysis(Analysis("a", "A", "", ""), Findings(plots=(broken,))),))
    assert "This figure could not be drawn" in "".join(page(report))


def test_every_number_has_its_key_in_the_results() -> None:
    report = evil_report(simulated=True)
    found: dict[str, Any] = json.loads(json.dumps(results(report), allow_nan=False))
    assert found["simulated"] is True
    assert found["numbers"][f"primary/{EVIL}"]["value"] == 0.5
    assert found["analyses"][0]["tables"][0]["rows"][0][0]["iid"] == [0.45, 0.55]
    assert found["analyses"][0]["plots"][3]["marks"][0]["y"] == [3, None]
    assert len(found["checklist"]) == 71
    assert found["facts"]["attempts/counted"] == 1
    assert found["facts"]["packages/matplotlib"]


def test_a_study_is_reported_from_its_rows() -> None:
    from gistpoint.core.analysis.running import chosen, run_analyses

    data = World(people=8, tasks=8, per_person=4, model_rate=0.5).data(5)
    text = "".join(page(StudyReport(data, run_analyses(data, chosen(["bp-2"])))))
    assert "12 persons" not in text
    assert "up to 8 persons, 8 tasks, 32 attempts)" in text
    assert "Share solved" in text
