"""Questions that are answered with words or with a choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import on
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList
from textual.widgets.option_list import Option

from gistpoint.tui.screens.dialogs.base import Dialog
from gistpoint.tui.widgets.plain import Plain, plain_line


class TextDialog(Dialog[str]):
    """Asks for a line of text: a line number, something to search for."""

    def __init__(self, title: str, *, label: str = "", value: str = "", placeholder: str = "") -> None:
        super().__init__(title)
        self._label, self._value, self._placeholder = label, value, placeholder

    def body(self) -> list[Widget]:
        """Return the label and the field."""
        field = Input(self._value, placeholder=self._placeholder, id="answer")
        return [*([Plain(self._label)] if self._label else []), field]

    def on_mount(self) -> None:
        """Let the typing begin."""
        self.query_one(Input).focus()

    @on(Input.Submitted)
    @on(Button.Pressed)
    def answer(self) -> None:
        """Answer with the text."""
        self.dismiss(self.query_one(Input).value)


@dataclass(frozen=True, slots=True)
class Reasoned:
    """A choice from a closed set, with the person's own words."""

    code: str
    text: str


class Choices(OptionList):
    """One of some; a mark, not colour alone, says which."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._labels = labels
        super().__init__(*(Option(plain_line(f"( ) {label}")) for label in labels))

    def watch_highlighted(self, highlighted: int | None) -> None:
        """Move the mark."""
        super().watch_highlighted(highlighted)
        for number, label in enumerate(self._labels[: self.option_count]):
            mark = "(●)" if number == highlighted else "( )"
            self.replace_option_prompt_at_index(number, plain_line(f"{mark} {label}"))


class ReasonDialog(Dialog[Reasoned]):
    """Asks for one of some reasons, and for words."""

    def __init__(
        self, title: str, text: str, choices: Sequence[tuple[str, str]], *, yes: str, words: str = "In your own words"
    ) -> None:
        """`choices` are (code, what people read)."""
        super().__init__(title)
        self._text, self._choices, self._yes, self._words = text, choices, yes, words

    def body(self) -> list[Widget]:
        """Return the reasons and a field for words."""
        choices = Choices([label for _, label in self._choices])
        return [Plain(self._text), choices, Input(placeholder=self._words)]

    def buttons(self) -> list[Button]:
        """Return the answer and the way back."""
        return [Button(self._yes, id="yes", variant="primary"), Button("Cancel", id="no")]

    def on_mount(self) -> None:
        """Start at the reasons."""
        choices = self.query_one(Choices)
        choices.highlighted = 0
        choices.focus()

    @on(OptionList.OptionSelected)
    def choose(self) -> None:
        """Go on to the words."""
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def confirm(self) -> None:
        """Answer from the field of words."""
        self._answer()

    @on(Button.Pressed)
    def press(self, event: Button.Pressed) -> None:
        """Answer or go back."""
        event.stop()
        if event.button.id == "yes":
            self._answer()
        else:
            self.dismiss(None)

    def _answer(self) -> None:
        at = self.query_one(Choices).highlighted or 0
        self.dismiss(Reasoned(self._choices[at][0], self.query_one(Input).value))


class PickDialog(Dialog[str]):
    """A list to choose from, which a field narrows down."""

    def __init__(self, title: str, choices: Sequence[tuple[str, str]]) -> None:
        """`choices` are (answer, what people read)."""
        super().__init__(title)
        self._choices = choices
        self._shown: list[str] = []

    def body(self) -> list[Widget]:
        """Return the field and the list."""
        return [Input(placeholder="Type to narrow down"), OptionList(id="choices")]

    def on_mount(self) -> None:
        """Show all."""
        self._fill("")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def narrow(self, event: Input.Changed) -> None:
        """Show what holds the words."""
        self._fill(event.value)

    @on(Input.Submitted)
    @on(Button.Pressed)
    def first(self) -> None:
        """Choose what is highlighted."""
        at = self.query_one(OptionList).highlighted
        self.dismiss(self._shown[at] if at is not None and self._shown else None)

    @on(OptionList.OptionSelected)
    def choose(self, event: OptionList.OptionSelected) -> None:
        """Choose a row."""
        self.dismiss(self._shown[event.option_index])

    def key_down(self) -> None:
        """Move on in the list from the field."""
        self.query_one(OptionList).action_cursor_down()

    def key_up(self) -> None:
        """Move back in the list from the field."""
        self.query_one(OptionList).action_cursor_up()

    def _fill(self, words: str) -> None:
        wanted = words.lower().split()
        found = [(answer, label) for answer, label in self._choices if all(word in label.lower() for word in wanted)]
        self._shown = [answer for answer, _ in found]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(plain_line(label)) for _, label in found])
        if found:
            options.highlighted = 0
