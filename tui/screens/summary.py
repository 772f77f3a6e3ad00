"""The summary of an attempt that has ended: a headline, and pages in tabs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.getters import query_one
from textual.widget import Widget

from gistpoint.core.attempts.state import AttemptResult, AttemptState, Submission, attempt_result
from gistpoint.core.code.snippet import at_left_margin
from gistpoint.core.confirmation.model import Confirmed
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.confirming import (
    CONTRADICTED_SENTENCE,
    confirmation_lines,
    to_be_confirmed,
)
from gistpoint.core.kinds.folder import target_names
from gistpoint.core.kinds.kind import ExpectedText
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.kinds.titles import answer_title
from gistpoint.core.readable import duration
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.confirming import AskedPass
from gistpoint.tui import signs
from gistpoint.tui.attempt_charts import budget_lines, score_lines, time_lines
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.keys import KeyScope, bindings_of, key_named, shown_key
from gistpoint.tui.titles import mode_words
from gistpoint.tui.view_models import end_words, isolation_warning, pass_words, submission_words
from gistpoint.tui.widgets.header_bar import HeaderBar, HeaderField
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.line_list import HEADING, MUTED, Line, LineList, folded, line
from gistpoint.tui.widgets.pages import Pages
from gistpoint.tui.widgets.plain import plain_line
from gistpoint.tui.widgets.text_view import TextView

AfterSummary = Literal["review", "task"]
"""The destination after a summary: the attempt's record or the next task; None for home."""
Rows = list[tuple[str, str]]
AskConfirmation = Callable[[RunContext], AskedPass]
"""A function that confirms a pass and returns the outcome. Called in a thread."""
_NAME_WIDTH = 30
"""The width, in cells, of the names of values."""


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """A part of the answer, as the solver left it and as expected."""

    label: str
    yours: str
    true: str
    legend: str


def headline(state: AttemptState, accepted: bool | None = None) -> str:
    """Return the result in a few words. `accepted` is the reviewers' decision on a pass, if there is one."""
    return (
        "… not ended"
        if state.ending is None
        else end_words(state.ending.reason, attempt_result(state, accepted))
    )


def headline_fields(state: AttemptState) -> list[HeaderField]:
    """Return the score and the working time of an attempt that has ended; empty before the end."""
    if state.ending is None:
        return []
    score = (
        "nothing was submitted" if state.last is None else state.of_kind.score_words(state.last.score or 0)
    )
    return [HeaderField("", score), HeaderField("working time", duration(state.clock.active))]


def compared(parts: Iterable[ExpectedText], state: AttemptState) -> tuple[ComparedPart, ...]:
    """Return each part of the answer along with the solver's text for it."""
    return tuple(_compared(part, state) for part in parts)


def _compared(part: ExpectedText, state: AttemptState) -> ComparedPart:
    submitted = [
        submission.replacement.code
        for submission in state.submissions
        if submission.replacement.name == part.name
    ]
    mark = f"{signs.GOOD} changed" if submitted else f"{signs.BAD} not changed"
    yours = submitted[-1] if submitted else part.given
    whose = "as you last wrote it" if submitted else "as it was given to you, because you never replaced it"
    yours, true = _compared_text(yours), _compared_text(part.right)
    legend = f"- {whose}   + as it should be" if yours != true else "as you last wrote it, which is correct"
    return ComparedPart(f"{mark}  {part.name}", yours, true, f"{part.name}:  {legend}")


def _compared_text(code: str) -> str:
    """Return code in a form for comparison: without common indentation, and with one newline at the end."""
    return f"{at_left_margin(code).rstrip()}\n"


def summary_rows(task: Task, state: AttemptState, accepted: bool | None = None) -> list[tuple[str, Rows]]:
    """Return the outcome as a list of one titled group of rows. `accepted` is as for `headline`."""
    return [("Outcome", _outcome(task, state, accepted))]


