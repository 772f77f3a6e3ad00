"""The numbers of a report by key, as JSON for scripts."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from gistpoint.core.analysis.findings import Findings, Number, Value
from gistpoint.core.analysis.running import PRIMARY, RanAnalysis
from gistpoint.sessions.exports.study.report.report import StudyReport

SCHEMA = "gistpoint.study-results/1"


def results(report: StudyReport) -> dict[str, Any]:
    """Return a report as JSON values: its facts, numbers, tables, plots, notes and checklist.

    The key of a number is the analysis's id and the number's own key, such as `bp-2/people/remove/all`.
    Values have full precision; infinite ones and NaN are null.
    """
    return {
        "study": report.data.study.id,
        "simulated": report.simulated,
        "primary": PRIMARY,
        "facts": dict(report.facts),
        "numbers": {key: number for one in report.ran for key, number in numbers_of(one).items()},
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
