"""Summary of a gist: what it is worth, line by line, and the gist that a program made of the same command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from textual.containers import Vertical
from textual.widget import Widget

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.kinds.gist.evidence import read_evidence
from gistpoint.core.kinds.gist.model import GistAnswer
from gistpoint.core.tasks.model import Task
from gistpoint.core.trees import SourceTree
from gistpoint.tui.gist_marks import lacks, marks_of, rate
from gistpoint.tui.screens.ended import EndedScreen
from gistpoint.tui.summary_model import Rows, summary_rows
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.gist_view import ScoredGist
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.text_view import TextView


class GistSummaryScreen(EndedScreen):
    """A gist that was handed in, or an attempt that ended without one."""

    CSS_PATH = "../summary.tcss"
    PAGES: ClassVar[Mapping[str, str]] = {
        "page-result": "Result",
        "page-gist": "Gist",
        "page-lacks": "What was missing",
        "page-reference": "Reference",
        "page-notes": "Notes",
    }
    INSIDE: ClassVar[Mapping[str, str]] = {"page-reference": "#reference-text"}

    def __init__(self, task: Task, answer: GistAnswer, state: AttemptState, *, accepted: bool | None = None) -> None:
        super().__init__(task, state, accepted)
        self._answer = answer

    def rows(self) -> list[tuple[str, Rows]]:
        """Return the scores, then what every summary says."""
        last = self._state.submissions[-1] if self._state.submissions else None
        scores = score_rows(last.metrics) if last is not None and last.metrics else []
        reference = self._answer.reference
        if reference is not None:
            scores += [("Reference gist", _reference_words(self._answer))]
        first, *rest = summary_rows(self._ended_task, self._state, self._accepted)
        return [first, *([("Scores", scores)] if scores else []), *rest]

    def more_pages(self) -> Iterable[Widget]:
        """Return the gist with its gutter, what it lacked, and the reference."""
        tree = SourceTree.open(self._ended_task.tree_path) if self._ended_task.tree_path.is_file() else None
        yield ScoredGist(tree, id="page-gist")
        yield TextView(id="page-lacks")
        yield Vertical(
            Plain(_reference_words(self._answer), classes="summary-legend"),
            CodeView(id="reference-text"),
            id="page-reference",
        )

    def on_mount(self) -> None:
        """Fill the pages."""
        last = self._state.submissions[-1] if self._state.submissions else None
        lines = read_evidence(last.metrics.get("lines", ())) if last is not None else ()
        text = last.gist if last is not None else self._state.gist.now
        self.query_one(ScoredGist).show(text, marks_of(lines))
        missing = "\n".join(f"line {lack.line}: {lack.words}" for lack in lacks(lines, ()))
        self.query_one("#page-lacks", TextView).load(missing or "Nothing that is known.")
        reference = self._answer.reference
        self.query_one("#reference-text", CodeView).load(reference.text if reference is not None else "")


def _reference_words(answer: GistAnswer) -> str:
    reference = answer.reference
    if reference is None:
        return "No reference gist was made: gistpoint gist reference makes one."
    if not reference.faithful:
        return f"no faithful one: {reference.reason}"
    rates = [("ran", reference.line_execution), ("stands", reference.line_existence)]
    return "  ".join(["faithful", *(f"{name} {value:.1f} %" for name, value in rates if value is not None)])


def score_rows(score: Mapping[str, Any]) -> Rows:
    """Return the figures of a score, as `core.kinds.gist.score` spells it, by name."""
    rows: Rows = [("Execution fidelity", str(score.get("execution_fidelity", 0)))]
    rows.append(("Self-contained", "yes" if score.get("self_contained") else "no"))
    if score.get("instances"):
        rows.append(("Tests passed", f"{score.get('passed', 0)} of {score['instances']}"))
    for name, key in (("Line execution", "line_execution"), ("Line existence", "line_existence")):
        report = score.get(key)
        if isinstance(report, Mapping):
            without = report.get("rate_without_test")
            bare = f", without the test {without:.1f} %" if isinstance(without, int | float) else ""
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
