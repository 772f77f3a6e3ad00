"""The display of a step: its text with folded parts, the view with headings and colour, and the page."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer
from textual.worker import get_current_worker

from gistpoint.sessions.records.model import (
    CutText,
    Result,
    RunCall,
    Step,
    StepKind,
    TextScope,
    also_text,
    call_text,
    parts_of,
)
from gistpoint.sessions.runs.blind_view import HIDDEN, blind_step, reveals_outcome
from gistpoint.sessions.runs.rendering import UNANSWERED, language_of, step_facts, unanswered
from gistpoint.tui import signs
from gistpoint.tui.screens.review.loading import RunLoader
from gistpoint.tui.widgets.line_view import LineView
from gistpoint.tui.widgets.syntax import LineTokens, is_quick, tokens_by_line
from gistpoint.tui.widgets.text_lines import TextLines
from gistpoint.tui.widgets.text_view import TextView

FOLD_LINES, FOLD_CHARACTERS = 400, 40_000
"""The number of lines and of characters above which a part is folded."""
KEPT_LINES, KEPT_CHARACTERS = 120, 12_000
"""The number of lines and of characters that a folded part keeps."""

_FENCE = re.compile(r"\s*```+ *([\w+-]*)\s*$")
_IMAGE = re.compile(r"^\[(?:image[:/]|computer_screenshot:)(?! https?:)", re.M)
"""The start of a line that represents an image, which Enter opens."""
_COLOUR_S = 0.05
"""Seconds for which a step must be visible before long code is coloured, which would delay moving on."""
_READ_S = 20
"""Seconds for which the name of an image's file is shown."""
_SHORT = 1_500
"""The maximum length, in characters, of code to colour at once, which takes a millisecond or two."""


class StepPart(NamedTuple):
    """A text field of a step, with its `offset` in the composed text and its displayed `length`."""

    scope: TextScope
    number: int
    offset: int
    length: int
    folded: bool = False
    skipped: int = 0
    """The number of characters, such as the tool's name, that offsets count but only the heading shows."""


class CodeLines(NamedTuple):
    """The lines of the composed text that are code, from `first` to before `after`, counted from 0."""

    first: int
    after: int
    language: str


class StepText(NamedTuple):
    """A step's composed text, its lines, counted from 0, with headings or code, and its parts in order."""

    text: str
    headings: frozenset[int]
    parts: tuple[StepPart, ...]
    code: tuple[CodeLines, ...] = ()
    repeated: tuple[StepPart, ...] = ()
    """The parts that are omitted because the text before the call quotes them."""

    @property
    def folded(self) -> bool:
        """Whether any part is folded."""
        return any(part.folded for part in self.parts)

    def offset_of(self, scope: TextScope, number: int, start: int) -> int | None:
        """Return the offset, in the composed text, of a character of a part; None if it isn't shown."""
        for part in (*self.parts, *self.repeated):
            if part.scope is scope and part.number == number and start - part.skipped < part.length:
                return part.offset + max(0, start - part.skipped)
        return None

    def part_at(self, offset: int) -> tuple[StepPart, int] | None:
        """Return the part at an offset in the composed text, and the offset in it; None on a heading."""
        at = bisect_right([part.offset for part in self.parts], offset) - 1
        if at < 0 or offset > self.parts[at].offset + self.parts[at].length:
            return None
        return self.parts[at], offset - self.parts[at].offset + self.parts[at].skipped


def compose(
    step: Step,
    whole: Mapping[tuple[TextScope, int], str] | None = None,
    *,
    hides: bool = False,
    annotations: Sequence[str] = (),
) -> StepText:
    """Return the composed text of a step.

    `whole` contains the parts to show in full, `annotations` the text of a reviewer's annotations. A command
    that the step's text quotes is not shown a second time. If `hides` is set, the step is shown as a blind
    reviewer may see it; one that reveals the outcome has only headings.
    """
    builder = _Builder(whole)
    step = blind_step(step) if hides else step
    builder.heading("  ".join(step_facts(step)))
    if hides and reveals_outcome(step):
        builder.heading(HIDDEN)
        return builder.done()
    builder.part("thought" + _mark(step, "thought"), TextScope.THOUGHT, 0, step.thought)
    builder.part(_heading(step), TextScope.TEXT, 0, step.text)
    answered: set[int] = set()
    silent = unanswered(step)
    for number, call in enumerate(step.calls):
        builder.call(number, call)
        if number in silent:
            builder.lines(f"result  {call.id}".rstrip(), [UNANSWERED])
        for at, result in enumerate(step.results):
            if call.id and result.call_id == call.id and at not in answered:
                answered.add(at)
                builder.part(_answered(result), TextScope.RESULT, at, result.text, always=True)
    for at, result in enumerate(step.results):
        if at not in answered:
            builder.part(_answered(result), TextScope.RESULT, at, result.text, always=True)
    builder.part("also recorded", TextScope.ALSO, 0, also_text(step))
    builder.lines("labels and comments", annotations)
    return builder.done()


