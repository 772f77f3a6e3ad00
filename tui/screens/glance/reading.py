"""The screen for blind reading: one function at a time, original or corrupted, and the reader's answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from time import monotonic
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one

from gistpoint.core.corruption.blind import BlindAnswer, BlindItem, ShownVersion
from gistpoint.core.errors import UserError
from gistpoint.sessions.annotations.glance_reader import BlindReply, GlanceReader
from gistpoint.sessions.annotations.glances import Reading
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.dialogs.ask import CommentDialog, offer_again, show_error
from gistpoint.tui.screens.glance.verdicts import VerdictScreen
from gistpoint.tui.widgets.charts import gauge
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar, HeaderField
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain

MARK = signs.FULL
_WORDS = "words"
_TICK_S = 0.2
ANSWERS = {
    BlindAnswer.FAULT: "fault seen",
    BlindAnswer.DOUBTFUL: "doubtful",
    BlindAnswer.NOTHING: "nothing seen",
}
_QUESTION = "1 I see a fault · 2 something may be wrong · 3 I see nothing wrong"
_GAUGE_WIDTH = 10
"""The width, in cells, of the progress bar."""


class _Phase(Enum):
    """The phase of the current function."""

    WAITING = "waiting"
    """The code has not been shown yet."""
    LOOKING = "looking"
    HIDDEN = "hidden"
    """The time is up, or the answer is being entered."""


class GlanceScreen(BaseScreen[None]):
    """A screen that shows functions one by one, without revealing their versions, and saves answers at once.

    With a limit, the code is hidden after that many seconds. The diffs of the corrupted functions follow
    after the whole set, or each one right after its answer if `at_once` is set.
    """

    CSS_PATH = "glance.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.GLANCE)]
    HELP_PAGE = "glance"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.GLANCE,)

    header = query_one(HeaderBar)
    cover = query_one("#glance-cover", Plain)
    code = query_one(CodeView)

    def __init__(
        self,
        items: Sequence[BlindItem],
        reader: GlanceReader,
        *,
        at_once: bool = False,
        on_read: Callable[[], None] = lambda: None,
    ) -> None:
        """Show `items` in order, without those already read. `on_read` is called after each reading."""
        super().__init__()
        self._items, self._reader, self._at_once, self._on_read = tuple(items), reader, at_once, on_read
        self._phase = _Phase.WAITING
        self._begun = 0.0
        self._looked_ms = 0
        self._looked_at: dict[tuple[str, str], int] = {}
        """How long functions were looked at, in ms, before an earlier answer was taken back."""
        self._line = 0
        self._words = ""
        """The text of the answer that was taken back."""
        self._answered: list[BlindItem] = []
        """The functions read since the screen was opened, whose answers can be taken back."""

    def compose(self) -> ComposeResult:
        """Lay out the header, the code or its cover with the question in the frame, and the keys."""
        yield HeaderBar("")
        yield framed(CodeView(), "", _QUESTION)
        yield framed(Plain("", id="glance-cover"))
        yield KeyBar()

    def on_mount(self) -> None:
        """Show the first function that has not been read yet."""
        self.code.wrap = True  # a reader under a time limit should not have to scroll sideways
        if self._reader.limit_s:
            self.set_interval(_TICK_S, self._tick)
        self._go_on()

    @property
    def _left(self) -> list[BlindItem]:
        return [item for item in self._items if self._reading(item) is None]

    @property
    def _item(self) -> BlindItem:
        return self._left[0]

    def _reading(self, item: BlindItem) -> Reading | None:
        found = self._reader.glances(item.task)
        return found.reading(item.function, self._reader.seed, self._reader.round)

    @property
    def _looked_so_far_ms(self) -> int:
        return round((monotonic() - self._begun) * 1000) if self._phase is _Phase.LOOKING else self._looked_ms

    # Actions of the reader

    def action_show(self) -> None:
        """Show the waiting function, and start its time, or continue it if its answer was taken back."""
        if self._left and self._phase is _Phase.WAITING:
            self._phase, self._begun = _Phase.LOOKING, monotonic() - self._looked_ms / 1000
            self.code.load(self._item.text(self._item.version(self._reader.seed)))
            self._draw()
            self.code.focus()

    def action_mark(self) -> None:
        """Mark the line at the cursor, or unmark it."""
        if self._phase is _Phase.LOOKING:
            here = self.code.cursor_line
            self._line = 0 if self._line == here else here
            self._draw()

    def action_answer(self, answer: str) -> None:
        """Record the reader's answer, after asking for an explanation if it is a fault or a doubt."""
        if not self._left or self._phase is _Phase.WAITING:
            return
        chosen = BlindAnswer(answer)
        if self._phase is _Phase.LOOKING:
            self._looked_ms = self._looked_so_far_ms
            if self._reader.limit_s:
                self._hide()
        if chosen is BlindAnswer.NOTHING:
            self._keep(chosen, "")
            return
        where = f"line {self._line}" if self._line else "no line is marked"
        title = "What is wrong?" if chosen is BlindAnswer.FAULT else "What may be wrong?"

        def answered(words: str | None) -> None:
            if words is not None:
                self._keep(chosen, words)

        label = f"In a few words ({where}):"
        dialog = CommentDialog(title, value=self._words, label=label, asked=_WORDS)
        self.app.push_screen(dialog, answered)

    @property
    def drafts_about(self) -> tuple[str, str]:
        """The reader, and the function that is being read; empty if none is left."""
        if not self._left:
            return super().drafts_about
        item, reader = self._item, self._reader
        return reader.name, f"reading {reader.seed} {reader.round} of {item.task} {item.function}"

    def action_take_back(self) -> None:
        """Take back the last answer and ask again; if diffs are shown at once, all answers are final."""
        if self._at_once or not self._answered:
            self.notify("There is no answer to take back.", severity="warning")
            return
        item = self._answered[-1]
        reading, left = self._reading(item), self._left
        if reading is not None and not self._do(lambda: self._reader.take_back(reading.op)):
            return  # the answer could not be deleted, so the user may try again
        self._answered.pop()
        if reading is None:
            return
        if left:
            self._looked_at[_place(left[0])] = self._looked_so_far_ms
        self._items = (item, *(other for other in self._items if other is not item))
        self._begin(item, reading)

    def action_leave(self) -> None:
        """Close the program. All answers are saved."""
        self.app.exit()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only the keys that the current phase allows."""
        match action:
            case "show":
                return bool(self._left) and self._phase is _Phase.WAITING
            case "mark":
                return self._phase is _Phase.LOOKING
            case "answer":
                return bool(self._left) and self._phase is not _Phase.WAITING
        return True

    # Recording and drawing

    def _keep(self, answer: BlindAnswer, words: str) -> None:
        item = self._item
        line = 0 if answer is BlindAnswer.NOTHING else self._line
        if not self._do(lambda: self._reader.read(item, BlindReply(answer, line, words, self._looked_ms))):
            offer_again(self.draft(_WORDS), words)
            return
        self._do(self._on_read)
        self._answered.append(item)
        if not self._at_once:
            self._go_on()
        elif item.version(self._reader.seed) is ShownVersion.ORIGINAL:
            self.notify("That function was unchanged.")
            self._go_on()
        else:
            self._cover_code()
            self.app.push_screen(VerdictScreen([item], self._reader, last=False), lambda _: self._go_on())

    def _do(self, body: Callable[[], object]) -> bool:
        try:
            body()
        except UserError as error:
            show_error(self.app, error)
            return False
        return True

    def _go_on(self) -> None:
        if not self._left:
            self._finish()
            return
        self._begin(self._item)

    def _begin(self, item: BlindItem, taken_back: Reading | None = None) -> None:
        """Show a function, or wait for Enter if its time is limited.

        The code stays hidden if its limited time is used up: because the answer to the function was taken
        back, or because all of the time had passed when the answer to an earlier function was taken back.
        """
        self._line = taken_back.line if taken_back else 0
        self._looked_ms = taken_back.looked_ms if taken_back else self._looked_at.pop(_place(item), 0)
        self._words = taken_back.words if taken_back else ""
        self.code.clear()
        self._phase = _Phase.WAITING
        limit_ms = self._reader.limit_s * 1000
        if limit_ms and (taken_back is not None or self._looked_ms >= limit_ms):
            self._hide()
        elif limit_ms:
            self._draw()
        else:
            self.action_show()

    def _finish(self) -> None:
        """Show the diffs of the corrupted functions; afterwards, or if there are none, show the end."""
        changed = [item for item in self._items if item.version(self._reader.seed) is ShownVersion.CORRUPTED]
        self._cover_code()
        if changed and not self._at_once:
            self.app.push_screen(VerdictScreen(changed, self._reader, summary=self._summary(changed)))
            return
        what = f"All {len(self._items)} functions are" if len(self._items) > 1 else "The function is"
        self.header.show(name=f"{what} read", words="", fields=())
        self.cover.update("Thank you. Press q to leave.")
        framed(self.cover, "The end")
        self.refresh_bindings()

    def _summary(self, changed: Sequence[BlindItem]) -> str:
        untouched = [self._reading(item) for item in self._items if item not in changed]
        alarms = sum(reading is not None and reading.alarm for reading in untouched)
        return (
            f"{len(untouched)} of {len(self._items)} functions were unchanged; you called {alarms} of them"
            " faulty"
        )

    def _tick(self) -> None:
        if self._phase is _Phase.LOOKING:
            if monotonic() - self._begun >= self._reader.limit_s:
                self._looked_ms = self._looked_so_far_ms
                self._hide()
            else:
                self._draw()

    def _hide(self) -> None:
        self._phase = _Phase.HIDDEN
        self.code.clear()
        self._draw()

    def _cover_code(self) -> None:
        self._phase = _Phase.WAITING
        self.code.clear()
        self.code.display, self.cover.display = False, True
        self.cover.update("")

    def _draw(self) -> None:
        left, total, limit = len(self._left), len(self._items), self._reader.limit_s
        looking = self._phase is _Phase.LOOKING
        seconds = f"{max(0, round(limit - (monotonic() - self._begun)))} s left" if looking and limit else ""
        marked = f"line {self._line} is marked" if self._line else ""
        self.header.show(
            name=f"Function {total - left + 1} of {total}",
            words="   ".join(filter(None, (gauge(total - left, total, _GAUGE_WIDTH), marked))),
            fields=[HeaderField("", seconds)],
        )
        if self.code.display is not looking or self.cover.display is looking:
            self.code.display, self.cover.display = looking, not looking
        self.refresh_bindings()
        if looking:
            self.code.marks = {self._line: MARK} if self._line else {}
        if self._phase is _Phase.WAITING:
            self.cover.update(
                f"Press Enter to see the next function. It is shown for {limit:g} seconds.\n\n"
                "Press m to mark a line that looks wrong, while you see it."
            )
            framed(self.cover, "The next function")
        else:
            self.cover.update("The code is hidden. What did you see?")
            framed(self.cover, "", _QUESTION)


def _place(item: BlindItem) -> tuple[str, str]:
    return item.task, item.function
