"""Two machines that take part in one study and merge its folder occasionally, in any order."""

from __future__ import annotations

import random
from pathlib import Path

from fakes import FakeClock
from study_folders import Machine, copy_of, declare

from gistpoint.core.study.assigning import plan_tasks, planned_data
from gistpoint.core.study.declaration import StudyTask
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.operations import (
    ORGANISER,
    STUDY,
    Begun,
    Consented,
    Enrolled,
    Finished,
    Sitting,
    StudyOpened,
    StudyOperationKind,
    person,
)
from gistpoint.sessions.studies.auditing import AuditFinding, audit
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.syncing import synchronise
from gistpoint.sessions.studies.tasks import StudyTasks

K = StudyOperationKind
DESIGN = {
    "design": {"tasks_per_person": 3, "per_source": 0},
    "condition": [{"id": "alone"}, {"id": "assisted"}],
}
TASKS = StudyTasks(
    {
        f"{n:064x}": StudyTask(id=f"{n:064x}", mode="remove", source=f"lib{n % 3}", targets=(f"f{n}",))
        for n in range(9)
    }
)


def opened(root: Path, home: Path, machine: str, clock: FakeClock | None = None) -> StudyFolder:
    """Open a study on a machine, with tasks that nobody really attempts."""
    place = Machine.at(home, clock)
    place.locations.data.mkdir(parents=True, exist_ok=True)
    (place.locations.data / "machine").write_text(machine)
    study = place.open(root)
    study.__dict__["read"] = TASKS
    return study


def start(study: StudyFolder) -> None:
    data = StudyOpened(protocol=study.protocol, tasks=tuple(sorted(study.tasks)))
    study.record(ORGANISER, STUDY, K.OPENED, data)


def take_part(study: StudyFolder, code: str, stage: int) -> None:
    """Record one step of a participant: enrolment, consent, plan, start or finish."""
    who = person(code)
    plan = study.ledger.person(code).assignments
    if stage == 0:
        study.record(code, who, K.ENROLLED, Enrolled())
    elif stage == 1:
        study.record(code, who, K.CONSENTED, Consented(text_sha256="c", items=(True,)))
    elif stage == 2:
        study.reload()
        given = plan_tasks(study.study, study.tasks, study.ledger, code)
        data = planned_data(given, basis=study.basis(), protocol=study.protocol)
        study.record(code, who, K.PLANNED, data)
    elif stage == 3:
        study.record(code, who, K.SITTING, Sitting(state="began"))
        study.record(code, who, K.BEGUN, Begun(assignment=plan[0].id, attempt=f"attempt-{code}"))
    else:
        data = Finished(assignment=plan[0].id, attempt=f"attempt-{code}", end="solved")
        study.record(code, who, K.FINISHED, data)


STAGES = 5


def wrong(study: StudyFolder) -> list[AuditFinding]:
    """Return an audit's findings, except notes."""
    return [finding for finding in audit(study) if not finding.note]


def merge_two(base: Path, seed: int, share: float, people: int = 40) -> None:
    """Let people take part on two machines, with merges after a share of the steps; compare both folders."""
    chance = random.Random(seed)
    root, clock = declare(base / "a", DESIGN, tasks=False), FakeClock()
    first = opened(root, base / "home-a", "aaaaaa", clock)
    start(first)
    folders = [first, opened(copy_of(root, base / "b"), base / "home-b", "bbbbbb", clock)]
    steps = [(folders[chance.random() < 0.5], f"P{n:02}") for n in range(people) for _ in range(STAGES)]
    done: dict[str, int] = {}
    at = {code: study for study, code in steps}
    chance.shuffle(steps)
    for _, code in steps:
        clock.advance(chance.randrange(0, 3))
        stage = done.get(code, 0)
        take_part(at[code] if stage else first, code, stage)
        done[code] = done.get(code, 0) + 1
        if chance.random() < share:
            here, there = chance.sample(folders, 2)
            synchronise(here, there.root)
    for here, there in [chance.sample(folders, 2), folders, folders[::-1]]:
        synchronise(here, there.root)
    assert folders[0].ledger.operations == folders[1].ledger.operations
    assert len(folders[0].ledger.people) == people
    assert all(who.finished for who in folders[0].ledger.people.values())
    assert wrong(chance.choice(folders)) == []
    lines = [line for path in sorted((root / "log").iterdir()) for line in path.read_bytes().split(b"\n")]
    chance.shuffle(lines)
    decoded = [folders[0].files.log.codec.decode(line) for line in lines if line]
    assert Ledger(found for found in decoded if found).operations == folders[0].ledger.operations
