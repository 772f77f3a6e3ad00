"""The base class of a study's pages: a heading, content, buttons, and a way to withdraw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button

from gistpoint.core.text import plural
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import KeyScope, bindings_of, key_named, shown_key
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar, HeaderField
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain, plain_line
from gistpoint.tui.widgets.text_view import TextView

SHORT = 60
"""The maximum length of a button's label, in characters."""


class WithdrawRequested(Message):
    """A request to the app to open the question about withdrawing from the study."""


class StudyPage(BaseScreen[str]):
    """A page, dismissed with the name of the answer that was chosen."""

    CSS_PATH = "study.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_of(KeyScope.STUDY),
        # These have priority, so that the focus moves before the next key, which answers the next question.
        Binding("tab", "app.focus_next", show=False, priority=True),
        Binding("shift+tab", "app.focus_previous", show=False, priority=True),
    ]
    AUTO_FOCUS = ""
    HELP_PAGE = "study"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.STUDY,)
    BUTTONS: ClassVar[tuple[tuple[str, str], ...]] = (("next", "Continue"),)
    """The answers and their labels. F9 chooses the first one."""
    MAY_WITHDRAW = True
    """Whether the person takes part in the study and may withdraw."""

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

    @property
    def key_names(self) -> Mapping[str, str]:
        """The label of the first answer, such as "I agree", as the name of its key; empty without answers."""
        first = next(iter(self.buttons()), None)
        return {} if first is None else {"next": first[1][:SHORT]}

    def body(self) -> Iterable[Widget]:
        """Return the widgets between heading and buttons."""
        return ()

    def buttons(self) -> tuple[tuple[str, str], ...]:
        """Return the answers and their labels, with the usual one first."""
        return self.BUTTONS

    def on_mount(self) -> None:
        """Focus the start of the page."""
        start = self.starts_at()
        if start is not None:
            start.focus()

    def starts_at(self) -> Widget | None:
        """Return the widget to focus, by default the first button; None if the page focuses one itself."""
        return next(iter(self.query(Button)), None)

    def may_go_on(self) -> bool:
        """Return whether the first answer is possible. Overrides of this also show what is missing."""
        return True

    def answer(self, answer: str) -> None:
        """Dismiss the page with an answer; the first answer is ignored while something is missing."""
        if answer != self.buttons()[0][0] or self.may_go_on():
            self.dismiss(answer)

    @on(Button.Pressed)
    def pressed(self, event: Button.Pressed) -> None:
        """Choose the button's answer."""
        event.stop()
        self.answer((event.button.id or "").removeprefix("answer-"))

    def action_next(self) -> None:
        """Choose the first answer, if there is one."""
        if self.buttons():
            self.answer(self.buttons()[0][0])

    def action_withdraw(self) -> None:
        """Ask the app to open the question about withdrawing."""
        self.post_message(WithdrawRequested())

    def action_no_task(self) -> None:
        """Explain that only an open task can be given up, and which key leaves the study."""
        key = shown_key(key_named("study.withdraw").keys.split(",")[0])
        self.app.notify(f"No task is open. {key} leaves the study for good.")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer withdrawing only to participants, and the first answer only if there is one."""
        if action in ("withdraw", "no_task"):
            return self.MAY_WITHDRAW
        return action != "next" or bool(self.buttons())


def paragraphs(title: str, words: Iterable[str]) -> Widget:
    """Return a frame with paragraphs that the program, not the organiser, has written."""
    return framed(VerticalScroll(Plain("\n\n".join(words)), id="study-body"), title)


class StudyText(TextView):
    """Text by the study's organiser, shown literally with wrapped lines.

    The frame shows how many lines are still below.
    """

    def __init__(self, text: str, title: str = "", *, id: str = "study-text") -> None:
        super().__init__(id=id)
        self._text = text
        self._titled = title
        self.was_read = False
        """Whether the end of the text has been on the screen."""

    def on_mount(self) -> None:
        """Show the text."""
        self.wrap = True
        self.load(self._text.rstrip())
        self._show_rest()

    @property
    def is_at_end(self) -> bool:
        """Whether the end of the text is on the screen now."""
        return self.size.height > 0 and not self._left

    @property
    def _left(self) -> int:
        return max(0, self.max_scroll_y - round(self.scroll_y))

    def warn(self, words: str) -> None:
        """Show in the frame what is missing, with the number of lines below."""
        line = plain_line(f"! {words}: {plural(self._left, 'more line')} below: PgDn")
        framed(self, self._titled, line.stylize("bold $text-error"))

    def _show_rest(self) -> None:
        left = self._left
        framed(self, self._titled, f"{plural(left, 'more line')} below: PgDn" if left else "")

    def _follow(self) -> None:
        """Record whether the end is on the screen, and show how many lines are still below."""
        self.was_read = self.was_read or self.is_at_end
        self._show_rest()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Show how many lines are still below."""
        super().watch_scroll_y(old_value, new_value)
        self._follow()

    def on_resize(self, _event: events.Resize) -> None:
        """Show how many lines are still below, after the lines were wrapped for the new size."""
        self.call_after_refresh(self._follow)
