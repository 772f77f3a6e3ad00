"""Collects the failed submissions at a library's functions from the attempts of this home (decision 141)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from gistpoint.core.attempts.identity import PERSON
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.errors import UserError
from gistpoint.core.generation.submissions import FailedSubmission, FailedSubmissions, failed_submissions
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.tasks.model import Source, Task
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.tasks import TaskStore

OTHER_STUDY = "of a study that --study does not name"
ELSEWHERE = "by people on other machines"
NO_ANSWER = "whose task or answer is not on this machine"
NO_CONSENT = "of participants who did not agree to it"
DAMAGED = "whose journal is damaged or differs between copies"
"""The reasons why attempts at the library are left out, worded to follow their number."""


@dataclass(frozen=True, slots=True)
class ReadAttempt:
    """An attempt that may be used, with its task."""

    state: AttemptState
    task: Task
    study: str = ""
    """The id of the study; empty for an attempt outside of studies."""


AttemptsAt = Callable[[Source, Counter[str]], Iterator[ReadAttempt]]
"""Yields the attempts at tasks from a source that may be used, and counts the others by reason."""


def is_from(task: Task, source: Source) -> bool:
    """Return whether a task was made from a library with this name, in any version."""
    return (task.source.kind, task.source.name) == (source.kind, source.name)


def attempts_of_home(attempts: AttemptStore, tasks: TaskStore) -> AttemptsAt:
    """Return the supplier of this home's attempts that do not belong to a study.

    Attempts from other machines are left out, because nobody has asked the people who made them.
    """

    def at(source: Source, left_out: Counter[str]) -> Iterator[ReadAttempt]:
        known = {task.id: task for task in tasks.tasks() if isinstance(task, Task) and is_from(task, source)}
        for outline in attempts.outlines():
            task = known.get(outline.task_id)
            if task is None or not outline.state.submissions:
                continue
            reason = _refusal(outline)
            if reason:
                left_out[reason] += 1
                continue
            yield ReadAttempt(attempts.summary(outline.attempt_id).state, task)

    return at


def _refusal(outline: AttemptSummary) -> str:
    """Return why an attempt can't be used; empty if it can."""
    if outline.state.header.study:
        return OTHER_STUDY
    if outline.problem:
        return DAMAGED
    return ELSEWHERE if outline.elsewhere and outline.actor == PERSON else ""


def submissions_in(
    suppliers: Iterable[AttemptsAt], source: Source, library: SourceTree
) -> tuple[FailedSubmissions, Mapping[str, int]]:
    """Return the failed submissions at the functions of a library, and how many were left out, by reason."""
    left_out: Counter[str] = Counter()
    found: dict[tuple[str, int, str], FailedSubmission] = {}
    for supplier in suppliers:
        for attempt in supplier(source, left_out):
            try:
                answer = read_answer(attempt.task)
                made = failed_submissions(attempt.state, attempt.task, answer, library, attempt.study)
            except (UserError, CodeError, OSError):
                left_out[NO_ANSWER] += 1
                continue
            found |= {(item.attempt, item.number, item.function): item for item in made}
    return FailedSubmissions.collected(found.values()), left_out
