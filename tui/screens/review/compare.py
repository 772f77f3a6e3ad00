"""Two runs of one task side by side, aligned by milestones."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.getters import query_one
from textual.message import Message
from textual.screen import Screen

from gistpoint.core.errors import UserError
from gistpoint.core.text import visible_line
from gistpoint.sessions.runs.comparing import Comparison, Side, compare, read_side
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.facts import Spent
from gistpoint.sessions.runs.model import Step
from gistpoint.sessions.runs.rendering import GLYPHS
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.screens.review.reader import row_words
from gistpoint.tui.screens.review.settings import ReviewSettings
from gistpoint.tui.screens.review.step_text import compose
from gistpoint.tui.screens.review.step_view import StepView
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import Piece, RecordList

if TYPE_CHECKING:
    from gistpoint.core.diffs import FileDiff


class _Read(Message):
    """Both runs were read to their ends."""

    def __init__(
        self, documents: tuple[RunDocument, RunDocument], comparison: Comparison, words: tuple[list[str], list[str]]
    ) -> None:
        super().__init__()
        self.documents = documents
        self.comparison = comparison
        self.words = words


class _PairRead(Message):
    """The steps of a row were read, with what each run had changed by then."""

    def __init__(
        self, row: int, steps: tuple[Step | None, Step | None], diffs: tuple[tuple[FileDiff, ...], tuple[FileDiff, ...]]
    ) -> None:
        super().__init__()
        self.row = row
        self.steps = steps
        self.diffs = diffs


class _Failed(Message):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class AlignedList(RecordList):
    """A row for each pair of steps; milestones stand out."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.comparison: Comparison | None = None
        self._said: tuple[list[str], list[str]] = ([], [])

    def show(self, comparison: Comparison, words: tuple[list[str], list[str]]) -> None:
        """Show an alignment; `words` are the steps of both runs, a line each."""
        self.comparison, self._said = comparison, words
        self.set_count(len(comparison.rows), cursor=0)

    def row(self, index: int, width: int) -> list[Piece]:
        """Return both steps and the milestones between them."""
        if self.comparison is None:
            return []
        row = self.comparison.rows[index]
        names = ", ".join(str(milestone) for milestone in row.milestones)
        middle = 26 if width >= 100 else 14
        side = max(8, (width - middle - 2) // 2)
        style = "bold $text-accent" if row.milestones else "$foreground 30%"
        return [
            (_padded(self._words(0, row.left), side), ""),
            (f" {_padded(names or '·', middle, centred=True)} ", style),
            (_padded(self._words(1, row.right), side), ""),
        ]

    def _words(self, side: int, step: int | None) -> str:
        return "" if step is None else self._said[side][step]


def _padded(text: str, width: int, *, centred: bool = False) -> str:
    from rich.cells import cell_len, set_cell_size

    text = visible_line(text)
    return text.center(width) if centred and cell_len(text) < width else set_cell_size(text, width)


class CompareScreen(Screen[None]):
    """An alignment above, the steps or the diffs of both runs below."""

    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.COMPARE)]
    HELP_PAGE = "compare"
    SCOPES = (Scope.COMPARE,)

    rows = query_one(AlignedList)
    titles = query_one("#compare-title", Plain)

    def __init__(self, left: str, right: str, settings: ReviewSettings) -> None:
        super().__init__()
        self._names = (left, right)
        self._settings = settings
        self._documents: tuple[RunDocument, RunDocument] | None = None
        self._comparison: Comparison | None = None
        self._shows_diffs = False
        self._lock = threading.Lock()
        self._wanted = -1
        self._stopped = False

    def compose(self) -> ComposeResult:
        """Lay out the alignment and both sides."""
        yield Plain("Reading both runs …", id="compare-title")
        yield AlignedList(id="aligned")
        with Horizontal(id="compare-sides"):
            for side in ("left", "right"):
                with Vertical(classes="compare-side"):
                    yield Plain("", id=f"{side}-title", classes="compare-name")
                    yield StepView(id=f"{side}-step")
                    yield DiffView(id=f"{side}-diff")
        yield KeyBar()

    def on_mount(self) -> None:
        """Read both runs."""
        self._place()
        self.rows.focus()
        threading.Thread(target=self._read, name="comparing", daemon=True).start()

    def on_unmount(self) -> None:
        """Let threads end."""
        self._stopped = True

    def _read(self) -> None:
        from gistpoint.sessions.runs.opening import open_run
        from gistpoint.tui.screens.review.known_task import known_task

        try:
            left, right = (open_run(name) for name in self._names)
            sides: list[Side] = []
            words: tuple[list[str], list[str]] = ([], [])
            for document, said in zip((left, right), words, strict=True):
                task = known_task(document.header, self._settings.locations)
                sides.append(read_side(document, task.goals, tree=task.tree))
                said += [f"{GLYPHS[s.kind.value]} {s.index + 1:>4} {row_words(s)}" for s in document.steps()]
            self.post_message(_Read((left, right), compare(*sides), words))
        except Exception as error:
            self.post_message(_Failed(error))

    @on(_Failed)
    def failed(self, message: _Failed) -> None:
        """Say why the runs can't be compared."""
        if not isinstance(message.error, UserError):
            raise message.error
        from gistpoint.tui.screens.dialogs.ask import show_error

        show_error(self.app, message.error)

    @on(_Read)
    def read(self, message: _Read) -> None:
        """Show the alignment."""
        self._documents, self._comparison = message.documents, message.comparison
        both = len(message.comparison.milestones)
        self.titles.update(f"Compare  {both} milestones; the steps between them are aligned from the top")
        self.rows.show(message.comparison, message.words)
        self._look()

    @on(RecordList.Moved, "#aligned")
    def moved(self) -> None:
        """Look at another pair of steps."""
        self._look()

    def _look(self) -> None:
        comparison, documents = self._comparison, self._documents
        if comparison is None or documents is None or not comparison.rows:
            return
        row = self._wanted = self.rows.cursor

        def work() -> None:
            with self._lock:
                if row != self._wanted or self._stopped:
                    return
                places = comparison.places(row)
                left, right = (
                    None if place is None else document.step(place)
                    for place, document in zip(places, documents, strict=True)
                )
                before, after = (
                    () if place is None else side.repository(place).diff
                    for place, side in zip(places, (comparison.left, comparison.right), strict=True)
                )
                self.post_message(_PairRead(row, (left, right), (before, after)))

        threading.Thread(target=work, name="comparing", daemon=True).start()

    @on(_PairRead)
    def pair_read(self, message: _PairRead) -> None:
        """Show both steps, or what both have changed."""
        comparison, documents = self._comparison, self._documents
        if message.row != self.rows.cursor or comparison is None or documents is None:
            return
        sides = (comparison.left, comparison.right)
        for at, name in enumerate(("left", "right")):
            step = message.steps[at]
            spent = None if step is None else sides[at].spent(step.index)
            header = documents[at].header
            who = "hidden" if self._settings.blind else header.model or header.actor.value
            facts = [who, f"step {step.index + 1}/{documents[at].step_count}" if step else "not begun"]
            self.query_one(f"#{name}-title", Plain).update(visible_line("  ".join([*facts, *budget_words(spent)])))
            view = self.query_one(f"#{name}-step", StepView)
            if step is not None:
                view.show(compose(step, hides=self._settings.blind))
            else:
                view.clear()
            self.query_one(f"#{name}-diff", DiffView).load_diff(message.diffs[at])

    # Keys

    def action_step(self, by: int) -> None:
        """Go on or back by a row."""
        self.rows.cursor += by

    def action_milestone(self, by: int) -> None:
        """Go to the next milestone, or the one before."""
        if self._comparison is None:
            return
        rows, here = self._comparison.rows, self.rows.cursor
        places = range(here + 1, len(rows)) if by > 0 else range(here - 1, -1, -1)
        place = next((n for n in places if rows[n].milestones), None)
        if place is not None:
            self.rows.cursor = place

    def action_diffs(self) -> None:
        """Show what each run changed so far, or the steps."""
        self._shows_diffs = not self._shows_diffs
        self._place()

    def _place(self) -> None:
        for name in ("left", "right"):
            self.query_one(f"#{name}-step").display = not self._shows_diffs
            self.query_one(f"#{name}-diff").display = self._shows_diffs

    @on(RecordList.Chosen, "#aligned")
    def chosen(self) -> None:
        """Open the run on the left."""
        self.action_open()

    def action_open(self) -> None:
        """Open the run of the side that has the keys, else the left one."""
        from gistpoint.tui.screens.review.screen import ReviewScreen

        focused = self.focused.id or "" if self.focused is not None else ""
        self.app.push_screen(ReviewScreen(self._names[focused.startswith("right")], self._settings, runs=self._names))

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)


def budget_words(spent: Spent | None) -> list[str]:
    """Return what was used, and what was left."""
    if spent is None:
        return []
    words = [f"{spent.calls} calls" + (f", {spent.calls_left} left" if spent.calls_left is not None else "")]
    left = f", {spent.submissions_left} left" if spent.submissions_left is not None else ""
    words.append(f"{spent.submissions} submissions{left}")
    if spent.elapsed_s is not None:
        words.append(f"{spent.elapsed_s / 60:.1f} min")
    return words
