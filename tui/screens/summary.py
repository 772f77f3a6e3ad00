"""Summary of an attempt that has ended: its content, a headline, pages in tabs, and the way home."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.getters import query_one
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import ContentSwitcher

from gistpoint.core.attempts.state import AttemptResult, AttemptState, Submission, attempt_result
from gistpoint.core.code.snippet import at_left_margin
from gistpoint.core.kinds.gist.state import gist_of
from gistpoint.core.kinds.kind import ExpectedText
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.tasks.model import Task
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.view_models import clock_rows, duration, end_words, isolation_warning, submission_words
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.name_tabs import NameTab, NameTabs
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.text_view import TextView

Rows = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Compared:
    """A part of the answer: as the solver left it, and as it should be."""

    label: str
    yours: str
    true: str
    legend: str


def headline(state: AttemptState, accepted: bool | None = None) -> str:
    """Return the result in one line; `accepted` is the reviewers' decision on a pass."""
    if state.ending is None:
        return "… not ended"
    words = end_words(state.ending, attempt_result(state, accepted))
    score = "nothing was submitted" if state.last is None else state.of_kind.score_words(state.last.score or 0)
    return f"{words}   {score}   working time {duration(state.clock.active)}"


def compared(parts: Iterable[ExpectedText], state: AttemptState) -> tuple[Compared, ...]:
    """Return each part of the answer as the solver left it beside the true one."""
    return tuple(_compared(part, state) for part in parts)


def _compared(part: ExpectedText, state: AttemptState) -> Compared:
    submitted = [s.replacement.code for s in state.submissions if s.replacement.name == part.name]
    mark = "✔ changed" if submitted else "✘ never touched"
    yours = submitted[-1] if submitted else part.given
    whose = "as you wrote it last" if submitted else "as it was given to you, for you never replaced it"
    yours, true = _compared_text(yours), _compared_text(part.right)
    legend = f"- {whose}   + as it should be" if yours != true else "as you wrote it last, which is as it should be"
    return Compared(f"{mark}  {part.name}", yours, true, f"{part.name}:  {legend}")


def _compared_text(code: str) -> str:
    """Return code for the comparison, its indentation normalised."""
    return f"{at_left_margin(code).rstrip()}\n"


def summary_rows(task: Task, state: AttemptState, accepted: bool | None = None) -> list[tuple[str, Rows]]:
    """Return titled groups of named values."""
    groups = [
        ("Outcome", _outcome(task, state, accepted)),
        ("Time", clock_rows(state.clock)),
        ("Budgets", _budgets(state)),
    ]
    if state.submissions:
        submitted = [(f"{s.number}: {_what(s)}", _submitted(s, accepted)) for s in state.submissions]
        groups.append(("Submissions", submitted))
    if state.affordances:
        groups.append(
            (
                "Comforts that a model does not have",
                [(k, "once" if n == 1 else f"{n} times") for k, n in state.affordances.items()],
            )
        )
    return groups


def _what(submission: Submission) -> str:
    return submission.replacement.qualname or submission.replacement.path or "gist"


def _submitted(submission: Submission, accepted: bool | None) -> str:
    marked = f", suspicious: {', '.join(submission.suspicious)}" if submission.suspicious else ""
    return f"{submission_words(submission, accepted)}, at {duration(submission.at_ms)}{marked}"


def _outcome(task: Task, state: AttemptState, accepted: bool | None) -> Rows:
    rows: Rows = [("Task", f"{task.short_id}, {'several' if task.several else task.mode}")]
    ending = state.ending
    if ending is not None:
        rows.append(("End", end_words(ending, attempt_result(state, accepted))))
        if ending.code:
            rows.append(("Reason", ending.code.replace("_", " ")))
        if ending.text:
            rows.append(("In your words", ending.text))
    if state.suspicious:
        rows.append(("Suspicious", ", ".join(state.suspicious)))
        if accepted is None:
            settled = f"gistpoint attempt accept {state.attempt_id}, or reject {state.attempt_id} --why TEXT"
            rows.append(("To be read", f"it counts as solved after {settled}"))
        else:
            rows.append(("Read", "accepted: it counts as solved" if accepted else "rejected: it does not count"))
    if kind_of(task).start(task) is None and state.last is not None:
        rows.append(("Corrupted functions changed", str(len(state.last.changed))))
    best = state.best
    if best is not None and best is not state.last:
        rows.append(("Best submission", f"number {best.number}, score {best.score or 0:.3f}"))
    if state.suspects:
        rows.append(("Suspects", ", ".join(suspect.name for suspect in state.suspects)))
    warning = isolation_warning(state)
    if warning:
        rows.append(("Isolation", warning))
    rows.append(("Attempt", state.attempt_id))
    return rows


