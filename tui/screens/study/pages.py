"""The pages of a session other than forms: consent, before, between and after tasks, and withdrawal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from textual import on
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Button, Input

from gistpoint.core.study.consent import consent_words, item_labels
from gistpoint.core.study.declaration import REQUIRED_ITEM, Study
from gistpoint.core.study.operations import ERASE, KEEP
from gistpoint.tui.drafts import DraftPlace
from gistpoint.tui.screens.dialogs.ask import Choices, ConfirmDialog, Dialog, ReasonAnswer
from gistpoint.tui.screens.study.page import StudyPage, StudyText, paragraphs
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.options import Options
from gistpoint.tui.widgets.plain import Plain, plain_line


class ConsentPage(StudyPage):
    """The page with the consent. Dismissed with `agree` or `decline`; `ticked` contains each item's state.

    Agreeing requires that the end of the text was on the screen, and that all required items are ticked.
    """

    def __init__(
        self,
        heading: str,
        whose: str,
        study: Study,
        *,
        changed: str = "",
        save: Callable[[Sequence[bool]], str] | None = None,
    ) -> None:
        """`changed` describes the changes since the participant agreed; empty if they have not agreed yet.

        `save` writes a copy for the participant and returns a sentence on where; None if it can't.
        """
        super().__init__(heading, whose)
        self._study, self._changed, self._save = study, changed, save
        self._needed = [item.startswith(REQUIRED_ITEM) for item in study.texts.consent_items]
        self.items = Options(item_labels(study), several=True)

    def body(self) -> Iterable[Widget]:
        """Yield the text and the items."""
        if self._changed:
            yield Plain(self._changed, classes="study-note")
        yield StudyText(consent_words(self._study), self._title)
        yield VerticalScroll(self.items, id="consent-items", can_focus=False)

    @property
    def _title(self) -> str:
        version = self._study.texts.consent_version
        return f"What we ask of you (version {version})" if version else "What we ask of you"

    def buttons(self) -> tuple[tuple[str, str], ...]:
        """Return the possible answers, and the button that saves a copy."""
        copy = (("copy", "Save a copy"),) if self._save is not None else ()
        return (("agree", "I agree"), *copy, ("decline", "I don't want to take part"))

    def on_mount(self) -> None:
        """Focus the text, and count the ticked items."""
        super().on_mount()
        self.count_ticked()

    @on(Options.Changed)
    def count_ticked(self) -> None:
        """Show in the frame how many items are ticked."""
        there = "" if self.items.has_focus_within else "Tab goes there, "
        optional = len(self._needed) - sum(self._needed)
        free = f" ({optional} optional)" if optional else ""
        words = f"{len(self.items.chosen)} of {len(self._needed)} ticked{free}; {there}Space ticks one"
        framed(self.query_one("#consent-items"), "What you agree to", words)

    def starts_at(self) -> Widget | None:
        """Return the text, which should be read first."""
        return self.query_one(StudyText)

    @property
    def ticked(self) -> list[bool]:
        """Whether each item is ticked."""
        return [number in self.items.chosen for number in range(len(self._needed))]

    def answer(self, answer: str) -> None:
        """Save a copy, which leaves the page open; ask before declining; or dismiss with another answer."""
        if answer == "copy" and self._save is not None:
            self.app.notify(self._save(self.ticked), timeout=20)
        elif answer == "decline":
            self._ask_to_decline()
        else:
            super().answer(answer)

    def _ask_to_decline(self) -> None:
        # Declining ends the session, so a single wrong key must not be enough.
        question = ConfirmDialog(
            "You don't want to take part?",
            "Your decision is recorded, and the study ends here for you.",
            yes="I don't want to take part",
            no="Back to the text",
            careful=True,
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self.dismiss("decline")

        self.app.push_screen(question, answered)

    def may_go_on(self) -> bool:
        """Return whether the end of the text was on the screen and all required items are ticked.

        If not, show and focus the part that is missing.
        """
        text = self.query_one(StudyText)
        # `was_read` is set after the drawing, so it may still be False for a key pressed right away.
        if not (text.was_read or text.is_at_end):
            text.warn("Read the text to its end first")
            text.focus()
            return False
        missing = [n for n, needed in enumerate(self._needed) if needed and not self.ticked[n]]
        if missing:
            count = "A required item is" if len(missing) == 1 else f"{len(missing)} required items are"
            words = plain_line(f"! {count} not ticked. Space ticks the one under the cursor.")
            framed(self.query_one("#consent-items"), "What you agree to", words.stylize("bold $text-error"))
            self.items.cursor = missing[0]
            self.items.focus()
        return not missing

    def action_withdraw(self) -> None:
        """Decline; a participant who has agreed earlier is asked about withdrawing instead."""
        if self._changed:
            super().action_withdraw()
        else:
            self.answer("decline")


class BetweenPage(StudyPage):
    """The page between two tasks. Dismissed with `next`, `look` (at the answer), `break` or `stop`."""

    def __init__(
        self, heading: str, whose: str, words: Sequence[str], *, more: bool, break_offered: bool, look: bool
    ) -> None:
        """`more` means that tasks are left, `look` that the study shows the answers."""
        super().__init__(heading, whose)
        self._words, self._more, self._break, self._may_look = words, more, break_offered, look

    def body(self) -> Iterable[Widget]:
        """Yield the paragraphs."""
        yield paragraphs("Between two tasks", self._words)

    def buttons(self) -> tuple[tuple[str, str], ...]:
        """Return the possible answers."""
        look = (("look", "Look at the answer"),) if self._may_look else ()
        rest = (("break", "A break"),) if self._break else ()
        stop = (("stop", "Stop for today"),) if self._more else ()
        return (("next", "Continue"), *look, *rest, *stop)


class BreakPage(StudyPage):
    """The page for a break, during which the clock is stopped and no task is shown. Dismissed with `next`."""

    def body(self) -> Iterable[Widget]:
        """Yield a sentence."""
        words = (
            "Take your time: the clock is stopped. You can also close the program (Ctrl+Q) and continue"
            " later."
        )
        yield paragraphs("A break", [words])


class AwayPage(StudyPage):
    """The page shown if the next task needs the team's store, which can't be reached.

    No clock runs meanwhile. Dismissed with `again` or `close`.
    """

    BUTTONS = (("again", "Try again"), ("close", "Close"))

    def __init__(self, heading: str, whose: str, words: Sequence[str]) -> None:
        """`words` are paragraphs that describe what can't be reached."""
        super().__init__(heading, whose)
        self._words = words

    def body(self) -> Iterable[Widget]:
        """Yield the paragraphs."""
        yield paragraphs("Not now", self._words)


