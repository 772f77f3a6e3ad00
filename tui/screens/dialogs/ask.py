"""Dialogs: messages, and questions that are answered with text or a choice."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from textual import events, on
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList
from textual.widgets.option_list import Option

from gistpoint.core.errors import UserError
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.consent import WHAT_IT_MEANS
from gistpoint.tui.drafts import DraftPlace
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.line_view import LineView
from gistpoint.tui.widgets.options import Options
from gistpoint.tui.widgets.plain import Plain, plain_line

Answer = TypeVar("Answer")
_ANSWER = "answer"
"""The name of the field of a `TextDialog` among its drafts."""
_FILTER = "0"
"""The name of a list's filter among a dialog's drafts."""
GRACE_S = 1.0
"""Seconds for which a screen that the user did not request ignores keys, meant for the previous screen."""


class Dialog(ModalScreen[Answer | None], BaseScreen[Answer | None]):
    """A box at the bottom, which leaves its subject visible. Escape dismisses it with None."""

    CSS_PATH = "dialogs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.DIALOG)]

    HELP_PAGE = "dialog"
    unrequested = False
    """Whether the dialog opens without a request of the user, whose keys may be meant for another screen."""
    enter_answers = True
    """Whether Enter in a field presses the first button."""
    _replaces = False
    """Whether typing replaces a draft that is offered again, rather than continuing it.

    Such a draft is a number or a filter, which is not worth keeping after the end of the program.
    """
    _above: Sequence[Widget] = ()
    """The widgets that show the subject of the question."""

    def __init__(self, title: str, *, asked: str = "", drafts: DraftPlace | None = None) -> None:
        """`asked` identifies the question among the questions of a screen; by default, the title does.

        Unsent text is saved in `drafts`, by default those of the screen below.
        """
        super().__init__()
        self._title, self._question = title, asked or title
        self._drafts = drafts
        self._first_texts: dict[str, str] = {}
        """The values of the fields before anything was typed."""

    def compose(self) -> ComposeResult:
        """Lay out body, buttons and keys. The title is in the frame, so it takes no extra line."""
        with framed(Vertical(classes="dialog-box"), self._title):
            with VerticalScroll(classes="dialog-body", can_focus=False):
                for widget in self.body():
                    if isinstance(widget, Input):
                        widget.compact = True
                    yield widget
            with Horizontal(classes="dialog-buttons"):
                for button in self.buttons():
                    button.compact = True
                    yield button
        yield KeyBar()

    def on_mount(self) -> None:
        """Restore text that was typed earlier for the same question, but not sent.

        By now, the subclass has filled its fields, because Textual calls a subclass's handler first.
        """
        if self._drafts is None:
            stack = self.app.screen_stack
            below = (screen for screen in reversed(stack) if not isinstance(screen, Dialog))
            owner = next((screen for screen in below if isinstance(screen, BaseScreen)), self)
            self._drafts = owner.draft(self._question, lasting=not self._replaces)
        kept, fields = self._drafts.read(), self._fields()
        self._first_texts = self._texts()
        for name, choice in self._choices_by_name().items():
            if name in kept:
                choice.choose(kept[name])
        for name, field in fields.items():
            if kept.get(name):
                field.value = kept[name]
                field.cursor_position = len(field.value)
                field.select_on_focus = self._replaces  # for a field that gets the focus later
                if self._replaces:
                    field.select_all()

    @on(Input.Changed)
    @on(Options.Changed)
    @on(OptionList.OptionHighlighted)
    def keep_drafts(self) -> None:
        """Save the typed text and the choices, so that they survive Escape and the closing of the screen."""
        if self._drafts is None or self._is_left:
            return
        # Unchanged text is not a draft: the dialog may offer different text next time.
        changed = {name: text for name, text in self._texts().items() if text != self._first_texts.get(name)}
        self._drafts.write(changed)

    def on_key(self, event: events.Key) -> None:
        """Write a typed character into the last field if no field has the focus, so that it is not lost.

        Spaces and keys with a binding are left alone.
        """
        means_something = event.key in self.active_bindings
        if event.is_printable and event.character != " " and not means_something:
            self._write(event, event.character or "")

    def on_paste(self, event: events.Paste) -> None:
        """Write the first line of pasted text into the last field if no field has the focus."""
        self._write(event, event.text.partition("\n")[0])

    def _write(self, event: events.Event, text: str) -> None:
        """Write text into the last visible field, if there is one and no field has the focus."""
        fields = [field for field in self._fields().values() if field.display]
        if not fields or isinstance(self.focused, Input):
            return
        event.stop()
        event.prevent_default()
        field = fields[-1]
        field.select_on_focus = False  # otherwise, the next letter would replace this one
        field.focus()
        field.cursor_position = len(field.value)
        field.insert_text_at_cursor(text)

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Close the dialog if it is on top. An answer deletes the draft; Escape keeps it."""
        if result is not None and self.is_active and self._drafts is not None:
            self._drafts.write({})
        return super().dismiss(result)

    def _texts(self) -> dict[str, str]:
        """Return the typed text and the choices, by the names of fields and lists; passwords are left out."""
        typed = {name: field.value for name, field in self._fields().items() if not field.password}
        return typed | {name: choice.chosen_words for name, choice in self._choices_by_name().items()}

    def _choices_by_name(self) -> dict[str, Choices | Options]:
        """Return the lists to choose from by their ids; the name of a list without an id has its index."""
        found = [widget for widget in self.query("*") if isinstance(widget, Choices | Options)]
        return {widget.id or f"choice {number}": widget for number, widget in enumerate(found)}

    def _fields(self) -> dict[str, Input]:
        """Return the input fields by their ids; the key of a field without an id is its index."""
        return {field.id or str(number): field for number, field in enumerate(self.query(Input))}

    @property
    def title_in_help(self) -> str:
        """The dialog's title, which is also the title of its help."""
        return self._title

    def accepts(self, event: events.Event) -> bool:
        """Return whether the dialog accepts an event.

        A dialog that the user did not request ignores the events of the first second.
        """
        return not self.unrequested or event.time >= self.opened_at + GRACE_S

    def _views(self) -> list[LineView]:
        return [view for widget in self._above for view in widget.query(LineView)]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer scrolling only while the subject is not fully visible."""
        return action != "scroll_shown" or any(view.max_scroll_y > 0 for view in self._views())

    def action_scroll_shown(self, by: int) -> None:
        """Scroll the subject by a number of rows, down if positive."""
        for view in self._views():
            view.scroll_relative(y=by, animate=False)

    def on_resize(self) -> None:
        """Check again whether the subject can be scrolled."""
        self.call_after_refresh(self.refresh_bindings)

    def body(self) -> list[Widget]:
        """Return the widgets between the title and the buttons."""
        return []

    def buttons(self) -> list[Button]:
        """Return the buttons, with the affirmative answer first."""
        return [Button("OK", id="yes", variant="primary")]

    @property
    def field_words(self) -> str:
        """The description of Enter in a field: the first button's label; empty if Enter does not answer."""
        return str(self.buttons()[0].label) if self.enter_answers else ""

    def action_cancel(self) -> None:
        """Dismiss with None."""
        self.dismiss(None)


