"""A team's study on a real server: concurrent plans, a server that dies, and erased participants."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from postgres_server import PostgresServer
from small_study import answers_of, do, forecast, participation, solve, take_part
from sqlalchemy import Connection, event, text
from study_folders import Machine, declare
from team_crowd import Crowd
from team_studies import TeamStudy, contents, serving, team, wrong

from gistpoint.core.machine_time import SystemTime
from gistpoint.core.running import RunContext
from gistpoint.core.study.operations import (
    ERASE,
    ORGANISER,
    STUDY,
    Amended,
    Answers,
    Planned,
    StudyError,
    StudyOperationKind,
)
from gistpoint.core.study.steps import (
    AttemptStep,
    BetweenStep,
    DoneStep,
    FormStep,
    PlanStep,
    ReadyStep,
    RefusedStep,
)
from gistpoint.sessions.studies.auditing import audit
from gistpoint.sessions.studies.publishing import header_of
from gistpoint.sessions.studies.syncing import synchronise
from gistpoint.sessions.studies.taking import Participation
from gistpoint.sessions.team.address import TeamStoreError, UnreachableError, choose, parse_address
from gistpoint.sessions.team.connecting import engine_of
from gistpoint.sessions.team.opened import open_store
from gistpoint.sessions.team.study_sharing import fetch, share
from gistpoint.sessions.team.syncing import sync
from gistpoint.tui.cli import main

PEOPLE = tuple(f"P{number:02}" for number in range(8))


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with serving() as made:
        yield made


@pytest.fixture
def study(tmp_path: Path, server: PostgresServer) -> TeamStudy:
    return TeamStudy.made(tmp_path, server, *PEOPLE)


@contextmanager
def away(server: PostgresServer) -> Iterator[None]:
    server.kill()
    try:
        yield
    finally:
        server.start()


def until(part: Participation, kind: type) -> Any:
    """Do all steps before the first one of a kind, and return that one."""
    while not isinstance(step := part.next(), kind):
        assert not isinstance(step, DoneStep | RefusedStep), step
        if isinstance(step, PlanStep):
            part.step()
        else:
            do(part, step)
    return step


def plans(study: TeamStudy, code: str) -> tuple[Planned, ...]:
    return study.open().ledger.person(code).facts.all(Planned)


def sql(server: PostgresServer, statement: str, **values: Any) -> Any:
    engine = engine_of(server.address)
    try:
        with engine.begin() as connection:
            found = connection.execute(text(statement), values)
            return found.all() if found.returns_rows else found.rowcount
    finally:
        engine.dispose()


def log_of(study: TeamStudy) -> str:
    return f"studies/{study.name}/log"


def test_people_on_two_machines_go_through_one_study(study: TeamStudy) -> None:
    for number, code in enumerate(PEOPLE[:4]):
        take_part(study.part(f"machine-{number % 2}", code))
    folders = study.folders()
    everything = contents(study.root)
    assert all(contents(folder.root) == everything for folder in folders)
    assert all(wrong(folder) == [] for folder in folders)
    assert sum(name.endswith("journal.jsonl") for name in everything) == 8
    again = synchronise(folders[0])
    assert not again.erased.any
    assert contents(study.root) == everything


def test_plans_that_are_made_at_once_follow_each_other(study: TeamStudy) -> None:
    parts = [study.part(f"machine-{number % 4}", code) for number, code in enumerate(PEOPLE)]
    for part in parts:
        until(part, PlanStep)
    with ThreadPoolExecutor(len(parts)) as pool:
        steps = list(pool.map(lambda part: part.step(), parts))
    assert all(isinstance(step, ReadyStep) for step in steps)
    given = Counter(one.task for one in study.open().ledger.assignments())
    assert set(given.values()) == {4}  # 8 people, 2 of 4 tasks each, as if they had come one by one
    assert wrong(study.open()) == []


def test_an_assignment_is_begun_on_one_machine(study: TeamStudy) -> None:
    one, other = study.part("machine-1", "P07"), study.part("machine-2", "P07")
    first = until(one, ReadyStep)
    other.come()
    second = until(other, ReadyStep)
    assert second.assignment == first.assignment
    one.begin(first).opened.close()
    with pytest.raises(StudyError, match="has begun this task"):
        other.begin(second)
    assert not list(study.machine("machine-2")[0].attempts.root.glob("*/journal.jsonl"))
    other.come()
    assert isinstance(other.step(), RefusedStep)
    assert wrong(other.folder) == []


def test_the_database_refuses_a_second_beginning_that_was_overlooked(study: TeamStudy) -> None:
    part = study.part("machine-1", "P07")
    step = until(part, ReadyStep)
    put = (
        "INSERT INTO lines (file, writer, number, kind, assignment, line, sha256, machine) "
        "VALUES (:file, 'x', 1, 'begun', :assignment, '', '', '')"
    )
    sql(study.server, put, file=log_of(study), assignment=step.assignment.id)
    before = contents(part.folder.root)
    with pytest.raises(StudyError, match="begun on another machine"):
        part.begin(step)
    assert {
        name: data for name, data in contents(part.folder.root).items() if name != "log/x.jsonl"
    } == before


def test_without_the_server_nothing_is_planned_and_an_attempt_goes_on(study: TeamStudy) -> None:
    planning, working = study.part("machine-1", "P01"), study.part("machine-2", "P02")
    until(planning, PlanStep)
    taken = working.begin(until(working, ReadyStep))
    with away(study.server):
        before = contents(planning.folder.root)
        with pytest.raises(UnreachableError, match="does not answer"):
            planning.step()
        assert contents(planning.folder.root) == before
        forecast(working, taken)
        solve(taken.opened.attempt)
        working.close(taken)
        assert working.folder.store.away
        step = working.step()
        while not isinstance(step, ReadyStep):
            do(working, step)
            step = working.step()
        with pytest.raises(UnreachableError):
            working.begin(step)
        again = study.part("machine-2", "P02")
        assert isinstance(again.next(), BetweenStep)
    assert isinstance(planning.step(), ReadyStep)
    take_part(working)
    assert all(wrong(folder) == [] for folder in study.folders())
    assert study.open().ledger.person("P02").finished.keys() == working.person.finished.keys()


@contextmanager
def at_the_insert(part: Participation, kind: str, act: Callable[[], None]) -> Iterator[None]:
    """Call `act` when an operation is in its file and about to be inserted."""
    done: list[str] = []

    def about_to(connection: Connection, cursor: Any, statement: str, values: Any, *more: Any) -> None:
        if statement.startswith("INSERT INTO lines") and kind in values["kind"] and not done:
            done.append(kind)
            act()

    engine = team(part.folder)._engine
    event.listen(engine, "before_cursor_execute", about_to)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", about_to)
        assert done


@contextmanager
def at_the_commit(part: Participation, act: Callable[[Connection], None]) -> Iterator[None]:
    """Call `act` at the commit of a plan or a start, before it is sent."""
    engine, done = team(part.folder)._engine, list[bool]()

    def about_to(connection: Connection) -> None:
        serialisable = connection.get_isolation_level() == "SERIALIZABLE"
        if serialisable and not done:
            done.append(True)
            act(connection)

    event.listen(engine, "commit", about_to)
    try:
        yield
    finally:
        event.remove(engine, "commit", about_to)
        assert done


@pytest.mark.parametrize("kind", ["planned", "begun"])
def test_a_server_that_dies_between_file_and_insert_takes_the_line_with_it(
    study: TeamStudy, kind: str
) -> None:
    part = study.part("machine-1", "P01")
    step = until(part, PlanStep if kind == "planned" else ReadyStep)
    act = part.step if kind == "planned" else lambda: part.begin(step)
    before = contents(part.folder.root)
    with at_the_insert(part, kind, study.server.kill), pytest.raises(UnreachableError):
        act()
    assert contents(part.folder.root) == before
    study.server.start()
    take_part(part)
    assert len(plans(study, "P01")) == 1
    assert all(wrong(folder) == [] for folder in study.folders())


def goes_on(part: Participation) -> None:
    step = part.step()
    assert isinstance(step, ReadyStep | AttemptStep)
    (part.begin(step) if isinstance(step, ReadyStep) else part.open(step)).opened.close()


@pytest.mark.parametrize("kind", ["planned", "begun"])
@pytest.mark.parametrize("reached", [False, True], ids=["not done", "done"])
def test_a_commit_whose_answer_is_lost_is_looked_for(study: TeamStudy, kind: str, *, reached: bool) -> None:
    part = study.part("machine-1", "P01")
    step = until(part, PlanStep if kind == "planned" else ReadyStep)

    def die(connection: Connection) -> None:
        if reached:
            connection.connection.dbapi_connection.commit()  # type: ignore[union-attr]
        study.server.kill()

    with at_the_commit(part, die), pytest.raises(UnreachableError):
        part.step() if kind == "planned" else part.begin(step)
    part.end_sitting()  # another line after the uncertain one
    another = study.part("machine-1", "P01")  # as another process, which reads the line from the file
    another.begin_sitting()
    with pytest.raises(UnreachableError):
        goes_on(another)
    study.server.start()
    take_part(study.part("machine-1", "P01"))
    folders = study.folders()
    assert all(wrong(folder) == [] for folder in folders)
    for folder in folders:
        person = folder.ledger.person("P01")
        assert len(person.facts.all(Planned)) == 1
        assert [len(facts) for facts in person.begun.values()] == [1, 1]
        assert len(person.finished) == 2


@pytest.mark.parametrize("kind", ["planned", "begun"])
def test_what_never_reached_the_server_gives_way_to_another_machine(study: TeamStudy, kind: str) -> None:
    part = study.part("machine-1", "P01")
    step = until(part, PlanStep if kind == "planned" else ReadyStep)
    with at_the_commit(part, lambda connection: study.server.kill()), pytest.raises(UnreachableError):
        part.step() if kind == "planned" else part.begin(step)
    study.server.start()
    take_part(study.part("machine-3", "P02"))
    other = study.part("machine-2", "P01")
    other.begin(until(other, ReadyStep)).opened.close()
    part.come()
    assert isinstance(part.step(), RefusedStep)
    for folder in study.folders():
        assert wrong(folder) == []
        person = folder.ledger.person("P01")
        assert len(person.facts.all(Planned)) == 1
        assert [len(facts) for facts in person.begun.values()] == [1]


def test_who_was_erased_does_not_come_back_from_a_machine_that_was_off(study: TeamStudy) -> None:
    part = study.part("machine-1", "P01")
    taken = part.begin(until(part, ReadyStep))
    taken.opened.close()
    study.part("machine-2", "P02").end_sitting()
    off, root = study.machine("machine-2")
    synchronise(off.open(root))
    assert any("P01@" in name for name in contents(root))
    part.withdraw(ERASE)
    late = "SELECT count(*) FROM lines WHERE study = :study AND writer LIKE 'P01@%'"
    assert sql(study.server, late, study=study.name) == [(0,)]
    with away(study.server):
        machine = off.open(root)
        machine.record("P01", "person:P01", StudyOperationKind.DECLINED)
    synchronise(off.open(root))
    folders = study.folders()
    assert all(wrong(folder) == [] for folder in folders)
    assert not [name for folder in folders for name in contents(folder.root) if "P01@" in name]
    assert all("P01" not in folder.ledger.people for folder in folders)
    assert sql(study.server, late, study=study.name) == [(0,)]
    journals = "SELECT count(*) FROM lines WHERE study = :study AND file LIKE '%/attempts'"
    assert sql(study.server, journals, study=study.name) == [(0,)]


BOTH = "the copy in this folder has [0-9a-f]{12}, that in the team's store has [0-9a-f]{12}"


def test_what_is_changed_in_the_database_is_named_and_nothing_is_overwritten(study: TeamStudy) -> None:
    part = study.part("machine-1", "P01")
    take_part(part)
    synchronise(part.folder)
    before = contents(part.folder.root)
    asked = "SELECT number FROM lines WHERE study = :study AND kind = 'answers' ORDER BY number LIMIT 1"
    ((number,),) = sql(study.server, asked, study=study.name)
    change = (
        "UPDATE lines SET line = line || ' '::bytea WHERE study = :study AND kind = 'answers' AND number"
        " = :number"
    )
    assert sql(study.server, change, study=study.name, number=number) == 1
    change = (
        "UPDATE lines SET line = line || ' '::bytea WHERE study = :study AND file LIKE '%/attempts' AND"
        " number = 1"
    )
    assert sql(study.server, change, study=study.name) == 2
    found = [finding.sentence for finding in wrong(part.folder) if finding.name == "store_differs"]
    assert any(
        re.match(rf"Line {number} of P01@\S+ differs: {BOTH} \(file log/P01@[^)]+\)\.$", sentence)
        for sentence in found
    ), found
    journals = [sentence for sentence in found if "journal of attempt" in sentence]
    assert len(journals) >= 2
    assert any(re.search(f"differs: {BOTH}\\.$", sentence) for sentence in journals), journals
    assert contents(part.folder.root) == before
    again = study.part("machine-1", "P01")
    again.folder.store.send_soon()
    team(again.folder).close()  # the line was sent; it reaches the store and settles nothing
    assert "differs from" in again.folder.store.away
    with pytest.raises(StudyError, match=r"differs from the (one in the )?team's store"):
        again.folder.exclusively(lambda: None)


def test_a_store_that_refuses_is_no_difference(study: TeamStudy) -> None:
    part = study.part("machine-1", "P01")
    take_part(part)
    synchronise(part.folder)
    sql(study.server, "ALTER TABLE lines RENAME TO other_lines")
    try:
        found = list(audit(part.folder))
    finally:
        sql(study.server, "ALTER TABLE other_lines RENAME TO lines")
    assert [finding.name for finding in found if not finding.note] == []
    notes = [finding.sentence for finding in found if finding.name == "store_away"]
    assert len(notes) == 1
    assert " refuses: " in notes[0]


def test_a_form_that_two_machines_have_asked_is_answered_twice_and_the_last_answers_count(
    study: TeamStudy,
) -> None:
    one, other = study.part("machine-1", "P01"), study.part("machine-2", "P01")
    asked = [until(part, FormStep) for part in (one, other)]
    for part, step, years in zip((one, other), asked, (3, 4), strict=True):
        part.answer(step, {**answers_of(step), "years": years})
    for folder in study.folders():
        given = folder.ledger.person("P01").facts.all(Answers)
        assert [facts.values["years"] for facts in given] == [3, 4]
        assert [finding.name for finding in audit(folder) if finding.name == "answered_again"] == [
            "answered_again"
        ]
        assert wrong(folder) == []
    one.come()
    assert one.person.answers("before").values["years"] == 4
    assert not isinstance(one.next(), FormStep)


def test_what_waited_is_sent_also_where_the_beginning_is_refused(study: TeamStudy) -> None:
    part = study.part("machine-1", "P01")
    step = until(part, FormStep)
    with away(study.server):
        part.answer(step, answers_of(step))

    def refuse() -> None:
        raise StudyError("no")

    with pytest.raises(StudyError):
        part.folder.exclusively(refuse)
    part.folder.store.close()
    assert study.part("machine-2", "P01").person.answers("before") is not None


def test_the_synchronisation_of_the_store_sends_what_waits_of_a_study(study: TeamStudy) -> None:
    part = study.part("machine-1", "P01")
    with away(study.server):
        part.decline()
    locations = study.machine("machine-1")[0].locations
    choose(locations.config, study.server.url)
    store = open_store(locations, SystemTime())
    assert not sync(store, locations, SystemTime(), RunContext()).alarms
    store.close()
    assert study.part("machine-2", "P01").person.declined


def test_an_operation_is_in_the_store_once(study: TeamStudy) -> None:
    part = study.part("machine-1", "P01")
    until(part, PlanStep)
    log = part.folder.files.log
    path = next(
        path for path in log.files() if path.name.startswith("P01@") and "consented" in path.read_text()
    )
    path.with_name("P01@zzzzzz.jsonl").write_bytes(path.read_bytes())
    with pytest.raises(StudyError, match="in another file or line"):
        synchronise(part.folder)


def test_a_changed_declaration_reaches_the_others_once_it_is_in_force(study: TeamStudy) -> None:
    part = study.part("machine-1", "P01")
    until(part, ReadyStep)
    (study.root / "texts" / "rules.md").write_text("Nothing but tea.", encoding="utf-8")
    with pytest.raises(StudyError, match="changed after it was put in force"):
        share(study.open(), study.server.address)
    folder = study.open()
    said = Amended(protocol=folder.protocol, why="tea")
    folder.record(ORGANISER, STUDY, StudyOperationKind.AMENDED, said)
    part.come()
    assert isinstance(part.next(), RefusedStep)
    assert share(study.open(), study.server.address).replaced
    assert study.part("machine-1", "P01").folder.study.texts.rules == "Nothing but tea."
    assert not share(study.open(), study.server.address).replaced


def test_runs_of_models_reach_the_other_machines(study: TeamStudy) -> None:
    declared = study.root / "study.toml"
    declared.write_text(
        declared.read_text() + '\n[[solver]]\nname = "model-x"\nruns = ["runs/x/*"]\ncondition = "few"\n'
    )
    folder = study.open()
    folder.record(ORGANISER, STUDY, StudyOperationKind.AMENDED, Amended(protocol=folder.protocol, why="x"))
    run = study.root / "runs" / "x" / "one" / "journal.jsonl"
    run.parent.mkdir(parents=True)
    run.write_bytes(b"{}\n")
    (study.root / "runs" / "another.jsonl").write_bytes(b"{}\n")
    share(study.open(), study.server.address)
    there = study.part("machine-1", "P01").folder.root
    assert (there / "runs" / "x" / "one" / "journal.jsonl").read_bytes() == b"{}\n"
    assert not (there / "runs" / "another.jsonl").exists()


def test_a_refresh_replaces_the_declaration_last(study: TeamStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, place = study.machine("machine-1")
    declared = study.root / "study.toml"
    declared.write_text(
        declared.read_text()
        + '\n[[solver]]\nname = "model-x"\nruns = ["runs/x/*"]\ncondition = "few"\nmap = "file:z_map.csv"\n'
    )
    (study.root / "z_map.csv").write_text("run,task\n", encoding="utf-8")
    folder = study.open()
    folder.record(ORGANISER, STUDY, StudyOperationKind.AMENDED, Amended(protocol=folder.protocol, why="x"))
    share(study.open(), study.server.address)
    placed, replaced, listed = list[str](), Path.replace, Path.iterdir

    def noted(path: Path, target: Path) -> Path:
        if target.parent == place and path.parent.name == "study":
            placed.append(path.name)
        return replaced(path, target)

    monkeypatch.setattr(Path, "replace", noted)
    monkeypatch.setattr(Path, "iterdir", lambda path: iter(sorted(listed(path))))
    machine.open(place)
    assert placed[-2:] == ["z_map.csv", "study.toml"]


def test_an_archive_that_the_store_has_lost_is_put_back_by_sharing(study: TeamStudy) -> None:
    lost = "DELETE FROM blobs WHERE sha256 = (SELECT archive_sha256 FROM studies WHERE id = :study)"
    assert sql(study.server, lost, study=study.name) == 1
    with pytest.raises(TeamStoreError, match="missing or damaged"):
        study.machine("machine-1")
    share(study.open(), study.server.address)
    study.machine("machine-1")


def test_another_study_of_the_same_name_is_refused(study: TeamStudy, tmp_path: Path) -> None:
    other = TeamStudy.made(tmp_path / "other", study.server)
    declared = other.root / "study.toml"
    declared.write_text(declared.read_text().replace(other.name, study.name))
    (other.root / "team.toml").unlink()
    with pytest.raises(StudyError, match="another study with the id"):
        share(other.open(), study.server.address)
    with pytest.raises(StudyError, match="has no study"):
        fetch("shop-2099", study.server.address, other.organiser.locations)


def test_who_may_only_read_learns_nothing_of_a_study_but_its_id(study: TeamStudy, tmp_path: Path) -> None:
    take_part(study.part("machine-1", "P01"))
    for role in ("reader", "worker"):
        sql(study.server, f"CREATE ROLE study_{role} LOGIN IN ROLE gistpoint_{role}")
    reader, worker = (
        parse_address(study.server.url.replace("owner", f"study_{one}")) for one in ("reader", "worker")
    )
    with pytest.raises(TeamStoreError, match="permission denied"):
        fetch(study.name, reader, Machine.at(tmp_path / "reader", None).locations)
    declared = study.root / "team.toml"
    declared.write_text(tomli_w.dumps({"study": study.name, "store": reader.url, "files_sha256": ""}))
    folder = study.open()
    assert "permission denied" in folder.store.away
    with pytest.raises(TeamStoreError, match="permission denied"):
        folder.exclusively(lambda: None)
    declared.write_text(tomli_w.dumps({"study": study.name, "store": worker.url, "files_sha256": ""}))
    assert study.open().store.away == ""
    take_part(participation(study.organiser, study.root, "P02"))
    assert all(wrong(one) == [] for one in study.folders())
    assert study.open().erase("P02").any


def test_the_commands_find_a_study_by_its_name_on_another_machine(
    tmp_path: Path,
    server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def say(home: str, *words: str, code: int = 0) -> str:
        capsys.readouterr()
        monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / home))
        found = main(["study", *words])
        printed = capsys.readouterr()
        assert found == code, printed
        return printed.out + printed.err

    monkeypatch.chdir(tmp_path)
    declare(tmp_path / "shop", {"id": "shop-of-many", "sandbox": {"demand": ""}})
    assert "No team store is chosen" in say("one", "share", "shop", code=2)
    for home in ("one", "two"):
        choose(tmp_path / home / "config", server.url)
    assert "has no study 'shop-of-many'" in say("two", "progress", "shop-of-many", code=2)
    assert "shop-of-many is now on postgresql://" in say("one", "share", "shop")
    say("one", "open", "shop")
    told = say("one", "enrol", "shop", "--code", "P07")
    assert "instead of the folder: shop-of-many" in told
    told = say("two", "progress", "shop-of-many", "--json")
    assert json.JSONDecoder().raw_decode(told)[0]["people"]["enrolled"] == 1
    assert "was fetched from" in told
    assert say("two", "audit", "shop-of-many").endswith("clean; 1 person, 0 journals, 2 files of the log\n")
    (tmp_path / "shop" / "texts" / "rules.md").write_text("Nothing but tea.")
    say("one", "amend", "shop", "--why", "tea")
    say("two", "withdraw", "shop-of-many", "P07", "--keep")
    fetched = tmp_path / "two" / "data" / "studies" / "shop-of-many"
    assert (fetched / "texts" / "rules.md").read_text() == "Nothing but tea."
    with away(server):
        assert "as of the last contact with the store" in say("two", "progress", "shop-of-many")
        say("two", "enrol", "shop-of-many", "--code", "P08")
    say("two", "sync", "shop-of-many")
    assert (
        json.JSONDecoder().raw_decode(say("one", "progress", "shop", "--json"))[0]["people"]["enrolled"] == 2
    )
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "two"))
    assert main(["store", "check"]) == 0
    sql(server, "UPDATE lines SET line = line || ' ' WHERE study = 'shop-of-many' AND number = 2")
    sql(server, "UPDATE studies SET files_sha256 = 'x' WHERE id = 'shop-of-many'")
    assert main(["store", "check"]) == 1
    told = capsys.readouterr().out
    assert "study differs: study shop-of-many: Line 2 of " in told
    assert "The study 'shop-of-many' in the store" in told
    assert main(["study", "progress", "shop-of-many"]) == 2  # it does not replace the local declaration


def test_a_journal_is_sent_under_its_own_header(study: TeamStudy) -> None:
    part = study.part("machine-1", "P01")
    step = until(part, ReadyStep)
    taken = part.begin(step)
    part.pause(taken)
    asked = "SELECT writer, line FROM lines WHERE study = :study AND file LIKE '%/attempts' AND number = 1"
    (row,) = sql(study.server, asked, study=study.name)
    header = header_of(bytes(row.line))
    assert header is not None
    assert (header.attempt_id, header.participant, header.assignment) == (
        row.writer,
        "P01",
        step.assignment.id,
    )
    assert isinstance(part.next(), AttemptStep)
    taken.opened.close()


def test_a_small_crowd_while_the_server_is_killed(tmp_path: Path) -> None:
    """The short form of tests/studies/team_study.py."""
    with serving() as own:
        crowd = Crowd(tmp_path, own, 2, ("P1", "P2", "P3", "P4"), tasks=4)
        crowd.begin()
        with crowd.at_work(kills=1):
            pass
        found = crowd.end()
    assert found.faults == []
    assert (found.kills, found.attempts) == (1, 12)
    assert found.attempts_per_task == (3, 3)
    assert wrong(crowd.organiser.open(crowd.plain_copy(tmp_path / "plain"))) == []
