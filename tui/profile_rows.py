"""The profiles of many runs by task: a row per run on one scale, and the first difference within a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gistpoint.core.attempts.results import AttemptResult, solved_and_by_tests
from gistpoint.core.text import plural, shortened, visible_line
from gistpoint.sessions.records.model import Run
from gistpoint.sessions.runs.profile import Profile, SolverMove, cost_of, divergence_of
from gistpoint.sessions.runs.rendering import money, tilde_of
from gistpoint.tui import signs
from gistpoint.tui.profile_drawing import SIGNS, STYLES, ProfileLine, spread

_MUTED = "$foreground 60%"
_NAME = 22
_MOST_WAYS = 6
_RESULTS = {"solved": (signs.GOOD, "$text-success"), "unsolved": (signs.BAD, "$text-error")}


@dataclass(frozen=True, slots=True)
class ProfiledRun:
    """A run with its profile, and the name by which the run is opened."""

    name: str
    run: Run
    profile: Profile
    hides: bool = False
    """Whether the solver, the outcome and the cost are hidden."""
    title: str = ""
    """The title of the task; by default, its name is shown."""

    @property
    def verdict(self) -> str:
        """The verdict of the run; empty if there is none or if it is hidden."""
        return "" if self.hides else self.run.verdict

    @property
    def cost(self) -> float | None:
        """The cost of the run in US dollars; None if it is unknown or hidden."""
        return None if self.hides else cost_of(self.run, self.profile)

    @property
    def task(self) -> str:
        """The task of the run, or the name of the run if no task is recorded."""
        return visible_line(self.run.task or self.name.rpartition("/")[2])

    @property
    def solver(self) -> str:
        """The model or agent, or the run's name if neither is recorded; `hidden` if the solver is hidden."""
        if self.hides:
            return "hidden"
        return visible_line(
            self.run.model.rpartition("/")[2] or self.run.agent or self.name.rpartition("/")[2]
        )


def _outcome(found: ProfiledRun) -> float:
    order = {"solved": 0.0, str(AttemptResult.TO_BE_READ): 1.0, "unsolved": 2.0}
    return order.get(found.verdict, 3.0)


def _cost(found: ProfiledRun) -> float:
    return float("inf") if found.cost is None else found.cost


ORDERS: dict[str, Callable[[ProfiledRun], float]] = {
    "outcome": _outcome,
    "steps": lambda found: float(found.profile.steps),
    "cost": _cost,
}
"""The orders of a task's runs: solved runs first, shortest first, or cheapest first."""


def by_task(runs: Iterable[ProfiledRun], order: str) -> dict[str, list[ProfiledRun]]:
    """Return the runs by task, with the tasks in alphabetical order.

    The runs of a task are in one of the `ORDERS`. Equal runs keep their order.
    """
    tasks: dict[str, list[ProfiledRun]] = {}
    for found in runs:
        tasks.setdefault(found.task, []).append(found)
    return {task: sorted(rows, key=ORDERS[order]) for task, rows in sorted(tasks.items())}


def rows_drawn(runs: Sequence[ProfiledRun], width: int, order: str) -> Iterator[ProfileLine]:
    """Yield the lines of many runs. The longest run fills the width.

    Cells show the most frequent kind of work. A task with only one run has no heading; its name is in the
    row.
    """
    longest = max((found.profile.steps for found in runs), default=0)
    if longest:
        kinds = "  ".join(f"{sign} {work.value}" for work, sign in SIGNS.items())
        yield ProfileLine([(f"{kinds}  · no call  by {order}", _MUTED)])
    apart = False
    for task, rows in by_task(runs, order).items():
        title = visible_line(rows[0].title) or task
        if len(rows) == 1:
            yield _row(title, 1, rows[0], longest, width)
            apart = False
            continue
        if not apart:
            yield ProfileLine()
        apart = True
        judged = [found for found in rows if found.verdict]
        known = {str(result): result for result in AttemptResult}
        results = [known.get(found.verdict, AttemptResult.NOT_SOLVED) for found in judged]
        solved = solved_and_by_tests(results, [found.run.confirmation for found in judged])
        yield ProfileLine(
            [(title, "bold"), (f"  {plural(len(rows), 'run')}" + (f", {solved}" if solved else ""), "")]
        )
        for number, found in enumerate(rows, 1):
            yield _row(found.solver, number, found, longest, width)
        yield from _divergence_lines(rows, width)
        yield ProfileLine()


def _row(name: str, number: int, found: ProfiledRun, longest: int, width: int) -> ProfileLine:
    sign, style = _RESULTS.get(found.verdict, ("·", ""))
    cost = found.cost
    mark = "~" if found.run.cost is None else tilde_of(found.run, "cost")
    words = f" {found.profile.steps:>6,}" + (f" {mark + money(cost):>8}" if cost else " " * 9)
    start = f"{number:>3} "
    name = f" {shortened(name, _NAME):<{_NAME}} "
    room = max(10, width - len(start) - 1 - len(name) - len(words))
    columns = max(1, round(room * found.profile.steps / max(1, longest)))
    cells = spread(found.profile.bins, columns)[:columns]
    pieces = [(start, _MUTED), (sign, style), (name, "")]
    for cell in cells:
        work = cell.main
        pieces.append(("·", _MUTED) if work is None else (SIGNS[work], STYLES[work]))
    pieces += [(" " * (room - len(cells)), ""), (words, _MUTED)]
    return ProfileLine(pieces, run=found.name)


def _divergence_lines(rows: Sequence[ProfiledRun], width: int) -> Iterator[ProfileLine]:
    if len(rows) < 2 or not any(row.profile.moves for row in rows):
        return
    found = divergence_of([row.profile for row in rows])
    if found is None:
        yield ProfileLine([("    all do the same, as far as known", _MUTED)])
        return
    yield ProfileLine([(f"    diverge at call {found.place + 1:,}:", _MUTED)])
    for move, runs in found.ways[:_MOST_WAYS]:
        numbers = ", ".join(str(run + 1) for run in runs)
        yield ProfileLine(
            [("      " + shortened(f"{_move_words(move)} ({numbers})", max(20, width - 6)), "")],
            run=rows[runs[0]].name,
        )
    if len(found.ways) > _MOST_WAYS:
        yield ProfileLine([(f"      and {len(found.ways) - _MOST_WAYS} other ways", _MUTED)])


def _move_words(move: SolverMove | None) -> str:
    return "nothing more" if move is None else visible_line(str(move))