class ConfirmDialog(Dialog[bool]):
    """A question with two answers: True if confirmed, False if refused, None if cancelled."""

    def __init__(
        self,
        title: str,
        text: str,
        *,
        yes: str,
        no: str = "Cancel",
        careful: bool = False,
        shown: Sequence[Widget] = (),
        drawer: bool = False,
    ) -> None:
        """Ask `text`, with `yes` and `no` as the labels of the buttons.

        `careful` makes refusal the default. The widgets in `shown` are shown above the text. With `drawer`,
        the dialog takes the whole width at the bottom.
        """
        super().__init__(title)
        self._text, self._yes, self._no, self._careful = text, yes, no, careful
        self._above = shown
        self.set_class(drawer, "-drawer")

    def body(self) -> list[Widget]:
        """Return the subject and the text of the question."""
        return [*self._above, Plain(self._text)]

    def buttons(self) -> list[Button]:
        """Return the button to confirm and the one to refuse."""
        yes = Button(self._yes, id="yes", variant="warning" if self._careful else "primary")
        return [yes, Button(self._no, id="no")]

    def on_mount(self) -> None:
        """Put the focus on the default answer."""
        self.query_one("#no" if self._careful else "#yes", Button).focus()

    @on(Button.Pressed)
    def answer(self, event: Button.Pressed) -> None:
        """Dismiss with the answer of the button."""
        event.stop()
        self.dismiss(event.button.id == "yes")


class MessageDialog(Dialog[bool]):
    """A message with an optional hint."""

    def __init__(self, title: str, text: str, *, hint: str = "", instead: bool = False) -> None:
        """`instead` means that the message replaces the screen that a key was meant to open.

        Keys typed for that screen must not close the dialog unread.
        """
        super().__init__(title)
        self._text, self._hint, self._instead = text, hint, instead

    def is_same_as(self, other: MessageDialog) -> bool:
        """Return whether another dialog shows the same title, message and hint."""
        return (self._title, self._text, self._hint) == (other._title, other._text, other._hint)

    def accepts(self, event: events.Event) -> bool:
        """Return whether the message accepts an event; with `instead`, not one from before it was opened."""
        too_early = self._instead and event.time < self.opened_at
        return not too_early and super().accepts(event)

    def body(self) -> list[Widget]:
        """Return the message and its hint."""
        hint = [Plain(self._hint, classes="dialog-hint")] if self._hint else []
        return [Plain(self._text), *hint]

    @on(Button.Pressed)
    def close(self, event: Button.Pressed) -> None:
        """Close the dialog."""
        event.stop()
        self.dismiss(True)


