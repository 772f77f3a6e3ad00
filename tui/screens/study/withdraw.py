"""Whether to stop taking part, and what becomes of the data."""

from __future__ import annotations

from textual import on
from textual.widget import Widget
from textual.widgets import Button, Input

from gistpoint.sessions.studies.taking import ERASE, KEEP
from gistpoint.tui.screens.dialogs.ask import Choices, Dialog, Reasoned
from gistpoint.tui.widgets.plain import Plain

_CHOICES = (
    (KEEP, "Keep what I have done so far: it may be analysed"),
    (ERASE, "Erase all that there is of me; this can't be undone"),
)


class WithdrawDialog(Dialog[Reasoned]):
    """Answers with `keep` or `erase` and the person's words; Escape, as the first button, goes on taking part."""

    CSS_PATH = "../dialogs/dialogs.tcss"
    enter_answers = False

    def __init__(self) -> None:
        super().__init__("Stop taking part in this study?")

    def body(self) -> list[Widget]:
        """Return the choice and a field for words."""
        text = "You can stop at any time, without a reason. It ends your part for good, not only for today."
        words = Input(placeholder="If you like, in your own words: why", max_length=2_000)
        return [Plain(text), Choices([label for _, label in _CHOICES]), words]

    def buttons(self) -> list[Button]:
        """Return both answers; staying is the default."""
        return [Button("Go on taking part", id="no", variant="primary"), Button("Stop taking part", id="yes")]

    def on_mount(self) -> None:
        """Begin at the choice."""
        self.query_one(Choices).focus()

    @on(Button.Pressed)
    def press(self, event: Button.Pressed) -> None:
        """Give the answer of a button."""
        event.stop()
        at = self.query_one(Choices).highlighted or 0
        yes = event.button.id == "yes"
        self.dismiss(Reasoned(_CHOICES[at][0], self.query_one(Input).value) if yes else None)
