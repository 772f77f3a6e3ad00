"""The question that a reviewer answers about a run, and the dialog that asks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textual import on
from textual.getters import query_one
from textual.widget import Widget
from textual.widgets import Button, Input

from gistpoint.sessions.annotations.reviews import (
    AGENT_WORDS,
    DEFAULT_WORDS,
    ExcludeReason,
    FailureReason,
    RunVerdict,
    RunVerdictGiven,
    VerdictReason,
    VerdictWord,
    reasons_of,
)
from gistpoint.sessions.records.model import Actor
from gistpoint.tui.screens.dialogs.ask import Dialog
from gistpoint.tui.widgets.options import Options
from gistpoint.tui.widgets.plain import Plain

_EXCLUSIONS: Mapping[VerdictReason, str] = {
    ExcludeReason.EXPOSURE: "The solver had seen the answer",
    ExcludeReason.AID: "The solver had help that is not allowed",
    ExcludeReason.SHORTCUT: "The tests pass without a repair",
    ExcludeReason.ENVIRONMENT: "The environment failed",
    ExcludeReason.NOT_SERIOUS: "The solver did not really try",
}
_FAILURES: Mapping[VerdictReason, str] = {
    FailureReason.WRONG_THEORY: "It kept a wrong theory",
    FailureReason.WRONG_PLACE: "It changed the wrong place",
    FailureReason.INCOMPLETE: "Part of the fault remains",
    FailureReason.REGRESSION: "It broke something else",
    FailureReason.SHORTCUT: "The tests pass without a repair",
    FailureReason.GAVE_UP: "It gave up",
    FailureReason.OUT_OF_BUDGET: "It ran out of budget",
    FailureReason.HARNESS_FAULT: "The harness failed",
}


@dataclass(frozen=True, slots=True)
class VerdictForm:
    """The question about a run of a person or of an agent, and its possible answers."""

    title: str
    verdicts: Mapping[RunVerdict, str]
    words: tuple[VerdictWord, ...]
    """The verdicts that can be given with one key, unless `review.toml` defines others."""


OF_A_PERSON = VerdictForm(
    "Does this attempt count?",
    {
        RunVerdict.ACCEPT: "Accept: it counts as it is",
        RunVerdict.ACCEPT_CORRECTED_TIME: "Accept with a corrected time, in seconds",
        RunVerdict.EXCLUDE: "Exclude, for the reasons below",
        RunVerdict.NEEDS_SECOND_REVIEWER: "Needs a second reviewer",
    },
    DEFAULT_WORDS,
)
OF_AN_AGENT = VerdictForm(
    "Did this run solve its task?",
    {
        RunVerdict.SOLVED: "Solved",
        RunVerdict.NOT_SOLVED: "Not solved, for the reasons below",
        RunVerdict.EXCLUDE: "Exclude, for the reasons below",
        RunVerdict.NEEDS_SECOND_REVIEWER: "Needs a second reviewer",
    },
    AGENT_WORDS,
)
_REASONS: Mapping[RunVerdict, Mapping[VerdictReason, str]] = {
    RunVerdict.EXCLUDE: _EXCLUSIONS,
    RunVerdict.NOT_SOLVED: _FAILURES,
}
"""The reasons to choose from, for each verdict that needs one."""


def form_for(actor: Actor) -> VerdictForm:
    """Return the form for a run of a person or of an agent."""
    return OF_A_PERSON if actor is Actor.PERSON else OF_AN_AGENT


@dataclass(frozen=True, slots=True)
class GivenVerdict:
    """A verdict as the reviewer entered it. The corrected time is in seconds."""

    verdict: RunVerdict
    reasons: tuple[VerdictReason, ...] = ()
    note: str = ""
    corrected_s: float | None = None
    words: str = ""
    """The words of the `VerdictWord` whose key was pressed; empty if the verdict was given in the dialog."""

    @classmethod
    def of(cls, recorded: RunVerdictGiven) -> GivenVerdict:
        """Return a recorded verdict as it would be entered."""
        return cls(recorded.verdict, recorded.reasons, recorded.note, recorded.corrected_time_s)

    @classmethod
    def by_word(cls, word: VerdictWord) -> GivenVerdict:
        """Return the verdict that a verdict word denotes."""
        return cls(word.means, reasons_of(word.means, word.reasons), words=word.words)


class VerdictDialog(Dialog[GivenVerdict]):
    """A form for a verdict. Some verdicts need a reason, and one needs a corrected time in seconds.

    Letters belong to the note here: the keys of verdicts count on the screen below only (decision 136).
    """

    CSS_PATH = "../dialogs/dialogs.tcss"

    verdicts = query_one("#verdicts", Options)

    def __init__(
        self,
        form: VerdictForm,
        words: Sequence[VerdictWord],
        current: GivenVerdict | None = None,
    ) -> None:
        """`current` fills the form; if the form does not offer its verdict, only its note is filled in."""
        super().__init__(form.title)
        self._form, self._words = form, words
        self._current = current if current is not None and current.verdict in form.verdicts else None
        self._note = current.note if current is not None else ""

    def body(self) -> list[Widget]:
        """Return the verdicts, the reasons, the fields for a time and a note, and the list of keys."""
        by_key = " · ".join(f"{word.key} {word.words}" for word in self._words)
        return [
            Options(list(self._form.verdicts.values()), id="verdicts"),
            *self._lists_of_reasons(),
            Input(placeholder="corrected time in seconds", id="corrected"),
            Input(self._note, placeholder="note", id="note"),
            Plain("", id="verdict-problem", classes="dialog-hint"),
            Plain(f"After Esc, one key judges the run: {by_key}"),
        ]

    def _lists_of_reasons(self) -> list[Widget]:
        """Return a list of reasons for each verdict of the form that needs one."""
        return [
            Options(list(_REASONS[verdict].values()), several=True, id=_list_id(verdict))
            for verdict in self._form.verdicts
            if verdict in _REASONS
        ]

    def on_mount(self) -> None:
        """Choose the current verdict with its reasons, otherwise the first one, and focus the list."""
        current = self._current
        self.verdicts.pick(list(self._form.verdicts).index(current.verdict) if current is not None else 0)
        if current is not None and current.verdict in _REASONS:
            reasons = self.query_one(f"#{_list_id(current.verdict)}", Options)
            for number, reason in enumerate(_REASONS[current.verdict]):
                if reason in current.reasons:
                    reasons.pick(number)
        if current is not None and current.corrected_s is not None:
            self.query_one("#corrected", Input).value = f"{current.corrected_s:g}"
        self.verdicts.focus()
        self.fit()

    @property
    def verdict(self) -> RunVerdict:
        """The chosen verdict."""
        return list(self._form.verdicts)[next(iter(self.verdicts.chosen), 0)]

    @on(Options.Changed)
    def fit(self) -> None:
        """Show only the fields that the chosen verdict needs."""
        for verdict in self._form.verdicts.keys() & _REASONS.keys():
            self.query_one(f"#{_list_id(verdict)}").display = verdict is self.verdict
        self.query_one("#corrected").display = self.verdict is RunVerdict.ACCEPT_CORRECTED_TIME

    @on(Button.Pressed)
    @on(Input.Submitted)
    def answer(self) -> None:
        """Dismiss with the verdict if the form is complete; otherwise show what is missing."""
        verdict = self.verdict
        reasons = self._chosen_reasons(verdict)
        corrected = _seconds(self.query_one("#corrected", Input).value)
        problem = ""
        if verdict in _REASONS and not reasons:
            problem = "Choose at least one reason."
        elif verdict is RunVerdict.ACCEPT_CORRECTED_TIME and corrected is None:
            problem = "Give the corrected time as a number of seconds."
        if problem:
            self.query_one("#verdict-problem", Plain).update(problem)
            return
        self.dismiss(
            GivenVerdict(
                verdict,
                reasons,
                self.query_one("#note", Input).value.strip(),
                corrected if verdict is RunVerdict.ACCEPT_CORRECTED_TIME else None,
            )
        )

    def _chosen_reasons(self, verdict: RunVerdict) -> tuple[VerdictReason, ...]:
        """Return the reasons that are chosen for a verdict; empty for one without reasons."""
        if verdict not in _REASONS:
            return ()
        chosen = self.query_one(f"#{_list_id(verdict)}", Options).chosen
        return tuple(reason for number, reason in enumerate(_REASONS[verdict]) if number in chosen)


def _list_id(verdict: RunVerdict) -> str:
    return f"reasons-{verdict.value.replace('_', '-')}"


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None
