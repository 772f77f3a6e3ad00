"""The list of a run's steps. Rows are read when they become visible."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.app import App
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.timer import Timer

from gistpoint.core.text import visible_line
from gistpoint.sessions.records.model import StepKind
from gistpoint.tui import signs
from gistpoint.tui.screens.review.families import FAMILIES, Family
from gistpoint.tui.screens.review.loading import RowFact
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.record_list import Piece, RecordList, fitted_cells

if TYPE_CHECKING:
    from gistpoint.tui.screens.review.survey import Survey

PATIENCE_S = 0.02
"""The longest time, in seconds, for which drawing is delayed."""


class DrawingDelay:
    """A delay of drawing until all related changes are ready.

    Drawn separately, they would appear up to two frames apart.
    """

    def __init__(self, app: App[None], patience_s: float = PATIENCE_S) -> None:
        self._app = app
        self._patience_s = patience_s
        self._held = ExitStack()
        self._timer: Timer | None = None

    def hold(self) -> None:
        """Delay drawing until `release` is called or the longest time has passed."""
        if self._timer is None:
            self._held.enter_context(self._app.batch_update())
            self._timer = self._app.set_timer(self._patience_s, self.release)

    def release(self) -> None:
        """Draw all changes."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
            self._held.close()
            if self._app.screen_stack:  # empty once the app is closing
                self._app.screen.check_idle()


KIND_STYLES = {
    StepKind.EDIT: "$text-warning",
    StepKind.SUBMIT: "bold $text-accent",
    StepKind.TEST: "$text-secondary",
    StepKind.EXECUTE: "$text-primary",
    StepKind.ERROR: "bold $text-error",
    StepKind.DAMAGED: "bold $text-error",
    StepKind.VIEW: "$text-success",
    StepKind.SEARCH: "$text-success",
    StepKind.SYSTEM: "$foreground 60%",
    StepKind.STATE: "$foreground 60%",
}


KIND_WORDS = {
    StepKind.VIEW: "read",
    StepKind.EXECUTE: "run",
    StepKind.MESSAGE: "said",
    StepKind.DELEGATE: "agent",
    StepKind.UNKNOWN: "other",
}
"""The words for kinds of steps whose names are not short and plain."""
_KIND_WIDTH = 7
_ENDING, _FRAME = 2, 3
"""The cells for the symbol of a step's ending, and for the frame with its scroll bar."""
_STRONG = frozenset({StepKind.EDIT, StepKind.SUBMIT})

BADGE_STYLES = {
    "=": "$text-success",
    signs.DIFFERS: "bold $text-error",
    signs.NOTHING: "$text-warning",
    "?": "$foreground 60%",
}

ALL, EVERY = "all", "hidden too"
LISTS = (ALL, "edits", "errors", "unseen")
"""The choices of listed steps, besides `EVERY`, which adds the hidden families to `ALL`."""


