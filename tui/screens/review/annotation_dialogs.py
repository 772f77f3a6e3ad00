"""The dialogs in which a reviewer gives a label or a verdict. They are loaded when they are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap

from textual import events, on
from textual.content import Content
from textual.getters import query_one
from textual.widget import Widget
from textual.widgets import Button, Input

from gistpoint.core.text import visible_line
from gistpoint.sessions.annotations.labels import Label as StepLabel
from gistpoint.sessions.annotations.reviews import RunVerdict, VerdictReason, VerdictWord
from gistpoint.tui import signs
from gistpoint.tui.screens.dialogs.ask import Choices, Dialog, PickDialog
from gistpoint.tui.screens.review.verdicts import REASONS, GivenVerdict, VerdictForm
from gistpoint.tui.widgets.options import Options
from gistpoint.tui.widgets.plain import Plain

_NARROWEST = 20


class LabelChoices(Choices):
    """A list of labels with their meanings; a meaning that is too long is wrapped with a hanging indent."""

    _wrapped_at = 0

    def _option_content(self, number: int) -> Content:
        mark = f"{self._marks[number != self.highlighted]} "
        label = visible_line(self._labels[number])
        key, text = label[:1], label[1:].strip()
        indent = " " * (len(mark) + len(key) + 2)
        # Leaves room for the scroll bar, whose appearance does not change the size of the widget.
        width = max(_NARROWEST, self.size.width - self.styles.scrollbar_size_vertical - len(indent))
        lines = (wrap(text, width) if self.size.width else []) or [text]
        return Content(f"{mark}{key}  " + f"\n{indent}".join(lines))

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the labels to a new width. A change of the height alone, which wrapping causes, is ignored."""
        if event.size.width != self._wrapped_at:
            self._wrapped_at = event.size.width
            for number in range(self.option_count):
                self.replace_option_prompt_at_index(number, self._option_content(number))


class LabelDialog(PickDialog):
    """A dialog to choose a label. A label's key picks it; other characters filter the list."""

    CSS_PATH = "../dialogs/dialogs.tcss"

    def __init__(self, title: str, labels: Mapping[str, StepLabel]) -> None:
        """`labels` maps the answer that the dialog returns for each label to the label."""
        # If two sets use the same key, it belongs to the first one, as on the review screen.
        self._by_key = {label.key: answer for answer, label in reversed([*labels.items()]) if label.key}
        keys = {answer: key for key, answer in self._by_key.items()}
        choices = [
            (answer, f"{keys.get(answer, ' ')}  {label.name}: {label.description}")
            for answer, label in labels.items()
        ]
        super().__init__(title, choices)

    def body(self) -> list[Widget]:
        """Return the field and the list."""
        return [
            Input(placeholder="A key picks; other letters filter"),
            LabelChoices(marks=(signs.HERE, " ")),
        ]

    def _fill(self, words: str) -> None:
        if words in self._by_key:
            self.dismiss(self._by_key[words])
        else:
            super()._fill(words)


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
            Options(list(REASONS[verdict].values()), several=True, id=_list_id(verdict))
            for verdict in self._form.verdicts
            if verdict in REASONS
        ]

    def on_mount(self) -> None:
        """Choose the current verdict with its reasons, otherwise the first one, and focus the list."""
        current = self._current
        self.verdicts.pick(list(self._form.verdicts).index(current.verdict) if current is not None else 0)
        if current is not None and current.verdict in REASONS:
            reasons = self.query_one(f"#{_list_id(current.verdict)}", Options)
            for number, reason in enumerate(REASONS[current.verdict]):
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
        for verdict in self._form.verdicts.keys() & REASONS.keys():
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
        if verdict in REASONS and not reasons:
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
        if verdict not in REASONS:
            return ()
        chosen = self.query_one(f"#{_list_id(verdict)}", Options).chosen
        return tuple(reason for number, reason in enumerate(REASONS[verdict]) if number in chosen)


def _list_id(verdict: RunVerdict) -> str:
    return f"reasons-{verdict.value.replace('_', '-')}"


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None
