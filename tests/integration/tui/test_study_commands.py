"""The organiser's commands of a study, from the first folder to the last person whose data is erased."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import build_task
from small_study import participation, study_at
from small_study import take_part as take_part_whole
from study_folders import Machine, copy_of, declare

from gistpoint.core.machine_time import SystemTime
from gistpoint.core.study.assigning import plan_tasks, planned_data
from gistpoint.core.study.operations import (
    Begun,
    Consented,
    Finished,
    Sitting,
    StudyOperationKind,
    Withdrawn,
    person,
)
from gistpoint.sessions.studies.drafts import FormDraft, FormDrafts
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.unsent_texts import UnsentTextFiles
from gistpoint.tui.cli import main

CODE = "QK7ZZ4"
Say = Callable[..., str]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Machine.at(tmp_path / "home", SystemTime())


@pytest.fixture
def say(machine: Machine, capsys: pytest.CaptureFixture[str]) -> Say:
    """A function that runs a command and returns its output; the exit code must equal `code`."""

    def typed(*words: str, code: int = 0) -> str:
        capsys.readouterr()
        found = main(["study", *words])
        printed = capsys.readouterr()
        assert found == code, printed
        return printed.out + printed.err

    return typed


@pytest.fixture
def root(tmp_path: Path, say: Say) -> Path:
    """The folder of an open study."""
    root = declare(tmp_path / "shop", {"sandbox": {"demand": ""}})
    say("open", "shop")
    return root


def take_part(study: StudyFolder, machine: Machine, code: str, *, end: str = "") -> Path:
    """Consent, plan, and begin the first attempt, which ends in the log as `end` if that is given.

    Returns the attempt's folder.
    """
    study.record(code, person(code), StudyOperationKind.CONSENTED, Consented(text_sha256="c"))
    plan = plan_tasks(study.study, study.tasks, study.ledger, code)
    data = planned_data(plan, basis=study.basis(), protocol=study.protocol)
    study.record(code, person(code), StudyOperationKind.PLANNED, data)
    given = study.ledger.person(code).assignments[0]
    attempt = machine.attempt(study.task(given.task), code, study.study.id, assignment=given.id)
    study.record(code, person(code), StudyOperationKind.SITTING, Sitting(state="began"))
    begun = Begun(assignment=given.id, attempt=attempt.name)
    study.record(code, person(code), StudyOperationKind.BEGUN, begun)
    if end:
        finished = Finished(assignment=given.id, attempt=attempt.name, end=end)
        study.record(code, person(code), StudyOperationKind.FINISHED, finished)
    return attempt


def mentions(text: str, *folders: Path) -> list[Path]:
    """Return the files in whose names or contents a string occurs."""
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if text in path.name or (path.is_file() and text.encode() in path.read_bytes())
    ]


@pytest.mark.parametrize("template", ["baseline", "assistance", "gist", "budgets"])
def test_each_template_makes_a_study_that_can_open(say: Say, template: str) -> None:
    assert "4 tasks" in say("new", "Mine 1", "--tasks", "demo", "--template", template)
    assert "is open" in say("open", "Mine 1")
    assert "already open" in say("open", "Mine 1", code=2)
    assert "clean" in say("audit", "Mine 1")


def test_a_new_study_is_sound_but_for_what_only_the_organiser_knows(say: Say, tmp_path: Path) -> None:
    say("new", "Mine 1", "--tasks", "demo", "--template", "budgets")
    file = tmp_path / "Mine 1" / "study.toml"
    file.write_text(file.read_text() + '[sandbox]\ndemand = ""\n')
    found = json.loads(say("check", "Mine 1", "--json"))
    assert found["id"] == "mine-1"
    told = {check["name"]: check["detail"] for check in found["checks"] if check["reduced"]}
    assert told.keys() == {"texts", "consent", "time limit", "contrast"}
    assert "privacy.controller" in told["consent"]
    assert told["texts"].endswith("texts.consent, privacy.contact")


def test_a_new_study_has_copies_of_its_tasks(say: Say, tmp_path: Path) -> None:
    task = build_task(tmp_path / "set")
    say("new", "mine", "--tasks", "set")
    file = tmp_path / "mine" / "study.toml"
    file.write_text(file.read_text() + '[sandbox]\ndemand = ""\n')
    shutil.rmtree(tmp_path / "set")
    assert json.loads(say("check", "mine", "--json"))["id"] == "mine"
    assert (tmp_path / "mine" / "tasks" / task.id / "task.toml").is_file()
    assert "not an empty folder" in say("new", "mine", code=2)


def test_a_check_names_what_is_not_sound(say: Say, tmp_path: Path) -> None:
    declare(
        tmp_path / "shop",
        {
            "sandbox": {"demand": "no-such-backend"},
            "design": {"tasks_per_person": 2, "quota": {"remove": 2}},
        },
    )
    said = say("check", "shop", code=1)
    assert "FAILED  sandbox: There is no sandbox" in said
    assert "'design.quota.remove' asks for 2 of the tasks, but there are 1" in said
    assert "design.quota.remove" in say("open", "shop", code=2)


def test_a_check_tells_that_people_run_out_of_tasks(say: Say, tmp_path: Path) -> None:
    """Both tasks corrupt the same function, so nobody can get both."""
    declare(tmp_path / "shop", {"sandbox": {"demand": ""}})
    assert "100 of them get fewer than 2 tasks, as few as 1" in say("check", "shop", code=1)


def test_full_feedback_is_refused_while_others_can_get_the_task(say: Say, tmp_path: Path) -> None:
    texts = {"consent": "c", "consent_items": ["[required] Yes"], "rules": "r", "feedback": "full"}
    declare(tmp_path / "shop", {"texts": texts})
    assert "FAILED  feedback" in say("check", "shop", code=1)


def test_people_are_enrolled_with_codes_and_strata(say: Say, tmp_path: Path) -> None:
    declare(tmp_path / "shop", {"participants": {"strata": ["junior", "senior"], "team": ["ANNA"]}})
    assert "not open yet" in say("enrol", "shop", code=2)
    say("open", "shop")
    assert "Name the stratum. They are: junior, senior." in say("enrol", "shop", code=2).replace("\n", " ")
    codes = json.loads(say("enrol", "shop", "--number", "3", "--stratum", "junior", "--json"))["codes"]
    assert len(set(codes)) == 3
    assert "gistpoint study join shop --code ANNA" in say(
        "enrol", "shop", "--code", "ANNA", "--stratum", "senior"
    )
    assert "already in the study" in say("enrol", "shop", "--code", "anna", "--stratum", "senior", code=2)
    assert "is not a valid code" in say("enrol", "shop", "--code", "An na", "--stratum", "senior", code=2)
    people = Machine.at(tmp_path / "home").open(tmp_path / "shop").ledger.people
    assert {(who.stratum, who.role) for who in people.values()} == {
        ("junior", "baseline"),
        ("senior", "author"),
    }


def test_nobody_else_is_enrolled_while_texts_are_unwritten(say: Say, tmp_path: Path) -> None:
    say("new", "mine", "--tasks", "demo")
    assert "--code ME --role author" in say("open", "mine")
    said = say("enrol", "mine", "--number", "2", code=2)
    assert "Still to be written, before anybody else takes part: texts.consent, privacy.contact." in said
    assert "gistpoint study amend mine --why 'texts'" in said
    assert "--code ME" in say("enrol", "mine", "--code", "ME", "--role", "author")
    for file in (tmp_path / "mine" / "study.toml", tmp_path / "mine" / "texts" / "consent.md"):
        file.write_text(file.read_text().replace("WRITE HERE", "We"))
    assert "reduced  declaration" in say("check", "mine")
    say("amend", "mine", "--why", "texts")
    assert "ok  declaration" in say("check", "mine")
    say("enrol", "mine", "--number", "2")


def test_a_simulated_study_takes_no_people(say: Say, tmp_path: Path) -> None:
    declare(tmp_path / "shop", {"simulated": True})
    say("open", "shop")
    said = say("enrol", "shop", code=2)
    assert "simulated study" in said
    assert "gistpoint study new mine --tasks demo" in said


def test_an_amendment_needs_a_change_and_a_reason(say: Say, root: Path) -> None:
    assert "Nothing that belongs to the protocol has changed" in say("amend", "shop", "--why", "x", code=2)
    (root / "texts" / "rules.md").write_text("Paper is allowed.")
    assert "WRONG  protocol_changed" in say("audit", "shop", code=1)
    assert "needs a reason" in say("amend", "shop", "--why", " ", code=2)
    assert "Participants are asked for consent again" in say("amend", "shop", "--why", "paper was forgotten")
    assert "note  amended: The protocol was amended: paper was forgotten." in say("audit", "shop")


def test_nobody_is_enrolled_after_the_end(say: Say, root: Path) -> None:
    assert "is closed. Next: gistpoint study report shop" in say("close", "shop")
    assert "already closed" in say("close", "shop", code=2)
    assert "is closed" in say("enrol", "shop", code=2)


def test_an_assignment_is_returned_unless_it_has_an_end(say: Say, root: Path, machine: Machine) -> None:
    say("enrol", "shop", "--code", CODE)
    study = machine.open(root)
    attempt = take_part(study, machine, CODE)
    given = study.ledger.person(CODE).assignments[0]
    assert "There is no assignment 'zzzz'" in say("return", "shop", "zzzz", "--why", "x", code=2)
    assert "can be assigned to others" in say("return", "shop", given.id[:8], "--why", "the machine broke")
    assert "was already returned" in say("return", "shop", given.id, "--why", "x", code=2)
    study.reload()
    assert study.ledger.person(CODE).returned[given.id].why == "the machine broke"
    assert next(study.local_attempts()).folder == attempt
    say("enrol", "shop", "--code", "P2")
    study.reload()
    take_part(study, machine, "P2", end="solved")
    ended = study.ledger.person("P2").assignments[0]
    assert "has ended" in say("return", "shop", ended.id, "--why", "x", code=2)


def test_the_table_for_payments_has_a_row_for_each_person_and_no_results(
    say: Say, root: Path, machine: Machine
) -> None:
    say("enrol", "shop", "--code", CODE)
    say("enrol", "shop", "--code", "P2")
    take_part(machine.open(root), machine, CODE, end="solved")
    rows = list(csv.DictReader(say("pay", "shop").splitlines()))
    assert sorted(row["code"] for row in rows) == sorted([CODE, "P2"])
    assert not {"solved", "score", "end"} & rows[0].keys()
    say("pay", "shop", "-o", "payments.csv")
    assert "P2" in Path("payments.csv").read_text(encoding="utf-8")


def test_sync_publishes_and_can_be_repeated(say: Say, root: Path, machine: Machine) -> None:
    say("enrol", "shop", "--code", CODE)
    take_part(machine.open(root), machine, CODE)
    machine.attempt(build_task(root.parent / "other"), CODE, study="another")
    assert json.loads(say("sync", "shop", "--json"))["published"] == {"new": 1}
    assert json.loads(say("sync", "shop", "--json"))["published"] == {"same": 1}
    assert "clean; 1 person, 1 journal" in say("audit", "shop")


def test_who_withdraws_keeps_or_deletes(say: Say, root: Path, machine: Machine) -> None:
    say("enrol", "shop", "--code", "P2")
    assert "are kept" in say("withdraw", "shop", "P2", "--keep", "--words", "no time")
    assert "Nobody in the study" in say("withdraw", "shop", "P9", "--erase", code=2)
    with pytest.raises(SystemExit):
        say("withdraw", "shop", "P2")


def test_nothing_is_left_of_who_is_erased_and_an_old_copy_brings_nothing_back(
    say: Say, root: Path, machine: Machine, tmp_path: Path
) -> None:
    for code in (CODE, "P2"):
        say("enrol", "shop", "--code", code)
    study = machine.open(root)
    attempt = take_part(study, machine, CODE, end="gave_up")
    take_part(study, machine, "P2", end="solved")
    say("sync", "shop")
    FormDrafts(machine.locations.data, study.study.id, CODE).write(
        "before", "", FormDraft(values={"years": 3})
    )
    unsent = UnsentTextFiles(machine.locations.unsent_texts)
    for by, about in (
        (CODE, "leaving shop"),
        ("", attempt.name),
        ("ada", str(root / "attempts" / attempt.name)),
    ):
        unsent.write(by, about, {"why": {"answer": "half a sen"}})
    unsent.write("ada", "another run", {"why": {"answer": "kept"}})
    (root / "reviews").mkdir()
    (root / "reviews" / f"{CODE}.jsonl").write_text('{"format": "gistpoint.reviews", "version": 1}\n')
    old, older = (
        copy_of(root, tmp_path / "old"),
        shutil.copytree(attempt.parent, tmp_path / "attempts-before"),
    )
    local = machine.locations.attempts
    assert mentions(CODE, root)
    assert mentions(CODE, local)
    (root / "report.html").write_text("12 people")
    said = say("withdraw", "shop", CODE, "--erase")
    assert "gistpoint study report shop makes it again" in said
    assert "attempts: 1" in said
    assert mentions(CODE, root, local) == []
    assert mentions(attempt.name, root, local) == []
    assert FormDrafts(machine.locations.data, study.study.id, CODE).read("before") == FormDraft()
    assert len(list(machine.locations.unsent_texts.iterdir())) == 1
    assert unsent.read("ada", "another run")
    assert "clean" in say("audit", "shop")
    assert "erased" in say("withdraw", "shop", CODE, "--erase", code=2)

    say("sync", "shop", "--from", "old")
    assert mentions(CODE, root, local) == []

    shutil.copytree(old, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("organiser*"))
    shutil.copytree(older, local, dirs_exist_ok=True)
    assert mentions(CODE, root)
    assert "erased_leftover" in say("audit", "shop", code=1)
    assert "deleted again" in say("sync", "shop")
    assert mentions(CODE, root, local) == []
    assert "clean; 1 person, 1 journal" in say("audit", "shop")
    (said_of,) = machine.open(root).ledger.erased.values()
    assert said_of.counts == {"gave_up": 1}
    assert "can't be used again" in say("enrol", "shop", "--code", CODE, code=2)


def test_a_whole_study_from_the_first_consent_to_the_last_person_who_is_erased(
    say: Say, machine: Machine, tmp_path: Path
) -> None:
    root = study_at(tmp_path / "shop", training=True)
    say("open", "shop")
    say("enrol", "shop", "--code", CODE, "--role", "author")
    say("enrol", "shop", "--code", "P2")
    for code in (CODE, "P2"):
        take_part_whole(participation(machine, root, code))
    assert json.loads(say("sync", "shop", "--json"))["published"] == {"same": 6}
    assert json.loads(say("audit", "shop", "--json")) == {
        "schema": "gistpoint.study-audit/1", "id": "shop-2026", "clean": True, "findings": [],
    }  # fmt: skip
    old, before = copy_of(root, tmp_path / "old"), shutil.copytree(machine.home, tmp_path / "before")
    assert mentions(CODE, root)
    assert mentions(CODE, machine.home)
    deleted = json.loads(say("withdraw", "shop", CODE, "--erase", "--json"))["deleted"]
    assert (len(deleted["logs"]), len(deleted["attempts"])) == (1, 3)
    assert mentions(CODE, root, machine.home) == []
    shutil.copytree(before / "data" / "attempts", machine.locations.attempts, dirs_exist_ok=True)
    done = json.loads(say("sync", "shop", "--from", "old", "--json"))
    assert (len(done["erased"]["logs"]), len(done["erased"]["attempts"])) == (1, 3)
    assert mentions(CODE, root, machine.home) == []
    assert mentions(CODE, old)
    found = json.loads(say("audit", "shop", "--json"))
    assert {finding["name"] for finding in found["findings"]} <= {"basis_erased"}
    assert found["clean"]
    study = machine.open(root)
    assert study.ledger.people.keys() == {"P2"}
    assert [dict(said.counts) for said in study.ledger.erased.values()] == [{"solved": 3}]


def test_who_asked_to_be_erased_is_erased_if_the_program_was_stopped(
    say: Say, root: Path, machine: Machine
) -> None:
    say("enrol", "shop", "--code", CODE)
    study = machine.open(root)
    study.record(CODE, person(CODE), StudyOperationKind.WITHDRAWN, Withdrawn(data="erase"))
    assert "erase_pending" in say("audit", "shop", code=1)
    say("sync", "shop")
    assert mentions(CODE, root) == []


def test_an_attempt_that_is_open_is_not_erased(say: Say, root: Path, machine: Machine) -> None:
    say("enrol", "shop", "--code", CODE)
    study = machine.open(root)
    attempt = take_part(study, machine, CODE)
    with machine.held(study.task(study.ledger.person(CODE).assignments[0].task), attempt):
        assert "is open in another window" in say("withdraw", "shop", CODE, "--erase", code=2)
        assert "clean" not in say("audit", "shop", code=1)
    say("sync", "shop")
    assert mentions(CODE, root, machine.locations.attempts) == []


def test_people_are_erased_when_their_time_is_over(say: Say, tmp_path: Path) -> None:
    declare(tmp_path / "kept")
    assert "does not say how long" in say("erase", "kept", "--expired", code=2)
    root = declare(tmp_path / "shop", {"privacy": {"contact": "the lab", "retention_days": 30}})
    now = SystemTime().utc_ms()
    for code, days in (("OLD", 31), ("NEW", 29)):
        study = Machine.past(tmp_path / "home", now - days * 86_400_000).open(root)
        study.record(code, person(code), StudyOperationKind.DECLINED)
    assert "1 person, whose last operation is older than 30 days: OLD" in say(
        "erase", "shop", "--expired", "--dry-run"
    )
    assert "Erased: 1 person" in say("erase", "shop", "--expired")
    assert mentions("OLD", root) == []
    assert mentions("NEW", root)


def test_what_is_no_study_is_told(say: Say, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "'empty' is not a study: it has no study.toml" in say("check", "empty", code=2)
    assert "is not the folder of a study" in say(
        "sync", str(declare(tmp_path / "shop")), "--from", "empty", code=2
    )


@pytest.mark.parametrize("command", ["pay", "consent"])
def test_json_is_not_written_to_a_file(root: Path, tmp_path: Path, say: Say, command: str) -> None:
    file = tmp_path / "out"
    assert "Leave out --json, or -o" in say(command, str(root), "--json", "-o", str(file), code=2)
    assert not file.exists()
    say(command, str(root), "-o", str(file))
    assert file.read_text()


@pytest.mark.parametrize("more", [["a1b2"], ["--why", "the machine broke"], ["a1b2", "--why", "it broke"]])
def test_one_assignment_is_not_returned_with_all_that_timed_out(
    root: Path, say: Say, more: list[str]
) -> None:
    assert "Leave out --late to return one" in say("return", str(root), *more, "--late", code=2)
