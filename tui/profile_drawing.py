"""The profile of a run as lines of styled raw text for the screen, and of plain text for printing."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from gistpoint.core.readable import duration, thousands
from gistpoint.core.text import plural
from gistpoint.sessions.records.model import Run
from gistpoint.sessions.runs.profile import (
    Bin,
    Counted,
    GoalReached,
    Profile,
    TestRunCounts,
    cost_of,
    missing_in,
    seconds_of,
    tokens_of,
)
from gistpoint.sessions.runs.rendering import money, tilde_of
from gistpoint.sessions.runs.work import WORKS, Work
from gistpoint.tui import signs
from gistpoint.tui.widgets.charts import gauge, sparkline

Pieces = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """A line of styled raw text with its target: a step, or all steps spread over its cells."""

    pieces: Pieces = field(default_factory=list)
    step: int | None = None
    cells: int = 0
    """The number of cells, from `LABEL` on, over which the steps are spread.

    0 if the line doesn't show the course of the run.
    """
    run: str = ""
    """The name of the run, if several are shown."""

    @property
    def text(self) -> str:
        """The line without styles."""
        return "".join(text for text, _ in self.pieces)

    def step_at(self, column: int, profile: Profile) -> int | None:
        """Return the step (counted from 0) drawn at a column; None if there is none."""
        if not self.cells:
            return self.step
        if not LABEL <= column < LABEL + self.cells:
            return None
        place = (column - LABEL) * len(profile.bins) // self.cells
        return min(profile.steps - 1, place * profile.bin_steps)


LABEL = 9
"""The width of the names at the left, in cells."""
_WIDEST = 4
"""The maximum number of cells in a bin."""
_BAR = 20
_MOST_TEST_RUNS = 8
_STEPS_NAMED = 6
_NOTHING = "·"
_MUTED = "$foreground 60%"
STYLES = {
    Work.READ: "$text-primary",
    Work.SEARCH: "$text-primary",
    Work.EDIT: "$text-warning",
    Work.RUN: "$text-secondary",
    Work.TEST: "$text-success",
    Work.SUBMIT: "$text-accent",
}
SIGNS = {Work.READ: "v", Work.SEARCH: "/", Work.EDIT: "e", Work.RUN: "$", Work.TEST: "t", Work.SUBMIT: "!"}
"""A character for each kind of work, as in lists of steps."""
_VERDICTS = {
    "solved": (f"{signs.GOOD} solved", "$text-success"),
    "unsolved": (f"{signs.BAD} unsolved", "$text-error"),
}


def drawn(
    run: Run, profile: Profile, width: int, *, here: int | None = None, hides: bool = False
) -> list[ProfileLine]:
    """Return the lines of a profile, drawn and wrapped for `width` cells. `here` is the step on the screen.

    With `hides`, the outcome and the cost are left out.
    """
    lines = [_head(run, profile, hides=hides)]
    if profile.worked or profile.fullest:
        lines += [*_rows_by_step(profile, width, here), ProfileLine()]
    for found in profile.reached:
        lines += _reached(found, profile, width)
    if profile.first_edit is not None and not profile.reached:
        lines.append(
            _named("edits", f"the first at step {profile.first_edit + 1:,}", step=profile.first_edit)
        )
    if profile.worked:
        lines += _folded("waste", _waste(profile), width)
    if profile.condensed.count:
        lines += _folded("context", f"condensed or copied at {_steps(profile.condensed)}", width)
    lines += _tests(profile)
    missing = [words for words in missing_in(run, profile) if not (hides and words == "cost")]
    return [*lines, *_folded("unknown", "; ".join(missing), width, _MUTED)]


def _folded(name: str, words: str, width: int, style: str = "") -> Iterator[ProfileLine]:
    """Yield text in as many lines as it needs."""
    for number, line in enumerate(textwrap.wrap(words, max(20, width - LABEL))):
        yield _named("" if number else name, line, style)


def _named(name: str, words: str, style: str = "", *, step: int | None = None) -> ProfileLine:
    return ProfileLine([(f"{name:<{LABEL}}", _MUTED), (words, style)], step)


def _head(run: Run, profile: Profile, *, hides: bool) -> ProfileLine:
    verdict = _VERDICTS.get(run.verdict, (run.verdict or run.exit_status, ""))
    tokens = tokens_of(run, profile)
    many = (tokens.prompt or 0) + (tokens.completion or 0)
    cost, seconds = cost_of(run, profile), seconds_of(run, profile)
    mark = "~" if run.cost is None else tilde_of(run, "cost")
    facts = [
        f"{plural(profile.steps, 'step')}, {profile.worked:,} with a call",
        duration(1000 * seconds) if seconds is not None else "",
        f"{thousands(many, exact=True)} tokens" if many else "",
        f"{mark}{money(cost)}" if cost and not hides else "",
    ]
    shown = [] if hides or not verdict[0] else [verdict, (" · ", _MUTED)]
    return ProfileLine([*shown, (" · ".join(filter(None, facts)), "")])


# The rows that show the course of the run, from its first step at the left to its last at the right

_MARKED_ROWS: Sequence[tuple[str, Callable[[Bin], object], str, str]] = (
    ("failed", lambda cell: cell.failed, signs.BAD, "$text-error"),
    ("again", lambda cell: cell.wasted, "~", "$text-warning"),
)
"""The rows that mark cells with certain steps: their name, what such a cell has, the sign, and its style."""


def spread(bins: Sequence[Bin], columns: int) -> list[Bin]:
    """Return the bins in at most `columns` cells: several bins per cell, or up to four cells per bin."""
    count = len(bins)
    if not count:
        return []
    if count <= columns:
        wide = min(_WIDEST, columns // count)
        return [found for found in bins for _ in range(wide)]
    cells: list[Bin] = []
    for column in range(columns):
        cell = Bin()
        for found in bins[column * count // columns : (column + 1) * count // columns]:
            cell.add(found)
        cells.append(cell)
    return cells


def _rows_by_step(profile: Profile, width: int, here: int | None) -> Iterator[ProfileLine]:
    """Yield the axis of the steps, and below it a row for each kind of work and each other fact."""
    words = _row_texts(profile)
    cells = spread(profile.bins, max(10, width - LABEL - 1 - max(map(len, words.values()))))
    yield _axis(profile, cells, here)
    for place, work in enumerate(WORKS):
        if work in profile.shares:
            values = [found.work[place] / max(1, sum(found.work)) for found in cells]
            yield _row(f"{SIGNS[work]} {work.value}", _blocks(values, 1.0), STYLES[work], words[work])
    if profile.reached:
        yield _row("found", _firsts(profile, cells), "bold $text-success", words["found"])
    for name, is_marked, sign, style in _MARKED_ROWS:
        if name in words:
            marks = "".join(sign if is_marked(cell) else _NOTHING for cell in cells)
            yield _row(name, marks, style, words[name])
    if profile.fullest is not None:
        contexts = [float(found.context) for found in cells]
        yield _row("context", _blocks(contexts, float(profile.fullest)), "$text-secondary", words["context"])


def _row_texts(profile: Profile) -> dict[str, str]:
    """Return the text at the right of each row, by the kind of work or the name of the row."""
    words: dict[str, str] = {"found": signs.NUMBERS}
    for work, share in profile.shares.items():
        words[work] = plural(share.steps, "step") + (
            f" {duration(1000 * share.seconds)}" if share.seconds >= 1 else ""
        )
    if profile.failing.count:
        words["failed"] = plural(profile.failing.count, "step")
    if again := sum(found.wasted for found in profile.bins):
        words["again"] = plural(again, "step")
    if profile.fullest is not None:
        words["context"] = f"up to {thousands(profile.fullest, exact=True)}"
    return words


def _row(name: str, cells: str, style: str, words: str) -> ProfileLine:
    return ProfileLine(
        [(f"{name:<{LABEL}}", _MUTED), (cells, style), (f" {words}", _MUTED)], cells=len(cells)
    )


def _blocks(values: Sequence[float], top: float) -> str:
    levels = sparkline(values, top=top)
    return "".join(level if value > 0 else _NOTHING for level, value in zip(levels, values, strict=True))


def _axis(profile: Profile, cells: Sequence[Bin], here: int | None) -> ProfileLine:
    last = f"{profile.steps:,}"
    line = f"1{last:>{max(len(last) + 1, len(cells)) - 1}}"
    pieces = [(f"{'step':<{LABEL}}", _MUTED), (line, _MUTED)]
    if here is not None and cells:
        at = min(len(cells) - 1, _column(here, profile, cells))
        pieces[1:] = [(line[:at], _MUTED), (signs.UNFOLDED, "bold"), (line[at + 1 :], _MUTED)]
    return ProfileLine(pieces, cells=len(cells))


def _column(step: int, profile: Profile, cells: Sequence[Bin]) -> int:
    return step // profile.bin_steps * len(cells) // max(1, len(profile.bins))


def _firsts(profile: Profile, cells: Sequence[Bin]) -> str:
    shown = [_NOTHING] * len(cells)
    for found in profile.reached:
        for sign, step in zip(signs.NUMBERS, (found.read, found.seen, found.edited), strict=True):
            if step is not None:
                shown[_column(step, profile, cells)] = sign
    return "".join(shown)


# Facts below the drawing


def _reached(found: GoalReached, profile: Profile, width: int) -> Iterator[ProfileLine]:
    steps = (
        (f"{signs.ONE} file ", "read", found.read),
        (f"{signs.TWO} ", "seen", found.seen),
        (f"{signs.THREE} ", "edited", found.edited),
    )
    words = (
        f"{what}never {done}"
        if step is None
        else f"{what}{done} at step {step + 1:,} ({step * 100 // max(1, profile.steps)}%)"
        for what, done, step in steps
    )
    yield from _folded("right", found.function, width)
    yield from _folded("", " · ".join(words), width)


def _tests(profile: Profile) -> Iterator[ProfileLine]:
    runs, left_out = profile.test_runs, 0
    if len(runs) > _MOST_TEST_RUNS:
        left_out = len(runs) - _MOST_TEST_RUNS
    half = _MOST_TEST_RUNS // 2
    shown = [*runs[:half], *runs[-half:]] if left_out else [*runs]
    for number, found in enumerate(shown):
        if left_out and number == half:
            yield _named("", f"… {left_out:,} between", _MUTED)
        yield _test_run(found, first=number == 0)
    if profile.more_test_runs:
        yield _named("", f"… {profile.more_test_runs:,} after these", _MUTED)


def _test_run(found: TestRunCounts, *, first: bool) -> ProfileLine:
    start = [(f"{'tests' if first else '':<{LABEL}}", _MUTED), (f"step {found.step + 1:>6,}  ", "")]
    if found.passed is None or found.failed is None:
        ended = {True: "passed", False: "failed", None: "ended"}[found.went_well]
        return ProfileLine([*start, (f"{'?' * _BAR}  {ended}, without counts", _MUTED)], found.step)
    bar = gauge(found.passed, found.passed + found.failed, _BAR)
    style = "$text-success" if found.went_well else "$text-error"
    words = (
        f"  {signs.GOOD if found.went_well else signs.BAD} {found.passed:,} passed, {found.failed:,} failed"
    )
    return ProfileLine([*start, (bar, style), (words, "")], found.step)


def _waste(profile: Profile) -> str:
    parts = (
        (profile.failing, "failed"),
        (profile.repeated, "repeated"),
        (profile.reread, "read again unchanged"),
        (profile.reverted, "reverted an edit"),
    )
    found = [f"{counted.count:,} {words}" for counted, words in parts if counted.count]
    if not found:
        return "none: nothing failed, and nothing was repeated, read again or reverted"
    share = profile.wasted * 100 // max(1, profile.worked)
    return f"{profile.wasted:,} of {profile.worked:,} ({share}%): " + ", ".join(found)


def _steps(counted: Counted) -> str:
    """Return the numbers of the first steps, and how many more there are, in words."""
    numbers = [f"{step + 1:,}" for step in counted.steps[:_STEPS_NAMED]]
    more = counted.count - len(numbers)
    return f"step{'' if counted.count == 1 else 's'} {', '.join(numbers)}" + (
        f" and {more:,} more" if more else ""
    )
