"""The tasks that people have seen in other studies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from study_folders import Machine, declare

from gistpoint.core.assist.help import HelpGist
from gistpoint.core.corruption.blind import BlindAnswer, ShownVersion, blind_items
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.study.assigning import plan_tasks, planned_data
from gistpoint.core.study.operations import Begun, Enrolled, StudyOperationKind, person
from gistpoint.sessions.annotations.glance_reader import BlindReply, GlanceReader, GlanceStore
from gistpoint.sessions.studies.checking import check_study
from gistpoint.sessions.studies.exposures import record_exposures

K = StudyOperationKind


def test_a_task_begun_in_another_study_is_seen_and_one_only_planned_is_not(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    pilot = machine.open(declare(tmp_path / "pilot", {"id": "pilot"}))
    begun = {}
    for code in ("P1", "P2"):
        pilot.record(code, person(code), K.ENROLLED, Enrolled())
        plan = plan_tasks(pilot.study, pilot.tasks, pilot.ledger, code)
        pilot.record(code, person(code), K.PLANNED, planned_data(plan, basis={}, protocol=""))
        begun[code] = plan[0]
    pilot.record("P1", person("P1"), K.BEGUN, Begun(assignment=begun["P1"].id, attempt="x"))

    elsewhere = {"design": {"tasks_per_person": 2, "exposed_elsewhere": ["../pilot", "../gone"]}}
    study = machine.open(declare(tmp_path / "main", elsewhere))
    for code in ("P1", "P2"):
        study.record(code, person(code), K.ENROLLED, Enrolled())
        assert record_exposures(study, code) == (code == "P1")
        assert record_exposures(study, code) == 0
    assert [fact.task for fact in study.ledger.person("P1").exposures] == [begun["P1"].task]
    assert begun["P1"].task not in {
        given.task for given in plan_tasks(study.study, study.tasks, study.ledger, "P1")
    }
    found = {
        finding.name: finding
        for finding in check_study(study, lambda name: name or "bwrap", lambda task: HelpGist(), str)
    }
    assert not found["exposed elsewhere"].passed
    assert "../gone" in found["exposed elsewhere"].detail


def test_who_read_a_function_of_a_task_blind_has_seen_the_task(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    study = machine.open(declare(tmp_path / "main"))
    tasks = [study.task(identity) for identity in study.tasks]
    (item,) = [item for task in tasks for item in blind_items(task, read_answer(task))]
    store = GlanceStore(machine.locations.glances, machine.clock)
    GlanceReader(store, "P1").read(item, BlindReply(BlindAnswer.NOTHING), ShownVersion.ORIGINAL)
    GlanceReader(store, "P3").read(
        replace(item, source="market", task="0" * 64), BlindReply(BlindAnswer.NOTHING)
    )
    same_function = {identity for identity, task in study.tasks.items() if item.function in task.targets}
    assert len(same_function) == 2  # it is removed in one task and corrupted in the other
    for code, seen in (("P1", same_function), ("P2", set[str]()), ("P3", set[str]())):
        study.record(code, person(code), K.ENROLLED, Enrolled())
        assert record_exposures(study, code) == len(seen)
        assert record_exposures(study, code) == 0
        assert {fact.task for fact in study.ledger.person(code).exposures} == seen
