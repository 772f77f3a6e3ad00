"""Before a task: what it will be like, under which rules, and whether to begin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.widget import Widget

from gistpoint.tui.screens.study.page import StudyPage, StudyText, paragraphs


class ReadyPage(StudyPage):
    """Answers `begin`, `break`, `stop`, or `skip` for a training task that may be passed over."""

    def __init__(self, heading: str, whose: str, words: Sequence[str], *, resume: bool, may_skip: bool) -> None:
        """`words` are paragraphs; with `resume` the task was begun before."""
        super().__init__(heading, whose)
        self._words, self._resume, self._may_skip = words, resume, may_skip

    def body(self) -> Iterable[Widget]:
        """Return the paragraphs."""
        yield paragraphs("Before you go on" if self._resume else "Before you begin", self._words)

    def buttons(self) -> tuple[tuple[str, str], ...]:
        """Return what can be done."""
        if self._resume:
            return (("begin", "Go on with the task"), ("close", "Another time"))
        skip = (("skip", "Pass over"),) if self._may_skip else ()
        return (("begin", "Begin"), *skip, ("break", "A break"), ("stop", "Stop for today"))


class RulesPage(StudyPage):
    """Answers `next` when the rules were read."""

    BUTTONS = (("next", "I have read this"), ("close", "Another time"))

    def __init__(self, heading: str, whose: str, rules: str) -> None:
        super().__init__(heading, whose)
        self._rules = rules

    def body(self) -> Iterable[Widget]:
        """Return the rules."""
        yield StudyText(self._rules, "The rules")

    def starts_at(self) -> Widget | None:
        """Return the text, which is to be read."""
        return self.query_one(StudyText)
