"""The measures of a repair, and the analyses of Breakpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gistpoint.core.kinds.measures import Analysis, Measure, MeasuredAttempt
from gistpoint.core.tasks.model import Mode

_HERE = "gistpoint.core.analysis"
SEVERAL = "several"
"""The mode, in reports, of a discovery task with several corrupted functions."""
FOUND = Measure("found", "The share of corrupted functions that were edited or submitted, 0 to 1.")
DIAGNOSED = Measure("diagnosed", "The share of corrupted functions that a submission changed, 0 to 1.")
MEASURES = (FOUND, DIAGNOSED)


def searched(mode: str) -> bool:
    """Return whether solvers have to find the corrupted functions, and may replace any function."""
    return mode in (Mode.DISCOVERY, SEVERAL)


def measured(attempt: MeasuredAttempt) -> Mapping[str, Any]:
    """Return the shares of the corrupted functions that were found and changed, by name; empty if unknown."""
    if not attempt.targets:
        return {}
    changed = set[str]()
    for submission in attempt.state.counted_submissions:
        changed.update(submission.changed)
    return {
        FOUND.name: len(attempt.touched) / len(attempt.targets),
        DIAGNOSED.name: len(changed.intersection(attempt.targets)) / len(attempt.targets),
    }


ANALYSES: tuple[Analysis, ...] = (
    Analysis(
        "bp-3a",
        "Success by number of corruptions",
        "Breakpoint, figure 3a",
        f"{_HERE}.corruptions:corruptions",
        "discovery tasks with different numbers of corruptions; for the slope 10 tasks and 10 of each"
        " outcome",
    ),
    Analysis(
        "bp-3b",
        "Success on hard tasks",
        "Breakpoint, figure 3b",
        f"{_HERE}.hard_set:hard_tasks",
        "metrics of tasks and of their libraries; 3 hard tasks and 3 others",
    ),
    Analysis(
        "bp-4",
        "Success against difficulty",
        "Breakpoint, section 4.1.2 and figure 4",
        f"{_HERE}.difficulty:difficulty",
        "metrics of tasks; 10 tasks and 10 of each outcome in a mode; 30 attempts for the map",
    ),
    Analysis(
        "bp-5",
        "Chance of success by difficulty",
        "Breakpoint, figure 5",
        f"{_HERE}.difficulty_curves:solver_curves",
        "metrics of tasks; 10 tasks and 10 of each outcome in a mode",
    ),
    Analysis(
        "bp-6",
        "Finding and repairing",
        "Breakpoint, figure 6",
        f"{_HERE}.diagnosis:diagnosis",
        "attempts at discovery tasks; 3 persons and 3 tasks for an interval",
    ),
    Analysis(
        "bp-7",
        "Success by budget",
        "Breakpoint, figure 7",
        f"{_HERE}.budgets:success_by_budget",
        "conditions that differ in their budgets; 3 shared tasks for a difference",
    ),
    Analysis(
        "bp-8",
        "Success by submission and time",
        "Breakpoint, figure 8",
        f"{_HERE}.budgets:success_by_submission",
        "submissions; 5 solved attempts of people for a curve over time",
    ),
    Analysis(
        "bp-9",
        "Chance of success by difficulty and budget",
        "Breakpoint, figure 9",
        f"{_HERE}.difficulty_curves:budget_curves",
        "conditions that differ in their budgets; 10 tasks and 10 of each outcome in a mode",
    ),
    Analysis(
        "bp-10",
        "Calls for information, and submissions",
        "Breakpoint, figure 10",
        f"{_HERE}.tool_use:information_and_submissions",
        "recorded calls; 3 persons and 3 tasks for an interval",
    ),
    Analysis(
        "bp-11",
        "Calls by tool",
        "Breakpoint, figure 11",
        f"{_HERE}.tool_use:calls_by_tool",
        "recorded calls; 3 persons and 3 tasks for an interval",
    ),
    Analysis(
        "bp-12",
        "Correlations of metrics",
        "Breakpoint, figure 12",
        f"{_HERE}.correlations:metric_correlations",
        "10 tasks of a mode with metrics",
    ),
    Analysis(
        "bp-13",
        "Solved tasks by budget",
        "Breakpoint, section 4.2.3 and figure 13",
        f"{_HERE}.solved_tasks:solved_by_budgets",
        "conditions that differ in their budgets; 5 tasks solved under each",
    ),
    Analysis(
        "bp-14",
        "Solved tasks by solver",
        "Breakpoint, section 4.2.2 and figure 14",
        f"{_HERE}.solved_tasks:solved_by_solvers",
        "5 tasks solved by each of two solvers",
    ),
)