def result_lines(
    state: AttemptState, groups: Sequence[tuple[str, Rows]], width: int, accepted: bool | None = None
) -> list[Line]:
    """Return the lines of the first page: the groups, charts of time, budgets and scores, and submissions.

    If features that a model does not have were used, the last lines list them. `width` is in cells.
    """
    found: list[Line] = []
    for title, rows in groups:
        found += [*([Line()] if found else []), line(f" {title}", HEADING)]
        for name, value in rows:
            first, *rest = folded(value, width - _NAME_WIDTH, indent="") or [Line()]
            found.append(Line(((f"  {name:<{_NAME_WIDTH - 3}} ", MUTED), *first.pieces)))
            found += [Line(((" " * _NAME_WIDTH, ""), *more.pieces)) for more in rest]
    found += time_lines(state, width, "Time", apart=True)
    found += budget_lines(state)
    found += score_lines(state)
    for submission in state.submissions:
        words = f"{submission.number}  {_what(submission)}: {_submitted(submission, accepted)}"
        found += folded(words, width, indent="  ")
    if state.affordances:
        used = ", ".join(f"{kind.replace('_', ' ')} {count}×" for kind, count in state.affordances.items())
        found += [Line(), line(" Features that a model does not have", HEADING), *folded(used, width)]
    return found


def next_words(offered: Collection[AfterSummary]) -> str:
    """Return a line with the keys for the possible next actions, with the key for home last."""
    keys = [key_named(f"summary.{one}") for one in ("review", "task") if one in offered]
    keys.append(key_named("summary.home"))
    return " · ".join(f"{shown_key(key.keys)} {key.description.lower()}" for key in keys)


def _what(submission: Submission) -> str:
    return submission.replacement.qualname or submission.replacement.path or "gist"


def _submitted(submission: Submission, accepted: bool | None) -> str:
    marked = f", suspicious: {', '.join(submission.suspicious)}" if submission.suspicious else ""
    return f"{submission_words(submission, accepted)}, at {duration(submission.at_ms)}{marked}"


def _outcome(task: Task, state: AttemptState, accepted: bool | None) -> Rows:
    rows: Rows = [("Task", f"{answer_title(task, target_names(task))}, {mode_words(task)}")]
    rows += _end(state, accepted)
    rows += _confirmation(state)
    rows += _suspicion(state, accepted)
    if kind_of(task).start(task) is None and state.last is not None:
        rows.append(("Corrupted functions changed", str(len(state.last.changed))))
    rows += _best(state)
    if state.budgets.scores != 0 and (trials := state.of_kind.scores_made):
        rows.append(("Scores before the hand-in", str(trials)))
    if state.suspects:
        rows.append(("Suspects", ", ".join(suspect.name for suspect in state.suspects)))
    warning = isolation_warning(state)
    if warning:
        rows.append(("Isolation", warning))
    rows.append(("Ids", f"task {task.short_id}, attempt {state.attempt_id}"))
    return rows


def _best(state: AttemptState) -> Rows:
    """Return the row for the best submission; empty unless it scored higher than the last one."""
    best, last = state.best, state.last
    if best is None or last is None or (best.score or 0) <= (last.score or 0):
        return []
    return [("Best submission", f"number {best.number}, score {best.score or 0:.3f}")]


def _end(state: AttemptState, accepted: bool | None) -> Rows:
    ending = state.ending
    if ending is None:
        return []
    rows = [("End reason", end_words(ending.reason, attempt_result(state, accepted)))]
    if ending.code:
        rows.append(("Why", ending.code.replace("_", " ")))
    if ending.text:
        rows.append(("In your own words", ending.text))
    return rows


def _suspicion(state: AttemptState, accepted: bool | None) -> Rows:
    if not state.suspicious:
        return []
    if accepted is None:
        accept = f"gistpoint attempt accept {state.attempt_id}"
        review = ("To be read", f"it counts as solved after a reviewer has accepted it: {accept}")
    else:
        review = ("Read", "accepted: it counts as solved" if accepted else "rejected: it does not count")
    return [("Suspicious", ", ".join(state.suspicious)), review]


