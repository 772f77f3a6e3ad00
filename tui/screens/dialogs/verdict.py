"""Asks for a reviewer's verdict on a run."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.widget import Widget
from textual.widgets import Button, Checkbox, Input, RadioButton, RadioSet

from gistpoint.sessions.reviews.state import ExcludeReason, Verdict
from gistpoint.tui.screens.dialogs.ask import Dialog
from gistpoint.tui.widgets.plain import Plain, plain_line

_WORDS = {
    Verdict.ACCEPT: "Accept: it counts as it is",
    Verdict.ACCEPT_CORRECTED_TIME: "Accept with a corrected time, in seconds",
    Verdict.EXCLUDE: "Exclude, for the reasons below",
    Verdict.NEEDS_SECOND_REVIEWER: "Needs a second reviewer",
}
_REASONS = {
    ExcludeReason.EXPOSURE: "The solver had seen the answer",
    ExcludeReason.AID: "The solver had help that is not allowed",
    ExcludeReason.SHORTCUT: "The tests are met without a repair",
    ExcludeReason.ENVIRONMENT: "The environment failed",
    ExcludeReason.NOT_SERIOUS: "It was not tried in earnest",
}


@dataclass(frozen=True, slots=True)
class Given:
    """A verdict as it was filled in; the corrected time is in seconds."""

    verdict: Verdict
    reasons: tuple[ExcludeReason, ...] = ()
    note: str = ""
    corrected_s: float | None = None


class VerdictDialog(Dialog[Given]):
    """One of four verdicts; an exclusion needs a reason, a corrected time its seconds."""

    def __init__(self) -> None:
        super().__init__("Your verdict on this run")

    def body(self) -> list[Widget]:
        """Return the verdicts, the reasons, and fields for a time and a note."""
        return [
            RadioSet(
                *(RadioButton(plain_line(words), value=n == 0) for n, words in enumerate(_WORDS.values())),
                compact=True,
            ),
            *(
                Checkbox(plain_line(words), id=f"reason-{reason.value}", compact=True)
                for reason, words in _REASONS.items()
            ),
            Input(placeholder="corrected time in seconds", id="corrected", compact=True),
            Input(placeholder="note", id="note", compact=True),
            Plain("", id="verdict-problem", classes="dialog-hint"),
        ]

    def on_mount(self) -> None:
        """Start at the verdicts."""
        self.query_one(RadioSet).focus()

    @on(Button.Pressed)
    @on(Input.Submitted)
    def answer(self) -> None:
        """Answer where all that belongs to the verdict is there."""
        verdict = list(_WORDS)[max(0, self.query_one(RadioSet).pressed_index)]
        reasons = tuple(r for r in _REASONS if self.query_one(f"#reason-{r.value}", Checkbox).value)
        corrected = _seconds(self.query_one("#corrected", Input).value)
        problem = ""
        if verdict is Verdict.EXCLUDE and not reasons:
            problem = "Say why it is excluded."
        elif verdict is Verdict.ACCEPT_CORRECTED_TIME and corrected is None:
            problem = "Give the corrected time as a number of seconds."
        if problem:
            self.query_one("#verdict-problem", Plain).update(problem)
            return
        self.dismiss(
            Given(
                verdict,
                reasons if verdict is Verdict.EXCLUDE else (),
                self.query_one("#note", Input).value.strip(),
                corrected if verdict is Verdict.ACCEPT_CORRECTED_TIME else None,
            )
        )


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None
