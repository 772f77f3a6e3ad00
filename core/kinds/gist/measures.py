"""The measures of a gist and of its command, and the analyses of Gistify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gistpoint.core.attempts.state import Submission
from gistpoint.core.kinds.gist.failures import ErrorCategory
from gistpoint.core.kinds.gist.trace import Difficulty
from gistpoint.core.kinds.measures import Analysis, Measure, MeasureType

_HERE = "gistpoint.core.analysis"
MEASURES = (
    Measure("fidelity", "A gist's execution fidelity, 0 or 1."),
    Measure("line_execution", "A gist's line execution rate.", unit="percent"),
    Measure("line_existence", "A gist's line existence rate.", unit="percent"),
    Measure("test_recall", "The share of the original test's lines that are in the gist.", unit="percent"),
    Measure(
        "test_precision",
        "The share of the gist's test lines that are in the original test.",
        unit="percent",
    ),
    Measure("pass_rate", "The share of the test's instances that pass in the gist.", unit="percent"),
    Measure(
        "instance_fidelity",
        "The fidelity, 0 or 1, of the only instance of the test that the brief named.",
    ),
    Measure(
        "error",
        "The category of a gist's first error.",
        MeasureType.TEXT,
        values=tuple(map(str, ErrorCategory)),
    ),
    Measure("mocked", "Whether a gist fakes the codebase.", MeasureType.YES_NO),
    Measure("gist_flags", "Names of facts that a reader of a gist's score must know.", MeasureType.NAMES),
)
OF_COMMAND = tuple(
    Measure(f"gist_{field.name}", "The figure for the command that a gist reproduces.", metric=field.name)
    for field in fields(Difficulty)
)


def measured(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the measures of a gist, by name, from its score in a journal."""
    given = record.get("flags")
    flags = given if isinstance(given, Mapping) else {}
    return {
        "fidelity": _number(record.get("execution_fidelity")),
        "line_execution": _within(record, "line_execution", "rate"),
        "line_existence": _within(record, "line_existence", "rate"),
        "test_recall": _within(record, "test", "recall"),
        "test_precision": _within(record, "test", "precision"),
        "pass_rate": _percent(record.get("passed"), record.get("instances")),
        "instance_fidelity": _number(_member(record, "instance", "fidelity")),
        "error": _text(_member(record, "error", "category")),
        "mocked": bool(_member(record, "flags", "mocked")),
        "gist_flags": tuple(str(name) for name, value in flags.items() if value),
    }


def _percent(part: object, whole: object) -> float | None:
    """Return a percentage, 0-100; None for a total of 0, or for values that are not integers."""
    if not isinstance(part, int) or not isinstance(whole, int):
        return None
    return 100 * part / whole if whole else None


def is_mocked(submission: Submission) -> bool:
    """Return whether a gist fakes the codebase; such a gist counts for nothing, whatever its run shows."""
    return bool(_member(submission.metrics, "flags", "mocked"))


def _member(record: Mapping[str, Any], name: str, inner: str) -> object:
    value = record.get(name)
    if isinstance(value, Mapping):
        return value.get(inner)
    return None


def _within(record: Mapping[str, Any], name: str, inner: str) -> float | None:
    return _number(_member(record, name, inner))


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


ANALYSES: tuple[Analysis, ...] = (
    Analysis(
        "gi-1",
        "Gists by solver and execution",
        "Gistify, table 1",
        f"{_HERE}.gist_quality:quality",
        "attempts at gists; 3 persons and 3 tasks for an interval",
    ),
    Analysis(
        "gi-2",
        "Errors of gists",
        "Gistify, table 2",
        f"{_HERE}.gist_errors:errors",
        "attempts at gists; 3 persons and 3 tasks for an interval",
    ),
    Analysis(
        "gi-3",
        "Gists by condition",
        "Gistify, table 3",
        f"{_HERE}.gist_quality:conditions",
        "attempts at gists; 3 shared tasks for a difference",
    ),
    Analysis(
        "gi-6",
        "Tests of the gists",
        "Gistify, table 6",
        f"{_HERE}.gist_quality:tests_kept",
        "attempts at gists; 3 persons and 3 tasks for an interval",
    ),
    Analysis(
        "gi-7",
        "Kinds of calls",
        "Gistify, table 7",
        f"{_HERE}.tool_use:kinds_of_calls",
        "recorded calls at gists; 3 persons and 3 tasks for an interval",
    ),
    Analysis(
        "gi-calls",
        "Fidelity against function calls",
        "Gistify, section 4.2",
        f"{_HERE}.gist_difficulty:by_calls",
        "10 tasks and 10 gists of each outcome",
    ),
    Analysis(
        "gi-files",
        "Fidelity against files touched",
        "Gistify, section 4.2",
        f"{_HERE}.gist_difficulty:by_files",
        "10 tasks and 10 gists of each outcome",
    ),
    Analysis(
        "gi-hard",
        "The hard subset",
        "Gistify, section 4.2",
        f"{_HERE}.gist_difficulty:hard_gists",
        "60 tasks with calls and files",
    ),
    Analysis(
        "gi-static",
        "Static against agentic",
        "Gistify, section 4.3",
        f"{_HERE}.gist_arms:static_against_agentic",
        "a condition without tools and one with; 3 shared tasks",
    ),
    Analysis(
        "gi-give-test",
        "Test given or not",
        "Gistify, section 3.4",
        f"{_HERE}.gist_arms:given_test",
        "conditions that differ in `give_test` alone; 3 shared tasks",
    ),
    Analysis(
        "gi-parameter",
        "One parameter named or none",
        "Gistify, appendix A.5",
        f"{_HERE}.gist_arms:named_parameter",
        "conditions that differ in `parameter` alone; 3 shared tasks",
    ),
    Analysis(
        "gi-test-score",
        "Test score and fidelity",
        "Gistify, section 3.4",
        f"{_HERE}.gist_arms:test_score_and_fidelity",
        "10 tasks; 10 solvers for the correlation of their means",
    ),
)