def sized(characters: int) -> str:
    """Return a number of characters in readable form."""
    if characters < 10_000:
        return f"{characters:,} characters"
    return (
        f"{characters / 1e3:,.0f} k characters"
        if characters < 1_000_000
        else f"{characters / 1e6:,.1f} M characters"
    )


def _mark(step: Step, field: str) -> str:
    return "  (derived)" if field in step.derived else ""


def _heading(step: Step) -> str:
    if step.kind is StepKind.TASK:
        return "task"
    return {"agent": "said", "person": "said"}.get(step.actor.value, step.actor.value)


def _answered(result: Result) -> str:
    facts = [f"result  {result.call_id}".rstrip()]
    if result.returncode is not None:
        facts.append(f"returned {result.returncode}")
    if result.is_error:
        facts.append(f"{signs.BAD} error")
    if result.duration_s is not None:
        facts.append(f"{result.duration_s:.2f} s")
    return "  ".join(facts)


class _Builder:
    def __init__(self, whole: Mapping[tuple[TextScope, int], str] | None) -> None:
        self._whole = whole or {}
        self._pieces: list[str] = []
        self._headings: set[int] = set()
        self._parts: list[StepPart] = []
        self._code: list[CodeLines] = []
        self._repeated: list[StepPart] = []
        self._offset = self._line = 0

    def _add(self, text: str) -> None:
        self._pieces.append(text)
        self._offset += len(text)
        self._line += text.count("\n")

    def heading(self, text: str) -> None:
        """Add a heading, on one line."""
        self._headings.add(self._line)
        self._add(" ".join(text.split("\n")) + "\n")

    def part(
        self, title: str, scope: TextScope, number: int, text: str, *, always: bool = False, skipped: int = 0
    ) -> None:
        """Add a part below its heading; an empty one only if `always` is set."""
        if not text and not always:
            return
        self._add("\n")
        whole = self._whole.get((scope, number))
        shown = text if whole is None else whole
        kept = shown if whole is not None else _kept(shown)
        folded = len(kept) < len(shown) or (whole is None and isinstance(text, CutText))
        self.heading(f"{signs.HEADING} {title}" + ("" if text else "  (nothing)"))
        self._parts.append(StepPart(scope, number, self._offset, len(kept), folded, skipped))
        if kept:
            self._mark_code(scope, kept)
            self._add(kept + "\n")
        if folded:
            self.heading(f"{signs.FOLDED} folded: {_length(text, shown)}; o shows all")

    def call(self, number: int, call: RunCall) -> None:
        """Add a call; if the text before it quotes its only argument, add only the heading."""
        title, skipped = f"call  {call.tool}  {call.id}".rstrip(), len(call.tool) + 1
        name, value = next(iter((call.parsed or {}).items()), ("", None))
        if isinstance(value, str) and not isinstance(value, CutText) and len(call.parsed or {}) == 1:
            quoted = "".join(self._pieces).find(f"\n{value}\n") if value.strip() else -1
            if quoted >= 0:
                self._add("\n")
                self.heading(f"{signs.HEADING} {title}  as quoted above")
                place = StepPart(
                    TextScope.CALL, number, quoted + 1, len(value), skipped=skipped + len(f"{name}: ")
                )
                self._repeated.append(place)
                return
        first, before = self._line + 2, self._line
        self.part(title, TextScope.CALL, number, call_text(call), always=True, skipped=skipped)
        if (language := language_of(call)) and self._line > before + 2:
            self._code.append(CodeLines(first, self._line, language))

    def lines(self, title: str, lines: Sequence[str]) -> None:
        """Add a heading with lines from outside the record; nothing if there are no lines."""
        if lines:
            self._add("\n")
            self.heading(f"{signs.HEADING} {title}")
            self._add("\n".join(lines) + "\n")

    def _mark_code(self, scope: TextScope, text: str) -> None:
        """Record the fenced blocks whose fences name a language as code."""
        if scope not in (TextScope.THOUGHT, TextScope.TEXT) or "```" not in text:
            return
        language, first = "", 0
        for number, line in enumerate(text.split("\n"), self._line):
            fence = _FENCE.match(line)
            if fence is None:
                continue
            if language:
                self._code.append(CodeLines(first, number, language))
                language = ""
            elif fence[1]:
                language, first = fence[1].lower(), number + 1

    def done(self) -> StepText:
        """Return the composed text."""
        return StepText(
            "".join(self._pieces).removesuffix("\n"),
            frozenset(self._headings),
            tuple(self._parts),
            tuple(self._code),
            tuple(self._repeated),
        )


