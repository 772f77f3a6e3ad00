"""The screen with two runs of one task side by side, aligned by milestones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one

from gistpoint.core.readable import duration
from gistpoint.core.text import plural, shortened, visible_line
from gistpoint.sessions.records.model import Step
from gistpoint.sessions.runs.blind_view import blind_step
from gistpoint.sessions.runs.comparing import RunComparison, Side, compare, read_side
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.facts import Spent
from gistpoint.sessions.runs.rendering import row_words
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.review.families import Family, family_of, hidden_at_first
from gistpoint.tui.screens.review.loading import solver_words
from gistpoint.tui.screens.review.pages.diffs import state_note
from gistpoint.tui.screens.review.places import differences
from gistpoint.tui.screens.review.run_rows import OtherOutcomes
from gistpoint.tui.screens.review.run_task import known_task, short_task, title_known
from gistpoint.tui.screens.review.settings import ReviewSettings
from gistpoint.tui.screens.review.step_list import kind_words
from gistpoint.tui.screens.review.step_view import StepView, compose
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import Piece, RecordList, fitted_cells
from gistpoint.tui.widgets.splitter import Splits

if TYPE_CHECKING:
    from gistpoint.sessions.runs.repository import RepositoryState


_LONGEST_NAME = 30
"""The maximum length of a run's name, in characters. A longer name is shortened in the middle."""
_UNCHANGED = "Nothing changed so far."


@dataclass(frozen=True, slots=True)
class _Both:
    """Both runs, read to the end. `words` are the lines for the steps of each."""

    documents: tuple[RunDocument, RunDocument]
    comparison: RunComparison
    words: tuple[list[str], list[str]]
    title: str
    """The title of the runs' task, or its name."""
    hides: bool
    """Whether models and outcomes are hidden."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """The two steps of a row, and each run's repository after its step."""

    row: int
    steps: tuple[Step | None, Step | None]
    states: tuple[RepositoryState | None, RepositoryState | None]


