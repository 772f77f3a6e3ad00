"""A gist's score as it is journalled and exported: numbers, error, flags, and what speaks against its fidelity."""

from __future__ import annotations

from typing import Any

from gistpoint.core.gist.execution import ExecutionReport
from gistpoint.core.gist.existence import ExistenceReport
from gistpoint.core.gist.score import GistScore
from gistpoint.core.text import bounded

_DIFFERENCES, _CHARACTERS = 10, 2_000


def score_record(score: GistScore) -> dict[str, Any]:
    """Return a score fit for JSON; rates are 0-100, and None where they do not apply or could not be measured.

    `paper` in a rate holds the figures as the paper counts lines. A record without it was written before lines alike
    counted once: all of its figures are the paper's.
    """
    fidelity, test, error = score.fidelity, score.test, score.error
    return {
        "execution_fidelity": score.execution_fidelity,
        "self_contained": score.self_contained,
        "passed": fidelity.passed if fidelity else 0,
        "instances": fidelity.instances if fidelity else 0,
        "line_execution": _execution(score.execution) if score.execution else None,
        "line_existence": _existence(score.existence) if score.existence else None,
        "test": {"recall": test.recall, "precision": test.precision, "f1": test.f1} if test else None,
        "error": {"category": error.category.value, "kind": error.kind.value, "evidence": _cut(error.evidence)}
        if error
        else None,
        "flags": {name: getattr(score.flags, name) for name in score.flags.__slots__},
        "differences": [
            {"test": one.test, "what": one.what, "expected": _cut(one.expected), "found": _cut(one.found)}
            for one in (fidelity.differences[:_DIFFERENCES] if fidelity else ())
        ],
    }


def _cut(text: str) -> str:
    return bounded(text, _CHARACTERS)


def _execution(report: ExecutionReport) -> dict[str, Any]:
    counted = {"executed": report.executed, "executable": report.executable}
    paper = {"executed": report.paper.part, "executable": report.paper.whole}
    return {**_rates(report), **counted, "paper": {**_paper(report), **paper}}


def _existence(report: ExistenceReport) -> dict[str, Any]:
    counted = {"existing": report.existing, "lines": report.counted, "glue": len(report.glue)}
    paper = {"existing": report.paper.part, "lines": report.paper.whole}
    return {**_rates(report), **counted, "paper": {**_paper(report), **paper}}


def _rates(report: ExecutionReport | ExistenceReport) -> dict[str, Any]:
    return {"rate": report.rate, "rate_without_test": report.rate_without_test}


def _paper(report: ExecutionReport | ExistenceReport) -> dict[str, Any]:
    return {"rate": report.paper.rate, "rate_without_test": report.paper_without_test.rate}