def _length(text: str, shown: str) -> str:
    if isinstance(text, CutText):
        return f"the whole takes {text.length:,} bytes"
    return f"{shown.count(chr(10)) + 1:,} lines, {sized(len(shown))} in all"


def _kept(text: str) -> str:
    if len(text) <= FOLD_CHARACTERS and text.count("\n") < FOLD_LINES:
        return text
    at = -1
    for _ in range(KEPT_LINES):
        following = text.find("\n", at + 1, KEPT_CHARACTERS)
        if following < 0:
            return text[:KEPT_CHARACTERS]
        at = following
    return text[:at]


def long_parts(step: Step) -> Iterator[tuple[TextScope, int, str]]:
    """Yield the parts of a step that are folded initially: scope, number and text."""
    for scope, number, text in parts_of(step):
        if scope is not TextScope.DIFF and (isinstance(text, CutText) or len(_kept(text)) < len(text)):
            yield scope, number, text


class StepView(TextView):
    """A view of a composed step."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "unfold", "Unfold", show=False, id="step.unfold"),
    ]

    class HitRequested(Message):
        """A request to move to the next or previous hit."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    class UnfoldRequested(Message):
        """A request to show the folded parts in full, or to fold them again."""

    def __init__(self, *, id: str) -> None:
        super().__init__(can_interpret=True, id=id)
        self.set_reactive(LineView.wrap, True)
        self.composed = StepText("", frozenset(), ())
        self._colouring: Timer | None = None
        self.walks_hits = False
        """Whether `n` and `N` go through the hits of the run's search instead of the matches in this text."""

    def show(self, composed: StepText, *, keep_place: bool = False) -> None:
        """Show the text of a step, from the start unless `keep_place` is set."""
        line, column, place = self.cursor_line, self.cursor_column, self.scroll_offset
        self.composed = composed
        self.load(composed.text)
        if "[image" in composed.text or "[computer_" in composed.text:
            named = (self.lines.line_of(found.start()) for found in _IMAGE.finditer(composed.text))
            self.places = {line: number for number, line in enumerate(dict.fromkeys(named))}
        if keep_place:
            self.go_to(line, column)
            self.place(*place)
        if self._colouring is not None:
            self._colouring.stop()
            self._colouring = None
        if composed.code:
            self._colour(composed.code)

    def _colour(self, code: Sequence[CodeLines]) -> None:
        self._tokens = tokens = [array("L")] * len(self.lines)
        long: list[CodeLines] = []
        for part in code:
            text = self._code_text(self.lines, part)
            if len(text) > _SHORT or not is_quick(part.language):
                long.append(part)
                continue
            for chunk in tokens_by_line(TextLines(text), part.language):
                tokens[part.first : part.first + len(chunk)] = chunk
        if long:
            find = partial(self._find_code_tokens, self.lines, long, tokens)
            start = partial(self.run_worker, find, thread=True, group="colour", exit_on_error=False)
            self._colouring = self.set_timer(_COLOUR_S, start)

    @staticmethod
    def _code_text(lines: TextLines, part: CodeLines) -> str:
        return "\n".join(lines[number] for number in range(part.first, part.after))

    def _find_code_tokens(
        self, lines: TextLines, code: Sequence[CodeLines], tokens: list[LineTokens]
    ) -> None:
        worker = get_current_worker()
        for part in code:
            text, at = self._code_text(lines, part), part.first
            for chunk in tokens_by_line(TextLines(text), part.language, lambda: worker.is_cancelled):
                if worker.is_cancelled:
                    return
                tokens[at : at + len(chunk)] = chunk
                at += len(chunk)
            self.post_message(self._Coloured(tokens, part.first, part.after))

    def line_tokens(self, line: int) -> LineTokens | None:
        """Return the tokens in a line of code; None while the text is drawn as a terminal shows it."""
        return None if self.terminal else super().line_tokens(line)

    def line_style(self, line: int) -> str:
        """Return the style of a line; headings are emphasised."""
        return "bold $text-primary" if line in self.composed.headings else ""

    def action_next_match(self) -> None:
        """Go to the next hit, or to the next match in the text."""
        self._walk(1)

    def action_previous_match(self) -> None:
        """Go to the previous hit, or to the previous match in the text."""
        self._walk(-1)

    def _walk(self, by: int) -> None:
        if self.walks_hits:
            self.post_message(self.HitRequested(by))
        elif by > 0:
            self.next_match()
        else:
            self.previous_match()

    def action_unfold(self) -> None:
        """Ask to show the folded parts in full, or to fold them again."""
        self.post_message(self.UnfoldRequested())

    def place_of(self, line: int, column: int) -> tuple[StepPart, int] | None:
        """Return the part, and the offset in it, at a line (counted from 0) and a column.

        None on a heading, and while the text is drawn as a terminal shows it.
        """
        if self.terminal:
            return None
        return self.composed.part_at(self.lines.starts[line] + column)

    def go_to_offset(self, offset: int) -> None:
        """Move the cursor to an offset in the composed text."""
        line = self.lines.line_of(offset)
        self.go_to(line + self.first_line, offset - self.lines.starts[line])


