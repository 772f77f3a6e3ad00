"""Charts of an attempt as lines: times, budgets, and the score of each submission."""

from __future__ import annotations

from gistpoint.core.attempts.clock import ClockActivity
from gistpoint.core.attempts.state import AttemptState, Submission
from gistpoint.core.readable import duration
from gistpoint.sessions.attempt_summary import ListedScore
from gistpoint.tui.widgets.charts import Bar, bar_lines, gauge, sparkline
from gistpoint.tui.widgets.line_list import HEADING, MUTED, Line

_TIMES: tuple[tuple[ClockActivity, str, str], ...] = (
    (ClockActivity.READING, "reading", "$secondary"),
    (ClockActivity.EXPLORING, "exploring", "$primary"),
    (ClockActivity.EDITING, "editing", "$accent"),
    (ClockActivity.THINKING, "thinking", "$accent"),
    (ClockActivity.WAITING, "waiting", "$warning"),
    (ClockActivity.PAUSED, "paused", "$foreground 60%"),
    (ClockActivity.IDLE, "idle", "$foreground 60%"),
)
_WIDEST = 60
"""The maximum number of cells that a chart takes with its names and numbers."""
_GAUGE_WIDTH = 20
_SHORTEST_MS = 1000


def score_cell(submission: Submission | ListedScore | None) -> str:
    """Return the score of a submission as text; a dash if there is no submission."""
    if submission is None:
        return "–"
    return f"{submission.score or 0:.0f}" if submission.metrics else f"{submission.score or 0:.3f}"


def time_lines(state: AttemptState, width: int, title: str, *, apart: bool = False) -> list[Line]:
    """Return a heading and, for each activity that took at least a second, a bar.

    `apart` adds the times when the program was closed or the machine was asleep.
    """
    clock = state.clock
    spans = [(word, clock.of(activity), style) for activity, word, style in _TIMES]
    if apart:
        spans += [
            ("closed", clock.away, "$foreground 60%"),
            ("asleep", clock.asleep, "$foreground 60%"),
        ]
    drawn = [Bar(word, ms, duration(ms), style) for word, ms, style in spans if ms >= _SHORTEST_MS]
    head = Line(((f" {title}  ", HEADING), (f"{duration(clock.active)} of work", MUTED)))
    if not drawn:
        return [Line(), head]
    return [Line(), head, *(Line((("  ", ""), *row)) for row in bar_lines(drawn, min(_WIDEST, width - 4)))]


def score_lines(state: AttemptState) -> list[Line]:
    """Return a chart with the scores of the submissions that count; empty if there are none."""
    made = state.counted_submissions
    if not made:
        return []
    values = "  ".join(score_cell(submission) for submission in made)
    drawn = sparkline([submission.score or 0.0 for submission in made], top=1.0)
    chart = Line((("  ", ""), (drawn, "$success"), (f"   {values}", MUTED)))
    return [Line(), Line(((" Score by submission", HEADING),)), chart]


def budget_lines(state: AttemptState) -> list[Line]:
    """Return the used part of each budget, as bars and numbers."""
    budgets, left = state.budgets, state.remaining
    rows = [(f"{state.of_kind.unit}s", budgets.tool_uses - left.tool_uses, budgets.tool_uses)]
    if not state.of_kind.hands_in_once:
        rows.append(("submissions", budgets.submissions - left.submissions, budgets.submissions))
    names = max(len(name) for name, _, _ in rows)
    wide = max(min(_GAUGE_WIDTH, total) for _, _, total in rows)
    return [
        Line(),
        Line(((" Budgets", HEADING),)),
        *(
            Line(
                (
                    (f"  {name:<{names}} ", ""),
                    (gauge(used, total, min(_GAUGE_WIDTH, total)).ljust(wide), "$primary"),
                    (f" {used} used of {total}", MUTED),
                )
            )
            for name, used, total in rows
        ),
    ]
