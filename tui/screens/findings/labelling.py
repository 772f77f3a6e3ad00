"""The screen for labelling runs: one run and one label at a time, answered by one key."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one

from gistpoint.core.errors import UserError
from gistpoint.core.judging.answers import RunAnswer
from gistpoint.core.judging.quotes import QuotePlace
from gistpoint.core.judging.rubric import RubricLabel
from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.judging.hand_labels import HandReader, LabelQuestion
from gistpoint.sessions.judging.run_texts import RunText
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.dialogs.ask import show_error
from gistpoint.tui.widgets.charts import gauge
from gistpoint.tui.widgets.find_bar import find_in
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar, HeaderField
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.text_view import StyledPart, TextView

_GAUGE_WIDTH = 10
"""The width, in cells, of the progress bar."""
_BLIND = "1 present · 2 absent"


class LabellingScreen(BaseScreen[None]):
    """A screen that asks about labels of runs, and saves each answer at once.

    The blind questions come first, without the judge's answers. Questions about disputed claims follow, with
    the judge's quotes marked in the run.
    """

    CSS_PATH = "findings.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.LABELLING)]
    HELP_PAGE = "findings"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.LABELLING,)

    header = query_one(HeaderBar)
    run_text = query_one(TextView)
    question_text = query_one("#labelling-question", Plain)

    def __init__(
        self,
        texts: Mapping[str, RunText],
        reader: HandReader,
        blind: Sequence[LabelQuestion],
        answers: Mapping[tuple[str, str], RunAnswer],
        labels: Sequence[RubricLabel],
        addressing: Collection[str] = (),
    ) -> None:
        """`texts` contains the text of each run, by the run's own key.

        `answers` contains the judge's answers, by that key and the id of the label. `addressing` contains the
        runs with text that seems to address a judge.
        """
        super().__init__()
        self._addressing = addressing
        self._texts, self._reader, self._answers, self._labels = texts, reader, answers, tuple(labels)
        self._questions = tuple(blind)
        self._at = 0
        self._is_disputed = False
        """Whether the blind questions have all been answered, and disputed claims are shown."""
        self._shown = ""
        """The key of the run that is shown."""
        self._starts: dict[tuple[int, str, int], int] = {}
        """The index of the line at which each passage of the shown run begins."""
        self._headings: dict[int, list[StyledPart]] = {}
        self._quotes: list[QuotePlace] = []
        self._quote = -1

    def compose(self) -> ComposeResult:
        """Lay out the header, the run, the question and the keys."""
        yield HeaderBar("")
        yield framed(TextView(), "", _BLIND)
        yield framed(Plain("", id="labelling-question"))
        yield KeyBar()

    def on_mount(self) -> None:
        """Show the first question that has not been answered yet."""
        self.run_text.wrap = True
        self._go_on(from_start=True)
        self.run_text.focus()

    @property
    def _question(self) -> LabelQuestion | None:
        return self._questions[self._at] if self._at < len(self._questions) else None

    def _is_open(self, question: LabelQuestion) -> bool:
        return self._reader.label(question) is None

    # Actions of the reader

    def action_answer(self, answer: str) -> None:
        """Record the answer to the question, and go on to the next open one."""
        question = self._question
        if question is None:
            return
        try:
            self._reader.look_again()
            self._reader.answer(question, answer == "present")
        except UserError as error:
            show_error(self.app, error)
            return
        self._go_on()

    def action_take_back(self) -> None:
        """Take back the answer to the current question or, if it has none, to the previous one."""
        try:
            self._reader.look_again()
            question = self._question
            if (question is None or self._is_open(question)) and self._at:
                self._at -= 1
                question = self._question
            if question is not None and not self._reader.take_back(question):
                self.app.notify("There is no answer to take back.", severity="warning")
        except UserError as error:
            show_error(self.app, error)
        self._draw()

    def action_turn(self, step: int) -> None:
        """Move by `step` questions without answering."""
        if self._questions:
            try:
                self._reader.look_again()
            except UserError as error:
                show_error(self.app, error)
            self._at = min(max(self._at + step, 0), len(self._questions) - 1)
            self._draw()

    def action_quote(self, step: int) -> None:
        """Move by `step` quotes."""
        if self._quotes:
            self._quote = (self._quote + step) % len(self._quotes)
            # The question's frame may just have changed the height of the view.
            self.call_after_refresh(self._show_quote, self._quotes[self._quote])

    def action_find(self) -> None:
        """Search the run."""
        find_in(self.run_text)

    def action_leave(self) -> None:
        """Close the program. All answers are saved."""
        self.app.exit()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only the keys that the question allows."""
        match action:
            case "answer" | "turn":
                return self._question is not None
            case "quote":
                # These keys take precedence over the view's, so they are off while a query is typed, and
                # while they move between its matches.
                return bool(self._quotes) and self.focused is self.run_text and not self.run_text.pattern
            case "find":
                return self._question is not None
        return True

    # Moving on

    def _go_on(self, *, from_start: bool = False) -> None:
        """Show the next open question: first the blind ones, then the disputed ones, and finally the end."""
        places = [place for place, question in enumerate(self._questions) if self._is_open(question)]
        if not places and not self._is_disputed:
            self._is_disputed = True
            self._questions = tuple(self._reader.disputed(self._answers, self._labels, self._addressing))
            if not from_start and self._questions:
                self.app.notify(
                    f"The random part is labelled. {len(self._questions)} disputed claims follow."
                )
            self._go_on(from_start=True)
            return
        later = [place for place in places if from_start or place > self._at]
        self._at = (later or places or [len(self._questions)])[0]
        self._draw()

    # Drawing

    def _draw(self) -> None:
        question = self._question
        if question is None:
            self._draw_end()
            return
        text = self._texts[question.run]
        given = self._reader.label(question)
        answered = sum(not self._is_open(one) for one in self._questions)
        part = "Disputed claim" if self._is_disputed else "Label"
        self.header.show(
            name=f"{part} {self._at + 1} of {len(self._questions)}",
            words=gauge(answered, len(self._questions), _GAUGE_WIDTH),
            fields=[HeaderField("", "" if given is None else f"you: {_word(given.present)}")],
        )
        self._show_run(text)
        self._quotes = list(question.answer.places) if question.answer is not None else []
        self._quote = -1
        self._mark_quotes()
        framed(self.run_text, visible_line(text.name) if self._is_disputed else "", _BLIND)
        framed(self.question_text, f"Does this run show: {question.label.id}?")
        self.question_text.update("\n".join(filter(None, (self._judged(question), question.label.words))))
        self.action_quote(1)
        self.refresh_bindings()

    def _judged(self, question: LabelQuestion) -> str:
        """Return the judge's answer in words; empty for a blind question."""
        answer = question.answer
        if answer is None:
            return ""
        quotes = f", {plural(len(answer.places), 'quote')}" if answer.places else ""
        claimed = f", {plural(answer.refused, 'quote')} refused" if answer.refused else ""
        return (
            f"The judge: {_word(answer.present)} (confidence {answer.confidence:.2f}{quotes}{claimed});"
            f" {question.dispute}."
        )

    def _draw_end(self) -> None:
        self._shown, self._quotes = "", []
        self.header.show(name="All questions are answered", words="", fields=())
        self.run_text.load("")
        self.question_text.update(
            "Thank you. Press q to leave; gistpoint findings report prints the results."
        )
        framed(self.question_text, "The end")
        self.refresh_bindings()

    def _show_run(self, text: RunText) -> None:
        if self._shown == text.own_key:
            return
        self._shown, self._starts = text.own_key, {}
        lines, headings = list[str](), dict[int, list[StyledPart]]()
        for passage in text.passages:
            heading = f"Step {passage.step + 1}, {passage.scope} {passage.part + 1}"
            headings[len(lines)] = [(0, len(heading), "heading")]
            self._starts[passage.step, passage.scope, passage.part] = len(lines) + 1
            # Only "\n" ends a line in the view, as in the offsets of quotes.
            lines += [heading, *passage.text.split("\n"), ""]
        self.run_text.load("\n".join(lines))
        self._headings = headings

    def _mark_quotes(self) -> None:
        parts = {line: list(found) for line, found in self._headings.items()}
        for place in self._quotes:
            for line, start, end in self._lines_of(place):
                parts.setdefault(line, []).append((start, end, "match"))
        self.run_text.parts = parts

    def _lines_of(self, place: QuotePlace) -> list[tuple[int, int, int]]:
        """Return the lines of a quote with its columns in each; empty if the quote is not in the run."""
        first = self._starts.get((place.step, place.scope, place.part))
        if first is None:
            return []
        found, offset, line = list[tuple[int, int, int]](), 0, first
        while offset < place.end and line < len(self.run_text.lines):
            length = self.run_text.lines.length(line)
            start, end = max(place.start - offset, 0), min(place.end - offset, length)
            if start < end:
                found.append((line, start, end))
            offset, line = offset + length + 1, line + 1
        return found

    def _show_quote(self, place: QuotePlace) -> None:
        """Move the cursor to a quote, or to the step of a computed fact, and scroll it to the upper third."""
        view = self.run_text
        marked = self._lines_of(place)
        steps = [line - 1 for (step, _, _), line in self._starts.items() if step == place.step]
        if marked or steps:
            line, column = marked[0][:2] if marked else (min(steps), 0)
            view.go_to(line + view.first_line, column)
            view.place(0, max(0, view.cursor_row - view.sight.height // 3))


def _word(present: bool) -> str:
    return "present" if present else "absent"