def _budgets(state: AttemptState) -> Rows:
    budgets, left = state.budgets, state.remaining
    rows = [(f"{state.of_kind.unit}s".capitalize(), f"{budgets.tool_uses - left.tool_uses} of {budgets.tool_uses}")]
    if not state.of_kind.hands_in_once:
        rows.append(("Submissions", f"{budgets.submissions - left.submissions} of {budgets.submissions}"))
    if budgets.scores != 0:
        rows.append(("Scores before the hand-in", str(len(gist_of(state).trials))))
    return [*rows, ("Calls", str(len(state.calls)))]


@dataclass(frozen=True, slots=True)
class SummaryPage:
    """A page between the result and the notes; its widget has an id."""

    title: str
    widget: Widget
    focus: str = ""
    """The widget to focus; by default the page."""


class ResultPage(VerticalScroll):
    """Titled groups of named values."""

    def __init__(self, groups: Sequence[tuple[str, Rows]]) -> None:
        super().__init__(id="page-result")
        self._groups = groups

    def compose(self) -> ComposeResult:
        """Lay out the groups."""
        for title, rows in self._groups:
            yield Plain(title, classes="summary-title")
            for name, value in rows:
                with Horizontal(classes="summary-row"):
                    yield Plain(name, classes="summary-name")
                    yield Plain(value, classes="summary-value")


class SummaryTextPage(TextView):
    """A text that does not change."""

    def __init__(self, text: str, *, id: str) -> None:
        super().__init__(id=id)
        self._text = text

    def on_mount(self) -> None:
        """Show it."""
        self.load(self._text)


class SummaryScreen(Screen[None]):
    """An attempt that has ended, whatever the kind of its task."""

    CSS_PATH = "summary.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.SUMMARY)]
    HELP_PAGE = "summary"
    SCOPES = (KeyScope.SUMMARY,)

    switcher = query_one("#summary-pages", ContentSwitcher)

    def __init__(
        self,
        state: AttemptState,
        groups: Sequence[tuple[str, Rows]],
        pages: Sequence[SummaryPage],
        *,
        accepted: bool | None = None,
    ) -> None:
        """`groups` are on the first page; `accepted` is the reviewers' decision on a pass."""
        super().__init__()
        self._state, self._accepted = state, accepted
        notes = SummaryTextPage(state.notes or "No notes were taken.", id="page-notes")
        self._pages = (SummaryPage("Result", ResultPage(groups)), *pages, SummaryPage("Notes", notes))

    def compose(self) -> ComposeResult:
        """Lay out headline and pages."""
        counts = attempt_result(self._state, self._accepted) is AttemptResult.SOLVED
        words = headline(self._state, self._accepted)
        yield Plain(words, id="summary-headline", classes="-solved" if counts else "")
        yield NameTabs({str(page.widget.id): page.title for page in self._pages})
        with ContentSwitcher(initial="page-result", id="summary-pages"):
            yield from (page.widget for page in self._pages)
        yield KeyBar()

    def on_mount(self) -> None:
        """Start at the result."""
        self._turn_to(self._pages[0])

    def on_name_tab_clicked(self, message: NameTab.Clicked) -> None:
        """Go to the clicked page."""
        self._turn_to(next(page for page in self._pages if page.widget.id == message.target))

    def action_section(self, by: int) -> None:
        """Go to the next or previous page."""
        at = next(n for n, page in enumerate(self._pages) if page.widget.id == self.switcher.current)
        self._turn_to(self._pages[(at + by) % len(self._pages)])

    def _turn_to(self, page: SummaryPage) -> None:
        self.switcher.current = page.widget.id
        self.query_one(NameTabs).mark(str(page.widget.id))
        (self.query_one(page.focus) if page.focus else page.widget).focus()

    def action_home(self) -> None:
        """Go back to tasks and attempts."""
        self.dismiss(None)
