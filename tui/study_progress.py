"""The progress of a study as columns and text, for the screen and for the printed table."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.core.readable import duration, utc_day, utc_minute
from gistpoint.core.study.declaration import Study
from gistpoint.core.study.exclusions import exclusion_words
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.operations import StudyOperationKind
from gistpoint.core.study.progress import ActivePerson, PeopleProgress, StudyProgress, TaskCoverage
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.tasks.names import word_name
from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.studies.monitoring import Alert
from gistpoint.tui import signs
from gistpoint.tui.tables import Column

HIDDEN = "hidden until closed"
_BLOCKS = f" {signs.EIGHTHS_ACROSS}"
_BAR = 5
_NOT_BEGUN = 3
"""The maximum number of people who have not begun that are named."""


def bar(number: int, target: int) -> str:
    """Return the progress towards a target, as a bar of five cells and a fraction."""
    eighths = min(number * 8 * _BAR // max(1, target), 8 * _BAR)
    whole, rest = divmod(eighths, 8)
    drawn = signs.BLOCK * whole + (_BLOCKS[rest] if rest else "")
    return f"{drawn:<{_BAR}} {number}/{target}"


def _median(row: TaskCoverage) -> str:
    return "" if row.median_s is None else duration(round(row.median_s * 1000))


_BY_TESTS: Column[TaskCoverage] = Column(
    "by tests", lambda row: str(row.by_tests), lambda row: row.by_tests, right=True
)


def _confirmed(row: TaskCoverage) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(row.standings.items()))


_CONFIRMED: Column[TaskCoverage] = Column("confirmation", _confirmed, least=12)


def columns(study: Study, *, hidden: bool) -> tuple[Column[TaskCoverage], ...]:
    """Return the columns for a study's tasks, with one for each condition with people.

    With `hidden`, no column shows outcomes.
    """
    target = study.design.target_per_task

    def of(condition: str) -> Column[TaskCoverage]:
        return Column(
            visible_line(condition),
            lambda row: bar(row.covered[condition], target),
            lambda row: row.covered[condition],
            style=lambda row: "$text-primary",
            rank=2,
        )

    return (
        Column("task", lambda row: row.task[:12], width=12, rank=1),
        Column("name", lambda row: word_name(row.task)),
        Column("mode", lambda row: row.mode),
        Column("source", lambda row: row.source, least=12),
        *(of(condition.id) for condition in study.conditions_of_people),
        Column("flags", lambda row: str(row.flags), lambda row: row.flags, right=True),
        Column(
            "solved",
            lambda row: HIDDEN if hidden else bar(row.solved, row.counted),
            lambda row: 0 if hidden else row.solved,
        ),
        *(() if hidden else (_BY_TESTS, _CONFIRMED, Column("median", _median))),
    )


def state_words(study: Study, ledger: Ledger) -> str:
    """Return the id of the study, the day on which it opened or closed, and whether it is simulated."""
    opened, closed = (
        ledger.study.when(kind) for kind in (StudyOperationKind.OPENED, StudyOperationKind.CLOSED)
    )
    state = "not open yet" if opened is None else f"open since {utc_day(opened)}"
    if closed is not None:
        state = f"closed on {utc_day(closed)}"
    return f"{study.id}   {state}{'   SIMULATED' if study.simulated else ''}"


def people_rows(people: PeopleProgress) -> list[tuple[str, int]]:
    """Return the name of each state of people, and the number of people in it.

    Ways of leaving that nobody used are omitted.
    """
    counts = {
        "enrolled": people.enrolled,
        "consented": people.consented,
        "done": people.done,
        "at work": people.at_work,
        "withdrew": people.withdrew,
        "declined": people.declined,
        "screened out": people.screened_out,
        "erased": people.erased,
    }
    always = ("enrolled", "consented", "done", "at work")
    return [(words, number) for words, number in counts.items() if number or words in always]


def head_words(people: PeopleProgress) -> str:
    """Return the number of people in each state, as one line."""
    return "people  " + "  ".join(f"{number} {words}" for words, number in people_rows(people))


def work_words(person: ActivePerson) -> str:
    """Return the current work of a person in words."""
    words = f"{visible_line(person.code)}  {person.ended} of {person.given} done"
    if not person.assignment:
        return words
    since = "" if person.begun_ms is None else f" since {utc_minute(person.begun_ms)}"
    return f"{words}, at {person.task[:12]}{since}, assignment {visible_line(person.assignment)}"


def pace_words(progress: StudyProgress) -> list[str]:
    """Return the pace of a study and the people who have not begun, in lines without outcomes."""
    pace, lines = progress.pace, list[str]()
    if pace.per_day is None:
        lines.append(f"pace     {plural(pace.attempts, 'attempt')} ended")
    else:
        lines.append(
            f"pace     {pace.recent_per_day:g} attempts a day ({pace.per_day:g} since the opening),"
            f" {pace.people_per_day:g} people a day"
        )
    if pace.median_min is not None:
        middle = duration(round(pace.median_min * 60_000))
        lines.append(
            f"time     median {middle} for {plural(pace.attempts, 'attempt')}, all conditions together"
        )
    if progress.not_begun:
        named = [f"{visible_line(one.code)} ({one.state})" for one in progress.not_begun[:_NOT_BEGUN]]
        more = len(progress.not_begun) - _NOT_BEGUN
        rest = f" and {more} more" if more > 0 else ""
        lines.append(f"to begin {len(progress.not_begun)}: {', '.join(named)}{rest}")
    return lines


def alert_words(alerts: Sequence[Alert]) -> list[str]:
    """Return alerts in lines, in their order; flags come last and share a line."""
    flags = [alert for alert in alerts if alert.kind == "flag"]
    lines = [f"! {alert.kind}  {visible_line(alert.words)}" for alert in alerts if alert.kind != "flag"]
    if flags:
        lines.append(f"! flags  {'; '.join(visible_line(alert.words) for alert in flags)}")
    return lines


def need_words(progress: StudyProgress) -> str:
    """Return the number of people that the design still needs, in words."""
    if not progress.open_cells:
        return "need: no more people; every task is covered in every condition"
    cells = f"{progress.open_cells} open cell{'s' if progress.open_cells > 1 else ''}"
    if progress.people_needed == 1:
        return f"need: 1 more person to close all gaps ({cells})"
    return f"need: {progress.people_needed} more people to close all gaps ({cells})"


def row_words(row: AttemptRow, *, hidden: bool) -> str:
    """Return an attempt as a line, without its outcome if that is hidden."""
    flags = f"   flags: {', '.join(flag.flag for flag in row.flags)}" if row.flags else ""
    out = "" if row.counted else f"   does not count: {exclusion_words(row.exclusion)}"
    outcome = "" if hidden else f"   {row.end.replace('_', ' ') or 'under way'}"
    return f"{row.attempt}  {row.participant}  {row.condition}{outcome}{flags}{out}"
