"""A small study in memory, and attempts in it, recorded by the real engine with a fake clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders import CHECKS, build_task
from fakes import FakeClock, FakeRunner
from gist_tasks import OWNED, FakeEntrypoints, FakeGistJudge, build_gist_task
from recorders import Memory

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.attempts.identity import PERSON, Enrolment, Role
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.study.declaration import (
    FORMAT,
    Condition,
    Design,
    Moment,
    Privacy,
    Question,
    QuestionKind,
    Questionnaire,
    Study,
    StudyTask,
    Texts,
)
from gistpoint.core.study.evidence import AttemptEvidence, RecordedAttempt
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.measuring import measured
from gistpoint.core.study.operations import StudyOperation, StudyOperationKind
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.tasks.model import Mode, Task

AIDS = Question(id="aids_ai", text="Did you use one?", kind=QuestionKind.CHOICE, options=("no", "yes"))
SEEN = Question(
    id="seen_before", text="Had you seen it?", kind=QuestionKind.CHOICE, options=("no", "maybe", "yes")
)
AFTER = Questionnaire(id="after", at=Moment.AFTER_TASK, item=(SEEN, AIDS))
ATTEMPT, PROTOCOL = "attempt-1", "f" * 64
DISCOUNT = "shop/prices.py::discount"


def a_study(**changes: Any) -> Study:
    """Return a study with one condition and no questions, with the given changes."""
    values: dict[str, Any] = {
        "format": FORMAT,
        "version": 1,
        "id": "shop-2026",
        "seed": 1,
        "design": Design(tasks_per_person=2),
        "condition": (Condition(id="alone"),),
        "texts": Texts(consent="Yes?", consent_items=("[required] Yes",), rules="None."),
        "privacy": Privacy(contact="the desk"),
    }
    return Study(**(values | changes))


def study_task(task: Task) -> StudyTask:
    """Return a study's description of a small task."""
    gist = task.mode == Mode.GIST
    return StudyTask(
        id=task.id,
        mode=str(task.mode),
        source=task.source.name,
        targets=() if gist else (DISCOUNT,),
        tool_uses=task.budgets.tool_uses,
        submissions=task.budgets.submissions,
        template=task.brief.template,
    )


@dataclass
class Log:
    """Operations, each one second after the previous one."""

    operations: list[StudyOperation] = field(default_factory=list)
    utc_ms: int = 1_789_990_000_000

    def add(self, subject: str, kind: str, writer: str = "P07@aaaaaa", *, at: int = 0, **data: Any) -> None:
        """Add an operation."""
        self.utc_ms += 1_000
        op = f"op-{len(self.operations):04}"
        self.operations.append(StudyOperation(op, writer, at or self.utc_ms, subject, kind, data))

    @property
    def ledger(self) -> Ledger:
        """The ledger folded from the log."""
        return Ledger(self.operations)


@dataclass
class StudyAttempt:
    """An attempt in a study, with the study's log."""

    study: Study
    task: Task
    attempt: Attempt
    clock: FakeClock
    memory: Memory
    log: Log

    def evidence(self, **known: Any) -> AttemptEvidence:
        """Return the evidence on the attempt."""
        recorded = RecordedAttempt(tuple(self.memory.events), **known)
        return AttemptEvidence(self.study, study_task(self.task), recorded, self.log.ledger)

    def row(self, **known: Any) -> AttemptRow:
        """Return the attempt's row."""
        return measured(self.evidence(**known))

    def answer(self, values: Mapping[str, Any]) -> None:
        """Answer the questionnaire after the task."""
        data = {"questionnaire": "after", "values": dict(values), "assignment": "a1"}
        self.log.add("person:P07", StudyOperationKind.ANSWERS, **data)


def begin(
    folder: Path,
    mode: Mode = Mode.REMOVE,
    *,
    study: Study | None = None,
    role: Role = Role.BASELINE,
    actor: str = PERSON,
    settings: GistSettings | None = None,
    runner: FakeRunner | None = None,
    clock: FakeClock | None = None,
    solver: Mapping[str, Any] | None = None,
    others: Iterable[tuple[str, str, str]] = (),
) -> StudyAttempt:
    """Enrol P07, plan the task for them and begin it.

    `others` are triples of an assignment, an attempt and a task that were begun earlier.
    """
    study, clock = study or a_study(), clock or FakeClock()
    if mode is Mode.GIST:
        task = build_gist_task(folder, settings or GistSettings(OWNED, score_budget=2))
    else:
        task = build_task(folder, mode)
    log = Log()
    log.add("study", StudyOperationKind.OPENED, "desk@bbbbbb", protocol=PROTOCOL, tasks=[task.id])
    log.add("person:P07", StudyOperationKind.ENROLLED, "desk@bbbbbb", stratum="senior")
    planned = [*([other, of, "alone", 1] for other, _, of in others), ["a1", task.id, "alone", 2]]
    log.add("person:P07", StudyOperationKind.SITTING, state="began")
    log.add("person:P07", StudyOperationKind.PLANNED, assignments=planned)
    for other, attempt, _ in others:
        log.add("person:P07", StudyOperationKind.BEGUN, assignment=other, attempt=attempt)
    log.add("person:P07", StudyOperationKind.BEGUN, assignment="a1", attempt=ATTEMPT)
    memory = Memory(clock)
    attempt = Attempt(task, _judge(task, runner), memory, clock, version="1")
    person = actor != "model"
    who = Enrolment(
        actor,
        role,
        participant="P07" if person else "",
        study=study.id,
        condition="alone",
        assignment="a1" if person else None,
        solver=solver or {},
    )
    attempt.start(who, attempt_id=ATTEMPT)
    memory.change(0, protocol_sha256=PROTOCOL)
    return StudyAttempt(study, task, attempt, clock, memory, log)


def _judge(task: Task, runner: FakeRunner | None) -> TaskJudge:
    answer = read_answer(task)
    if task.mode == Mode.GIST:
        return FakeGistJudge(task, gist_answer(answer), FakeEntrypoints())
    return RepairJudge(task, answer, runner or FakeRunner(CHECKS))