class AlignedList(RecordList):
    """The aligned steps, a row for each pair. Milestones are highlighted."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.comparison: RunComparison | None = None
        self._step_words: tuple[list[str], list[str]] = ([], [])

    def show(self, comparison: RunComparison, words: tuple[list[str], list[str]]) -> None:
        """Show an alignment. `words` are the lines for the steps of both runs."""
        self.comparison, self._step_words = comparison, words
        self.set_count(len(comparison.rows), cursor=min(comparison.different, default=0))

    def row(self, index: int, width: int) -> list[Piece]:
        """Return both steps of a row, with the row's milestones between them."""
        if self.comparison is None:
            return []
        row = self.comparison.rows[index]
        names = ", ".join(str(milestone) for milestone in row.milestones)
        sign = signs.DIFFERS if index in self.comparison.different else " "
        middle = 26 if width >= 100 else 14
        side = max(8, (self.sight.width - middle - 4) // 2)
        style = "bold $text-accent" if row.milestones else "$foreground 60%"
        return [
            (f"{signs.HERE} " if index == self.cursor else "  ", "bold $text-primary"),
            (_padded(self._title_of(0, row.left), side), ""),
            (sign, "bold $text-warning"),
            (f"{_padded(names or '·', middle, centred=True)} ", style),
            (_padded(self._title_of(1, row.right), side), ""),
        ]

    def _title_of(self, side: int, step: int | None) -> str:
        return "" if step is None else self._step_words[side][step]


def _hidden_in(document: RunDocument) -> set[int]:
    """Return the indexes of the steps that the run's own screen hides when it opens."""
    format = document.header.format
    of_harness = {step.index for step in document.steps() if family_of(step, format) is Family.HARNESS}
    is_hidden = Family.HARNESS in hidden_at_first(format, document.step_count, len(of_harness))
    return of_harness if is_hidden else set()


def _padded(text: str, width: int, *, centred: bool = False) -> str:
    text = visible_line(text)
    return text.center(width) if centred and cell_len(text) < width else fitted_cells(text, width)


def _shows_change(state: RepositoryState | None) -> bool:
    return state is not None and bool(state.diff)


class _Side(Vertical):
    """A step of one run, or the run's changes up to it."""

    def compose(self) -> ComposeResult:
        """Lay out the three views; only one of them is visible."""
        yield StepView(id=f"{self.id}-step")
        yield DiffView(id=f"{self.id}-diff")
        yield Plain(_UNCHANGED, id=f"{self.id}-unchanged")


class CompareScreen(BaseScreen[None]):
    """The alignment of two runs, with the steps or the diffs of both below it."""

    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.COMPARE)]
    HELP_PAGE = "compare"
    SCOPES = (KeyScope.COMPARE,)

    rows = query_one(AlignedList)
    header_bar = query_one(HeaderBar)

    def __init__(self, left: str, right: str, settings: ReviewSettings) -> None:
        """If the review of one of the runs hides its model and outcome, those of both are hidden."""
        super().__init__()
        self._names = (left, right)
        self._settings = settings
        self._both: _Both | None = None
        self._shows_diffs = False
        self._changed = (False, False)
        self._jobs = Jobs(self, "comparing")

    def compose(self) -> ComposeResult:
        """Lay out the alignment and both sides."""
        yield HeaderBar("Compare", "reading both runs …")
        sides = [framed(_Side(id=name)) for name in ("left", "right")]
        aligned = framed(AlignedList(id="aligned"), "Steps side by side")
        yield Splits(aligned, Splits(*sides, id="compare-sides"), vertical=True)
        yield KeyBar()

    def on_mount(self) -> None:
        """Start reading both runs."""
        self._place()
        self.rows.focus()
        self._jobs.do(self._read, self._show)

    def on_unmount(self) -> None:
        """Stop reading."""
        self._jobs.stop()

    def _read(self, job: Job) -> _Both:
        from gistpoint.sessions.runs.opening import open_run

        left, right = (open_run(name) for name in self._names)
        outcomes = OtherOutcomes(self._settings)
        hides = any(map(outcomes.hides, (left, right)))
        sides: list[Side] = []
        hidden: list[set[int]] = []
        words: tuple[list[str], list[str]] = ([], [])
        titles: list[str] = []
        for document, lines in zip((left, right), words, strict=True):
            job.cancel.check()
            task = known_task(document.header.task, self._settings.locations)
            titles.append(title_known(document.header, task) or short_task(document.header.task))
            sides.append(read_side(document, task.goals, tree=task.tree))
            seen = map(blind_step, document.steps()) if hides else document.steps()
            lines += [f"{step.index + 1:>4} {kind_words(step.kind)} {row_words(step)}" for step in seen]
            hidden.append(_hidden_in(document))
        comparison = compare(*sides, hidden=(hidden[0], hidden[1]))
        return _Both((left, right), comparison, words, next(filter(None, titles), ""), hides)

    def _short_names(self, *, hides: bool) -> list[str]:
        """Return the file names if short and different, otherwise parts of paths, or numbers if hidden."""
        files = [PurePath(name).name for name in self._names]
        if not hides and files[0] != files[1] and max(map(len, files)) <= _LONGEST_NAME:
            return files
        return [shortened(part, _LONGEST_NAME) for part in differences(self._names, hidden=hides)]

    def _show(self, both: _Both) -> None:
        self._both = both
        milestones = len(both.comparison.milestones)
        different = len(both.comparison.different)
        self.header_bar.show(
            words=" · ".join(filter(None, [*self._short_names(hides=both.hides), both.title]))
        )
        note = f"{milestones} milestones · {plural(different, 'row')} with a difference"
        framed(self.rows, "Steps side by side", note)
        self.rows.show(both.comparison, both.words)
        self._read_pair()

    @on(RecordList.Moved, "#aligned")
    def moved(self) -> None:
        """Show the steps of the row under the cursor."""
        self._read_pair()

    def _read_pair(self) -> None:
        both, row = self._both, self.rows.cursor
        if both is None or not both.comparison.rows:
            return

        def read(job: Job) -> _Pair:
            comparison = both.comparison
            places = comparison.places(row)
            left, right = (
                None if place is None else document.step(place)
                for place, document in zip(places, both.documents, strict=True)
            )
            job.cancel.check()
            before, after = (
                None if place is None else side.repository(place)
                for place, side in zip(places, (comparison.left, comparison.right), strict=True)
            )
            return _Pair(row, (left, right), (before, after))

        self._jobs.do(read, lambda pair: self._show_pair(both, pair), key="pair")

    def _show_pair(self, both: _Both, pair: _Pair) -> None:
        """Fill both sides with the steps and the changes of a row, unless the cursor has moved on."""
        if pair.row != self.rows.cursor:
            return
        sides = (both.comparison.left, both.comparison.right)
        for at, name in enumerate(("left", "right")):
            step = pair.steps[at]
            spent = None if step is None else sides[at].spent(step.index)
            header = both.documents[at].header
            who = "hidden" if both.hides else solver_words(header) or header.actor.value
            place = f"step {step.index + 1} of {both.documents[at].step_count}" if step else "not begun"
            framed(self.query_one(f"#{name}"), f"{who}  {place}", " · ".join(budget_words(spent)))
            view = self.query_one(f"#{name}-step", StepView)
            if step is not None:
                view.show(compose(step, hides=both.hides))
            else:
                view.clear()
            state = pair.states[at]
            self.query_one(f"#{name}-diff", DiffView).load_diff(state.diff if state is not None else ())
            note = (
                f"No changes are known so far.\n\n{state_note(state)}"
                if state and state.problems
                else _UNCHANGED
            )
            self.query_one(f"#{name}-unchanged", Plain).update(note)
        self._changed = (_shows_change(pair.states[0]), _shows_change(pair.states[1]))
        self._place()

    # Keys

    def action_step(self, by: int) -> None:
        """Move the cursor by a number of rows."""
        self.rows.cursor += by

    def action_milestone(self, by: int) -> None:
        """Move to the next or the previous milestone."""
        if self._both is not None:
            rows = self._both.comparison.rows
            self._go(by, lambda row: bool(rows[row].milestones), "milestone")

    def action_difference(self, by: int) -> None:
        """Move to the next or the previous row with a difference."""
        if self._both is not None:
            self._go(by, self._both.comparison.different.__contains__, "difference")

    def _go(self, by: int, is_wanted: Callable[[int], bool], name: str) -> None:
        """Move the cursor in direction `by` to the nearest wanted row; show a message if there is none."""
        count, here = self.rows.count, self.rows.cursor
        places = range(here + 1, count) if by > 0 else range(here - 1, -1, -1)
        place = next(filter(is_wanted, places), None)
        if place is not None:
            self.rows.cursor = place
        else:
            self.app.notify(f"There is no {'later' if by > 0 else 'earlier'} {name}.")

    def action_diffs(self) -> None:
        """Switch between the steps and the changes of each run so far."""
        self._shows_diffs = not self._shows_diffs
        self._place()

    def _place(self) -> None:
        for name, changed in zip(("left", "right"), self._changed, strict=True):
            self.query_one(f"#{name}-step").display = not self._shows_diffs
            self.query_one(f"#{name}-diff").display = self._shows_diffs and changed
            self.query_one(f"#{name}-unchanged").display = self._shows_diffs and not changed

    @on(RecordList.Chosen, "#aligned")
    def chosen(self) -> None:
        """Open the run of the focused side; if neither has the focus, the left one."""
        self.action_open()

    def action_open(self) -> None:
        """Open the run of the focused side; if neither has the focus, the left one."""
        focused = self.focused.id or "" if self.focused is not None else ""
        name = self._names[focused.startswith("right")]
        self.app.push_screen(self._settings.screens.run(name, self._settings, runs=self._names))

    def action_leave(self) -> None:
        """Close the comparison."""
        self.dismiss(None)


def budget_words(spent: Spent | None) -> list[str]:
    """Return the used and remaining budgets and the elapsed time as strings; empty if nothing is known."""
    if spent is None:
        return []
    words = [
        plural(spent.calls, "call") + (f", {spent.calls_left} left" if spent.calls_left is not None else "")
    ]
    left = f", {spent.submissions_left} left" if spent.submissions_left is not None else ""
    words.append(plural(spent.submissions, "submission") + left)
    if spent.elapsed_s is not None:
        words.append(duration(1000 * spent.elapsed_s))
    return words
