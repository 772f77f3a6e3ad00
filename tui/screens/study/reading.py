"""Blind reading: changes that make the tests pass, one after the other, and what a reader would do with each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one

from gistpoint.core.diffs import FileDiff
from gistpoint.core.study.data import MergeDecision
from gistpoint.core.text import visible_line
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.dialogs.ask import TextDialog
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain

WORDS: Mapping[MergeDecision, str] = {
    MergeDecision.MERGE: "merge it",
    MergeDecision.MERGE_AFTER_CHANGES: "merge it after changes",
    MergeDecision.REJECT: "reject it",
}


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A change with what a reader may know of it: the code and the tests that failed before, not whose it is."""

    library: str
    failing: Sequence[str]
    files: Sequence[FileDiff]


@dataclass(frozen=True, slots=True)
class Said:
    """What the reader has said of a change."""

    decision: MergeDecision
    why: str = ""


class BlindReadingScreen(BaseScreen[None]):
    """One change at a time. What was said is kept at once and can be said again."""

    CSS_PATH = "reading.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.BLIND_READING)]
    HELP_PAGE = "blind_reading"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.BLIND_READING,)

    header = query_one(HeaderBar)
    task_lines = query_one("#reading-task", Plain)
    said_line = query_one("#reading-said", Plain)
    diff = query_one(DiffView)

    def __init__(
        self,
        changes: Sequence[ShownChange],
        said: Mapping[int, Said],
        keep: Callable[[int, Said], None],
    ) -> None:
        """`said` and `keep` name a change by its place."""
        super().__init__()
        self._changes, self._said, self._keep = changes, dict(said), keep
        self._at = next((n for n in range(len(changes)) if n not in said), 0)

    def compose(self) -> ComposeResult:
        """Lay out the header, the task, the change, what was said of it, and the keys."""
        yield HeaderBar("")
        yield Plain("", id="reading-task")
        yield framed(DiffView(), "The change", "n N next and previous change")
        yield Plain("", id="reading-said")
        yield KeyBar()

    def on_mount(self) -> None:
        """Show the first change that nothing was said of."""
        self._show()
        self.diff.focus()

    def action_say(self, decision: str) -> None:
        """Say what is to be done with the change; anything but merging it needs a reason."""
        chosen = MergeDecision(decision)
        if chosen is MergeDecision.MERGE:
            self._keep_and_go_on(Said(chosen))
            return
        before = self._said.get(self._at)
        title = "What has to change?" if chosen is MergeDecision.MERGE_AFTER_CHANGES else "Why reject it?"

        def answered(why: str | None) -> None:
            if why is not None and why.strip():
                self._keep_and_go_on(Said(chosen, why.strip()))
            elif why is not None:
                self.notify("It was not kept: say why in a few words.", severity="warning")

        self.app.push_screen(TextDialog(title, value=before.why if before else "", yes="Keep"), answered)

    def action_turn(self, step: int) -> None:
        """Go to another change."""
        self._at = min(max(self._at + step, 0), len(self._changes) - 1)
        self._show()

    def action_leave(self) -> None:
        """Close; everything that was said is kept."""
        self.app.exit()

    def _keep_and_go_on(self, said: Said) -> None:
        self._keep(self._at, said)
        self._said[self._at] = said
        left = [n for n in range(len(self._changes)) if n not in self._said]
        self._at = next((n for n in left if n > self._at), left[0] if left else self._at)
        self._show()
        if not left:
            self.notify("You have read every change. Thank you.")

    def _show(self) -> None:
        change, said = self._changes[self._at], self._said.get(self._at)
        count = len(self._changes)
        self.header.show(
            name=f"Change {self._at + 1} of {count}", words=f"{len(self._said)} read   would you merge it?"
        )
        shown = [visible_line(name) for name in change.failing[:3]]
        if more := len(change.failing) - len(shown):
            shown.append(f"and {more} more")
        self.task_lines.update("\n".join(shown))
        framed(self.task_lines, f"{change.library}: these tests failed before", "all tests pass with this change")
        self.diff.load_diff(change.files)
        why = f": {visible_line(said.why)}" if said and said.why else ""
        self.said_line.update(f"You said: {WORDS[said.decision]}{why}" if said else "Nothing said yet")
