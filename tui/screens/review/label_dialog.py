"""The dialog with all labels: the key that is shown with a label picks it."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap

from textual import events
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input

from gistpoint.core.text import visible_line
from gistpoint.sessions.annotations.labels import Label as StepLabel
from gistpoint.tui.screens.dialogs.ask import Choices, PickDialog

_NARROWEST = 20


class LabelChoices(Choices):
    """Labels with their meanings. A line that is too long is continued below its own beginning."""

    _wrapped_at = 0

    def _words(self, number: int) -> Content:
        mark = f"{self._marks[number != self.highlighted]} "
        key, _, text = visible_line(self._labels[number]).partition("  ")
        indent = " " * (len(mark) + len(key) + 2)
        width = max(_NARROWEST, self.size.width - len(indent) - 1)
        lines = (wrap(text, width) if self.size.width else []) or [text]
        return Content(f"{mark}{key}  " + f"\n{indent}".join(lines))

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the labels to a new width. That changes the height, which must not wrap them once more."""
        if event.size.width != self._wrapped_at:
            self._wrapped_at = event.size.width
            for number in range(self.option_count):
                self.replace_option_prompt_at_index(number, self._words(number))


class LabelDialog(PickDialog):
    """Labels to choose from. A label's key picks it, other characters filter the list."""

    CSS_PATH = "../dialogs/dialogs.tcss"

    def __init__(self, title: str, labels: Mapping[str, StepLabel]) -> None:
        """`labels` are the labels by the answers for them."""
        choices = [
            (answer, f"{label.key or ' '}  {label.name}: {label.description}")
            for answer, label in labels.items()
        ]
        super().__init__(title, choices)
        # If two sets use the same key, it belongs to the first one, as on the review screen.
        self._by_key = {label.key: answer for answer, label in reversed([*labels.items()]) if label.key}

    def body(self) -> list[Widget]:
        """Return the field and the list."""
        return [
            Input(placeholder="A key picks its label; other letters filter"),
            LabelChoices(marks=("▸", " ")),
        ]

    def _fill(self, words: str) -> None:
        if words in self._by_key:
            self.dismiss(self._by_key[words])
        else:
            super()._fill(words)
