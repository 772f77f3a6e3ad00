"""The last page of a session: done, stopped for today, refused, withdrawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.widget import Widget

from gistpoint.tui.screens.study.page import StudyPage, StudyText, paragraphs


class LastPage(StudyPage):
    """Says what there is to say; closing it closes the program."""

    BUTTONS = (("close", "Close"),)

    def __init__(
        self, heading: str, whose: str, words: Sequence[str], *, text: str = "", may_withdraw: bool = False
    ) -> None:
        """`words` are the program's own paragraphs, `text` is the organiser's."""
        super().__init__(heading, whose)
        self._words, self._text, self._may_withdraw = words, text, may_withdraw

    def body(self) -> Iterable[Widget]:
        """Return the paragraphs and the text."""
        yield paragraphs("", self._words)
        if self._text.strip():
            yield StudyText(self._text, "About the study")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the way out to who takes part."""
        return self._may_withdraw if action == "withdraw" else super().check_action(action, parameters)
