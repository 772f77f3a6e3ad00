"""A questionnaire whose questions can be answered with the keyboard alone or with the mouse alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from gistpoint.core.study.declaration import Question, QuestionKind
from gistpoint.core.study.questions import fault_of, scale_of
from gistpoint.tui.widgets.options import Options
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.writing_area import WritingArea, WritingLine

DECLINED = "rather not say"
NOTHING = "none of these"
UNITS = {QuestionKind.MINUTES: "minutes", QuestionKind.PERCENT: "%"}
_WIDTH = 14
"""The number of characters in a field for a number."""
_GROUPED = re.compile(r"[-+]?\d+,\d{3}|.*[.,].*[.,].*")
"""Numbers of which a separator may stand before thousands."""
_NO_SPACE_FIRST = r"(\S.*)?"
"""What a field for a number accepts: Space, which chooses elsewhere, would replace a selected number."""


class FieldChanged(Message):
    """A message that an option was chosen or text was edited."""


class QuestionField(Vertical):
    """A question and its answer. Subclasses provide the widgets for each kind of question."""

    def __init__(self, number: int, question: Question) -> None:
        super().__init__(classes="question")
        self.number, self.question = number, question

    def compose(self) -> ComposeResult:
        """Lay out the number, the question, the answer and the line that can show a fault."""
        needed = "   (needed)" if self.question.required else ""
        with Horizontal(classes="question-words"):
            yield Plain(f"{self.number:>2}", classes="question-number")
            yield Plain(f"{self.question.text}{needed}", classes="question-text")
        yield from self.answer()
        yield Plain("", classes="question-fault")

    def on_mount(self) -> None:
        """Hide the line for the fault."""
        self.show_fault("")

    def show_fault(self, fault: str) -> None:
        """Show why the answer is invalid; an empty string hides the line."""
        words = self.query_one(".question-fault", Plain)
        words.update(f"! {fault}" if fault else "")
        words.display = bool(fault)

    def answer(self) -> list[Widget]:
        """Return the widgets for the answer."""
        raise NotImplementedError

    @property
    def begun(self) -> bool:
        """Whether there is input, valid or not."""
        raise NotImplementedError

    @property
    def answered(self) -> bool:
        """Whether the question was declined or has a valid answer."""
        return self.begun and not self.fault

    @property
    def value(self) -> Any:
        """The answer as it is stored; None if the question was declined or not answered."""
        raise NotImplementedError

    @property
    def draft(self) -> Any:
        """The input so far, in the form that `fill` accepts; None if there is none."""
        raise NotImplementedError

    def fill(self, draft: Any) -> None:
        """Restore the input of a draft. A draft of another type is ignored."""
        raise NotImplementedError

    @property
    def fault(self) -> str:
        """The reason why the answer is invalid, in a sentence.

        It is empty for a valid answer, and for an optional question that was not answered.
        """
        return fault_of(self.question, self.value)

    @on(Options.Changed)
    @on(Input.Changed)
    @on(WritingArea.Edited)
    def _changed(self, event: Message) -> None:
        event.stop()
        if self.query_one(".question-fault", Plain).display:
            self.show_fault(self.fault)
        self.post_message(FieldChanged())


class OptionsField(QuestionField):
    """A question answered on a scale, or with one or several options."""

    def __init__(self, number: int, question: Question) -> None:
        super().__init__(number, question)
        self._several = question.kind is QuestionKind.MULTI
        self._values: list[Any]
        labels, ends, scale = list(question.options), list[str](), 0
        self._values = list(question.options)
        if question.kind is QuestionKind.LIKERT:
            points = range(1, question.points + 1)
            self._values, each = list(points), len(question.labels) == question.points
            labels = (
                [f"{n} {words}" for n, words in zip(points, question.labels, strict=True)] if each else []
            )
            scale = 0 if each else question.points
            labels, ends = labels or [str(n) for n in points], [] if each else list(question.labels)
        alone = []
        if self._several:
            alone.append(len(labels))
            labels.append(NOTHING)
        if not question.required:
            self._declined = len(labels)
            alone.append(self._declined)
            labels.append(DECLINED)
        else:
            self._declined = -1
        self.options = Options(labels, several=self._several, alone=alone, scale=scale, ends=ends)

    def answer(self) -> list[Widget]:
        """Return the options."""
        return [self.options]

    @property
    def begun(self) -> bool:
        """Whether an option is chosen."""
        return bool(self.options.chosen)

    @property
    def value(self) -> Any:
        """The chosen point of the scale, the chosen option, or the list of chosen options.

        It is None if nothing is chosen, or if the question was declined.
        """
        chosen = sorted(self.options.chosen)
        if not chosen or self._declined in chosen:
            return None
        values = [self._values[number] for number in chosen if number < len(self._values)]
        return values if self._several else values[0]

    @property
    def draft(self) -> Any:
        """The indexes of the chosen options; None if none is chosen."""
        return sorted(self.options.chosen) or None

    def fill(self, draft: Any) -> None:
        """Choose the options with the indexes of a draft."""
        if isinstance(draft, list):
            for number in draft:
                if isinstance(number, int) and not isinstance(number, bool):
                    self.options.pick(number)


class NumberField(QuestionField):
    """A question answered with a number, a time in minutes, or a percentage."""

    def answer(self) -> list[Widget]:
        """Return the field with its unit."""
        self.line = WritingLine(classes="question-line", max_length=_WIDTH, restrict=_NO_SPACE_FIRST)
        unit = self.question.unit or UNITS.get(self.question.kind, "") or scale_of(self.question)
        return [Horizontal(self.line, Plain(unit, classes="question-unit"), classes="question-row")]

    @property
    def begun(self) -> bool:
        """Whether the field contains text."""
        return bool(self.line.value.strip())

    @property
    def value(self) -> Any:
        """The number; the typed text if it is not one or may mean several; None if the field is empty."""
        typed = self.line.value.strip()
        if not typed:
            return None
        if _GROUPED.fullmatch(typed):
            return typed
        try:
            number = float(typed.replace(",", "."))
        except ValueError:
            return typed
        return int(number) if number.is_integer() and abs(number) < 1e15 else number

    @property
    def fault(self) -> str:
        """The reason why the answer is invalid, in a sentence; for an ambiguous number, how to write it."""
        if _GROUPED.fullmatch(self.line.value.strip()):
            return "Write the number without a thousands separator, such as 1000 or 1.5."
        return super().fault

    @property
    def draft(self) -> Any:
        """The typed text; None if there is none."""
        return self.line.value or None

    def fill(self, draft: Any) -> None:
        """Restore the typed text."""
        if isinstance(draft, str):
            self.line.value = draft


class WordsField(QuestionField):
    """A question answered with text."""

    def answer(self) -> list[Widget]:
        """Return the text area."""
        self.area = WritingArea("", soft_wrap=True, tab_behavior="focus", classes="question-area")
        return [self.area]

    @property
    def begun(self) -> bool:
        """Whether the area contains text."""
        return bool(self.area.text.strip())

    @property
    def value(self) -> Any:
        """The text; None if it is blank."""
        return self.area.text if self.begun else None

    @property
    def draft(self) -> Any:
        """The text; None if it is empty."""
        return self.area.text or None

    def fill(self, draft: Any) -> None:
        """Restore the text, with the cursor at its end."""
        if isinstance(draft, str):
            self.area.load_text(draft)
            self.area.move_cursor(self.area.document.end)


_NUMBERS = (QuestionKind.NUMBER, QuestionKind.MINUTES, QuestionKind.PERCENT)


def field_of(number: int, question: Question) -> QuestionField:
    """Return the field for a question."""
    if question.kind is QuestionKind.TEXT:
        return WordsField(number, question)
    return NumberField(number, question) if question.kind in _NUMBERS else OptionsField(number, question)


class QuestionForm(VerticalScroll, can_focus=False):
    """All questions of a form. It posts `Changed` after each change, so that a draft can be saved."""

    DEFAULT_CSS = """
    QuestionForm { height: 1fr; padding: 0 1; }
    .question { height: auto; margin-bottom: 1; }
    .question-words, .question-row { height: auto; }
    .question-number { width: 4; color: $text-primary; }
    .question-text { width: 1fr; text-style: bold; }
    QuestionForm .question-line { width: 18; height: 1; border: none; border-left: vkey $border-blurred;
        margin-left: 4; background: $surface; }
    QuestionForm .question-line:focus { border: none; border-left: outer $border; background: $panel; }
    .question-unit { width: 1fr; margin-left: 1; }
    QuestionForm .question-area { height: 4; border: none; border-left: vkey $border-blurred; margin-left: 4;
        padding: 0 1; background: $surface; }
    QuestionForm .question-area:focus { border: none; border-left: outer $border; background: $panel; }
    .question-fault { margin-left: 4; color: $text-error; text-style: bold; }
    """
    BINDINGS: ClassVar[list[Any]] = []

    class Changed(Message):
        """A message that an answer has changed."""

    def __init__(self, questions: Sequence[Question], draft: Mapping[str, Any]) -> None:
        super().__init__()
        self.fields = [field_of(number, question) for number, question in enumerate(questions, start=1)]
        self._first = dict(draft)
        self.is_filled = False
        """Whether the draft has been restored."""

    def compose(self) -> ComposeResult:
        """Lay out the questions."""
        yield from self.fields

    def on_mount(self) -> None:
        """Restore the draft, and focus the first question without an answer, or else the first one."""
        for field in self.fields:
            field.fill(self._first.get(field.question.id))
        self.is_filled = True
        self.focus_on(next((field for field in self.fields if not field.answered), self.fields[0]))

    def focus_on(self, field: QuestionField) -> None:
        """Focus a question."""
        for widget in field.walk_children():
            if isinstance(widget, Widget) and widget.focusable:
                widget.focus(scroll_visible=False)
                return

    @property
    def draft(self) -> dict[str, Any]:
        """The drafts of the answers, by the id of the question. Questions without input are left out."""
        found = {field.question.id: field.draft for field in self.fields}
        return {name: draft for name, draft in found.items() if draft is not None}

    @property
    def values(self) -> dict[str, Any]:
        """The answers as they are stored, by the id of the question."""
        return {field.question.id: field.value for field in self.fields}

    @property
    def answered(self) -> int:
        """The number of questions that were declined or have a valid answer."""
        return sum(field.answered for field in self.fields)

    @property
    def left_out(self) -> list[QuestionField]:
        """The optional questions without an answer."""
        return [field for field in self.fields if not field.answered and not field.question.required]

    def check(self) -> bool:
        """Return whether all answers are valid.

        If not, show the faults, and focus the first question with one.
        """
        wrong = [field for field in self.fields if field.fault]
        for field in self.fields:
            field.show_fault(field.fault)
        if wrong:
            self.focus_on(wrong[0])
        return not wrong

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Scroll the whole question into view, and not only its answer."""
        field = next((node for node in event.widget.ancestors if isinstance(node, QuestionField)), None)
        if field is not None:
            self.call_after_refresh(self.scroll_to_widget, field, animate=False)

    @on(FieldChanged)
    def _changed(self, event: FieldChanged) -> None:
        event.stop()
        if self.is_filled:
            self.post_message(self.Changed())
