"""The base of a study's screens: a heading, framed content, buttons, and the way out."""

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
"""The most characters of a button's label."""


class WithdrawAsked(Message):
    """Asks to stop taking part."""


class StudyPage(BaseScreen[str]):
    """A page, dismissed with the name of the pressed button as the answer."""

    CSS_PATH = "study.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_of(KeyScope.STUDY),
        # at once, before the next key goes to the focused widget: it answers the next question
        Binding("tab", "app.focus_next", show=False, priority=True),
        Binding("shift+tab", "app.focus_previous", show=False, priority=True),
    ]
    AUTO_FOCUS = ""
    HELP_PAGE = "study"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.STUDY,)
    BUTTONS: ClassVar[tuple[tuple[str, str], ...]] = (("next", "Continue"),)
    """The answers and their labels. F9 gives the first."""
    MAY_WITHDRAW = True
    """Whether the person takes part and can stop."""

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
        """Return the content between heading and buttons."""
        return ()

    def buttons(self) -> tuple[tuple[str, str], ...]:
        """Return the answers and their labels, the usual one first."""
        return self.BUTTONS

    def on_mount(self) -> None:
        """Put the focus at the start of the page."""
        start = self.starts_at()
        if start is not None:
            start.focus()

    def starts_at(self) -> Widget | None:
        """Return the widget that gets the first keys: the first button, or nothing."""
        return next(iter(self.query(Button)), None)

    def may_go_on(self) -> bool:
        """Return whether everything needed for the first answer is there. If not, show what is missing."""
        return True

    def answer(self, answer: str) -> None:
        """Give an answer; the first one only if nothing is missing."""
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
        """Ask to stop taking part."""
        self.post_message(WithdrawAsked())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the way out to participants."""
        if action == "withdraw":
            return self.MAY_WITHDRAW
        return action != "next" or bool(self.buttons())


def paragraphs(title: str, words: Iterable[str]) -> Widget:
    """Return the program's own paragraphs in a frame."""
    return framed(VerticalScroll(Plain("\n\n".join(words)), id="study-body"), title)


class StudyText(TextView):
    """A text by the study's organiser: literal, with long lines folded.

    Its frame shows how much is unread.
    """

    def __init__(self, text: str, title: str = "", *, id: str = "study-text") -> None:
        super().__init__(id=id)
        self._text = text
        self._titled = title

    def on_mount(self) -> None:
        """Show the text."""
        self.wrap = True
        self.load(self._text.rstrip())
        self._tell()

    def _tell(self) -> None:
        left = self.max_scroll_y - round(self.scroll_y)
        framed(self, self._titled, f"{left} more lines below: PgDn" if left > 0 else "")

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Show how much is left."""
        super().watch_scroll_y(old_value, new_value)
        self._tell()

    def on_resize(self, _event: events.Resize) -> None:
        """Show how much is left."""
        self.call_after_refresh(self._tell)
