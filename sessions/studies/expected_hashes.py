"""Computes the hashes that an attempt's brief and tools should have, from its task and condition."""

from __future__ import annotations

from dataclasses import replace

from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.attempts.identity import Role
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.study.conditions import budgets_under, under
from gistpoint.core.study.data import ReviewerDecision
from gistpoint.core.study.evidence import RecordedAttempt
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tools.declaration import declarations_sha256
from gistpoint.sessions.journal import JournalContent
from gistpoint.sessions.studies.folder import StudyFolder


class ExpectedHashes:
    """Computes the expected hashes of each task under each condition of a study, each only once."""

    def __init__(self, folder: StudyFolder) -> None:
        self._folder = folder
        self._known: dict[tuple[str, str, str], tuple[str, str]] = {}
        self._read: dict[str, tuple[Task, Answer]] = {}
        """The tasks with their answers, by id."""

    def recorded(
        self,
        content: JournalContent,
        condition: str,
        *,
        accepted: bool | None,
        fault: str = "",
        decisions: tuple[ReviewerDecision, ...] = (),
    ) -> RecordedAttempt:
        """Return an attempt with its expected hashes, which are empty if they can't be computed.

        `condition` replaces the condition in the attempt's header, unless it is empty. `accepted` is the
        reviewers' decision on a pass; None if there is none.
        """
        recorded = RecordedAttempt(content.events, content.head, fault or content.fault, accepted, decisions)
        header = content.events[0].data if content.events else None
        if not isinstance(header, AttemptStarted):
            return recorded
        key = header.task_id, condition or header.condition or "", header.role
        if key not in self._known:
            try:
                self._known[key] = self._hashes(*key)
            except UserError:
                self._known[key] = "", ""
        brief, tools = self._known[key]
        return replace(recorded, brief_sha256=brief, tools_sha256=tools)

    def _hashes(self, task_id: str, condition: str, role: str) -> tuple[str, str]:
        declared = self._folder.study.condition_of(condition)
        if declared is None or role not in set(Role):
            return "", ""
        if task_id not in self._read:
            self._read[task_id] = self._folder.task_with_answer(task_id)
        task, answer = self._read[task_id]
        met = under(declared, task, answer)
        budgets = budgets_under(declared, met, Role(role))
        kind = kind_of(met)
        met = kind.with_budgets(met, budgets)
        return sha256_of_text(kind.brief(met)), declarations_sha256(kind.tools_of(met, budgets))
