"""Shown where the next task needs the team's store, and it does not answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.widget import Widget

from gistpoint.tui.screens.study.page import StudyPage, paragraphs


class AwayPage(StudyPage):
    """Nothing of a task is in sight and no clock runs; answers `again` or `close`."""

    BUTTONS = (("again", "Try again"), ("close", "Close"))

    def __init__(self, heading: str, whose: str, words: Sequence[str]) -> None:
        """`words` say what does not answer."""
        super().__init__(heading, whose)
        self._words = words

    def body(self) -> Iterable[Widget]:
        """Return the paragraphs."""
        yield paragraphs("Not now", self._words)
