"""The page on the papers' figures and tables names analyses, keys, templates and commands that exist, all of them."""

from __future__ import annotations

import re

import pytest
from project_files import ROOT

from gistpoint.core.analysis.catalogue import analyses
from gistpoint.core.study.declaration import Condition
from gistpoint.sessions.studies.folder import StudyTemplate

PAGE = (ROOT / "docs/guide/papers.md").read_text(encoding="utf-8")
OF_PAPERS = {one.id for one in analyses() if one.id.startswith(("bp-", "gi-"))}
BREAKPOINT, _, GISTIFY = PAGE.partition("## Gistify")
FIGURES_OF_BREAKPOINT, FIGURES_OF_GISTIFY, TABLES_OF_GISTIFY = (
    range(1, 15),
    (1, 2, *range(5, 17)),
    range(1, 8),
)
"""Gistify calls its figures 3 and 4 by the number of their section."""


def _rows(part: str) -> list[list[str]]:
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in part.splitlines()
        if line.startswith("| ")
    ]
    return [row for row in rows if row[0] not in ("in the paper", "---")]


def _numbers(kind: str, part: str) -> set[int]:
    """Return the numbers of the figures or tables that the first cells name, such as `figures 7 to 10`."""
    found: set[int] = set()
    for cell, *_ in _rows(part):
        for first, between, last in re.findall(rf"{kind}s? (\d+)(?: (to|and) (\d+))?", cell):
            found.update(range(int(first), int(last or first) + 1) if between == "to" else (int(first),))
            found.update((int(last),) if last else ())
    return found


def test_every_analysis_of_the_papers_is_listed_and_every_listed_one_exists() -> None:
    listed = {one for row in _rows(PAGE) for one in re.findall(r"`((?:bp|gi)-[\w.-]+)`", row[1])}
    assert listed == OF_PAPERS


@pytest.mark.parametrize(
    ("kind", "part", "numbers"),
    [
        ("figure", BREAKPOINT, FIGURES_OF_BREAKPOINT),
        ("figure", GISTIFY, FIGURES_OF_GISTIFY),
        ("table", GISTIFY, TABLES_OF_GISTIFY),
    ],
)
def test_every_figure_and_table_of_the_papers_has_a_row(kind: str, part: str, numbers: range) -> None:
    assert _numbers(kind, part) == set(numbers)


def test_each_row_says_what_to_do() -> None:
    assert all(len(row) == 4 and all(row) for row in _rows(PAGE))


def test_templates_and_keys_of_conditions_that_are_named_exist() -> None:
    templates = set(re.findall(r"template `([a-z]+)`", PAGE))
    assert templates
    assert templates <= {one.value for one in StudyTemplate}
    keys = {"tool_uses", "submissions", "strategy", "tools", "give_test", "parameter"}
    assert keys <= set(Condition.__struct_fields__)
    assert all(f"`{key}" in PAGE for key in keys)
