"""Failed submissions of this home and of a study: their use, and the erasure of tasks made from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import GOOD, build_task
from consenting import fail, take_part
from small_trees import tree_of
from study_folders import MINIMAL, Machine, declare

from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.kinds.folder import add_provenance
from gistpoint.core.logs import take
from gistpoint.core.study.operations import Consented, StudyError, StudyOperationKind, person
from gistpoint.core.study.reuse import agrees
from gistpoint.core.tasks.model import Mode, Source, Task
from gistpoint.sessions.heads import ELSEWHERE
from gistpoint.sessions.studies.course import AmendStudy, amend_study, open_for_people
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.made_from import studies_of
from gistpoint.sessions.studies.people import WithdrawPerson, withdraw_person
from gistpoint.sessions.studies.reuse import attempts_for_models, attempts_of_study
from gistpoint.sessions.submissions import (
    ELSEWHERE as BY_OTHERS,
)
from gistpoint.sessions.submissions import (
    NO_CONSENT,
    OTHER_STUDY,
    attempts_of_home,
    submissions_in,
)
from gistpoint.sessions.tasks import TaskStore

SHOP = Source("sdist", "shop", "1.0")
ITEMS = ["[required] Yes", "[tasks] My submissions may become tasks"]
ASKING = {"texts": {**MINIMAL["texts"], "consent_items": ITEMS}}


def opened_study(folder: Path, machine: Machine, changes: dict[str, Any] | None = None) -> StudyFolder:
    study = machine.open(declare(folder / "shop", ASKING if changes is None else changes))
    open_for_people(study)
    return study


def found(folder: Path, *suppliers: Any) -> tuple[set[str], dict[str, int]]:
    """Return the attempts with a failed submission, and how many were left out by reason."""
    folder.mkdir(exist_ok=True)
    submissions, left_out = submissions_in(suppliers, SHOP, tree_of(GOOD, folder))
    items = [item for items in submissions.by_function.values() for item in items]
    return {item.attempt for item in items}, dict(left_out)


def home(machine: Machine) -> Any:
    return attempts_of_home(machine.attempts, TaskStore(machine.locations.tasks))


def test_attempts_of_this_home_are_used_unless_they_are_of_a_study_or_of_people_elsewhere(
    tmp_path: Path,
) -> None:
    machine = Machine.at(tmp_path / "home")
    task = build_task(machine.locations.tasks)
    mine = fail(machine, task, Enrolment())
    fail(machine, task, Enrolment(participant="P1", study="other"))
    of_others = fail(machine, task, Enrolment(participant="P2"))
    (machine.locations.attempts / ELSEWHERE).mkdir()
    (machine.locations.attempts / ELSEWHERE / of_others).touch()
    assert found(tmp_path / "tree", home(machine)) == ({mine}, {OTHER_STUDY: 1, BY_OTHERS: 1})
    other = build_task(machine.locations.tasks, library="other")
    fail(machine, other, Enrolment())
    assert found(tmp_path / "tree", home(machine))[0] == {mine}


def test_only_participants_who_ticked_the_item_are_used(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    study = opened_study(tmp_path, machine)
    agreed = take_part(study, machine, "P1", True, True)
    take_part(study, machine, "P2", True, False)
    take_part(study, machine, "P3", True)
    assert found(tmp_path / "tree", attempts_of_study(study)) == ({agreed}, {NO_CONSENT: 2})
    withdraw_person(study, WithdrawPerson(code="P1", keep=True))
    assert found(tmp_path / "tree", attempts_of_study(study)) == (set(), {NO_CONSENT: 3})


def test_a_published_attempt_is_read_on_another_machine(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    agreed = take_part(opened_study(tmp_path, machine), machine, "P1", True, True)
    study = Machine.at(tmp_path / "organiser").open(tmp_path / "shop")
    assert found(tmp_path / "tree", attempts_of_study(study)) == ({agreed}, {})


def test_ticks_of_another_protocol_allow_nothing(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    study = opened_study(tmp_path, machine)
    take_part(study, machine, "P1", True, True)
    (tmp_path / "shop" / "texts" / "rules.md").write_text("Some help.", encoding="utf-8")
    study = machine.open(tmp_path / "shop")
    with pytest.raises(StudyError, match="differs from the protocol in force"):
        attempts_of_study(study)
    amend_study(study, AmendStudy(why="rules"))
    assert found(tmp_path / "tree", attempts_of_study(study)) == (set(), {NO_CONSENT: 1})


def test_a_study_that_does_not_ask_is_refused(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    study = opened_study(tmp_path, machine, {})
    take_part(study, machine, "P1", True)
    with pytest.raises(StudyError, match="does not ask") as refused:
        attempts_of_study(study)
    assert "[tasks]" in refused.value.hint
    assert not agrees(study.study, study.protocol, study.ledger.person("P1"))


def made_from(
    machine: Machine, study: str, attempt: str, mode: Mode = Mode.REMOVE, library: str = "shop"
) -> Task:
    """Return a task of this home whose answer names an attempt."""
    task = build_task(machine.locations.tasks, mode, library=library)
    add_provenance(task, {"parts": [{"attempt": {"id": attempt, "submission": 1, "study": study}}]})
    return task


def here(machine: Machine) -> set[str]:
    return {task.id for task in TaskStore(machine.locations.tasks).tasks() if isinstance(task, Task)}


def verdicts(machine: Machine, name: str, study: str, attempt: str) -> Path:
    """Write the file of a campaign with one proven corruption."""
    machine.locations.campaigns.mkdir(parents=True, exist_ok=True)
    file = machine.locations.campaigns / name
    kept = {"provenance": {"parts": [{"attempt": {"id": attempt, "study": study}}]}}
    lines = [{"format": "gistpoint.campaign"}, {"type": "verdict", "kept": kept}, {"kept": None}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + "torn")
    return file


def test_erasure_deletes_what_was_made_from_the_persons_submissions_and_nothing_else(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    study = opened_study(tmp_path, machine)
    gone, stays = take_part(study, machine, "P1", True, True), take_part(study, machine, "P2", True, True)
    of_gone = made_from(machine, "shop-2026", gone)
    of_other = made_from(machine, "shop-2026", stays, Mode.DISCOVERY)
    of_another_study = made_from(machine, "elsewhere", gone, library="other")
    files = [verdicts(machine, f"{name}.jsonl", "shop-2026", name) for name in (gone, stays)]
    library = machine.locations.libraries / "shop"
    library.mkdir(parents=True)
    (library / "submissions-abc.json").write_text('{"study": "shop-2026"}')
    assert here(machine) == {of_gone.id, of_other.id, of_another_study.id}
    left = withdraw_person(study, WithdrawPerson(code="P1", erase=True))
    assert left.erasure is not None
    assert left.erasure.tasks == (of_gone.id,)
    assert not of_gone.folder.exists()
    assert of_other.folder.exists()
    assert of_another_study.folder.exists()
    assert [file.exists() for file in files] == [False, True]
    assert not list(library.iterdir())
    assert study.sweep().tasks == ()


def test_another_machine_deletes_its_tasks_when_it_reads_the_erasure(tmp_path: Path) -> None:
    machine, other = Machine.at(tmp_path / "home"), Machine.at(tmp_path / "other")
    study = opened_study(tmp_path, machine)
    task = made_from(other, "shop-2026", take_part(study, machine, "P1", True, True))
    assert other.open(tmp_path / "shop").sweep().tasks == ()
    study.erase("P1")
    assert other.open(tmp_path / "shop").sweep().tasks == (task.id,)
    assert here(other) == set()
    assert TaskStore(other.locations.tasks).deleted == {task.id}


def test_who_does_not_tick_the_item_again_is_no_source_any_more(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    study = opened_study(tmp_path, machine)
    made_from(machine, "shop-2026", take_part(study, machine, "P1", True, True))
    consented = Consented(text_sha256="x", items=(True, False), protocol=study.ledger.protocol)
    study.record("P1", person("P1"), StudyOperationKind.CONSENTED, consented)
    assert len(study.sweep().tasks) == 1


def test_a_running_campaign_has_to_be_stopped_first_and_the_next_call_makes_up_for_it(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    study = opened_study(tmp_path, machine)
    attempt = take_part(study, machine, "P1", True, True)
    task, file = made_from(machine, "shop-2026", attempt), verdicts(machine, "a.jsonl", "shop-2026", attempt)
    lock = take(file)
    assert lock is not None
    with lock, pytest.raises(StudyError, match="Tasks are being made"):
        study.erase("P1")
    assert task.folder.exists()
    assert study.sweep().tasks == (task.id,)
    assert not file.exists()


def test_the_studies_of_a_task_are_those_in_its_answer(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path)
    assert studies_of(made_from(machine, "shop-2026", "01A")) == {"shop-2026"}
    assert studies_of(made_from(machine, "", "01A")) == frozenset()
    assert studies_of(build_task(machine.locations.tasks)) == frozenset()


def test_a_task_with_code_of_a_participant_is_not_sent_to_a_teams_store(tmp_path: Path) -> None:
    sharing = pytest.importorskip("gistpoint.sessions.team.tasks")
    machine = Machine.at(tmp_path)
    assert not sharing.may_be_sent(made_from(machine, "shop-2026", "01A"))
    assert sharing.may_be_sent(made_from(machine, "", "01A", Mode.DISCOVERY))


MODELS = {"texts": {**MINIMAL["texts"], "consent_items": [*ITEMS, "[models] A model may read my attempts"]}}


def test_a_model_reads_only_attempts_of_participants_who_ticked_that_item(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    study = opened_study(tmp_path, machine, MODELS)
    agreed = take_part(study, machine, "P1", True, False, True)
    take_part(study, machine, "P2", True, True, False)
    take_part(study, machine, "P3", True, True)
    assert attempts_for_models(study) == {agreed}
    withdraw_person(study, WithdrawPerson(code="P1", keep=True))
    assert attempts_for_models(study) == set()


def test_a_study_that_does_not_ask_about_models_lets_none_read(tmp_path: Path) -> None:
    study = opened_study(tmp_path, Machine.at(tmp_path / "home"))
    with pytest.raises(StudyError, match="does not ask whether a model") as refused:
        attempts_for_models(study)
    assert "[models]" in refused.value.hint


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (["[required] [tasks] x"], "can't be required"),
        (["[tasks] x", "[tasks] y"], "more than one"),
        (["[tasks]"], "is empty"),
        (["[required] [models] x"], "can't be required"),
        (["[models] x", "[models] y"], "more than one"),
    ],
)
def test_items_that_ask_oddly_are_refused(tmp_path: Path, items: list[str], words: str) -> None:
    texts = {**MINIMAL["texts"], "consent_items": items}
    with pytest.raises(StudyError, match=words):
        Machine.at(tmp_path / "home").open(declare(tmp_path / "shop", {"texts": texts}))
