"""The details of a task or an attempt on the home screen: brief, numbers, attempts and charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.readable import duration, when
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import plural
from gistpoint.sessions.attempt_summary import ListedAttempt
from gistpoint.tui import signs
from gistpoint.tui.attempt_charts import score_cell, score_lines, time_lines
from gistpoint.tui.home_reader import Details
from gistpoint.tui.home_rows import (
    OPEN,
    STYLES,
    AttemptEntry,
    HomeRows,
    TaskRow,
    budget_words,
    sign_of,
    standing_words,
    unit_of,
    used_words,
    who,
)
from gistpoint.tui.test_names import ending
from gistpoint.tui.view_models import pass_words
from gistpoint.tui.widgets.line_list import HEADING, MUTED, Line, folded, line

NO_TASKS = """There are no tasks yet. From the shell:

gistpoint demo
    solve a small task that comes with gistpoint
gistpoint task new more-itertools==11.2.1
    make a task from a published library
gistpoint task new ./folder
    make one from a folder of your own

Then press . here."""
NO_ATTEMPTS = "There are no attempts yet: choose a task (F2) and press Enter."
FIRST_TIME = "First time here? T starts a two-minute tour; nothing is counted."
_SHOWN = 5
"""The maximum number of the user's own attempts that are listed."""
_TESTS_SHOWN = 20
"""The maximum number of failing tests that are listed; they come last, and the pane can be scrolled."""


def task_lines(row: TaskRow, details: Details, now_ms: int, width: int) -> list[Line]:
    """Return the lines with the details of a task.

    The names of the failing tests are hidden until the user has attempted the task, unless it is a demo. The
    lines for the user's own attempts link to them. `width` is in cells.
    """
    task, whole = row.task, details.task
    numbers = [f"{plural(task.tests, 'test')}, {task.failing} fail", f"suite {task.seconds:.1f} s"]
    if not task.tests:
        numbers = []
    found = [
        *folded("" if whole is None else kind_of(whole).asks(whole), width, "bold", indent=" "),
        *folded(" · ".join([task.shown_mode, *numbers, budget_words(task)]), width, MUTED, indent=" "),
        *folded(_next_words(row), width, "$text-primary", indent=" "),
    ]
    if row.mine:
        found += [Line(), line(" Your attempts", HEADING)]
        begun = [when(attempt.started_utc_ms, now_ms) for attempt in row.mine[:_SHOWN]]
        found += [
            _attempt(attempt, words.ljust(max(map(len, begun))))
            for attempt, words in zip(row.mine, begun, strict=False)
        ]
        if len(row.mine) > _SHOWN:
            found.append(line(f"  and {len(row.mine) - _SHOWN} more: F3 lists all attempts", MUTED))
    if row.others:
        found.append(
            line(f"  {row.others} by others (models, participants, played demos): F3 lists them", MUTED)
        )
    if row.charted is not None and (charted := details.attempts.get(row.charted.attempt_id)):
        found += score_lines(charted.state)
    if row.last is not None and (last := details.attempts.get(row.last.attempt_id)):
        found += time_lines(last.state, width, "Time of the last attempt")
    return [*found, *([] if whole is None else _failing(whole, row, width))]


def _next_words(row: TaskRow) -> str:
    if row.last is not None and sign_of(row.last) == OPEN:
        return "It is open in another window: continue there, or close it first"
    if row.last is not None:
        another = "Ctrl+N begins another"
        if row.last is row.unfinished:
            return f"Enter continues where you left off · {another}"
        older = " · r resumes an unfinished one" if row.unfinished is not None else ""
        return f"Enter shows the result{older} · {another}"
    free = " (a demo: nothing counts)" if row.shipped else ""
    return f"Enter starts the task and the clock{free}"


def _attempt(attempt: ListedAttempt, begun: str) -> Line:
    score = "" if attempt.last_score is None else f"  {score_cell(attempt.last_score)}"
    pieces = (
        (f" {begun}", ""),
        (f"{duration(attempt.active_ms):>7}  {used_words(attempt):>13}  ", MUTED),
        (f"{standing_words(attempt)}{score}", STYLES[sign_of(attempt)]),
    )
    return Line(pieces, link=attempt.attempt_id)


