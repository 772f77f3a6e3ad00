"""Checks a task: its id and brief, then the checks of its kind."""

from __future__ import annotations

from collections.abc import Iterator

from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.confirmation.controls import controls_of_here
from gistpoint.core.kinds.confirming import FROM_ELSEWHERE, controls_lines, controls_words, known_controls
from gistpoint.core.kinds.folder import verify_identity
from gistpoint.core.kinds.registry import kind_of, render_brief
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.leaks import CheckFinding
from gistpoint.core.tasks.model import Answer, Task


def check_task(judge: TaskJudge, answer: Answer, *, run: RunContext = UNATTENDED) -> Iterator[CheckFinding]:
    """Yield each check's finding as soon as it is made.

    Raises `TaskError` if the id does not match the content, if the brief can't be rendered, or if the
    controls are damaged, and `CancelledError` when cancelled.
    """
    task = judge.task
    verify_identity(task, answer)
    yield CheckFinding("identity", True, f"the id {task.short_id} matches the content")
    render_brief(task)
    yield CheckFinding("brief", True, f"{task.brief.template}, hash {task.brief.template_sha256[:12]}")
    yield from kind_of(task).check(judge, run)
    if kind_of(task).confirms:
        yield _confirmable(task)


def _confirmable(task: Task) -> CheckFinding:
    """Return the finding on whether passes can be confirmed; it is never a fault of the task."""
    controls = known_controls(task)
    more = list(controls_lines(controls)) if controls else []
    if controls and controls_of_here(task.folder) is None:
        more.append(FROM_ELSEWHERE)
    words = ". ".join([controls_words(controls), *(text.rstrip(".") for text in more)])
    return CheckFinding(
        "passes can be confirmed", True, words, reduced=controls is None or not controls.confirmable
    )