Result = TypeVar("Result")


def show_error(app: App[Result], error: UserError) -> None:
    """Show an error that the user can fix, with its hint, unless the same message is open already."""
    dialog = MessageDialog("That did not work", error.message, hint=error.hint, instead=True)
    if not any(isinstance(one, MessageDialog) and one.is_same_as(dialog) for one in app.screen_stack):
        app.push_screen(dialog)


def offer_again(place: DraftPlace, words: str) -> None:
    """Have the next `TextDialog` for a question offer words that could not be saved."""
    place.write({_ANSWER: words})


class TextDialog(Dialog[str]):
    """A field for a line of text, such as a line number or a search pattern. The answer is the text."""

    def __init__(
        self,
        title: str,
        *,
        label: str = "",
        value: str = "",
        placeholder: str = "",
        yes: str = "OK",
        replaces: bool = False,
        asked: str = "",
        drafts: DraftPlace | None = None,
    ) -> None:
        """With `replaces`, typing replaces a draft that is offered again."""
        super().__init__(title, asked=asked, drafts=drafts)
        self._label, self._value, self._placeholder, self._yes = label, value, placeholder, yes
        self._replaces = replaces

    def body(self) -> list[Widget]:
        """Return the label and the field."""
        field = Input(self._value, placeholder=self._placeholder, id=_ANSWER)
        return [*([Plain(self._label)] if self._label else []), field]

    def buttons(self) -> list[Button]:
        """Return the button that answers."""
        return [Button(self._yes, id="yes", variant="primary")]

    def on_mount(self) -> None:
        """Put the focus into the field."""
        self.query_one(Input).focus()

    @on(Input.Submitted)
    @on(Button.Pressed)
    def answer(self) -> None:
        """Dismiss with the text."""
        self.dismiss(self.query_one(Input).value)


@dataclass(frozen=True, slots=True)
class ReasonAnswer:
    """A choice from a closed set, with an explanation in the user's own words."""

    code: str
    text: str


class Choices(OptionList):
    """A list with one chosen item, which is marked by a character as well as by a colour."""

    def __init__(
        self,
        labels: Sequence[str] = (),
        *,
        marks: tuple[str, str] = (f"({signs.FULL})", "( )"),
        enter_words: str = "",
    ) -> None:
        """`marks` are the marks of the chosen label and of the others.

        `enter_words` describes the effect of Enter.
        """
        self.enter_words = enter_words
        self._labels: Sequence[str] = ()
        self._marks = marks
        self._marked: int | None = None
        super().__init__(compact=True)
        self.offer(labels)

    def offer(self, labels: Sequence[str]) -> None:
        """Replace the choices, and choose the first one."""
        self._labels = labels
        self.clear_options()
        self.add_options([Option(self._option_content(number)) for number in range(len(labels))])
        self.highlighted = 0 if labels else None

    @property
    def chosen_words(self) -> str:
        """The label of the choice; empty if there is none."""
        return "" if self.highlighted is None else self._labels[self.highlighted]

    def choose(self, words: str) -> None:
        """Choose the label `words`. If there is none, nothing changes."""
        if words in self._labels:
            self.highlighted = [*self._labels].index(words)

    def _option_content(self, number: int) -> Content:
        return plain_line(f"{self._marks[number != self.highlighted]} {self._labels[number]}")

    def watch_highlighted(self, highlighted: int | None) -> None:
        """Move the mark to the highlighted choice."""
        super().watch_highlighted(highlighted)
        before, self._marked = self._marked, highlighted
        for number in (before, highlighted):
            if number is not None and number < self.option_count:
                self.replace_option_prompt_at_index(number, self._option_content(number))


