"""Tasks being made: what is tried now, what was thrown away and why, and the kept tasks, to be opened at once."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.message import Message
from textual.screen import Screen

from gistpoint.core.generation.progress import KeptTask
from gistpoint.core.text import visible_line
from gistpoint.tui.campaign_view import (
    KEPT_COLUMNS,
    CampaignShown,
    CampaignView,
    dropped_lines,
    time_words,
    title_words,
    work_lines,
)
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import RecordList
from gistpoint.tui.widgets.table import Table

DRAW_S = 0.2
"""Reports may come much more often than anybody can read them."""
_LARGE = 32
"""Lines of a terminal from which more of the work is shown."""


class KeptTable(Table[KeptTask]):
    """The tasks that were kept."""

    MARGIN, GAP = 1, 2

    def __init__(self) -> None:
        super().__init__(KEPT_COLUMNS, key=lambda task: task.id, id="making-kept")


class MakingScreen(Screen[None]):
    """Draws the reports of the work, which goes on in a thread of its own; Enter opens a kept task."""

    CSS_PATH = "making.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.CAMPAIGN)]
    HELP_PAGE = "making"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.CAMPAIGN,)

    title_line = query_one("#making-title", Plain)
    times = query_one("#making-time", Plain)
    now = query_one("#making-now", Plain)
    dropped = query_one("#making-dropped", Plain)
    kept = query_one(KeptTable)
    note = query_one("#making-note", Plain)

    class TaskAsked(Message):
        """Asks to open a task."""

        def __init__(self, task_id: str) -> None:
            super().__init__()
            self.task_id = task_id

    def __init__(self, view: CampaignView) -> None:
        super().__init__()
        self._view = view
        self._drawn: CampaignShown | None = None

    def compose(self) -> ComposeResult:
        """Lay out the title, the work, what was thrown away, the kept tasks, the last result, and the keys."""
        yield Plain("", id="making-title")
        yield Plain("", id="making-time")
        yield Plain("", id="making-now")
        yield Plain("thrown away", classes="making-head", id="making-dropped-head")
        yield Plain("", id="making-dropped")
        yield Plain("kept: Enter opens one, and the rest goes on", classes="making-head")
        yield KeptTable()
        yield Plain("", id="making-note")
        yield KeyBar()

    def on_mount(self) -> None:
        """Draw at once, and again as reports come."""
        self.kept.focus()
        self._draw()
        self.set_interval(DRAW_S, self._draw)

    @on(RecordList.Chosen)
    def open_task(self) -> None:
        """Open the task under the cursor; the work goes on."""
        task = self.kept.chosen
        if task is not None:
            self.post_message(self.TaskAsked(task.id))

    def action_leave(self) -> None:
        """Close; what is kept stays."""
        self.app.exit()

    def _draw(self) -> None:
        shown = self._view.shown
        if shown is self._drawn:
            return
        self._drawn = shown
        large = self.size.height >= _LARGE
        self.title_line.update(title_words(shown))
        self.times.update(time_words(shown))
        self.now.update("\n".join(work_lines(shown, most=8 if large else 4)))
        lines = dropped_lines(shown)
        self.query_one("#making-dropped-head", Plain).display = bool(lines)
        self.dropped.update("\n".join(lines))
        if [task.id for task in self.kept.records] == [task.id for task in shown.kept]:
            self.kept.renew(shown.kept)
        else:
            self.kept.show(shown.kept, at=self.kept.chosen.id if self.kept.chosen else None)
        notes = [visible_line(note) for note in shown.notes[-(3 if large else 1) :]]
        if shown.ended:
            notes = [*notes[-1:], "q leaves and prints the tables."]
        self.note.update("\n".join(notes))