class StepPage(StepView):
    """The page with a step. The screen passes a step as soon as it is read; the page loads nothing."""

    class Unfolded(Message):
        """A message that the folded parts are now shown in full."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._loader: RunLoader | None = None
        self._step: Step | None = None
        self._hides = False
        self._annotations: tuple[str, ...] = ()
        self.whole: dict[tuple[TextScope, int], str] = {}
        """The full text of the unfolded parts, by scope and number; empty while all are folded."""

    def show_step(
        self, step: Step, loader: RunLoader, *, hides: bool, annotations: Sequence[str] = ()
    ) -> None:
        """Show a step; if it is already shown, keep the place and the unfolded parts.

        `hides` leaves out model and outcome; `annotations` is the text of the reviewer's annotations.
        """
        same = self._step is not None and self._step.index == step.index and self._loader is loader
        if not same:
            self.whole = {}
        self._step, self._loader, self._hides, self._annotations = step, loader, hides, tuple(annotations)
        self.show(compose(step, self.whole, hides=hides, annotations=annotations), keep_place=same)

    def show_annotations(self, annotations: Sequence[str]) -> None:
        """Show other annotations at the end of the step's text."""
        if self._step is not None and self._loader is not None and tuple(annotations) != self._annotations:
            self.show_step(self._step, self._loader, hides=self._hides, annotations=annotations)

    @on(TextView.PlaceRequested)
    def open_image(self, message: TextView.PlaceRequested) -> None:
        """Open the image that the line at the cursor represents."""
        step, loader = self._step, self._loader
        if step is None or loader is None or loader.document is None:
            return
        message.stop()
        document, index, number, text = (
            loader.document,
            step.index,
            int(str(message.place)),
            self.composed.text,
        )

        def opened() -> str:
            from gistpoint.tui.screens.review.images import opened_image

            places = [text[found.start() :].partition("\n")[0] for found in _IMAGE.finditer(text)]
            return opened_image(document, index, number, places)

        loader.do(opened, lambda words: self.app.notify(words, timeout=_READ_S))

    @on(StepView.UnfoldRequested)
    def unfold(self) -> None:
        """Show the folded parts in full, or fold them again."""
        step, loader = self._step, self._loader
        if step is None or loader is None or loader.document is None:
            return
        if self.whole:
            self.whole = {}
            self.show_step(step, loader, hides=self._hides, annotations=self._annotations)
            return
        document, folded = loader.document, list(long_parts(step))

        def read() -> dict[tuple[TextScope, int], str]:
            return {
                (scope, number): "".join(document.full_text(text)) if isinstance(text, CutText) else text
                for scope, number, text in folded
            }

        def show(whole: dict[tuple[TextScope, int], str]) -> None:
            if self._step is not None and self._step.index == step.index:
                self.whole = whole
                self.show_step(step, loader, hides=self._hides, annotations=self._annotations)
                self.post_message(self.Unfolded())

        if folded:
            loader.do(read, show)
