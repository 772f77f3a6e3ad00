"""The catalogue of analyses, each with its id, title, place in a paper, and the data that it needs."""

from __future__ import annotations

from gistpoint.core.kinds.measures import Analysis
from gistpoint.core.kinds.registry import all_kinds

_HERE = "gistpoint.core.analysis"
_FIRST: tuple[Analysis, ...] = (
    Analysis(
        "primary",
        "The primary analysis",
        "",
        f"{_HERE}.primary:primary_findings",
        "counted attempts; for times, 10 solved ones",
    ),
    Analysis(
        "bp-2",
        "Share solved by solver and mode",
        "Breakpoint, figure 2",
        f"{_HERE}.rates:solve_rates",
        "counted attempts; 3 persons and 3 tasks for an interval",
    ),
)
_LAST: tuple[Analysis, ...] = (
    Analysis(
        "bp-4.4",
        "Evaluation by people",
        "Breakpoint, section 4.4",
        f"{_HERE}.evaluation:evaluation_by_people",
        "counted attempts of people",
    ),
    Analysis(
        "time-km",
        "Times to solve",
        "",
        f"{_HERE}.survival:curves",
        "5 solved attempts of people in a mode and condition",
    ),
    Analysis(
        "time-tasks",
        "Minutes of each task",
        "",
        f"{_HERE}.tasktimes:times_of_tasks",
        "attempts of people; for the log-normal median 10 solved ones, for the Kaplan-Meier median 5"
        " solved ones at the task",
    ),
    Analysis(
        "time-ratio",
        "Ratios of times",
        "",
        f"{_HERE}.timeratios:time_ratios",
        "10 solved attempts, and tasks attempted in both conditions",
    ),
    Analysis(
        "time-mode",
        "Ratios of times by mode",
        "Breakpoint, section 4.4",
        f"{_HERE}.timeratios:ratios_by_mode",
        "two conditions and two modes; 10 solved attempts",
    ),
    Analysis(
        "order",
        "Position, learning and carry-over",
        "",
        f"{_HERE}.order:effects_of_order",
        "attempts of people with positions; 10 solved ones, for shares also 10 not solved",
    ),
    Analysis(
        "time-cox",
        "Rates of solving",
        "",
        f"{_HERE}.cox:proportional_hazards",
        "two conditions, 10 solved attempts, tasks attempted in both",
    ),
    Analysis(
        "time-mixed",
        "Spread of persons and tasks",
        "",
        f"{_HERE}.mixed:mixed_times",
        "10 solved attempts of 3 persons at 3 tasks",
    ),
    Analysis(
        "explore",
        "Exploration and success",
        "",
        f"{_HERE}.exploring:exploration",
        "calls; 10 tasks and 10 of each outcome",
    ),
    Analysis(
        "pass-k",
        "Repeated runs",
        "",
        f"{_HERE}.repeats:repeated_runs",
        "a model with several runs of 3 tasks",
    ),
    Analysis(
        "versus",
        "People minus model",
        "",
        f"{_HERE}.versus:people_and_models",
        "people and a model on the same tasks; 3 persons and 3 tasks for an interval",
    ),
    Analysis(
        "models",
        "Differences between models",
        "Miller 2024",
        f"{_HERE}.model_pairs:differences_of_models",
        "two models on the same 3 tasks; 5 libraries for an interval over libraries",
    ),
    Analysis(
        "horizon",
        "Time horizons",
        "Kwa et al. 2025",
        f"{_HERE}.horizon:horizons",
        "a model on 10 tasks that people solved, with both outcomes",
    ),
    Analysis(
        "beyond-tests",
        "Beyond the tests",
        "",
        f"{_HERE}.beyond:beyond_tests",
        "repairs compared with the original, or read blind",
    ),
    Analysis(
        "forecast",
        "Forecasts and impressions",
        "",
        f"{_HERE}.forecasts:forecasts",
        "answers after the brief or after the task; 10 tasks for the correlation",
    ),
    Analysis(
        "sensitivity",
        "The primary estimate under other decisions",
        "",
        f"{_HERE}.primary:sensitivity",
        "a primary estimate",
    ),
    Analysis(
        "agreement",
        "Agreement of reviewers",
        "",
        f"{_HERE}.reviewing:agreement_of_reviewers",
        "10 attempts that two reviewers decided on",
    ),
    Analysis(
        "flow", "Flow of participants and attempts", "", f"{_HERE}.flow:participant_flow", "anybody enrolled"
    ),
)


def analyses() -> tuple[Analysis, ...]:
    """Return every analysis in the report's order, with those of the kinds of task in the middle."""
    return (*_FIRST, *(own for kind in all_kinds() for own in kind.analyses), *_LAST)


def analysis(identity: str) -> Analysis | None:
    """Return the analysis with this id; None if there is none."""
    return next((known for known in analyses() if known.id == identity), None)
