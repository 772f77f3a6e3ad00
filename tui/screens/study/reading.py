"""The screen for blind reading: changes that make the tests pass, and the reader's decision on each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one

from gistpoint.core.diffs import FileDiff
from gistpoint.core.errors import UserError
from gistpoint.core.study.data import MergeDecision
from gistpoint.core.text import visible_line
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.dialogs.ask import TextDialog, offer_again, show_error
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

_WHY = "why"


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A change as a reader may see it, without its author: its library, code, and the tests that failed."""

    library: str
    failing: Sequence[str]
    files: Sequence[FileDiff]
    key: str = ""
    """What identifies the change in its study. Without it, a reason that is not sent is only in memory."""


@dataclass(frozen=True, slots=True)
class MergeAnswer:
    """A reader's decision on a change, with the reason, which is empty for a change to be merged."""

    decision: MergeDecision
    why: str = ""


class BlindReadingScreen(BaseScreen[None]):
    """A screen that shows one change at a time. An answer is saved at once and can be changed.

    If it can't be saved, the screen says why and stays at the change, and the reason is offered again.
    """

    CSS_PATH = "reading.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.BLIND_READING)]
    HELP_PAGE = "blind_reading"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.BLIND_READING,)

    header = query_one(HeaderBar)
    task_lines = query_one("#reading-task", Plain)
    answer_line = query_one("#reading-answer", Plain)
    diff = query_one(DiffView)

    def __init__(
        self,
        changes: Sequence[ShownChange],
        answers: Mapping[int, MergeAnswer],
        keep: Callable[[int, MergeAnswer], None],
        *,
        reader: str = "",
    ) -> None:
        """`answers` were given earlier. Both `answers` and `keep` identify a change by its index.

        `keep` raises a `UserError` if an answer can't be saved.
        """
        super().__init__()
        self._changes, self._answers, self._keep, self._reader = changes, dict(answers), keep, reader
        self._at = next((n for n in range(len(changes)) if n not in answers), 0)

    def compose(self) -> ComposeResult:
        """Lay out the header, the task, the change, the answer and the keys."""
        yield HeaderBar("")
        yield Plain("", id="reading-task")
        yield framed(DiffView(), "The change", "n N next and previous change")
        yield Plain("", id="reading-answer")
        yield KeyBar()

    def on_mount(self) -> None:
        """Show the first change without an answer."""
        self._show()
        self.diff.focus()

    def action_answer(self, decision: str) -> None:
        """Record a decision on the change, after asking for a reason unless it is to be merged."""
        chosen = MergeDecision(decision)
        if chosen is MergeDecision.MERGE:
            self._keep_and_continue(MergeAnswer(chosen))
            return
        before = self._answers.get(self._at)
        title = "What has to change?" if chosen is MergeDecision.MERGE_AFTER_CHANGES else "Why reject it?"

        def answered(why: str | None) -> None:
            if why is not None and why.strip():
                self._keep_and_continue(MergeAnswer(chosen, why.strip()))
            elif why is not None:
                self.notify("It was not saved: say why in a few words.", severity="warning")

        dialog = TextDialog(title, value=before.why if before else "", yes="Keep", asked=_WHY)
        self.app.push_screen(dialog, answered)

    @property
    def drafts_about(self) -> tuple[str, str]:
        """The reader, and the change that is being read."""
        return self._reader, self._changes[self._at].key

    def action_turn(self, step: int) -> None:
        """Move by `step` changes, but not beyond the first or the last one."""
        self._at = min(max(self._at + step, 0), len(self._changes) - 1)
        self._show()

    def action_leave(self) -> None:
        """Close the program. All answers are saved."""
        self.app.exit()

    def _keep_and_continue(self, answer: MergeAnswer) -> None:
        try:
            self._keep(self._at, answer)
        except UserError as error:
            offer_again(self.draft(_WHY), answer.why)
            show_error(self.app, error)
            return
        self._answers[self._at] = answer
        left = [n for n in range(len(self._changes)) if n not in self._answers]
        self._at = next((n for n in left if n > self._at), left[0] if left else self._at)
        self._show()
        if not left:
            self.notify("You have read every change. Thank you.")

    def _show(self) -> None:
        change, answer = self._changes[self._at], self._answers.get(self._at)
        count = len(self._changes)
        self.header.show(
            name=f"Change {self._at + 1} of {count}", words=f"{len(self._answers)} read   would you merge it?"
        )
        shown = [visible_line(name) for name in change.failing[:3]]
        if more := len(change.failing) - len(shown):
            shown.append(f"and {more} more")
        self.task_lines.update("\n".join(shown))
        framed(
            self.task_lines, f"{change.library}: these tests failed before", "all tests pass with this change"
        )
        self.diff.load_diff(change.files)
        why = f": {visible_line(answer.why)}" if answer and answer.why else ""
        self.answer_line.update(f"Your answer: {WORDS[answer.decision]}{why}" if answer else "No answer yet")