class LastPage(StudyPage):
    """The last page of a session, however the session ended. Closing the page ends the program."""

    BUTTONS = (("close", "Close"),)

    def __init__(
        self, heading: str, whose: str, words: Sequence[str], *, text: str = "", may_withdraw: bool = False
    ) -> None:
        """`words` are the program's paragraphs, `text` is the organiser's."""
        super().__init__(heading, whose)
        self._words, self._text, self._may_withdraw = words, text, may_withdraw

    def body(self) -> Iterable[Widget]:
        """Yield the paragraphs and the text."""
        yield paragraphs("", self._words)
        if self._text.strip():
            yield StudyText(self._text, "About the study")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer withdrawing only to participants."""
        return self._may_withdraw if action == "withdraw" else super().check_action(action, parameters)


class ReadyPage(StudyPage):
    """The page before a task. Dismissed with `begin`, `skip` (training), `break`, `stop` or `close`."""

    def __init__(
        self, heading: str, whose: str, words: Sequence[str], *, resume: bool, may_skip: bool
    ) -> None:
        """`words` are paragraphs on what to expect. `resume` means that the task was begun earlier."""
        super().__init__(heading, whose)
        self._words, self._resume, self._may_skip = words, resume, may_skip

    def body(self) -> Iterable[Widget]:
        """Yield the paragraphs."""
        yield paragraphs("Before you continue" if self._resume else "Before you begin", self._words)

    def buttons(self) -> tuple[tuple[str, str], ...]:
        """Return the possible answers."""
        if self._resume:
            return (("begin", "Continue the task"), ("close", "Another time"))
        skip = (("skip", "Pass over"),) if self._may_skip else ()
        return (("begin", "Begin"), *skip, ("break", "A break"), ("stop", "Stop for today"))


class RulesPage(StudyPage):
    """The page with the rules. Dismissed with `next` after reading, or with `close`."""

    BUTTONS = (("next", "I have read this"), ("close", "Another time"))

    def __init__(self, heading: str, whose: str, rules: str) -> None:
        super().__init__(heading, whose)
        self._rules = rules

    def body(self) -> Iterable[Widget]:
        """Yield the rules."""
        yield StudyText(self._rules, "The rules")

    def starts_at(self) -> Widget | None:
        """Return the text, which should be read first."""
        return self.query_one(StudyText)


_CHOICES = (
    (KEEP, "Keep what I have done so far: it may be analysed"),
    (ERASE, "Erase all my data; this can't be undone"),
)


class WithdrawDialog(Dialog[ReasonAnswer]):
    """The question about withdrawing. The answer is `keep` or `erase` for the data, with an optional reason.

    Escape and the default button answer None, and the person continues to take part.
    """

    CSS_PATH = "../dialogs/dialogs.tcss"
    enter_answers = False

    def __init__(self, drafts: DraftPlace | None = None) -> None:
        super().__init__("Leave this study?", drafts=drafts)

    def body(self) -> list[Widget]:
        """Return the text, the choice about the data, and a field for the reason."""
        text = (
            "You can leave at any time, without giving a reason. You then leave for good, not only for today."
        )
        words = Input(placeholder="If you like, say why in your own words", max_length=2_000)
        return [Plain(text), Choices([label for _, label in _CHOICES]), words]

    def buttons(self) -> list[Button]:
        """Return the buttons; with the default one, the person continues to take part."""
        return [Button("Keep taking part", id="no", variant="primary"), Button("Leave the study", id="yes")]

    def on_mount(self) -> None:
        """Focus the choice."""
        self.query_one(Choices).focus()

    @on(Button.Pressed)
    def press(self, event: Button.Pressed) -> None:
        """Dismiss with the choice and the reason, or with None."""
        event.stop()
        at = self.query_one(Choices).highlighted or 0
        yes = event.button.id == "yes"
        self.dismiss(ReasonAnswer(_CHOICES[at][0], self.query_one(Input).value) if yes else None)
