"""The page with the gist at a step, with evidence on its lines.

The evidence was recorded, comes from a score on this screen, or was carried over from an earlier text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gistpoint.core.entrypoints.command import EntrypointError, parse_entrypoint
from gistpoint.core.kinds.gist.model import entrypoint_of
from gistpoint.core.kinds.gist.score import read_evidence
from gistpoint.core.tasks.model import Task
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.runs.repository import RepositoryState
from gistpoint.tui.jobs import Job
from gistpoint.tui.screens.review.gist_scoring import HIDDEN, NO_TASK, gist_task, writes_gist
from gistpoint.tui.screens.review.run_pages import PageContext, RunPage
from gistpoint.tui.widgets.gist_view import Marks, ScoredGist, carried_over, figures, marks_of

_NO_GIST = "According to its record and the tasks here, this run does not write a gist."
OWN_FILE = "gist.py"
"""The file name used for the gist of a journal."""


@dataclass(frozen=True, slots=True)
class StepScore:
    """A score that a run recorded. `text` is the scored text; None means the gist after the step."""

    step: int
    score: Mapping[str, Any]
    text: str | None = None


@dataclass(frozen=True, slots=True)
class GistContent:
    """The content of the page. `note` describes the origin of the marks, or why there are none."""

    text: str = ""
    marks: Marks = field(default_factory=dict)
    figures: str = ""
    note: str = ""
    tree: SourceTree | None = None


class StepGistPage(RunPage[GistContent], ScoredGist):
    """The page with the gist and its gutter."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.text = ""
        """The displayed gist; empty if there is none."""

    def read(self, context: PageContext, job: Job) -> GistContent:
        """Return the gist after the step, with its evidence, or a note on why there is none."""
        document, index, loader, scoring = context.document, context.index, context.loader, context.gist
        if not writes_gist(loader):
            return GistContent(note=_NO_GIST)
        task, history = gist_task(loader), loader.history
        names = gist_files(task)
        text = gist_in(context.repository(job), names)
        last = document.finished and index == document.step_count - 1
        if not text and last and not document.header.submission.startswith(("diff ", "--- ")):
            text = document.header.submission
        if not text:
            return GistContent(note="Nothing has been written yet at this step.")
        if context.hides:
            return GistContent(text, note=HIDDEN)
        recorded = [
            score for score in (score_of(step, data) for step, data in history.scores) if score is not None
        ]
        found = content(text, index, scoring.scores, recorded, lambda step: gist_in(history.at(step), names))
        if text in scoring.backends:
            found = replace(found, note=f"{found.note}, in {scoring.backends[text]}")
        if task is None:
            return replace(found, note=f"{found.note.partition(':')[0]}. {NO_TASK}")
        return replace(found, tree=SourceTree.open(task.tree_path) if task.tree_path.is_file() else None)

    def fill(self, content: GistContent) -> str:
        """Show the gist, and return the note."""
        self.show(content.text, content.marks, figures=content.figures, tree=content.tree)
        self.text = content.text
        return content.note


def score_of(step: int, data: object) -> StepScore | None:
    """Return the score of a gist that a step recorded; None if the step recorded none."""
    score = data.get("gist") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(score, dict) or not score:
        return None
    text = data.get("text")
    return StepScore(step, score, text if isinstance(text, str) and data.get("trial") else None)


def gist_files(task: Task | None) -> frozenset[str]:
    """Return the file names that the gist of a run may have.

    Without a task whose entrypoint can be parsed, only gistpoint's own name is returned.
    """
    try:
        return frozenset(
            {OWN_FILE, parse_entrypoint(entrypoint_of(task)).gist_file} if task is not None else {OWN_FILE}
        )
    except EntrypointError:
        return frozenset({OWN_FILE})


def gist_in(state: RepositoryState, names: Collection[str]) -> str:
    """Return the gist among the files that a run has written; empty if there is none."""
    for path, data in (state.files or {}).items():
        if path.rpartition("/")[2] in names:
            return data.decode("utf-8", "replace")
    return ""


def content(
    text: str,
    step: int,
    here: Mapping[str, Mapping[str, Any]],
    recorded: Sequence[StepScore],
    text_at: Callable[[int], str],
) -> GistContent:
    """Return a gist with the best available evidence.

    `here` contains the scores made on this screen, by text, and `recorded` the run's scores, in order.
    `text_at` returns the gist after a step.
    """
    if text in here:
        return _scored(text, here[text], "scored here")
    before = ""
    for one in reversed([one for one in recorded if one.step <= step]):
        before = text_at(one.step) if one.text is None else one.text
        if before == text:
            return _scored(text, one.score, f"as step {one.step + 1} recorded")
        marks = carried_over(marks_of(read_evidence(one.score.get("lines", ()))), before, text)
        note = f"marks of an earlier text, scored at step {one.step + 1}: Alt+S scores this one"
        return GistContent(text, marks, f"{figures(one.score)}  (of an earlier text)", note)
    return GistContent(text, note="not scored at this step: Alt+S scores it")


def _scored(text: str, score: Mapping[str, Any], note: str) -> GistContent:
    return GistContent(text, marks_of(read_evidence(score.get("lines", ()))), figures(score), note)
