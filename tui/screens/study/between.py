"""Between two tasks, and a break."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.widget import Widget

from gistpoint.tui.screens.study.page import StudyPage, paragraphs


class BetweenPage(StudyPage):
    """Answers `next`, `break`, `stop`, or `look` at how the task would have been solved."""

    def __init__(
        self, heading: str, whose: str, words: Sequence[str], *, more: bool, break_offered: bool, look: bool
    ) -> None:
        """`more` tasks are left; with `look` the study shows the answer."""
        super().__init__(heading, whose)
        self._words, self._more, self._break, self._look = words, more, break_offered, look

    def body(self) -> Iterable[Widget]:
        """Return the paragraphs."""
        yield paragraphs("Between two tasks", self._words)

    def buttons(self) -> tuple[tuple[str, str], ...]:
        """Return what can be done."""
        look = (("look", "Look at the answer"),) if self._look else ()
        rest = (("break", "A break"),) if self._break else ()
        stop = (("stop", "Stop for today"),) if self._more else ()
        return (("next", "Go on"), *look, *rest, *stop)


class BreakPage(StudyPage):
    """No clock runs, and nothing of a task is in sight; answers `next`."""

    def body(self) -> Iterable[Widget]:
        """Return a sentence."""
        words = "Take your time: no clock runs. The program can also be closed (Ctrl+Q); it goes on here."
        yield paragraphs("A break", [words])
