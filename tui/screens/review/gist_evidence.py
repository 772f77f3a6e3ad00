"""The gist as it was at a step of a run, and what is known of its lines: recorded, scored here, or carried over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gistpoint.core.kinds.gist.entrypoints import EntrypointError, parse_entrypoint
from gistpoint.core.kinds.gist.evidence import read_evidence
from gistpoint.core.tasks.model import Task
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.runs.model import Step
from gistpoint.sessions.runs.repository import RepositoryState
from gistpoint.tui.gist_marks import Marks, carried, figures, marks_of

OWN_FILE = "gist.py"
"""Under which path a journal's gist is followed."""


@dataclass(frozen=True, slots=True)
class StepScore:
    """A score that a run recorded: `text` is None where it is that of the gist after the step."""

    step: int
    score: Mapping[str, Any]
    text: str | None = None


@dataclass(frozen=True, slots=True)
class GistContent:
    """What the page shows. `note` says where the marks come from, or why there are none."""

    text: str = ""
    marks: Marks = field(default_factory=dict)
    figures: str = ""
    note: str = ""
    tree: SourceTree | None = None


def score_of(step: Step) -> StepScore | None:
    """Return the score of a gist that a step recorded."""
    data = step.state.get("score")
    score = data.get("gist") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(score, dict) or not score:
        return None
    text = data.get("text")
    return StepScore(step.index, score, text if isinstance(text, str) and data.get("trial") else None)


def gist_files(task: Task | None) -> frozenset[str]:
    """Return the names under which the gist of a run may lie."""
    try:
        return frozenset({OWN_FILE, parse_entrypoint(task.entrypoint).gist_file} if task is not None else {OWN_FILE})
    except EntrypointError:
        return frozenset({OWN_FILE})


def gist_in(state: RepositoryState, names: Collection[str]) -> str:
    """Return the gist among the files that a run has written; empty where there is none."""
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
    """Return a gist with the best evidence there is for it.

    `here` holds the scores made while the run is looked at, by text; `text_at` tells the gist after a step.
    """
    if text in here:
        return _scored(text, here[text], "scored here")
    before = ""
    for one in reversed([one for one in recorded if one.step <= step]):
        before = text_at(one.step) if one.text is None else one.text
        if before == text:
            return _scored(text, one.score, f"as step {one.step + 1} recorded")
        marks = carried(marks_of(read_evidence(one.score.get("lines", ()))), before, text)
        note = f"marks of an earlier text, scored at step {one.step + 1}: alt+s scores this one"
        return GistContent(text, marks, f"{figures(one.score)}  (of an earlier text)", note)
    return GistContent(text, note="not scored at this step: alt+s scores it")


def _scored(text: str, score: Mapping[str, Any], note: str) -> GistContent:
    return GistContent(text, marks_of(read_evidence(score.get("lines", ()))), figures(score), note)
