"""The base of the screens of a study: a heading, what is shown or asked in frames, buttons, and the way out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button

from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar, HeaderField
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.text_view import TextView

SHORT = 60
"""Characters of a button's words at most; they are the program's own."""


class WithdrawAsked(Message):
    """Asks to take part no longer."""


class StudyPage(BaseScreen[str]):
    """A page; dismissed with the name of the button that was pressed, which is the answer."""

    CSS_PATH = "study.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_of(KeyScope.STUDY),
        # at once, before the next key is sent to what has the focus: it is an answer to the next question
        Binding("tab", "app.focus_next", show=False, priority=True),
        Binding("shift+tab", "app.focus_previous", show=False, priority=True),
    ]
    AUTO_FOCUS = ""
    HELP_PAGE = "study"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.STUDY,)
    BUTTONS: ClassVar[tuple[tuple[str, str], ...]] = (("next", "Go on"),)
    """The answers and their words; F9 gives the first."""
    MAY_WITHDRAW = True
    """Whether the person takes part and can stop doing so."""

    def __init__(self, heading: str, whose: str) -> None:
        """`whose` is the participant's code."""
        super().__init__()
        self._heading, self._whose = heading, whose

    def compose(self) -> ComposeResult:
        """Lay out heading, body, buttons and keys."""
        yield HeaderBar(self._heading, fields=[HeaderField("you are", self._whose)])
        yield from self.body()
        buttons = self.buttons()
        if buttons:
            with Horizontal(id="study-buttons"):
                for n, (answer, words) in enumerate(buttons):
                    button = Button(words[:SHORT], id=f"answer-{answer}", compact=True)
                    button.variant = "default" if n else "primary"
                    yield button
        yield KeyBar()

    def body(self) -> Iterable[Widget]:
        """Return what is between heading and buttons."""
        return ()

    def buttons(self) -> tuple[tuple[str, str], ...]:
        """Return the answers and their words, the usual one first."""
        return self.BUTTONS

    def on_mount(self) -> None:
        """Put the focus where the page begins."""
        start = self.starts_at()
        if start is not None:
            start.focus()

    def starts_at(self) -> Widget | None:
        """Return the widget that gets the first keys: the first button, or nothing."""
        return next(iter(self.query(Button)), None)

    def may_go_on(self) -> bool:
        """Whether all that is needed for the first answer is there; if not, say what is missing."""
        return True

    def answer(self, answer: str) -> None:
        """Give an answer: the first only if nothing is missing."""
        if answer != self.buttons()[0][0] or self.may_go_on():
            self.dismiss(answer)

    @on(Button.Pressed)
    def pressed(self, event: Button.Pressed) -> None:
        """Give the answer of a button."""
        event.stop()
        self.answer((event.button.id or "").removeprefix("answer-"))

    def action_next(self) -> None:
        """Give the first answer."""
        if self.buttons():
            self.answer(self.buttons()[0][0])

    def action_withdraw(self) -> None:
        """Ask to take part no longer."""
        self.post_message(WithdrawAsked())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the way out to who takes part."""
        if action == "withdraw":
            return self.MAY_WITHDRAW
        return action != "next" or bool(self.buttons())


def paragraphs(title: str, words: Iterable[str]) -> Widget:
    """Return the program's own paragraphs in a frame."""
    return framed(VerticalScroll(Plain("\n\n".join(words)), id="study-body"), title)


class StudyText(TextView):
    """A text of the study's organiser: literal, long lines folded; its frame tells what is still to be read."""

    def __init__(self, text: str, title: str = "", *, id: str = "study-text") -> None:
        super().__init__(id=id)
        self._text = text
        self._titled = title

    def on_mount(self) -> None:
        """Show it."""
        self.wrap = True
        self.load(self._text.rstrip())
        self._tell()

    def _tell(self) -> None:
        left = self.max_scroll_y - round(self.scroll_y)
        framed(self, self._titled, f"{left} lines more below: PgDn" if left > 0 else "")

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Tell what is left."""
        super().watch_scroll_y(old_value, new_value)
        self._tell()

    def on_resize(self, _event: events.Resize) -> None:
        """Tell what is left."""
        self.call_after_refresh(self._tell)
