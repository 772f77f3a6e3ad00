"""The pane with all answers so far. A submission also has pages for its tests and its diff."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.getters import query_one
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gistpoint.core.attempts.harness import Judged, JudgedBySuite
from gistpoint.core.attempts.parts import NOTHING_REPLACED
from gistpoint.core.attempts.state import AttemptCall, AttemptState, Submission
from gistpoint.core.code.snippet import at_left_margin
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.outcomes import Outcome, TestResult
from gistpoint.tui import signs
from gistpoint.tui.keys import KeyScope, bindings_of, key_named, shown_key
from gistpoint.tui.known import shown_sources
from gistpoint.tui.places import NamedPlace, parts_of_hits, places_in_answer
from gistpoint.tui.screens.solve.panes import SourceRequested, StatePane, pane_frame, pane_key
from gistpoint.tui.view_models import call_words, shows_evidence, submission_words, typed_form
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.outcome_table import OutcomeTable
from gistpoint.tui.widgets.plain import plain_line
from gistpoint.tui.widgets.text_view import TextView

PAGES = {"answer": "Answer", "tests": "Tests", "changes": "Diff"}
_FOCUS = {"answer": "#answer", "tests": "#tests ResultTable", "changes": "#changes DiffPane"}
SIDE_BY_SIDE = 120
"""The width, in cells, from which the answer is next to the list of calls, with room for lines of code."""
Made = TypeVar("Made", bound=Widget)


class CallList(OptionList):
    """The list of calls."""

    enter_words = "Read"
    """The effect of Enter, for the line of keys."""


class ResultsPane(StatePane):
    """The list of calls, and the pages of the chosen one. The list is short while an answer is being read.

    An answer that the code pane shows is folded: its row shows what was read (decision 127).
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.RESULTS)]

    calls = query_one("#calls", OptionList)
    answer = query_one("#answer", TextView)

    def __init__(
        self,
        start_of: Callable[[str], str],
        judgement_of: Callable[[str], Judged | None],
        *,
        read_only: bool = False,
    ) -> None:
        """`start_of` returns the initial code of a function.

        `judgement_of` returns the test run of a call in this process, None if there is none. With
        `read_only`, nobody can make a call here, so the pane shows no price.
        """
        super().__init__(id="results")
        pane_frame(self, "results", note="no calls yet")
        self._start_of, self._judgement_of = start_of, judgement_of
        self._read_only = read_only
        self._state = AttemptState()
        self._drawn: tuple[AttemptCall, ...] = ()
        self._chosen: AttemptCall | None = None
        self._unfolded = False
        """Whether an answer in the code pane is shown here as well."""
        self.page = "answer"
        """The displayed page of the chosen call."""

    def compose(self) -> ComposeResult:
        """Lay out the list and the answer. The other pages are made when they are first shown."""
        with Horizontal(id="result-parts"):
            yield CallList(id="calls", compact=True)
            yield TextView(id="answer")

    def on_mount(self) -> None:
        """Turn on line wrapping for answers."""
        self.answer.wrap = True

    def on_resize(self, event: events.Resize) -> None:
        """Arrange the list and the answer again after a frame was moved."""
        self.set_room(event.size.width)

    def set_room(self, width: int) -> None:
        """Put the answer next to the list if there is room, otherwise below it."""
        self.set_class(width >= SIDE_BY_SIDE, "-side-by-side", update=self.is_mounted)

    def update_from(self, state: AttemptState) -> None:
        """Show the calls of a new state, drawing only those that have changed."""
        self._state = state
        if state.calls == self._drawn:
            return
        submissions = {submission.call_id: submission for submission in state.submissions}
        for number, call in enumerate(state.calls):
            label = plain_line(call_words(call, submissions.get(call.call_id), read_words(call)))
            if number < len(self._drawn):
                if call != self._drawn[number]:
                    self.calls.replace_option_prompt_at_index(number, label)
            else:
                self.calls.add_option(Option(label))
        self._drawn = state.calls

    async def show_call(self, call_id: str) -> None:
        """Choose a call, and show its answer."""
        number = next((n for n, call in enumerate(self._drawn) if call.call_id == call_id), None)
        if number is None:
            return
        if self.calls.highlighted != number:
            self.calls.highlighted = number
        await self._show(self._drawn[number])

    @on(OptionList.OptionHighlighted)
    async def highlight(self, event: OptionList.OptionHighlighted) -> None:
        """Show the answer to the call at the cursor."""
        event.stop()
        if event.option_index < len(self._drawn):
            await self._show(self._drawn[event.option_index])

    @on(OptionList.OptionSelected)
    def read(self, event: OptionList.OptionSelected) -> None:
        """Focus the page, with the cursor on the first place that an answer names.

        If the answer is folded, show its source in the code pane instead.
        """
        event.stop()
        shown = shown_sources(self._chosen) if self._chosen is not None and self.folded else None
        if shown is not None:
            self.post_message(SourceRequested(shown.name))
            return
        self._page_widget().focus()
        if self.page == "answer":
            self.read_hits()

    def read_hits(self) -> None:
        """Move to the first line of the answer that names a line of a file, or any place, and focus it.

        Do nothing if the answer names no place.
        """
        places = self.answer.places
        if places:
            named = [line for line, place in places.items() if isinstance(place, NamedPlace) and place.line]
            self.answer.go_to(min(named or places) + self.answer.first_line)
            self.answer.focus()

    def _page_widget(self) -> Widget:
        return self.query_one(_FOCUS[self.page])

    @property
    def folded(self) -> bool:
        """Whether the answer to the chosen call is folded to its row, because the code pane shows it."""
        return self._chosen is not None and bool(read_words(self._chosen)) and not self._unfolded

    def action_fold(self) -> None:
        """Unfold the answer to the chosen call, or fold it again."""
        self._unfolded = not self._unfolded
        self._draw_fold()
        self._draw_frame()

    def _draw_fold(self) -> None:
        # The focus has to move, since a hidden widget would keep it and get the keys.
        had_focus = self.answer.has_focus
        self.set_class(self.folded, "-folded")
        self.answer.display = self.page == "answer" and not self.folded
        if had_focus and not self.answer.display:
            # Not `focus`, which acts later, and would take the focus from the pane that is shown next.
            self.screen.set_focus(self.calls)

    async def _show(self, call: AttemptCall) -> None:
        if call != self._chosen:
            same = self._chosen is not None and call.call_id == self._chosen.call_id
            self._unfolded = self._unfolded and same
            self._chosen = call
            self.answer.load(call.text if call.text is not None else "No answer yet.")
            self.answer.places = places_in_answer(call)
            self.answer.parts = parts_of_hits(call)
        await self._turn_to(self.page)

    def _submission(self) -> Submission | None:
        call_id = self._chosen.call_id if self._chosen is not None else ""
        found = next(
            (submission for submission in self._state.submissions if submission.call_id == call_id), None
        )
        return None if found is None or found.replacement is NOTHING_REPLACED else found

    def _available(self) -> list[str]:
        submission = self._submission()
        if submission is None:
            return ["answer"]
        return [
            "answer",
            *(["tests"] if shows_evidence(self._state) and submission.status else []),
            "changes",
        ]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to turn pages if there are several, and to fold the answer if the code pane shows it."""
        if action == "fold":
            return self._chosen is not None and bool(read_words(self._chosen))
        return len(self._available()) > 1 if action == "page" else super().check_action(action, parameters)

    async def action_page(self, by: int) -> None:
        """Turn to the next or previous page of the chosen call."""
        pages = self._available()
        at = pages.index(self.page) if self.page in pages else 0
        await self._turn_to(pages[(at + by) % len(pages)])

    async def _turn_to(self, page: str) -> None:
        """Show a page, making it if necessary; if the chosen call has no such page, show the answer."""
        page = page if page in self._available() else "answer"
        submission = self._submission()
        if page == "tests" and submission is not None:
            table = await self._made(OutcomeTable, "tests")
            table.show_results(results_of(submission, self._judgement_of(submission.call_id)))
        elif page == "changes" and submission is not None:
            replacement = submission.replacement
            before, after = (
                at_left_margin(code) for code in (self._start_of(replacement.name), replacement.code)
            )
            (await self._made(DiffView, "changes")).load(f"{before.rstrip()}\n", f"{after.rstrip()}\n")
        had_focus = page != self.page and self._page_widget().has_focus
        self.page = page
        for name in PAGES:
            for widget in self.query(f"#{name}"):
                widget.display = name == page
        self._draw_fold()
        if had_focus:
            self.screen.set_focus(self._page_widget())
        self._draw_frame()

    async def _made(self, kind: Callable[..., Made], id: str) -> Made:
        found = self.query(f"#{id}")
        if found:
            return cast("Made", found.first())
        widget = kind(id=id)
        await self.query_one("#result-parts").mount(widget)
        return widget

    def _draw_frame(self) -> None:
        call, submission = self._chosen, self._submission()
        if call is None:
            return
        self.refresh_bindings()
        pages = self._available()
        tabs = (
            "  ".join(f"[{PAGES[name]}]" if name == self.page else PAGES[name] for name in pages)
            if len(pages) > 1
            else ""
        )
        words = submission_words(submission) if submission is not None else typed_form(call)
        opens = (
            "Enter opens what was shown"
            if self._read_only
            else f"Enter opens: free if shown, else 1 {self._state.of_kind.unit}"
        )
        leads = f"{signs.LEADS} {opens}" if self.answer.places else ""
        note = f"[ ] {tabs}" if tabs else leads
        if read_words(call):
            fold = shown_key(key_named("results.fold").keys)
            note = (
                f"Enter shows it in {pane_key('code')} · {fold} unfolds" if self.folded else f"{fold} folds"
            )
        pane_frame(self, "results", f"Results {call.number} of {len(self._drawn)}  {words}", note)


def read_words(call: AttemptCall) -> str:
    """Return a line for an answer that the code pane shows; empty for any other answer."""
    shown = shown_sources(call)
    if shown is None or call.refused:
        return ""
    count = len(physical_lines(shown.text))
    lines = f"{count} line{'' if count == 1 else 's'}"
    if shown.function:
        return f"Read {shown.function.partition('::')[2]} in {shown.path}, {lines}"
    return f"Read {shown.path}, {lines}"


def results_of(submission: Submission, judgement: Judged | None) -> list[TestResult]:
    """Return the outcome of every test in a submission's run, with the failing tests first.

    If `judgement` has no report of the suite, as for a run of an earlier process, return only the failing
    tests in the journal.
    """
    texts = dict(submission.failures)
    failing = [TestResult(id, Outcome.FAILED, message=texts.get(id, "")) for id in submission.failing]
    if not isinstance(judgement, JudgedBySuite):
        return failing
    known = judgement.report.results
    failing = [known.get(result.id, result) for result in failing]
    rest = [result for id, result in known.items() if id not in set(submission.failing)]
    return [*failing, *rest]