class StepList(RecordList):
    """The list of steps. It requests the rows that have not been read yet."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Previous step", show=False, id="steps.previous"),
        Binding("right,l", "move(1)", "Next step", show=False, id="steps.next"),
        Binding("o", "unfold", "Unfold", show=False, id="steps.unfold"),
    ]

    class RowsRequested(Message):
        """A request for the rows that have become visible."""

        def __init__(self, rows: Sequence[int]) -> None:
            super().__init__()
            self.rows = rows

        def can_replace(self, message: Message) -> bool:
            """Return whether `message` makes this one superfluous: only the latest rows matter."""
            return isinstance(message, StepList.RowsRequested)

    class NothingToList(Message):
        """A message that there is no step of the kind to be listed."""

        def __init__(self, kind: str) -> None:
            super().__init__()
            self.kind = kind

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.survey: Survey | None = None
        """The facts about the steps; None if unknown, in which case all steps are listed."""
        self.listing = ALL
        """The choice of listed steps: one of `LISTS`, or `EVERY`."""
        self._hidden: frozenset[Family] | None = None
        """The families hidden with keys; None for those that are hidden initially."""
        self._listed: list[int] | None = None
        """The indexes of the listed steps; None if all are listed."""
        self._listed_anyway: int | None = None
        """The hidden step that is listed because the cursor is on it; None if there is none."""
        self.opened_at_step = False
        """Whether the run was opened at a requested step, which may be hidden, rather than at its start."""
        self._seen_before: Collection[int] = ()
        """The steps seen when the unseen ones were listed: a step must not vanish while it is being read."""
        self.facts: Mapping[int, RowFact] = {}
        self.unseen: Collection[int] | None = None
        self.seen: Collection[int] = ()
        self.signs: Mapping[int, str] = {}
        """The glyph for labels and comments after a step's number, by step."""
        self.badges: Mapping[int, str] = {}
        """The glyph for the outcome of a step's replayed calls. Without any, there is no column for it."""
        self._requested_rows: Sequence[int] = ()
        self.drawing_delay = DrawingDelay(self.app)
        """Delays drawing; released by the code that shows the step under the cursor."""

    def watch_cursor(self, old: int, new: int) -> None:
        """Move the cursor, and draw it together with the step if the step is read soon.

        A hidden step is listed while the cursor is on it.
        """
        self.drawing_delay.hold()
        if not self.lists(new):
            self._list(ALL)
        elif self._listed_anyway is not None and self._listed_anyway != new:
            self._list(self.listing)
        super().watch_cursor(old, new)

    # Which steps are listed

    @property
    def row_count(self) -> int:
        """The number of listed steps."""
        return self.count if self._listed is None else len(self._listed)

    def row_of(self, index: int) -> int:
        """Return the row of a step, or of the next one that is listed."""
        return index if self._listed is None else bisect_left(self._listed, index)

    def index_at(self, row: int) -> int:
        """Return the step in a row."""
        return row if self._listed is None else self._listed[row]

    def lists(self, index: int) -> bool:
        """Return whether a step is listed."""
        if self._listed is None:
            return True
        row = self.row_of(index)
        return row < len(self._listed) and self._listed[row] == index

    def set_count(self, count: int, *, cursor: int | None = None) -> None:
        """Set the number of steps."""
        self.count = count
        self._arrange()
        super().set_count(count, cursor=cursor)

    def open_run(self, count: int, first: int) -> None:
        """Show the known steps of a run, with the cursor on step `first` unless it was already moved."""
        self.set_count(count)
        self.cursor = self.cursor or first

    def begin_again(self, facts: Mapping[int, RowFact]) -> None:
        """Clear the list for another run, whose rows `facts` will contain."""
        self.facts, self.survey, self._listed = facts, None, None
        self.signs, self.badges, self.seen, self._seen_before, self._requested_rows = {}, {}, (), (), ()
        self.opened_at_step = False
        self.set_reactive(RecordList.cursor, 0)
        self.set_count(0)
        self.show_cursor()

    def set_survey(self, survey: Survey | None) -> None:
        """Set the facts about the steps, and list the steps accordingly."""
        self.survey, before, listed = survey, self.row_count, self._listed
        self.set_count(self.count)
        if self.row_count != before:
            self.show_cursor()
        begins = listed is None and self._listed_anyway == 0 and not self.opened_at_step
        if begins and self.row_count > 1:  # the first steps have turned out to be hidden
            self.cursor = self.index_at(1)

    @property
    def hidden(self) -> frozenset[Family]:
        """The families that are hidden."""
        at_first = self.survey.hidden_at_first if self.survey is not None else frozenset()
        return at_first if self._hidden is None else self._hidden

    def hide(self, family: Family) -> str:
        """Hide a family of steps, or list it again. Return a message about the hidden steps."""
        self._hidden = self.hidden ^ {family}
        self._list(ALL)
        hidden = ", ".join(f"{count:,} {name}" for name, count in self._hidden_counts())
        return f"Hidden: {hidden or 'nothing here'}" + ("; o lists them all" if hidden else "")

    def action_list(self, listing: str) -> None:
        """List only the chosen steps, and move to one of them; show a message if there are none."""
        self._seen_before = frozenset(self.seen) if listing == "unseen" else ()
        found = self._chosen(listing)
        if found is not None and not found and listing != ALL:
            self.post_message(self.NothingToList(listing))
            return
        if found and self.cursor not in found:
            place = bisect_left(found, self.cursor)
            self._listed = None
            self.cursor = found[min(place, len(found) - 1)]
        self._list(listing)

    def action_unfold(self) -> None:
        """Go to the next choice of listed steps that is not empty."""
        order = (ALL, *([EVERY] if self._hidden_counts() else []), *LISTS[1:])
        at = order.index(self.listing) if self.listing in order else 0
        self._seen_before = frozenset(self.seen)
        following = (*order[at + 1 :], ALL)
        self.action_list(
            next(listing for listing in following if listing == ALL or self._chosen(listing) != [])
        )

    def _chosen(self, listing: str) -> list[int] | None:
        """Return the chosen steps; None if all steps are chosen or if nothing is known about them."""
        survey = self.survey
        if survey is None or listing == EVERY or (listing == ALL and not self._hidden_counts()):
            return None
        return survey.listed(listing, self._seen_before, self.count, self.hidden)

    def _hidden_counts(self) -> list[tuple[Family, int]]:
        """Return the hidden families that the run contains, each with its number of steps."""
        survey = self.survey
        found = (
            [(family, survey.count_of(family)) for family in FAMILIES if family in self.hidden]
            if survey
            else []
        )
        return [(family, count) for family, count in found if count]

    def _list(self, listing: str) -> None:
        self.listing = listing
        self._arrange()
        super().set_count(self.count)
        self.show_cursor()

    def _arrange(self) -> None:
        """Determine the listed steps, always including the one under the cursor."""
        self._listed, self._listed_anyway = self._chosen(self.listing), None
        if self._listed is not None and self.count and not self.lists(self.cursor):
            insort(self._listed, self.cursor)
            self._listed_anyway = self.cursor
        self.draw_frame()

    def draw_frame(self) -> None:
        """Show in the frame the choice of listed steps and their number."""
        hidden = sum(count for _, count in self._hidden_counts()) if self.listing in (ALL, "unseen") else 0
        count = f"{self.row_count:,} of {self.count:,}" if self._listed is not None else f"{self.count:,}"
        more = f" · {hidden:,} hidden: o" if hidden else ""
        names = [
            Content(name).stylize("bold reverse")
            if name == self.listing or (name == ALL and self.listing == EVERY)
            else Content(name).stylize(Style.from_meta({"@click": f"list({name!r})"}))
            for name in LISTS
        ]
        framed(self, f"Steps {count if self.count else ''}{more}".rstrip(), Content("  ").join(names))

    # Drawing rows

    @property
    def visible_rows_read(self) -> bool:
        """Whether the visible rows have been read."""
        rows = [self.index_at(row) for row in self.in_sight]
        return bool(rows) and all(row in self.facts for row in rows)

    @property
    def width_needed(self) -> int:
        """The width in cells that the titles read so far need, with the frame and the scroll bar."""
        widest = max(
            (cell_len(visible_line(self._title_of(fact))) for fact in self.facts.values()), default=0
        )
        return self._before_words(badges=bool(self.badges)) + widest + _ENDING + _FRAME

    def _before_words(self, *, badges: bool) -> int:
        """Return the number of cells before the title of a row."""
        digits = max(3, len(str(self.count)))
        return 2 + digits + 1 + 2 + _KIND_WIDTH + 1 + 2 * badges

    @staticmethod
    def _title_of(fact: RowFact) -> str:
        return (f"{signs.FOLLOWS} " if fact.starts else "") + fact.words

    def row(self, index: int, width: int) -> list[Piece]:
        """Return the row of a step: its marks, number, symbol, kind, text and, at the right, its ending.

        A step that has not been read yet is requested, and its row has an ellipsis instead of the text.
        """
        fact = self.facts.get(index)
        digits = max(3, len(str(self.count)))
        here = signs.HERE if index == self.cursor else " "
        seen = " " if index in self.seen else signs.SEEN
        sign = self.signs.get(index, " ")
        head: list[Piece] = [
            (f"{here}{seen}", "$text-primary"),
            (f"{index + 1:>{digits}} ", "" if index == self.cursor else "$foreground 60%"),
            (f"{sign} ", "bold $text-accent"),
        ]
        if fact is None:
            self._ask()
            return [*head, ("…", "$foreground 60%")]
        style = "bold $text-error" if fact.error else KIND_STYLES.get(fact.kind, "")
        badge = self._badge(index)
        words = visible_line(self._title_of(fact))
        words_style = style if fact.error or fact.kind in _STRONG else ""
        used = self._before_words(badges=bool(badge)) + _ENDING
        return [
            *head,
            (f"{kind_words(fact.kind)} ", style),
            *badge,
            (fitted_cells(words, max(4, self.sight.width - used)), words_style),
            *_ending(fact),
        ]

    def _badge(self, index: int) -> list[Piece]:
        if not self.badges:
            return []
        badge = self.badges.get(index, " ")
        return [(f"{badge} ", BADGE_STYLES.get(badge, ""))]

    def _ask(self) -> None:
        rows = [self.index_at(row) for row in self.in_sight]
        if rows != self._requested_rows:
            self._requested_rows = rows
            self.post_message(self.RowsRequested(rows))

    def rows_read(self) -> None:
        """Draw the rows again, and request those still missing."""
        self._requested_rows = ()
        self.refresh()


def _ending(fact: RowFact) -> list[Piece]:
    """Return the symbol for the ending of a step; empty if the ending is not known."""
    if fact.error:
        return [(f" {signs.BAD}", "bold $text-error")]
    if fact.unanswered:
        return [(" ?", "$text-warning")]
    return [(f" {signs.GOOD}", "$text-success")] if fact.ended_well else []


def kind_words(kind: StepKind) -> str:
    """Return the word for a kind of step, padded to a common width."""
    return KIND_WORDS.get(kind, str(kind)).ljust(_KIND_WIDTH)
