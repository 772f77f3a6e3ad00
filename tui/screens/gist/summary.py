"""The summary of a gist: its scores, the evidence on each line, and the command's reference gist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.kinds.gist.answer import GistAnswer, gist_answer
from gistpoint.core.kinds.gist.score import read_evidence
from gistpoint.core.kinds.gist.state import gist_of
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.trees import SourceTree
from gistpoint.tui.screens.summary import Rows, SummaryPage, SummaryScreen, SummaryTextPage, summary_rows
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.gist_view import Marks, ScoredGist, marks_of, missing_lines, rate
from gistpoint.tui.widgets.plain import Plain


def gist_summary(
    task: Task, full: Answer, state: AttemptState, *, accepted: bool | None = None
) -> SummaryScreen:
    """Return the summary of an attempt at a gist, with or without a hand-in.

    `accepted` is the reviewers' decision on a pass; None if there is none.
    """
    answer = gist_answer(full)
    last = state.submissions[-1] if state.submissions else None
    scores = score_rows(last.metrics) if last is not None and last.metrics else []
    if answer.reference is not None:
        scores += [("Reference gist", _reference_words(answer))]
    outcome = summary_rows(task, state, accepted)
    lines = read_evidence(last.metrics.get("lines", ())) if last is not None else ()
    text = last.gist if last is not None else gist_of(state).now
    missing = "\n".join(f"line {flaw.line}: {flaw.words}" for flaw in missing_lines(lines, ()))
    pages = [
        SummaryPage("Gist", HandedIn(task, text, marks_of(lines))),
        SummaryPage("What was missing", SummaryTextPage(missing or "Nothing known.", id="page-flaws")),
        SummaryPage("Reference", ReferencePage(answer), "#reference-text"),
    ]
    groups = [*outcome, *([("Scores", scores)] if scores else [])]
    return SummaryScreen(task, state, groups, pages, accepted=accepted)


class HandedIn(ScoredGist):
    """The page with the gist that was handed in, or else its last text, and evidence in its gutter."""

    def __init__(self, task: Task, text: str, marks: Marks) -> None:
        super().__init__(
            SourceTree.open(task.tree_path) if task.tree_path.is_file() else None, id="page-gist"
        )
        self._handed_in, self._marks = text, marks

    def on_mount(self) -> None:
        """Show the gist."""
        self.show(self._handed_in, self._marks)


class ReferencePage(Vertical):
    """The page with the reference gist of the task's command."""

    def __init__(self, answer: GistAnswer) -> None:
        super().__init__(id="page-reference")
        self._answer = answer

    def compose(self) -> ComposeResult:
        """Lay out the facts about the reference gist, and its text."""
        yield Plain(_reference_words(self._answer), classes="summary-legend")
        yield CodeView(id="reference-text")

    def on_mount(self) -> None:
        """Load the text of the reference gist."""
        reference = self._answer.reference
        self.query_one("#reference-text", CodeView).load(reference.text if reference is not None else "")


def _reference_words(answer: GistAnswer) -> str:
    reference = answer.reference
    if reference is None:
        return "There is no reference gist: gistpoint gist reference looks for one."
    if not reference.faithful:
        return f"none that is faithful: {reference.reason}"
    rates = [("ran", reference.line_execution), ("exists", reference.line_existence)]
    return "  ".join(["faithful", *(f"{name} {value:.1f}%" for name, value in rates if value is not None)])


def score_rows(score: Mapping[str, Any]) -> Rows:
    """Return the rows for a score, given in the form that `core.kinds.gist.score` writes."""
    rows: Rows = [("Execution fidelity", str(score.get("execution_fidelity", 0)))]
    rows.append(("Self-contained", "yes" if score.get("self_contained") else "no"))
    if score.get("instances"):
        rows.append(("Tests passed", f"{score.get('passed', 0)} of {score['instances']}"))
    for name, key in (("Line execution", "line_execution"), ("Line existence", "line_existence")):
        report = score.get(key)
        if isinstance(report, Mapping):
            without = report.get("rate_without_test")
            bare = f", without the test {without:.1f}%" if isinstance(without, int | float) else ""
            rows.append((name, f"{rate(report)}{bare}"))
    test, error = score.get("test"), score.get("error")
    if isinstance(test, Mapping):
        rows.append(("Test score", f"recall {test.get('recall', 0):.1f}, F1 {test.get('f1', 0):.1f}"))
    if isinstance(error, Mapping):
        words = " ".join(str(error.get(key) or "") for key in ("category", "kind")).replace("_", " ").strip()
        rows.append(("Error", f"{words}: {error.get('evidence', '')}".rstrip(": ")))
    flags = score.get("flags")
    if isinstance(flags, Mapping) and any(flags.values()):
        rows.append(("Flags", ", ".join(name.replace("_", " ") for name, value in flags.items() if value)))
    return rows
