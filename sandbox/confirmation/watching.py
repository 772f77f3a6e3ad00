"""Watches another run of a pass that is not confirmed (decision 116)."""

from __future__ import annotations

from dataclasses import replace

from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import Runner, RunRequest, WatchedSpan
from gistpoint.core.running import RunContext
from gistpoint.core.suspicion.submission import submitted_spans
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree

_NOT_AGAIN = "does not pass again while it is watched"


def watched_marks(
    suites: Runner, task: Task, answer: Answer, submitted: SourceTree, run: RunContext
) -> tuple[str, ...]:
    """Return what the submission does in another run of the suite, without what the original does too.

    A mark is added if the suite does not pass again; there are none if the original can't be watched.
    """
    given = SourceTree.open(task.tree_path)
    baseline = answer.baseline_for(suites.backend.name)
    request = RunRequest(
        tree=submitted,
        environment=task.environment,
        timeout_s=task.suite.timeout_s,
        deselect=task.suite.deselected,
        expected=baseline.collected,
        hash_seed=1,
        watched=_spans(given, submitted),
    )
    report = suites.run(request, run=run)
    run.check()
    # Nothing was seen, so there is nothing to compare with the original, and a run is saved.
    if report.status is RunStatus.FINISHED and not report.watched:
        return ()
    original = repaired_tree(given, answer.targets)
    true = suites.run(replace(request, tree=original, watched=_spans(given, original)), run=run)
    run.check()
    if true.status is not RunStatus.FINISHED:
        return ()  # the suite itself can't be watched
    seen = tuple(mark for mark in report.watched if mark not in true.watched)
    return seen if report.status is RunStatus.FINISHED else (*seen, _NOT_AGAIN)


def _spans(given: SourceTree, tree: SourceTree) -> tuple[WatchedSpan, ...]:
    return tuple(WatchedSpan(*span) for span in submitted_spans(given, tree))
