"""The screen for making tasks: trials under way, rejections with reasons, and the kept tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.message import Message

from gistpoint.core.generation.progress import KeptTask
from gistpoint.core.text import visible_line
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.campaign_view import (
    KEPT_COLUMNS,
    CampaignShown,
    CampaignView,
    dropped_lines,
    kept_words,
    stage_lines,
    time_words,
    work_lines,
)
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain, plain_text
from gistpoint.tui.widgets.record_list import RecordList
from gistpoint.tui.widgets.table import Table

DRAW_S = 0.2
"""Seconds between two drawings. Reports may come faster than anybody can read."""
_LARGE = 32
"""The height of a terminal, in lines, from which more of the work is shown."""


def _notes_in(height: int) -> int:
    """Return how many of the latest results are shown in a terminal of this height: 1 to 12."""
    return 1 if height < _LARGE else min(12, 3 + (height - _LARGE) // 3)


class KeptTable(Table[KeptTask]):
    """The table of the tasks that were kept."""

    MARGIN, GAP = 1, 2

    def __init__(self) -> None:
        super().__init__(KEPT_COLUMNS, key=lambda task: task.id, id="making-kept")


class MakingScreen(BaseScreen[None]):
    """The screen with the progress of making tasks in another thread. Enter opens a kept task."""

    CSS_PATH = "making.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.CAMPAIGN)]
    HELP_PAGE = "making"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.CAMPAIGN,)

    header = query_one(HeaderBar)
    now = query_one("#making-now", Plain)
    dropped = query_one("#making-dropped", Plain)
    kept = query_one(KeptTable)
    notes = query_one("#making-notes", Plain)

    class TaskRequested(Message):
        """A request to the app to open a task."""

        def __init__(self, task_id: str) -> None:
            super().__init__()
            self.task_id = task_id

    def __init__(self, view: CampaignView) -> None:
        super().__init__()
        self._view = view
        self._drawn: dict[str, Sequence[str]] = {}
        self._shown: CampaignShown | None = None

    def compose(self) -> ComposeResult:
        """Lay out the work under way, the rejections, the kept tasks, the results, and the keys."""
        yield HeaderBar("Making tasks")
        yield framed(Plain("", id="making-now"), "Now")
        yield framed(Plain("", id="making-dropped"), "Thrown away")
        yield KeptTable()
        yield framed(Plain("", id="making-notes"), "Results")
        yield KeyBar()

    def on_mount(self) -> None:
        """Draw at once, and then periodically."""
        self.kept.focus()
        self._draw()
        self.set_interval(DRAW_S, self._draw)

    @on(RecordList.Chosen)
    def open_task(self) -> None:
        """Ask the app to open the task under the cursor. The work continues."""
        task = self.kept.chosen
        if task is not None:
            self.post_message(self.TaskRequested(task.id))

    def action_leave(self) -> None:
        """Close the program. The tasks made so far are kept."""
        self.app.exit()

    def _draw(self) -> None:
        shown = self._view.shown
        large = self.size.height >= _LARGE
        width = self.size.width - 4
        now = self._view.now()
        lines = [
            *stage_lines(shown, width, now, most=6 if large else 4),
            *work_lines(shown, width, most=8 if large else 4),
        ]
        self._fill(self.now, lines)
        if shown is self._shown:
            return
        self._shown = shown
        framed(self.now, "Ended" if shown.ended else "Now", time_words(shown))
        self.header.show(words="   ".join(filter(None, (visible_line(shown.source), kept_words(shown)))))
        self._fill(self.dropped, dropped_lines(shown))
        self._fill(self.notes, [visible_line(note) for note in shown.notes[-_notes_in(self.size.height) :]])
        if [task.id for task in self.kept.records] == [task.id for task in shown.kept]:
            self.kept.update_records(shown.kept)
        else:
            self.kept.show(shown.kept, at=self.kept.chosen.id if self.kept.chosen else None)
        then = ["Enter opens one", "the work continues"] if shown.kept else []
        if shown.ended:
            then[1:] = ["q leaves and prints the tables"]
        framed(self.kept, f"Kept ({len(shown.kept)})", "; ".join(then))

    def _fill(self, pane: Plain, lines: Sequence[str]) -> None:
        """Show lines in a pane; without any lines, hide the pane."""
        if self._drawn.get(pane.id or "") != lines:
            self._drawn[pane.id or ""] = lines
            pane.update(
                plain_text("\n".join(lines)).highlight_regex(
                    f"[{signs.BLOCK}{signs.SHADE}]+", style="$primary"
                )
            )
            pane.display = bool(lines)