class ReasonDialog(Dialog[ReasonAnswer]):
    """A choice of one of several reasons, with a field for an explanation. The answer is a `ReasonAnswer`."""

    def __init__(
        self,
        title: str,
        text: str,
        choices: Sequence[tuple[str, str]],
        *,
        yes: str,
        words: str = "In your own words",
        at_once: bool = False,
    ) -> None:
        """`choices` are pairs of a code and a label.

        With `at_once`, Enter on a reason answers; otherwise it moves to the field.
        """
        super().__init__(title)
        self._at_once = at_once
        self._text, self._choices, self._yes, self._words = text, choices, yes, words

    def body(self) -> list[Widget]:
        """Return the text, the reasons and the field."""
        does = self._yes if self._at_once else "Choose"
        choices = Choices([label for _, label in self._choices], enter_words=does)
        return [Plain(self._text), choices, Input(placeholder=self._words)]

    def buttons(self) -> list[Button]:
        """Return the button to answer and the one to cancel."""
        return [Button(self._yes, id="yes", variant="primary"), Button("Cancel", id="no")]

    def on_mount(self) -> None:
        """Focus the reasons."""
        self.query_one(Choices).focus()

    @on(OptionList.OptionSelected)
    def choose(self) -> None:
        """Answer if the dialog was created with `at_once`; otherwise move to the field."""
        if self._at_once:
            self._answer()
        else:
            self.query_one(Input).focus()

    @on(Input.Submitted)
    def confirm(self) -> None:
        """Answer with the chosen reason and the text."""
        self._answer()

    @on(Button.Pressed)
    def press(self, event: Button.Pressed) -> None:
        """Answer or cancel."""
        event.stop()
        if event.button.id == "yes":
            self._answer()
        else:
            self.dismiss(None)

    def _answer(self) -> None:
        at = self.query_one(Choices).highlighted or 0
        self.dismiss(ReasonAnswer(self._choices[at][0], self.query_one(Input).value))


class PickDialog(Dialog[str]):
    """A list to choose from, with a field that filters it. The answer is the code of the choice."""

    _replaces = True

    def __init__(self, title: str, choices: Sequence[tuple[str, str]]) -> None:
        """`choices` are pairs of a code and a label."""
        super().__init__(title)
        self._choices = choices
        self._shown: list[str] = []

    def body(self) -> list[Widget]:
        """Return the field and the list."""
        return [Input(placeholder="Type to filter"), Choices(marks=(signs.HERE, " "))]

    def on_mount(self) -> None:
        """Show all choices, with the focus in the field."""
        self._fill("")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def narrow(self, event: Input.Changed) -> None:
        """Show the choices that contain all typed words."""
        marked = self.query_one(Choices).chosen_words
        self._fill(event.value)
        if self._drafts is not None and event.value == self._drafts.read().get(_FILTER):
            self.query_one(Choices).choose(marked)  # the choice that this filter had before Escape

    @on(Input.Submitted)
    @on(Button.Pressed)
    def first(self) -> None:
        """Dismiss with the highlighted choice, or with None if no choice matches."""
        at = self.query_one(OptionList).highlighted
        self.dismiss(self._shown[at] if at is not None and self._shown else None)

    @on(OptionList.OptionSelected)
    def choose(self, event: OptionList.OptionSelected) -> None:
        """Dismiss with the selected choice."""
        self.dismiss(self._shown[event.option_index])

    def key_down(self) -> None:
        """Move down in the list while the focus stays in the field."""
        self.query_one(OptionList).action_cursor_down()

    def key_up(self) -> None:
        """Move up in the list while the focus stays in the field."""
        self.query_one(OptionList).action_cursor_up()

    def _fill(self, words: str) -> None:
        wanted = words.lower().split()
        found = [
            (answer, label)
            for answer, label in self._choices
            if all(word in label.lower() for word in wanted)
        ]
        self._shown = [answer for answer, _ in found]
        self.query_one(Choices).offer([label for _, label in found])


class CommentDialog(TextDialog):
    """A dialog with a field for a comment."""

    def __init__(
        self,
        title: str,
        *,
        value: str = "",
        label: str = "",
        asked: str = "",
        drafts: DraftPlace | None = None,
    ) -> None:
        super().__init__(
            title,
            label=label,
            value=value,
            placeholder="Why? Enter saves it, Esc keeps it as a draft",
            asked=asked,
            drafts=drafts,
        )


_TEXT = f"{{why}}\n\n{WHAT_IT_MEANS} Your answer applies to this machine from now on."
_WAIT_SECONDS = 0.2


class ConsentPrompt:
    """A prompt in an app that asks for consent to run code without isolation.

    `ask` blocks, so it must not be called in the thread of the event loop.
    """

    def __init__(self, app: App[object]) -> None:
        self._app = app

    def ask(self, why_not: str) -> bool:
        """Ask the question, with `why_not` as the reason, and return whether the user consents.

        This waits for the answer. The result is also False on Escape, and if the app closes first.
        """
        answered = threading.Event()
        answers: list[bool | None] = []

        def done(yes: bool | None) -> None:
            answers.append(yes)
            answered.set()

        dialog = ConfirmDialog(
            "Run without isolation?", _TEXT.format(why=why_not), yes="Run it anyway", no="Don't", careful=True
        )
        dialog.unrequested = True
        self._app.call_from_thread(self._app.push_screen, dialog, done)
        while not answered.wait(_WAIT_SECONDS):
            if not self._app.is_running:
                return False
        return bool(answers and answers[0])
