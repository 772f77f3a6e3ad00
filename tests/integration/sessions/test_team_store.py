"""A team's store on a real server: findings of `check`, rights, a restored dump, TLS, hostile content."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from builders import REPAIR
from certificates import Authority
from postgres_server import PostgresServer, free_port, running_server
from team_machines import TeamMachine, as_role, ask, make_schema

from gistpoint.core.errors import CancelledError
from gistpoint.core.locations import Locations
from gistpoint.core.running import UNATTENDED, CancelToken, RunContext, RunProgress
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.reviews import RunVerdict
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.tasks import TaskStore
from gistpoint.sessions.team.address import TeamStoreError, UnreachableError, choose
from gistpoint.sessions.team.status import status
from gistpoint.sessions.team.syncing import StoreSync, sync
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def shared(one: TeamMachine) -> str:
    """The id of an attempt that the store has, with its task and a review."""
    opened = one.start(one.task())
    opened.attempt.call("submit_attempt", {"func_code": REPAIR})
    opened.close()
    reviewer = Reviewer(ReviewStore(one.locations.reviews, one.clock), "ada")
    reviewer.verdict(f"attempt:{opened.attempt.state.attempt_id}", RunVerdict.ACCEPT)
    one.sync()
    assert one.check() == []
    return opened.attempt.state.attempt_id


def kinds(machine: TeamMachine) -> list[str]:
    return sorted(found.kind for found in machine.check())


KINDS = ("attempts", "annotations", "studies")
"""The kinds of lines, each of which has a partition."""
CHANGES = (
    ("DELETE FROM lines_of_attempts WHERE number = 2", ["broken chain", "missing there"]),
    (
        "DELETE FROM lines_of_attempts WHERE number = (SELECT max(number) FROM lines_of_attempts)",
        ["missing there", "missing there"],
    ),
    (
        "UPDATE lines_of_attempts SET line = line || ' ' WHERE number = 1",
        ["broken chain", "line differs", "line differs"],
    ),
    ("UPDATE lines_of_attempts SET sha256 = '' WHERE number = 1", ["line differs"]),
    (
        "INSERT INTO lines (file, writer, number, line, sha256, machine) "
        "SELECT file, writer, 99, line, sha256, machine FROM lines_of_attempts WHERE number = 1",
        ["broken chain", "extra line", "extra line"],
    ),
    ("UPDATE blobs SET data = data || 'x' WHERE NOT secret", ["blob damaged"]),
    ("DELETE FROM blobs WHERE secret", ["blob damaged"]),
    ("UPDATE tasks SET public_sha256 = ''", ["task differs"]),
    ("UPDATE tasks SET answer_sha256 = 'x'", ["task differs"]),
    ("UPDATE baselines SET data = ''", ["task differs"]),
    ("DELETE FROM baselines", ["missing there"]),
    ("DELETE FROM tasks", ["missing there"]),
    ("DELETE FROM lines_of_annotations", ["missing there"]),
    (
        "UPDATE lines_of_annotations SET line = replace(encode(line, 'escape'), 'ada', 'eve')::bytea",
        ["operation differs"],
    ),
    ("UPDATE lines_of_annotations SET line = 'no JSON'", ["operation differs"]),
    ("DELETE FROM lines_of_attempts; DELETE FROM attempts", ["missing there"]),
    ("UPDATE attempts SET participant = 'eve'", ["line differs"]),
    ("INSERT INTO studies (id, files_sha256, archive_sha256) VALUES ('s', '', 'x')", ["blob damaged"]),
)
"""Statements that damage the store, with the resulting findings."""


def test_every_change_of_the_database_is_found(one: TeamMachine, server: PostgresServer, shared: str) -> None:
    for statement, expected in CHANGES:
        ask(server, statement)
        assert kinds(one) == expected, statement
        ask(server, "TRUNCATE attempts, tasks, blobs, lines, studies CASCADE")
        one.sync()
        assert one.check() == []


def test_lines_that_the_store_lost_are_told_and_sent_again_with_their_attempt(
    one: TeamMachine, server: PostgresServer, shared: str
) -> None:
    for lost in ("number = 1", "number = (SELECT max(number) FROM lines_of_attempts)", "true"):
        ask(server, f"DELETE FROM lines_of_attempts WHERE {lost}")
        assert [alarm.what for alarm in one.sync().alarms] == [f"attempt {shared}"], lost
        ask(server, "DELETE FROM attempts")
        assert one.sync().alarms == ()
        assert one.check() == []


def test_every_change_of_the_files_is_found(one: TeamMachine, two: TeamMachine, shared: str) -> None:
    two.sync()
    assert two.check() == []
    journal, (task,) = two.locations.attempts / shared / JOURNAL, two.locations.tasks.iterdir()
    (reviews,) = two.locations.reviews.iterdir()
    tree, answer = task / "workspace" / "tree.tar", task / "answer" / "answer.json"
    lines = journal.read_bytes().splitlines(keepends=True)
    header = reviews.read_bytes().splitlines(keepends=True)[0]
    changed = {
        journal: (b"".join(lines[:-1]), ["missing here"]),
        tree: (b"", ["task differs"]),
        answer: (answer.read_bytes() + b"\n", ["task differs"]),
        reviews: (header, ["missing here"]),
    }
    for path, (content, expected) in changed.items():
        whole = path.read_bytes()
        path.write_bytes(content)
        assert kinds(two) == expected, path.name
        path.write_bytes(whole)
    journal.write_bytes(b"".join([lines[0].replace(b'"seq":1', b'"seq":7'), *lines[1:]]))
    assert kinds(two) == ["broken chain"]
    shutil.rmtree(journal.parent)
    assert kinds(two) == ["missing here"]
    assert (two.sync().lines_fetched, two.check()) == (len(lines), [])


def test_a_task_that_was_deleted_here_comes_back_only_if_it_is_asked_for(
    one: TeamMachine, two: TeamMachine, shared: str
) -> None:
    two.sync()
    kept = TaskStore(two.locations.tasks)
    (task,) = (each for each in kept.tasks() if isinstance(each, Task))
    kept.remove(task)
    assert (two.sync().tasks_left, two.check()) == (1, [])
    with two.store() as store:
        assert status(store, two.locations, two.clock).to_fetch.tasks == 0
        assert sync(store, two.locations, two.clock, UNATTENDED, deleted=True).tasks_fetched == 1
    assert (two.sync().tasks_left, kept.deleted) == (0, set())


def test_another_operation_under_a_uuid_stays_on_both_sides(
    one: TeamMachine, two: TeamMachine, shared: str
) -> None:
    two.sync()
    (path,) = two.locations.reviews.iterdir()
    path.write_bytes(path.read_bytes().replace(b'"accept"', b'"reject"'))
    kept = path.read_bytes()
    (alarm,) = two.sync().alarms
    assert alarm.what.startswith("reviews: operation ")
    assert path.read_bytes() == kept
    assert one.sync() == StoreSync()


def test_a_reader_sees_no_answer(
    one: TeamMachine, two: TeamMachine, server: PostgresServer, shared: str
) -> None:
    choose(two.locations.config, as_role(server, "eve", "gistpoint_reader"))
    assert two.sync() == StoreSync(tasks_fetched=1)
    assert two.sync() == StoreSync()
    (task,) = two.locations.tasks.iterdir()
    assert sorted(path.name for path in task.rglob("*") if path.is_file()) == ["task.toml", "tree.tar"]
    assert not two.locations.attempts.exists()
    for table in ("blobs", "baselines", "events", "lines", *(f"lines_of_{kind}" for kind in KINDS)):
        for statement in (
            f"SELECT * FROM {table}",
            f"COPY {table} TO STDOUT",
            f"INSERT INTO {table} DEFAULT VALUES",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ask(server, statement, "eve")
    seen = str(
        [ask(server, f"SELECT * FROM {name}", "eve") for name in ("tasks", "attempts", "public_operations")]
    )
    assert shared in seen
    assert ask(server, "SELECT count(*) FROM public_blobs", "eve") == [(1,)]
    with two.store() as store:
        assert (store.rights, store.rights.works) == ("reader", False)
    choose(two.locations.config, server.url)  # a reader who becomes a worker gets the rest
    assert (two.sync().tasks_fetched, two.check()) == (1, [])


def test_a_worker_adds_and_changes_no_line(
    one: TeamMachine, two: TeamMachine, server: PostgresServer, shared: str
) -> None:
    choose(two.locations.config, as_role(server, "wim", "gistpoint_worker"))
    two.sync()
    two.start(one.task()).close()
    assert two.sync().lines_sent
    assert two.check() == []
    for statement in (
        "UPDATE lines SET line = ''",
        "UPDATE lines_of_attempts SET line = ''",
        "UPDATE lines_of_annotations SET line = ''",
        "DELETE FROM lines",
        "DELETE FROM lines_of_attempts",
        "DELETE FROM lines_of_annotations",
        "DELETE FROM public_operations",
        "DELETE FROM public_blobs",
        "UPDATE blobs SET data = ''",
        "DELETE FROM blobs",
        "DROP TABLE tasks",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask(server, statement, "wim")
    ask(server, "CREATE ROLE nobody_here LOGIN")
    choose(two.locations.config, server.url.replace("owner@", "nobody_here@"))
    with pytest.raises(TeamStoreError, match="has no right to read anything"):
        two.sync()


def test_a_baseline_of_one_machine_reaches_the_others(
    one: TeamMachine, two: TeamMachine, shared: str
) -> None:
    two.sync()
    (task,) = two.locations.tasks.iterdir()
    (baseline,) = (task / "answer" / "baselines").iterdir()
    other = baseline.with_name("other-none.json")
    shutil.copy(baseline, other)
    assert kinds(two) == ["missing there"]
    two.sync()
    one.sync()
    (there,) = one.locations.tasks.iterdir()
    assert (there / other.relative_to(task)).read_bytes() == other.read_bytes()
    assert [one.check(), two.check()] == [[], []]


def test_a_task_that_can_not_be_sent_does_not_keep_the_others_back(one: TeamMachine, shared: str) -> None:
    from builders import build_task

    task = build_task(one.locations.tasks, library="other")
    whole = (task.folder / "task.toml").read_bytes()
    (task.folder / "task.toml").write_bytes(whole.replace(b'name = "other"', b'name = "changed"'))
    found = one.sync()
    (alarm,) = found.alarms
    assert alarm.what == f"task {task.short_id}"
    (task.folder / "task.toml").write_bytes(whole)
    assert one.sync() == StoreSync(tasks_sent=1)
    assert one.check() == []


def test_a_task_that_is_never_sent_is_no_difference(one: TeamMachine, shared: str) -> None:
    from builders import build_task

    from gistpoint.core.kinds.folder import add_provenance

    task = build_task(one.locations.tasks, library="other")
    assert kinds(one) == ["missing there"]
    add_provenance(task, {"parts": [{"attempt": {"id": "01A", "submission": 1, "study": "shop-2026"}}]})
    assert one.sync() == StoreSync()
    assert one.check() == []


def test_a_synchronisation_that_is_stopped_is_finished_by_the_next(
    one: TeamMachine, two: TeamMachine, shared: str
) -> None:
    cancel = CancelToken()

    def stop(progress: RunProgress) -> None:
        if progress.step == "fetching attempts":
            cancel.cancel()

    with two.store() as store, pytest.raises(CancelledError):
        sync(store, two.locations, two.clock, RunContext(cancel, stop))
    assert kinds(two) == ["missing here"]  # the review; what was fetched earlier remains
    two.sync()
    assert two.check() == []


def test_a_dump_is_restored_into_another_server(
    one: TeamMachine, server: PostgresServer, shared: str
) -> None:
    (server.root / "dumps").mkdir()
    (server.root / "dumps").chmod(0o777)
    dump = server.root / "dumps" / "team.dump"
    socket = ("-h", str(server.root / "socket"), "-U", "owner")
    server.run("pg_dump", *socket, "-Fc", "-f", str(dump), "team")
    make_schema(server)
    with one.store():
        assert "missing there" in kinds(one)
    server.run("pg_restore", *socket, "--clean", "--if-exists", "-d", "team", str(dump))
    assert one.check() == []
    assert one.sync() == StoreSync()


def test_an_attempt_under_another_name_is_told_and_not_fetched(
    one: TeamMachine, two: TeamMachine, server: PostgresServer, shared: str
) -> None:
    other = shared[:-1] + ("0" if shared[-1] != "0" else "1")
    ask(server, f"INSERT INTO attempts SELECT '{other}', NULL, task, actor, participant, started_utc_ms, ended, seq, "
        "head, holder, lease_until, fence FROM attempts")  # fmt: skip
    ask(
        server,
        f"INSERT INTO lines (file, writer, number, line, sha256, machine) SELECT file, '{other}', number, line, "
        "sha256, machine FROM lines_of_attempts",
    )
    assert sorted(kinds(one)) == ["line differs", "missing here"]
    assert ["does not begin this attempt" in str(alarm) for alarm in two.sync().alarms] == [True]
    assert not (two.locations.attempts / other / "journal.jsonl").exists()


def test_a_hostile_task_is_not_fetched(
    one: TeamMachine, two: TeamMachine, server: PostgresServer, shared: str
) -> None:
    import hashlib
    import io
    import tarfile

    import zstandard

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:") as tar:
        info = tarfile.TarInfo("../../evil")
        tar.addfile(info, io.BytesIO(b""))
    data = zstandard.ZstdCompressor().compress(buffer.getvalue())
    sha256 = hashlib.sha256(data).hexdigest()
    ask(server, f"INSERT INTO blobs VALUES ('{sha256}', 0, false, decode('{data.hex()}', 'hex'))")
    ask(server, f"UPDATE tasks SET public_blob = '{sha256}'")
    ask(server, "INSERT INTO attempts SELECT '../../evil', NULL, task, actor, participant, started_utc_ms, ended, seq, "
        "head, holder, lease_until, fence FROM attempts")  # fmt: skip
    found = two.sync()
    assert ["which is not a file of a task" in str(alarm) for alarm in found.alarms] == [True, False]
    assert "is not a valid name of an attempt" in str(found.alarms[1])
    assert list(two.root.rglob("*evil*")) == []
    assert [*two.locations.tasks.glob("*")] == []


def test_what_travels_to_another_machine_is_encrypted_and_the_server_proven(tmp_path: Path) -> None:
    host = "127.0.0.2"  # not one of the addresses that count as this machine
    authority = Authority(tmp_path / "keys")
    authority.sign("server", f"IP:{host}")
    keys = authority.folder
    with running_server() as server:
        make_schema(server)
        server.stop()
        data = server.root / "data"
        for name in ("server.key", "server.crt"):
            shutil.copy(keys / name, data / name)
            shutil.chown(data / name, data.owner(), data.group())
            (data / name).chmod(0o600)
        with (data / "pg_hba.conf").open("a") as file:
            file.write(f"hostssl all all {host}/8 trust\n")
        server.port = free_port(host)
        server.settings = ("ssl=on", f"listen_addresses={host}")
        server.start()
        url = f"postgresql://owner@{host}:{server.port}/team"
        machine = TeamMachine(tmp_path / "home", f"{url}?sslrootcert={keys / 'ca.crt'}")
        with machine.store() as store, store.engine.connect() as connection:
            asked = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
            assert connection.exec_driver_sql(asked).scalar() is True
        for other in (f"{url}?sslrootcert={keys / 'server.crt'}", url):
            choose(machine.locations.config, other)
            with pytest.raises(UnreachableError, match=r"certificate"):
                machine.sync()
        server.port = 5432


def test_the_commands_of_a_store(
    one: TeamMachine,
    server: PostgresServer,
    tmp_path: Path,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    ask(server, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO public")

    def run(*words: str) -> tuple[int, str]:
        code = cli.main(["store", *words])
        told = capsys.readouterr()
        return code, told.out + told.err

    assert run("status") == (0, run("status")[1])
    assert "Only files are used." in run("status")[1]
    assert run("sync")[0] == 2
    code, told = run("use", "postgresql://owner:hidden@/team")
    assert (code, "hidden" in told) == (2, False)
    for url in (server.url.replace("/team", "/tame"), server.url.replace("socket", "pocket")):
        code, told = run("use", url)
        assert (code, "The choice is kept" in told) == (1, True)
    code, told = run("use", server.url)
    assert (code, "has no tables of gistpoint yet" in told) == (0, True)
    assert run("init")[0] == 0
    assert run("init")[0] == 0
    task = replace(one, root=tmp_path / "home").task()
    replace(one, root=tmp_path / "home").start(task).close()
    told = run("status")[1]
    assert "database team, user owner" in told
    assert (
        "to send\t1 tasks, 3 lines of journals" in told or "to send\t1 tasks, 2 lines of journals" in told
    ), told
    code, told = run("sync")
    assert (code, "tasks\t1\t0" in told) == (0, True)
    code, told = run("status", "--json")
    found = json.loads(told)
    assert (found["to_send"]["lines"], found["rights"], found["leases"]) == (0, "owner", {})
    code, told = run("check")
    assert (code, "agree" in told) == (0, True)
    ask(server, "UPDATE alembic_version SET version_num = '9999'")
    for word in ("init", "status", "sync"):
        code, told = run(word)
        assert (code, "Install the newer version of gistpoint" in told) == (2, True), word
    ask(server, "UPDATE alembic_version SET version_num = '0002'")
    ask(server, "UPDATE lines_of_attempts SET line = line || ' ' WHERE number = 1")
    code, told = run("check", "--json")
    assert (code, {row["kind"] for row in json.loads(told)["differences"]}) == (
        1,
        {"line differs", "broken chain"},
    )
    assert run("use", "files")[0] == 0
    assert not (Locations.of_user().config / "store.toml").exists()


def test_an_owner_who_may_make_no_roles_is_told_what_to_run(
    server: PostgresServer, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    ask(server, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO public")
    for role in ("gistpoint_worker", "gistpoint_reader"):
        ask(server, f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")
    ask(server, "CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain")
    choose(Locations.of_user().config, server.url.replace("owner@", "plain@"))
    assert cli.main(["store", "init"]) == 1
    assert "CREATE ROLE gistpoint_reader NOLOGIN;" in capsys.readouterr().out
    ask(server, "CREATE ROLE gistpoint_worker NOLOGIN; CREATE ROLE gistpoint_reader NOLOGIN")
    assert cli.main(["store", "init"]) == 0
    ask(server, "CREATE ROLE rea LOGIN IN ROLE gistpoint_reader")
    assert ask(server, "SELECT count(*) FROM attempts", "rea") == [(0,)]
    ask(server, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; DROP OWNED BY plain; DROP ROLE plain")
