"""Studies with attempts of people and runs of models, all written through the real stores."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders import REPAIR
from fakes import FakeClock
from study_folders import Machine, declare, judge_of

from gistpoint.core.attempts.events import EndReason
from gistpoint.core.attempts.identity import MODEL, Enrolment, Role
from gistpoint.core.study.declaration import Moment, StudyTask
from gistpoint.core.study.operations import (
    ORGANISER,
    Answers,
    Begun,
    Enrolled,
    Finished,
    Planned,
    StudyOpened,
    StudyOperationKind,
)
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.journal import JOURNAL, read_journal
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.loading import LoadedStudy, load_study


@dataclass
class Held:
    """A study with attempts on one machine."""

    folder: StudyFolder
    machine: Machine
    clock: FakeClock

    @classmethod
    def at(cls, place: Path, **changes: Any) -> Held:
        clock = FakeClock()
        machine = Machine.at(place / "home", clock)
        folder = machine.open(declare(place / "study", changes))
        folder.record(ORGANISER, "study", StudyOperationKind.OPENED, StudyOpened(protocol=folder.protocol))
        return cls(folder, machine, clock)

    @property
    def tasks(self) -> list[StudyTask]:
        return sorted(self.folder.tasks.values(), key=lambda task: task.mode)

    def attempt(self, code: str, task: StudyTask, code_of_it: str = REPAIR, *, actor: str = "person") -> str:
        """Record a person's complete, published attempt at a task; return its id."""
        folder, assignment = self.folder, f"{code}-{task.mode}"
        self.folder.record(code, f"person:{code}", StudyOperationKind.ENROLLED, Enrolled())
        slot = len(folder.ledger.person(code).assignments) + 1
        planned = Planned(slot=slot, assignments=((assignment, task.id, "alone", slot),))
        folder.record(code, f"person:{code}", StudyOperationKind.PLANNED, planned)
        full = folder.task(task.id)
        who = Enrolment(
            actor,
            participant=code,
            study=folder.study.id,
            condition="alone",
            assignment=assignment,
            protocol_sha256=folder.protocol,
        )
        place = self._acted(full, who, code_of_it)
        begun = Begun(assignment=assignment, attempt=place.name)
        folder.record(code, f"person:{code}", StudyOperationKind.BEGUN, begun)
        head = read_journal(place / JOURNAL).head
        end = Finished(assignment=assignment, attempt=place.name, end="solved", head=head)
        folder.record(code, f"person:{code}", StudyOperationKind.FINISHED, end)
        for form in folder.study.questionnaires_at(Moment.AFTER_TASK):
            values = {item.id: "no" if item.options else None for item in form.item}
            answers = Answers(questionnaire=form.id, values=values, assignment=assignment)
            folder.record(code, f"person:{code}", StudyOperationKind.ANSWERS, answers)
        folder.publish(place)
        return place.name

    def model_run(
        self,
        task: StudyTask,
        place: str,
        *,
        actor: str = MODEL,
        name: str = "",
        role: Role = Role.BASELINE,
    ) -> Path:
        """Record a model's attempt at a task; return its folder below the study's folder."""
        who = Enrolment(actor, role, solver={"kind": "chat", "model": "m", "host": "localhost"})
        made = self._acted(self.folder.task(task.id), who, REPAIR)
        target = self.folder.root / place / (name or made.name)
        target.mkdir(parents=True)
        shutil.copy(made / JOURNAL, target / JOURNAL)
        return target

    def _acted(self, task: Task, who: Enrolment, code: str) -> Path:
        store = AttemptStore(self.machine.locations.attempts, self.clock, "test")
        opened = store.start(task, judge_of(task), who)
        attempt = opened.attempt
        attempt.call("read_file", {"file_path": "shop/prices.py"})
        self.clock.advance(60_000)
        arguments = {"func_code": code}
        if task.mode == "discovery":
            arguments |= {"func_name": "discount", "file_path": "shop/prices.py"}
        attempt.call("submit_attempt" if task.mode == "remove" else "replace_function", arguments)
        if not attempt.state.ended:
            attempt.end(EndReason.FINAL_WRONG)
        opened.close()
        return opened.journal.path.parent

    def load(self) -> LoadedStudy:
        self.folder.reload()
        return load_study(self.folder)

    def row(self, attempt: str) -> AttemptRow:
        return next(row for row in self.load().data.rows if row.attempt == attempt)
