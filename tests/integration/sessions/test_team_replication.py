"""Lines copied to a real server: round trips per line, kills within a batch, stores of an older revision."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from builders import build_task
from postgres_server import PostgresServer
from sqlalchemy import Engine, event
from study_folders import Machine
from team_machines import TeamMachine, as_role, ask
from team_studies import contents, copy_at, new_study, wrong

from gistpoint.core.machine_time import SystemTime
from gistpoint.core.study.operations import STUDY, StudyOperationKind
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.reviews import RunVerdict
from gistpoint.sessions.studies.syncing import synchronise
from gistpoint.sessions.team import attempts, connecting, replication
from gistpoint.sessions.team.address import TeamStoreError, UnreachableError, choose
from gistpoint.sessions.team.connecting import engine_of, upgrade
from gistpoint.sessions.team.rights import grant
from gistpoint.sessions.team.study_sharing import fetch
from gistpoint.sessions.team.syncing import StoreSync

FEW, MANY = 3, 40
NUMBERS = itertools.count()
BEFORE = Path(__file__).parents[2] / "data" / "team" / "store-0001.sql"
"""A store filled by a program of revision 0001: three attempts, one a branch, reviews, and a study."""


@contextmanager
def statements(at: Callable[[str], None] = lambda statement: None) -> Iterator[list[str]]:
    """Yield a list of the statements sent to any server, including commits; each first calls `at`."""
    found: list[str] = []

    def about_to(connection: Any, cursor: Any, statement: str, *more: Any) -> None:
        found.append(statement)
        at(statement)

    def committing(connection: Any) -> None:
        found.append("COMMIT")
        at("COMMIT")

    event.listen(Engine, "before_cursor_execute", about_to)
    event.listen(Engine, "commit", committing)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", about_to)
        event.remove(Engine, "commit", committing)


Ends = tuple[Callable[[int], object], Callable[[], object], Callable[[], object]]
"""Functions that write a number of items on one machine, send them, and fetch them on another."""


def of_tasks(one: TeamMachine, two: TeamMachine, server: PostgresServer) -> Ends:
    def write(count: int) -> None:
        for number in range(count):
            build_task(one.locations.tasks, library=f"shop-{count}-{number}-{next(NUMBERS)}")

    return write, one.sync, two.sync


def of_attempts(one: TeamMachine, two: TeamMachine, server: PostgresServer) -> Ends:
    task = one.task()
    return lambda count: [one.start(task).close() for _ in range(count)], one.sync, two.sync


def of_annotations(one: TeamMachine, two: TeamMachine, server: PostgresServer) -> Ends:
    def write(count: int) -> None:
        for number in range(count):
            store = ReviewStore(one.locations.reviews, one.clock)
            Reviewer(store, f"reviewer {number} of {count}").verdict("run", RunVerdict.ACCEPT)

    return write, one.sync, two.sync


def of_study_logs(one: TeamMachine, two: TeamMachine, server: PostgresServer) -> Ends:
    name = new_study(server.address)
    here, there = (copy_at(machine.root, machine.name, name, server.address) for machine in (one, two))

    def write(count: int) -> None:
        for number in range(count):
            here.files.record(f"C{count}-{number}", STUDY, StudyOperationKind.DECLINED)

    return write, here.send, there.reload


def of_study_journals(one: TeamMachine, two: TeamMachine, server: PostgresServer) -> Ends:
    name = new_study(server.address)
    here, there = (copy_at(machine.root, machine.name, name, server.address) for machine in (one, two))
    task, solvers = one.task(), Machine.at(one.root / "solvers")

    def write(count: int) -> None:
        for number in range(count):
            here.files.publish(solvers.attempt(task, f"C{count}-{number}", name))

    return write, here.send, there.send


@pytest.mark.parametrize("kind", [of_tasks, of_attempts, of_annotations, of_study_logs, of_study_journals])
def test_round_trips_follow_the_lines_and_not_the_things(
    one: TeamMachine, two: TeamMachine, server: PostgresServer, kind: Callable[..., Ends]
) -> None:
    write, send, fetch_there = kind(one, two, server)
    spent: dict[int, tuple[int, int]] = {}
    for count in (FEW, FEW, MANY):  # the first time also finds an empty store
        write(count)
        with statements() as sent:
            send()
        with statements() as fetched:
            fetch_there()
        spent[count] = (len(sent), len(fetched))
    assert spent[MANY] == spent[FEW]
    one.sync()
    assert one.check() == []


def test_lines_beyond_a_batch_cost_a_statement_each(
    one: TeamMachine, two: TeamMachine, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, send, _ = of_attempts(one, two, server)
    write(MANY)
    monkeypatch.setattr(replication, "LINES", 7)
    with statements() as sent:
        send()
    lines = ask(server, "SELECT count(*) FROM lines")[0][0]
    assert sum(statement.startswith("INSERT INTO lines") for statement in sent) == -(-lines // 7)
    assert one.check() == []


def test_a_server_that_is_killed_within_a_batch_leaves_whole_attempts(
    one: TeamMachine, two: TeamMachine, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is killed before every fourth of the sending statements."""
    monkeypatch.setattr(replication, "LINES", 7)
    monkeypatch.setattr(attempts, "_AT_ONCE", 3)
    write, send, _ = of_attempts(one, two, server)
    write(12)
    with one.store():
        pass
    kills = 0
    for at in range(1, 40, 4):
        left = [at]

        def kill(statement: str, left: list[int] = left) -> None:
            if statement.startswith(
                ("COMMIT", "INSERT INTO attempts", "INSERT INTO lines", "UPDATE attempts")
            ):
                left[0] -= 1
                if not left[0]:
                    server.kill()

        with statements(kill), suppress(UnreachableError):
            send()
        if left[0] > 0:
            break
        kills += 1
        server.start()
        halves = (
            "SELECT count(*) FROM attempts a WHERE seq <> (SELECT count(*) FROM lines WHERE writer = a.id)"
        )
        assert ask(server, halves) == [(0,)]
    assert kills > 2
    assert one.sync().alarms == ()
    two.sync()
    names = sorted(path.parent.name for path in one.locations.attempts.glob("*/journal.jsonl"))
    assert len(names) == 12
    assert [two.journal(name) for name in names] == [one.journal(name) for name in names]
    assert [one.check(), two.check(), one.sync()] == [[], [], StoreSync()]


