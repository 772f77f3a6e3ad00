"""A task is in use if there is an attempt at it, a validation or a reading of it."""

from __future__ import annotations

from pathlib import Path

from builders import CHECKS, build_services, build_task
from fakes import FakeRunner

from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.sessions.tasks import is_in_use


def test_a_task_is_in_use_from_its_first_attempt_on(tmp_path: Path) -> None:
    task, services = build_task(tmp_path / "task"), build_services(tmp_path)
    assert not is_in_use(task.id, services.locations)
    judge = RepairJudge(task, read_answer(task), FakeRunner(CHECKS))
    services.attempts.start(task, judge, Enrolment()).close()
    assert is_in_use(task.id, services.locations)
    assert not is_in_use("0" * 64, services.locations)


def test_a_task_is_in_use_if_a_record_of_somebody_names_it(tmp_path: Path) -> None:
    locations, id = build_services(tmp_path).locations, "1" * 64
    for folder in (locations.campaigns, locations.tasks / id, locations.imports):
        folder.mkdir(parents=True)
        (folder / "a.jsonl").write_text(f'{{"task": "{id}"}}\n')
    (locations.validations / "ada").mkdir(parents=True)
    (locations.validations / "empty.jsonl").touch()
    assert not is_in_use(id, locations)
    (locations.validations / "ada" / "one.jsonl").write_text(f'{{"task": "{id}"}}\n')
    assert is_in_use(id, locations)
