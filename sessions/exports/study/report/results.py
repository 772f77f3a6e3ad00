"""The numbers of a report by key, as JSON for scripts."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict
from typing import Any

from gistpoint.core.analysis.findings import Findings, Number, Value
from gistpoint.core.analysis.running import PRIMARY, RanAnalysis
from gistpoint.sessions.exports.study.report.report import StudyReport

SCHEMA = "gistpoint.study-results/1"


def results(report: StudyReport) -> dict[str, Any]:
    """Return a report as JSON values: its facts, numbers, tables, plots, notes and checklist.

    The key of a number is the analysis's id and the number's own key, such as `bp-2/people/remove/all`. Under
    `cells`, every number in a table also has a key. Values have full precision; infinite ones and NaN are
    null.
    """
    return {
        "study": report.data.study.id,
        "simulated": report.simulated,
        "primary": PRIMARY,
        "facts": dict(report.facts),
        "numbers": {key: number for one in report.ran for key, number in numbers_of(one).items()},
        "cells": {key: value for one in report.ran for key, value in cells_of(one).items()},
        "analyses": [_analysis(one) for one in report.ran],
        "checklist": [
            {
                "number": answer.item.number,
                "title": answer.item.title,
                "answer": answer.answer,
                "evidence": answer.evidence,
            }
            for answer in report.checklist
        ],
        "problems": list(report.data.problems),
    }


def numbers_of(ran: RanAnalysis) -> dict[str, Any]:
    """Return an analysis's numbers by their full keys."""
    return {f"{ran.analysis.id}/{key}": _number(number) for key, number in ran.findings.numbers.items()}


def cells_of(ran: RanAnalysis) -> dict[str, Any]:
    """Return the numbers in the cells of an analysis's tables, by table, words of the row, and column.

    A key is, for example, `bp-4/Metric x mode/people/code_lines x discovery/remove/p (Wald)`. If several rows
    of a table have the same words, the row's number, counted from 1, follows them.
    """
    found: dict[str, Any] = {}
    for table in ran.findings.tables:
        names = ["/".join(cell for cell in row if isinstance(cell, str) and cell) for row in table.rows]
        times = Counter(names)
        for place, (name, row) in enumerate(zip(names, table.rows, strict=True), 1):
            words = [ran.analysis.id, table.title, name, str(place) if times[name] > 1 or not name else ""]
            start = "/".join(filter(None, words))
            for column, cell in zip(table.columns, row, strict=True):
                if isinstance(cell, Number | float | int):
                    found[f"{start}/{column}"] = _cell(cell)
    return found


def _analysis(ran: RanAnalysis) -> dict[str, Any]:
    analysis, findings = ran.analysis, ran.findings
    return {
        "id": analysis.id,
        "title": analysis.title,
        "paper": analysis.paper,
        "failed": ran.failed,
        "not_estimated": [shortfall.words for shortfall in findings.not_estimated],
        "tables": _tables(findings),
        "plots": [_clean(asdict(plot)) for plot in findings.plots],
        "notes": list(findings.notes),
    }


def _tables(findings: Findings) -> list[dict[str, Any]]:
    return [
        {
            "title": table.title,
            "columns": list(table.columns),
            "rows": [[_cell(cell) for cell in row] for row in table.rows],
            "note": table.note,
        }
        for table in findings.tables
    ]


def _cell(cell: Number | Value) -> Any:
    return _number(cell) if isinstance(cell, Number) else _clean(cell)


def _number(number: Number) -> dict[str, Any]:
    found: dict[str, Any] = _clean(asdict(number))
    return found


def _clean(value: Any) -> Any:
    """Return a value as JSON values; infinite numbers and NaN become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