def test_two_machines_that_send_the_same_attempts_at_once_agree(
    one: TeamMachine, two: TeamMachine, server: PostgresServer
) -> None:
    write, _, _ = of_attempts(one, two, server)
    write(MANY)
    shutil.copytree(one.locations.attempts, two.locations.attempts)
    shutil.copytree(one.locations.tasks, two.locations.tasks)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda machine: machine.sync(), (one, two)))
    assert [found.alarms for found in done] == [(), ()]
    assert ask(server, "SELECT count(*) FROM attempts") == [(MANY,)]
    assert [one.check(), two.check()] == [[], []]


@pytest.fixture
def earlier(server: PostgresServer) -> dict[str, dict[tuple[str, ...], bytes]]:
    """The rows of a store of revision 0001, which replaces the empty store."""
    ask(server, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO public")
    ask(server, BEFORE.read_text(encoding="utf-8"))
    asked = {
        "events": "SELECT attempt, seq, line FROM events",
        "operations": "SELECT folder, op, line FROM operations",
        "log": "SELECT study || '/log', writer, number, line FROM study_op WHERE folder = 'log'",
        "reviews": "SELECT study || '/reviews', op, line FROM study_op WHERE folder = 'reviews'",
        "journals": "SELECT study, place, journal FROM study_attempt",
    }
    rows = {name: ask(server, statement) for name, statement in asked.items()}
    return {
        name: {tuple(map(str, row[:-1])): bytes(row[-1]) for row in found} for name, found in rows.items()
    }


def bring_up(server: PostgresServer) -> None:
    engine = engine_of(server.address)
    with engine.begin() as connection:
        assert upgrade(connection) == "0001"
        grant(connection)
    engine.dispose()


def test_a_store_of_revision_1_is_brought_up_with_every_line(
    one: TeamMachine,
    two: TeamMachine,
    server: PostgresServer,
    earlier: dict[str, dict[tuple[str, ...], bytes]],
) -> None:
    assert {name: len(rows) for name, rows in earlier.items()} == {
        "events": 22, "operations": 3, "log": 20, "reviews": 1, "journals": 2,
    }  # fmt: skip
    bring_up(server)
    events = "SELECT writer, number, line FROM lines_of_attempts"
    annotated = "SELECT file, op, line FROM lines_of_annotations"
    said = "SELECT study || '/reviews', op, line FROM lines WHERE file = 'studies/' || study || '/reviews'"
    log = "SELECT study || '/log', writer, number, line FROM lines WHERE file = 'studies/' || study || '/log'"
    journals = (
        "SELECT study, writer, string_agg(line || '\\x0a'::bytea, ''::bytea ORDER BY number) FROM lines "
        "WHERE file = 'studies/' || study || '/attempts' GROUP BY study, writer"
    )
    moved = {"events": events, "operations": annotated, "log": log, "reviews": said, "journals": journals}
    for name, statement in moved.items():
        rows = {tuple(map(str, row[:-1])): bytes(row[-1]) for row in ask(server, statement)}
        assert rows == earlier[name], name
    assert ask(server, "SELECT count(*) FROM lines WHERE sha256 <> encode(sha256(line), 'hex')") == [(0,)]
    seen = ask(server, "SELECT reviewer, count(*) FROM public_operations GROUP BY reviewer ORDER BY reviewer")
    assert seen == [("ada", 2), ("eve@home", 1)]
    for machine in (one, two, one):
        assert machine.sync().alarms == ()
    assert [one.check(), two.check()] == [[], []]
    names = {attempt for attempt, _ in earlier["events"]}
    for name in names:
        lines = sorted(
            (int(seq), line) for (attempt, seq), line in earlier["events"].items() if attempt == name
        )
        assert one.journal(name) == b"".join(line + b"\n" for _, line in lines)
    assert len(names) == 3


def test_a_study_of_revision_1_goes_on(
    tmp_path: Path, server: PostgresServer, earlier: dict[str, dict[tuple[str, ...], bytes]]
) -> None:
    bring_up(server)
    machine = Machine.at(tmp_path / "home", SystemTime())
    root = fetch("study-1", server.address, machine.locations)
    study = machine.open(root)
    synchronise(study)
    assert wrong(study) == []
    found = contents(root)
    for (_, writer, number), line in earlier["log"].items():
        assert found[f"log/{writer}.jsonl"].split(b"\n")[int(number) - 1] == line
    for (_, place), journal in earlier["journals"].items():
        assert found[f"attempts/{place}/journal.jsonl"] == journal
    assert len(ReviewStore(root / "reviews", SystemTime()).book.operations) == 1
    assert "P02" not in study.ledger.people
    study.record("P01", STUDY, StudyOperationKind.DECLINED)
    synchronise(study)
    assert wrong(study) == []
    assert ask(server, f"SELECT count(*) FROM lines WHERE writer = 'P01@{study.machine}'") == [(2,)]


def test_programs_and_stores_of_different_revisions_refuse_each_other(
    one: TeamMachine,
    server: PostgresServer,
    earlier: dict[str, dict[tuple[str, ...], bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = next(iter(earlier["journals"]))[0]
    copy = copy_at(one.root / "study", one.name, name, server.address)
    for use in (one.sync, copy.send):
        with pytest.raises(
            TeamStoreError, match="has the revision 0001, but this version of gistpoint uses 0002"
        ) as refused:
            use()
        assert "`gistpoint store init`" in (refused.value.hint or "")
    assert "has the revision 0001" in copy.away
    bring_up(server)
    worker = as_role(server, "old", "gistpoint_worker")
    before = (
        "SELECT pg_has_role(c.relowner, 'MEMBER'), has_table_privilege(c.oid, 'SELECT') FROM pg_class c "
        "WHERE c.oid = to_regclass('public.events')"
    )  # programs of revision 0001 check their rights this way, before they compare revisions
    assert ask(server, before, "old") == [(False, True)]
    choose(one.locations.config, worker)
    monkeypatch.setattr(connecting, "REVISION", "0001")
    with pytest.raises(
        TeamStoreError, match="has the revision 0002, but this version of gistpoint uses 0001"
    ) as refused:
        one.sync()
    assert refused.value.hint == "Install the newer version of gistpoint that made it."
