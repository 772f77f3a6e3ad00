"""A run as a blind reviewer sees it: without its agent, model, cost, score, end and outcome (decision 199).

Code that shows, lists or searches a run before the verdict uses only the results of these functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.records.model import Actor, Run, Step, StepKind, TextScope

if TYPE_CHECKING:
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.sessions.runs.searching import Hit, Query

HIDDEN = "hidden until your verdict"
"""Shown in place of the text of a step that reveals the outcome."""
_REVEALING = frozenset({StepKind.SCORE, StepKind.END})
_RESULTS = frozenset({"result", "turn.failed"})
"""The first words of the labels of steps with the result of a whole run; if it failed, they are errors."""


def reveals_outcome(step: Step) -> bool:
    """Return whether a step tells how the run ended or was scored."""
    is_failure = step.kind is StepKind.ERROR and step.label.partition(" ")[0] in _RESULTS
    return is_failure or step.kind in _REVEALING


def blind_step(step: Step) -> Step:
    """Return a step without its model, its cost, and strings outside known fields, which may name either.

    A person's step is shown as an agent's. A step that reveals the outcome keeps only its place and times.
    """
    actor = Actor.AGENT if step.actor is Actor.PERSON else step.actor
    if not reveals_outcome(step):
        return replace(step, model="", cost=None, also=(), actor=actor)
    kind = step.kind if step.kind in _REVEALING else StepKind.END
    hidden = Step(step.index, actor, kind, step.raw, step.records, text=HIDDEN, id=step.id)
    return replace(hidden, started=step.started, ended=step.ended, naive=step.naive, derived=step.derived)


def blind_run(run: Run) -> Run:
    """Return a header without the facts and texts that may reveal who made the run or how it ended."""
    return replace(
        run,
        model="",
        agent="",
        actor=Actor.AGENT,
        verdict="",
        suspicious=(),
        confirmation="",
        score=None,
        exit_status="",
        cost=None,
        extra={},
        also=(),
        submission="",
    )


def search_blind(document: RunDocument, query: Query, *, cancel: CancelToken = NEVER) -> Iterator[Hit]:
    """Yield the matches in the text that `blind_step` leaves, in order. The header is not searched.

    Raises `SearchError` if the pattern takes too long, and `CancelledError` if cancelled.
    """
    from gistpoint.sessions.runs.searching import search_document

    index, is_hidden = -1, False
    for hit in search_document(document, query, cancel=cancel):
        if hit.step is None or hit.scope is TextScope.ALSO:
            continue
        if hit.step != index:
            index, is_hidden = hit.step, reveals_outcome(document.step(hit.step))
        if not is_hidden:
            yield hit