def _confirmation(state: AttemptState) -> Rows:
    confirmation = state.confirmation
    if confirmation is None:
        words = pass_words(state)
        return [("Confirmation", words)] if words else []
    first, *more = confirmation_lines(confirmation)
    rows = [("Confirmation", first), *(("", text) for text in more)]
    if confirmation.result is Confirmed.CONTRADICTED:
        rows.append(("", CONTRADICTED_SENTENCE))
        rows.append(("To object", f"gistpoint attempt object {state.attempt_id} --why TEXT"))
    notes = [mark for mark in state.marks if mark not in state.suspicious]
    return [*rows, ("Seen in its text", ", ".join(notes))] if notes else rows


@dataclass(frozen=True, slots=True)
class SummaryPage:
    """A page of the summary. Its widget must have an id."""

    title: str
    widget: Widget
    focus: str = ""
    """The selector of the widget to focus; empty for the page itself."""


class ResultPage(LineList):
    """The page with the outcome of the attempt, its times and its budgets."""

    def __init__(
        self, state: AttemptState, groups: Sequence[tuple[str, Rows]], accepted: bool | None
    ) -> None:
        super().__init__(id="page-result")
        self._state, self._groups, self._accepted = state, groups, accepted
        self.offered: frozenset[AfterSummary] = frozenset()
        """The destinations after the summary, besides home."""

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the lines to the new width."""
        self._fold(event.size.width)

    def show_state(self, state: AttemptState, groups: Sequence[tuple[str, Rows]]) -> None:
        """Show a new state of the attempt."""
        self._state, self._groups = state, groups
        self._fold(self.size.width)

    def _fold(self, width: int) -> None:
        (title, rows), *rest = self._groups
        groups = [(title, [*rows, ("Next", next_words(self.offered))]), *rest]
        self.show(result_lines(self._state, groups, max(40, width - 2), self._accepted))

    def row_style(self, index: int) -> str:
        """Return an empty string: no line is marked, because none can be chosen here."""
        return ""


class SummaryTextPage(TextView):
    """A page with fixed text."""

    def __init__(self, text: str, *, id: str) -> None:
        super().__init__(id=id)
        self._text = text

    def on_mount(self) -> None:
        """Load the text."""
        self.load(self._text)


class SummaryScreen(BaseScreen[AfterSummary]):
    """The summary of an ended attempt at a task of any kind."""

    CSS_PATH = "summary.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.SUMMARY)]
    HELP_PAGE = "summary"
    SCOPES = (KeyScope.SUMMARY,)

    pages = query_one(Pages)

    def __init__(
        self,
        task: Task,
        state: AttemptState,
        groups: Sequence[tuple[str, Rows]],
        pages: Sequence[SummaryPage],
        *,
        accepted: bool | None = None,
    ) -> None:
        """`groups` are shown on the first page, `pages` between it and the notes.

        `accepted` is the reviewers' decision on a pass, None if there is none.
        """
        super().__init__()
        self._attempted, self._state, self._accepted = task, state, accepted
        self._groups = tuple(groups)
        self._ask: AskConfirmation | None = None
        self._jobs = Jobs(self, "confirmation", failed=self._not_confirmed)
        self._job: Job | None = None
        self._offered: frozenset[AfterSummary] = frozenset()
        self.key_names: dict[str, str] = {}
        """Other names of actions in the line of keys, for an app without a home."""
        notes = SummaryTextPage(state.notes or "You took no notes.", id="page-notes")
        self._result = ResultPage(state, groups, accepted)
        result = SummaryPage("Result", self._result)
        self._pages = {page.title: page for page in (result, *pages, SummaryPage("Notes", notes))}

    def compose(self) -> ComposeResult:
        """Lay out headline and pages."""
        title = answer_title(self._attempted, target_names(self._attempted))
        yield HeaderBar(title, self._headline(), headline_fields(self._state))
        makers = {title: partial(_widget_of, page) for title, page in self._pages.items()}
        yield Pages({title: title for title in self._pages}, makers, keys=dict.fromkeys(self._pages, ""))
        yield KeyBar()

    async def on_mount(self) -> None:
        """Show the result, and start a confirmation that is still pending."""
        await self.action_page("Result")
        if self._ask is not None and to_be_confirmed(self._state) is not None:
            self._begin(self._ask)

    def offer(self, *following: AfterSummary) -> None:
        """Offer the possible next actions before the screen is shown; home is always offered."""
        self._offered = self._result.offered = frozenset(following)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Show only the keys of the actions on offer."""
        if action == "go_on":
            return parameters[0] in self._offered
        return super().check_action(action, parameters)

    def action_go_on(self, following: AfterSummary) -> None:
        """Stop a confirmation under way, and leave for the attempt's record or the next task."""
        self.stop()
        self.dismiss(following)

    def confirm_by(self, ask: AskConfirmation) -> None:
        """Use `ask` to confirm an unconfirmed pass, in the background while the screen is shown.

        If the screen is left before that is finished, the next summary of the attempt asks again.
        """
        self._ask = ask

    def stop(self) -> None:
        """Stop a confirmation under way, which then records nothing."""
        self._jobs.stop()

    def _begin(self, ask: AskConfirmation) -> None:
        self._show_confirmation("being confirmed …  (leaving stops it)")
        self._job = self._jobs.do(lambda job: ask(RunContext(job.cancel)), self._confirmed)

    def _confirmed(self, asked: AskedPass) -> None:
        self._job = None
        self._state = asked.state
        self._show_confirmation(f"not confirmed: {asked.why_not}" if asked.why_not else "")

    def _not_confirmed(self, error: Exception) -> None:
        if not isinstance(error, UserError):
            raise error
        self._job = None
        self._show_confirmation(str(error))

    def _show_confirmation(self, instead: str = "") -> None:
        """Show the headline and the result; `instead` replaces the text on the confirmation."""
        outcome = _outcome(self._attempted, self._state, self._accepted)
        if instead:
            outcome = [(name, instead if name == "Confirmation" else value) for name, value in outcome]
        groups = [
            ("Outcome", outcome) if title == "Outcome" else (title, rows) for title, rows in self._groups
        ]
        self._result.show_state(self._state, groups)
        self.query_one(HeaderBar).show(words=self._headline())

    def _headline(self) -> Content:
        counts = attempt_result(self._state, self._accepted) is AttemptResult.SOLVED
        return plain_line(headline(self._state, self._accepted)).stylize(
            "$text-success" if counts else "$text-error"
        )

    async def action_page(self, name: str) -> None:
        """Show and focus a page."""
        page = self._pages[name]
        widget = await self.pages.show(name)
        (self.query_one(page.focus) if page.focus else widget).focus()
        if self._state.submissions:
            self.pages.note("i: how the score is calculated" if name == "Result" else "")

    async def action_section(self, by: int) -> None:
        """Show the next or previous page."""
        names = list(self._pages)
        await self.action_page(names[(names.index(self.pages.current) + by) % len(names)])

    def action_rule(self) -> None:
        """Show how the score is calculated."""
        self.app.notify(kind_of(self._attempted).score_rule, title="The score", timeout=20)

    def action_home(self) -> None:
        """Stop a confirmation under way, and close the screen."""
        if self._job is not None:
            later = f"gistpoint attempt confirm {self._state.attempt_id}"
            self.app.notify(
                f"The confirmation was stopped. Opening the result again continues it, or `{later}`."
            )
        self.stop()
        self.dismiss(None)


def _widget_of(page: SummaryPage) -> Widget:
    return page.widget
