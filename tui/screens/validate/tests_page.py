"""The page with the relevant tests: their outcomes on both trees, with the messages of failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.getters import query_one

from gistpoint.core.generation.dossier import Dossier
from gistpoint.core.kinds.kind import Trial, TrialSubject
from gistpoint.core.kinds.steadiness import Steadiness, TestSteadiness
from gistpoint.core.text import plural
from gistpoint.tui import signs
from gistpoint.tui.screens.validate.task_page import PageContent, TaskPage
from gistpoint.tui.test_names import ending, unescaped
from gistpoint.tui.widgets.line_list import BAD, GOOD, ODD
from gistpoint.tui.widgets.record_list import Piece, RecordList
from gistpoint.tui.widgets.text_view import TextView

_IN_BRIEF = "corrupted, as the brief shows it"


@dataclass(frozen=True, slots=True)
class TestRow:
    """A test, the number of its passes, and the messages of its failures by tree."""

    __test__ = False

    shown: TestSteadiness
    failures: Mapping[str, str]

    @property
    def text(self) -> str:
        """The facts about the test as text."""
        shown = self.shown
        parts = [
            shown.id,
            f"original:  passed in {shown.original} of {plural(shown.original_runs, 'run')}",
            f"corrupted: passed in {shown.corrupted} of {plural(shown.corrupted_runs, 'run')}",
        ]
        for where, text in self.failures.items():
            parts += ["", f"{signs.HEADING} {where} {signs.HEADING}", text]
        if not self.failures and shown.corrupted < shown.corrupted_runs:
            parts += [
                "",
                "The task does not contain the output of this failure: r runs the tests and shows it here.",
            ]
        return "\n".join(parts)


def test_rows(
    dossier: Dossier, steady: Steadiness | None, trials: Mapping[TrialSubject, Trial]
) -> list[TestRow]:
    """Return the rows: failing tests in the brief's order, flaky tests, then tests that the fix broke.

    Without a baseline (`steady` is None), there are no rows.
    """
    if steady is None:
        return []
    in_brief = {failure.id: failure.text for failure in dossier.task.brief.failing}
    flaky = [shown.id for shown in steady.flaky]
    broken = sorted(trials[TrialSubject.FIX].broken) if TrialSubject.FIX in trials else []
    ids = dict.fromkeys([*in_brief, *flaky, *(id for id in broken if id in steady.baseline.passed)])
    return [TestRow(steady.of(id), _failures(id, in_brief, trials)) for id in ids]


def _failures(id: str, in_brief: Mapping[str, str], trials: Mapping[TrialSubject, Trial]) -> dict[str, str]:
    found = {_IN_BRIEF: in_brief[id]} if in_brief.get(id) else {}
    for subject, trial in trials.items():
        result = trial.report.results.get(id) if trial.report is not None else None
        if result is not None and result.message:
            name = "your fix" if subject is TrialSubject.FIX else subject.value
            found[f"{name}, in your last run"] = result.message
            if subject is TrialSubject.CORRUPTED and result.message.startswith(
                in_brief.get(id) or result.message
            ):
                found.pop(_IN_BRIEF, None)
    return found


class TestList(RecordList):
    """The list of tests, one per row."""

    __test__ = False

    def __init__(self) -> None:
        super().__init__(id="test-rows")
        self.rows: Sequence[TestRow] = ()

    def row(self, index: int, width: int) -> list[Piece]:
        """Return the outcomes on both trees, and the id of the test, or its end if the id is too long."""
        shown = self.rows[index].shown
        before = GOOD if shown.original == shown.original_runs else BAD
        after = BAD if not shown.corrupted else GOOD if shown.corrupted == shown.corrupted_runs else ODD
        pieces: list[Piece] = [
            (f" {shown.original:>3}/{shown.original_runs:<3}", before),
            (f"{signs.LEADS}{shown.corrupted:>3}/{shown.corrupted_runs:<3}", after),
            ("! " if shown.flaky else "  ", ODD),
        ]
        room = width - sum(cell_len(text) for text, _ in pieces)
        return [*pieces, (ending(unescaped(shown.id), room), "")]


class TestsPage(TaskPage, Vertical):
    """The list of tests, with the facts about the one at the cursor."""

    __test__ = False

    about = f"before {signs.LEADS} after: passed/runs, original and corrupted"
    tests = query_one(TestList)
    text = query_one("#test-text", TextView)

    def compose(self) -> ComposeResult:
        """Lay out the list and the text."""
        yield TestList()
        yield TextView(id="test-text", can_interpret=True)

    def on_mount(self) -> None:
        """Turn on line wrapping."""
        self.text.wrap = True

    def fill(self, content: PageContent) -> None:
        """Show the tests of a task, with the cursor on the test of the link."""
        session, dossier, test = content.session, content.dossier, content.link.removeprefix("test:")
        rows = self.tests.rows = test_rows(dossier, session.steadiness(dossier), session.trials(dossier.task))
        at = next((n for n, row in enumerate(rows) if row.shown.id == test), None)
        self.tests.styles.max_height = max(3, len(rows) + 1)
        self.tests.set_count(len(rows), cursor=at if at is not None or not content.first else 0)
        self._show_text()

    @on(RecordList.Moved)
    def _moved(self, message: RecordList.Moved) -> None:
        message.stop()
        self._show_text()

    @on(RecordList.Chosen)
    def _chosen(self, message: RecordList.Chosen) -> None:
        message.stop()
        self.text.focus()

    def _show_text(self) -> None:
        rows, at = self.tests.rows, self.tests.cursor
        text = rows[at].text if at < len(rows) else "No tests fail."
        if self.text.raw != text:
            self.text.load(text)

    @property
    def current(self) -> TestRow | None:
        """The test at the cursor; None if there is none."""
        at = self.tests.cursor
        return self.tests.rows[at] if at < len(self.tests.rows) else None
