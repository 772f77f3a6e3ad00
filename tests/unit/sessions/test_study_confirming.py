"""A study's passes are confirmed on the machine with their journals, which then match the recorded head."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from builders import build_services
from confirmers import CONTROLLED, ScriptedConfirmer, controlled
from small_study import opened, participation, study_at, take_part
from study_folders import Machine

from gistpoint.core.confirmation.controls import read_controls
from gistpoint.core.confirmation.model import Controls, Unconfirmable
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.studies.checking import check_study
from gistpoint.sessions.studies.confirming import confirm_study, passes_to_confirm
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.loading import rows_of_people


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = study_at(tmp_path / "study")
    machine = Machine.at(tmp_path / "home")
    opened(machine.open(root))
    take_part(participation(machine, root))
    return root


def confirmed(tmp_path: Path, root: Path, confirmer: ScriptedConfirmer) -> StudyFolder:
    machine = Machine.at(tmp_path / "home")
    services = replace(build_services(tmp_path / "home"), confirmer_for=lambda task: confirmer)
    folder = machine.open(root)
    waiting = passes_to_confirm(folder)
    assert (len(waiting.here), waiting.elsewhere) == (2, ())
    found = list(confirm_study(services, folder, waiting.here))
    assert [asked.confirmation for asked in found] == [confirmer.confirmation] * 2
    return machine.open(root)


def test_confirmed_attempts_are_published_and_still_follow_the_told_head(tmp_path: Path, root: Path) -> None:
    before, _ = rows_of_people(Machine.at(tmp_path / "home").open(root))
    assert [row.confirmation for row in before] == ["not asked"] * 2
    folder = confirmed(tmp_path, root, ScriptedConfirmer())
    rows, problems = rows_of_people(folder)
    assert problems == ()
    assert [(row.confirmation, row.counted) for row in rows] == [("confirmed", True)] * 2
    assert {flag.flag for row in rows for flag in row.flags} == {"fast"}
    told = {end.head for person in folder.ledger.people.values() for end in person.finished.values()}
    for published in folder.attempts():
        lines = published.journal.read_bytes().splitlines()
        assert json.loads(lines[-1])["prev"] in told
        assert json.loads(lines[-1])["type"] == "confirmation"
    assert passes_to_confirm(folder).here == ()


def test_a_confirmation_that_was_changed_since_does_not_count(tmp_path: Path, root: Path) -> None:
    folder = confirmed(tmp_path, root, ScriptedConfirmer())
    published = next(iter(folder.attempts()))
    lines = published.journal.read_bytes().splitlines(keepends=True)
    published.journal.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(b'"confirmed"', b'"unconfirmed"'))
    rows, _ = rows_of_people(Machine.at(tmp_path / "home").open(root))
    assert "chain_broken" in {flag.flag for row in rows for flag in row.flags}


def test_another_machine_is_told_and_adds_nothing(tmp_path: Path, root: Path) -> None:
    folder = Machine.at(tmp_path / "other").open(root)
    waiting = passes_to_confirm(folder)
    assert (waiting.here, len(waiting.elsewhere)) == ((), 2)
    journals = sorted((root / "attempts").glob(f"*/{JOURNAL}"))
    before = [journal.read_bytes() for journal in journals]
    asked = list(confirm_study(build_services(tmp_path / "other"), folder, waiting.elsewhere))
    assert [one.confirmation for one in asked] == [None, None]
    assert [journal.read_bytes() for journal in journals] == before


def test_tasks_from_before_get_their_controls_first(tmp_path: Path, root: Path) -> None:
    confirmer = ScriptedConfirmer()
    folder = confirmed(tmp_path, root, confirmer)
    assert len(confirmer.controlled) == 2
    assert all(read_controls(task.folder) == CONTROLLED for task in confirmer.controlled)
    assert {task.id for task in confirmer.controlled} <= set(folder.tasks)


def test_the_check_of_a_study_warns_of_tasks_whose_passes_cannot_be_confirmed(
    tmp_path: Path, root: Path
) -> None:
    folder = Machine.at(tmp_path / "home").open(root)
    places = [folder.task(identity) for identity in folder.tasks]

    def found() -> tuple[bool, str]:
        checks = check_study(
            Machine.at(tmp_path / "home").open(root), lambda name: "bwrap", lambda task: None, str
        )  # type: ignore[arg-type,return-value]
        return next((one.reduced, one.detail) for one in checks if one.name == "confirmation")

    assert found()[0]
    assert "not known (the task is older)" in found()[1]
    for task in places:
        controlled(task.folder)
    assert found() == (False, "passes of all 4 repairs can be confirmed")
    controlled(places[0].folder, controls=Controls(False, Unconfirmable.RUNS_TEXT))
    reduced, detail = found()
    assert reduced
    assert detail == f"passes of 1 of 4 repairs can't be confirmed: {places[0].short_id}: no (runs_text)"
