"""People who tick items of a study's consent, and fail at its first task."""

from __future__ import annotations

from builders import CHECKS, REPAIR
from fakes import FakeRunner
from study_folders import Machine

from gistpoint.core.attempts.events import EndReason
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.study.operations import Begun, Consented, Planned, StudyOperationKind, person
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.people import EnrolPeople, enrol_people

WRONG = REPAIR.replace("// 100", "// 99")


def fail(machine: Machine, task: Task, enrolment: Enrolment) -> str:
    """Submit wrong code, give up, and return the attempt's id."""
    judge = RepairJudge(task, read_answer(task), FakeRunner(CHECKS))
    opened = machine.attempts.start(task, judge, enrolment)
    opened.attempt.call("submit_attempt", {"func_code": WRONG})
    opened.attempt.end(EndReason.GAVE_UP)
    opened.close()
    return opened.journal.path.parent.name


def take_part(study: StudyFolder, machine: Machine, code: str, *ticks: bool) -> str:
    """Enrol somebody who ticks items and fails at the first remove task; return the attempt's id."""
    enrol_people(study, EnrolPeople(code=code, role="author"))
    who = person(code)
    consented = Consented(text_sha256="x", items=ticks, protocol=study.ledger.protocol)
    study.record(code, who, StudyOperationKind.CONSENTED, consented)
    task = next(study.task(id) for id, facts in study.tasks.items() if facts.mode == "remove")
    planned = Planned(slot=1, assignments=((f"of-{code}", task.id, "alone", 1),))
    study.record(code, who, StudyOperationKind.PLANNED, planned)
    enrolment = Enrolment(participant=code, study=study.study.id, condition="alone", assignment=f"of-{code}")
    attempt = fail(machine, task, enrolment)
    study.record(code, who, StudyOperationKind.BEGUN, Begun(assignment=f"of-{code}", attempt=attempt))
    study.publish(machine.locations.attempts / attempt)
    return attempt
