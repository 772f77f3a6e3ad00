"""The evidence from which an attempt's row and flags are made: its journal, its task, and the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gistpoint.core.attempts.events import AttemptStarted, JournalEvent
from gistpoint.core.attempts.identity import MODEL
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.kinds.kind import TaskKind
from gistpoint.core.kinds.registry import kind_named
from gistpoint.core.study.data import ReviewerDecision
from gistpoint.core.study.declaration import DeclaredSolver, Study, StudyTask
from gistpoint.core.study.ledger import Assignment, AttemptNotes, Ledger, Person
from gistpoint.core.study.operations import Amended
from gistpoint.core.study.timeline import AttemptTimeline, timeline_of


@dataclass(frozen=True)
class RecordedAttempt:
    """An attempt's journal as read, with facts about the attempt from other records."""

    events: tuple[JournalEvent, ...]
    head: str = ""
    """The hash of the journal's last line."""
    fault: str = ""
    """The fault of the journal in a sentence; empty if it is sound."""
    accepted: bool | None = None
    """The reviewers' ruling on a suspicious pass; None if there is none."""
    decisions: tuple[ReviewerDecision, ...] = ()
    """The last decision of each reviewer on whether the attempt counts."""
    brief_sha256: str = ""
    """The hash of the brief that the task's template produces in this condition; empty if unknown."""
    tools_sha256: str = ""
    """The hash of the task's tools in this condition; empty if unknown."""


@dataclass(frozen=True)
class AttemptEvidence:
    """The evidence on one attempt, from which its row is computed."""

    study: Study
    task: StudyTask
    recorded: RecordedAttempt
    ledger: Ledger
    solver: DeclaredSolver | None = None
    """The declared model of a model's run; None for people."""

    @cached_property
    def timeline(self) -> AttemptTimeline:
        """The timeline of the journal's events."""
        return timeline_of(self.recorded.events, self.targets)

    @property
    def targets(self) -> tuple[str, ...]:
        """The functions to be found or repaired; empty if the task's kind has none."""
        if self.kind is not None and self.kind.has_targets:
            return self.task.targets
        return ()

    @property
    def kind(self) -> TaskKind[Any] | None:
        """The kind of the task; None if it is not installed."""
        return kind_named(self.task.mode)

    @property
    def state(self) -> AttemptState:
        """The state after the last event."""
        return self.timeline.state

    @property
    def header(self) -> AttemptStarted:
        """The attempt's header."""
        return self.state.header

    @property
    def by_model(self) -> bool:
        """Whether a model made the attempt."""
        return self.solver is not None or self.header.actor == MODEL

    @cached_property
    def protocol_sha256(self) -> str:
        """The hash of the protocol that the header names; empty if the header names none."""
        value = self.header.written().get("protocol_sha256")
        return value if isinstance(value, str) else ""

    @property
    def started_ms(self) -> int:
        """The start of the attempt, in milliseconds of UTC; 0 if the attempt has no events."""
        if self.recorded.events:
            return self.recorded.events[0].utc_ms
        return 0

    @property
    def person(self) -> Person:
        """The participant according to the log; for a model's run, a person without a code."""
        return self.ledger.person(self.header.participant or "")

    @cached_property
    def assignment(self) -> Assignment | None:
        """The assignment in the header; None unless the log gives it to this person for this task."""
        wanted = self.header.assignment
        found = (one for one in self.person.assignments if one.id == wanted)
        return next((one for one in found if one.task == self.header.task_id), None)

    @property
    def notes(self) -> AttemptNotes:
        """The decisions and remarks of organisers on the attempt."""
        return self.ledger.notes(self.header.attempt_id)

    @property
    def condition(self) -> str:
        """The id of the attempt's condition; empty if the condition is not recorded."""
        if self.solver is not None:
            return self.solver.condition
        return self.header.condition or (self.assignment.condition if self.assignment else "")

    @cached_property
    def protocol_then(self) -> str:
        """The hash of the protocol in force when the attempt began; empty if the study was never opened.

        For an attempt from before the opening, it is the opening's protocol.
        """
        opened = self.ledger.opened
        amended = [
            amendment for amendment in self.ledger.study.all(Amended) if amendment.utc_ms <= self.started_ms
        ]
        if amended:
            return amended[-1].protocol
        if opened is not None:
            return opened.protocol
        return ""

    @cached_property
    def is_first_exposure(self) -> bool:
        """Whether this is the person's first attempt at the task, within this study.

        True for models, and for attempts without an assignment.
        """
        if self.by_model or self.assignment is None:
            return True
        of_task = [one.id for one in self.person.assignments if one.task == self.task.id]
        begun = list[tuple[int, str, str]]()
        for assignment, facts in self.person.begun.items():
            if assignment in of_task:
                begun += [(fact.utc_ms, fact.op, fact.attempt) for fact in facts]
        if not begun:
            return True
        _, _, first = min(begun)
        return first == self.header.attempt_id

    @cached_property
    def task_answers(self) -> Mapping[str, object]:
        """The answers to this task's questionnaires by column, such as `after.ease`.

        The value of a declined question is None.
        """
        found: dict[str, object] = {}
        for event in self.recorded.events:
            if event.type != "questionnaire":
                continue
            data = event.data.written()
            form = data.get("questionnaire")
            values = data.get("values")
            if isinstance(form, str) and isinstance(values, Mapping):
                found.update({f"{form}.{item}": value for item, value in values.items()})
        if self.assignment is None:
            return found
        for declared in self.study.questionnaire:
            answers = self.person.answers(declared.id, self.assignment.id)
            if answers is not None:
                found.update({f"{declared.id}.{item}": value for item, value in answers.values.items()})
        return found
