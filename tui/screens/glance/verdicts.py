"""The screen after a blind reading: the diff of each corruption, and the reader's verdict on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one

from gistpoint.core.corruption.blind import BlindAnswer, BlindItem, GlanceVerdict, ShownVersion
from gistpoint.core.errors import UserError
from gistpoint.core.text import visible_line
from gistpoint.sessions.annotations.glance_reader import GlanceReader
from gistpoint.sessions.annotations.glances import GlanceVerdictGiven, Reading
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.dialogs.ask import CommentDialog, offer_again, show_error
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain

_WHY = "why"
_ANSWERS = {
    BlindAnswer.FAULT: "you saw a fault",
    BlindAnswer.DOUBTFUL: "you were in doubt",
    BlindAnswer.NOTHING: "you saw nothing wrong",
}


def suggested(reading: Reading) -> GlanceVerdict:
    """Return the verdict that the reading of a corruption suggests if the corruption is indeed a fault."""
    if reading.seen:
        return GlanceVerdict.AT_A_GLANCE
    return (
        GlanceVerdict.BORDERLINE
        if reading.answer is not BlindAnswer.NOTHING and reading.hit
        else GlanceVerdict.GOOD
    )


class VerdictScreen(BaseScreen[None]):
    """A screen that shows one diff after another. A verdict is saved at once and can be changed."""

    CSS_PATH = "glance.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.GLANCE_DIFF)]
    HELP_PAGE = "glance"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.GLANCE_DIFF,)

    header = query_one(HeaderBar)
    words_line = query_one("#glance-words", Plain)
    diff = query_one(DiffView)

    def __init__(
        self, items: Sequence[BlindItem], reader: GlanceReader, *, summary: str = "", last: bool = True
    ) -> None:
        """`items` are the functions whose corrupted version was read.

        Unless `last`, the screen closes after a verdict or a move forward, and the next function follows.
        """
        super().__init__()
        self._items, self._reader, self._summary, self._last = tuple(items), reader, summary, last
        self._at = next((n for n, item in enumerate(items) if self._verdict_of(item) is None), 0)

    def compose(self) -> ComposeResult:
        """Lay out the header, the diff, the reader's answer, and the keys."""
        yield HeaderBar("")
        yield framed(DiffView())
        yield framed(Plain("", id="glance-words"), "Your answer")
        yield KeyBar()

    def on_mount(self) -> None:
        """Show the first diff without a verdict."""
        self._show()
        self.diff.focus()

    @property
    def drafts_about(self) -> tuple[str, str]:
        """The reader, and the diff whose verdict is being explained."""
        item, reader = self._items[self._at], self._reader
        return reader.name, f"verdict {reader.seed} {reader.round} on {item.task} {item.function}"

    def action_judge(self, verdict: str) -> None:
        """Record a verdict, after asking for an explanation."""
        item, chosen = self._items[self._at], GlanceVerdict(verdict)
        before = self._verdict_of(item)

        def answered(words: str | None) -> None:
            if words is not None:
                self._keep(item, chosen, words)

        words = before.words if before else ""
        self.app.push_screen(CommentDialog(f"Why {chosen}?", value=words, asked=_WHY), answered)

    def action_take_back(self) -> None:
        """Take back the current verdict."""
        given = self._verdict_of(self._items[self._at])
        if given is not None:
            try:
                self._reader.take_back(given.op)
            except UserError as error:
                show_error(self.app, error)
            self._show()

    def action_turn(self, step: int) -> None:
        """Move by `step` diffs. Between two functions, moving forward closes the screen."""
        if not self._last and step > 0:
            self.dismiss()
            return
        self._at = min(max(self._at + step, 0), len(self._items) - 1)
        self._show()

    def action_leave(self) -> None:
        """Close the program. All verdicts are saved."""
        self.app.exit()

    def _keep(self, item: BlindItem, verdict: GlanceVerdict, words: str) -> None:
        try:
            self._reader.verdict(item, verdict, words)
        except UserError as error:
            offer_again(self.draft(_WHY), words)
            show_error(self.app, error)
            return
        if not self._last:
            self.dismiss()
            return
        left = [n for n, other in enumerate(self._items) if self._verdict_of(other) is None]
        self._at = next((n for n in left if n > self._at), left[0] if left else self._at)
        self._show()
        if not left:
            self.notify("You have judged every corruption. Thank you.")

    def _verdict_of(self, item: BlindItem) -> GlanceVerdictGiven | None:
        found = self._reader.glances(item.task)
        return found.verdict(item.function, self._reader.seed, self._reader.round)

    def _show(self) -> None:
        item = self._items[self._at]
        place = (
            f"Corruption {self._at + 1} of {len(self._items)}"
            if self._last
            else "This function was corrupted"
        )
        self.header.show(name=place)
        framed(self.diff, item.function, "from the original to the corruption")
        self.diff.load(
            item.text(ShownVersion.ORIGINAL), item.text(ShownVersion.CORRUPTED), name=item.target.path
        )
        self.words_line.update("\n".join(filter(None, (self._read(item), self._judged(item), self._summary))))

    def _read(self, item: BlindItem) -> str:
        reading = self._reader.glances(item.task).reading(
            item.function, self._reader.seed, self._reader.round
        )
        if reading is None:
            return ""
        where = ""
        if reading.line:
            where = (
                f" at line {reading.line},"
                f" {'the changed place' if reading.hit else 'which is not the changed place'}"
            )
        words = f": {visible_line(reading.words)}" if reading.words else ""
        return (
            f"Blind, {_ANSWERS[reading.answer]}{where}{words}. If it is a fault, the verdict is:"
            f" {suggested(reading)}"
        )

    def _judged(self, item: BlindItem) -> str:
        given = self._verdict_of(item)
        if given is None:
            return "No verdict yet"
        return f"Your verdict: {given.verdict}{f': {visible_line(given.words)}' if given.words else ''}"
