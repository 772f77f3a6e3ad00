"""Consent: what the study is, what each part of the consent is, and yes or no."""

from __future__ import annotations

from collections.abc import Iterable

from textual import on
from textual.containers import VerticalScroll
from textual.widget import Widget

from gistpoint.core.study.declaration import REQUIRED_ITEM, Texts
from gistpoint.tui.screens.study.page import StudyPage, StudyText
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.options import Options
from gistpoint.tui.widgets.plain import Plain, plain_line

NEEDED = "(needed)"


class ConsentPage(StudyPage):
    """Answers `agree` or `decline`; `ticked` says which items are ticked."""

    BUTTONS = (("agree", "I agree"), ("decline", "I do not take part"))

    def __init__(self, heading: str, whose: str, texts: Texts, told: str, *, again: bool) -> None:
        """`told` says whom to reach and how long data are kept; `again`, that the study was changed since."""
        super().__init__(heading, whose)
        self._texts, self._told, self._again = texts, told, again
        self._needed = [item.startswith(REQUIRED_ITEM) for item in texts.consent_items]
        words = [item.removeprefix(REQUIRED_ITEM).strip() for item in texts.consent_items]
        labels = [f"{item}   {NEEDED}" if needed else item for item, needed in zip(words, self._needed, strict=True)]
        self.items = Options(labels, several=True)

    def body(self) -> Iterable[Widget]:
        """Return the texts and the items."""
        if self._again:
            yield Plain("The study was changed since you agreed. Please read this again.", classes="study-note")
        parts = [part.strip() for part in (self._texts.welcome, self._texts.consent, self._told) if part.strip()]
        yield StudyText("\n\n".join(parts), "What you are asked")
        yield VerticalScroll(self.items, id="consent-items", can_focus=False)

    def on_mount(self) -> None:
        """Begin at the text, and count what is ticked."""
        super().on_mount()
        self.count_ticked()

    @on(Options.Changed)
    def count_ticked(self) -> None:
        """Tell in the frame how many items are ticked."""
        words = f"{len(self.items.chosen)} of {len(self._needed)} ticked; Tab goes there, Space ticks one"
        framed(self.query_one("#consent-items"), "What you agree to", words)

    def starts_at(self) -> Widget | None:
        """Return the text: PgDn reads on, Tab goes to the items."""
        return self.query_one(StudyText)

    @property
    def ticked(self) -> list[bool]:
        """Whether each item is ticked."""
        return [number in self.items.chosen for number in range(len(self._needed))]

    def may_go_on(self) -> bool:
        """Whether every needed item is ticked."""
        missing = [n for n, needed in enumerate(self._needed) if needed and not self.ticked[n]]
        if missing:
            count = "An item that is needed is" if len(missing) == 1 else f"{len(missing)} items that are needed are"
            words = plain_line(f"! {count} not ticked. Space ticks one.").stylize("bold $text-error")
            framed(self.query_one("#consent-items"), "What you agree to", words)
            self.items.cursor = missing[0]
            self.items.focus()
        return not missing

    def action_withdraw(self) -> None:
        """Not to agree is the way out for who has not agreed yet."""
        if self._again:
            super().action_withdraw()
        else:
            self.answer("decline")