def _failing(task: Task, row: TaskRow, width: int) -> Iterator[Line]:
    failing = task.brief.failing
    if not failing:
        return
    yield Line()
    yield line(" What fails", HEADING)
    if not row.mine and not row.shipped:
        yield line("  the brief names the tests once you have started", MUTED)
        return
    tests = Counter(failure.id.partition("[")[0] for failure in failing)
    for test, times in list(tests.items())[:_TESTS_SHOWN]:
        count = f" ×{times}" if times > 1 else ""
        yield Line(
            (
                (f"  {signs.BAD} ", STYLES[signs.BAD]),
                (ending(test, width - 4 - len(count)), ""),
                (count, MUTED),
            )
        )
    if len(tests) > _TESTS_SHOWN:
        yield line(f"  and {len(tests) - _TESTS_SHOWN} more", MUTED)


def attempt_lines(entry: AttemptEntry, details: Details, width: int) -> list[Line]:
    """Return the lines with the details of an attempt. `width` is in cells."""
    attempt, whole = entry.attempt, details.attempts.get(entry.key)
    state = None if whole is None else whole.state
    best, last = attempt.best_score, attempt.last_score
    scores = [] if last is None else [f"last {score_cell(last)}"]
    if state is not None and state.best is not state.last:
        scores.append(f"best {score_cell(best)}")
    unit = "call" if entry.task is None else unit_of(entry.task)
    rows: Sequence[tuple[str, str, str]] = (
        ("Result", " · ".join([standing_words(attempt), *scores]), STYLES[sign_of(attempt)]),
        ("Pass", "" if state is None else pass_words(state), ""),
        ("By", f"{who(entry)} ({attempt.begun_by}), role {attempt.role}" if attempt.role else who(entry), ""),
        ("Began", when(attempt.started_utc_ms, entry.now_ms), ""),
        ("Worked", f"{duration(attempt.active_ms)}, {used_words(attempt)} {unit}s", ""),
        ("Mode", attempt.mode if entry.task is None else entry.task.shown_mode, ""),
        ("Task", entry.title if entry.task is not None else f"{entry.title}, which no longer exists", ""),
        ("Problem", attempt.problem, STYLES["!"]),
    )
    found: list[Line] = []
    for name, value, style in rows:
        if value:
            first, *rest = folded(value, width - 11, style, indent="")
            found.append(Line(((f" {name:<10}", MUTED), *first.pieces)))
            found += [Line(((" " * 11, ""), *more.pieces)) for more in rest]
    return found if state is None else [*found, *score_lines(state), *time_lines(state, width, "Time")]


@dataclass(frozen=True, slots=True)
class RowDetails:
    """The details of a row: the title and the note of their frame, and the lines."""

    title: str
    note: str
    lines: list[Line]


def described(
    rows: HomeRows,
    chosen: TaskRow | AttemptEntry | None,
    details: Details,
    now_ms: int,
    width: int,
    *,
    filtered: bool,
) -> RowDetails:
    """Return the details of the chosen row, or the reason why there is none.

    `now_ms` is the current time in milliseconds since the epoch. `filtered` is set if the list has any rows,
    so that only the filter can have hidden all of them.
    """
    if isinstance(chosen, AttemptEntry):
        return RowDetails(chosen.title, f"{chosen.key} · y copies", attempt_lines(chosen, details, width))
    new_here = rows.complete and not rows.toured and not any(row.mine for row in rows.tasks)
    lines = folded(FIRST_TIME, width, "bold $text-warning", indent=" ") if new_here else []
    if chosen is not None:
        lines += task_lines(chosen, details, now_ms, width)
        # Users who have never attempted anything have no use for the id.
        note = f"{chosen.task.name} · {chosen.task.short_id} · y copies"
        return RowDetails(chosen.title, "" if new_here else note, lines)
    reason = "No row matches the filter." if filtered else NO_ATTEMPTS if rows.tasks else NO_TASKS
    return RowDetails("", "", [*lines, *folded(reason, width, indent=" ")])
