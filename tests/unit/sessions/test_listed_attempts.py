"""Lists that are read from the index immediately show the changes of any writer."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import REPAIR, build_services, build_task
from confirmers import CONTRADICTED, ScriptedConfirmer, controlled
from fakes import FakeClock

from gistpoint.core.attempts.events import GiveUpCode
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.attempts.results import AttemptResult
from gistpoint.core.running import RunContext
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.attempt_outcomes import AcceptPass, RejectPass, accept_pass, reject_pass
from gistpoint.sessions.attempt_summary import ListedAttempt, listed_attempt
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.confirming import confirm_after_end
from gistpoint.sessions.heads import head_path
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.row_index import RowIndex
from gistpoint.sessions.services import Services


def fresh(services: Services, *, index: bool) -> AttemptStore:
    """Return the store as a new process would create it."""
    places = services.locations
    file = places.lists / "attempts.sqlite" if index else None
    return AttemptStore(places.attempts, services.clock, "test", places.reviews, index=file)


def compared_rows(services: Services) -> list[ListedAttempt]:
    """Return the rows from the index, after comparing them with those from the journals."""
    rows = list(fresh(services, index=True).listed())
    assert rows == list(fresh(services, index=False).listed())
    assert rows == [listed_attempt(summary) for summary in fresh(services, index=False).summaries()]
    assert rows == [listed_attempt(summary) for summary in fresh(services, index=True).outlines()]
    return rows


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return build_services(tmp_path, clock=FakeClock())


def test_every_writers_change_shows_at_once(services: Services, tmp_path: Path) -> None:
    task = build_task(services.locations.tasks)
    clock = services.clock
    assert isinstance(clock, FakeClock)
    reviews = ReviewStore(services.locations.reviews, clock)
    opened = services.start(task)
    seen = [compared_rows(services)]

    def then(act: Callable[[], object]) -> None:
        clock.advance(1_000)
        act()
        rows = compared_rows(services)
        assert rows != seen[-1], act
        seen.append(rows)

    then(lambda: opened.attempt.call("list_directory", {}))
    then(lambda: opened.attempt.call("submit_attempt", {"func_code": REPAIR}))
    opened.close()
    (row,) = compared_rows(services)
    assert (row.outcome, row.calls) == ("solved", "2")
    then(lambda: reject_pass(services.attempts, reviews, RejectPass(attempt=row.attempt_id, why="x")))
    assert seen[-1][0].outcome == "solved, rejected"
    then(lambda: accept_pass(services.attempts, reviews, AcceptPass(attempt=row.attempt_id, why="x")))
    assert seen[-1][0].outcome == "solved"
    controlled(task.folder)
    asking = replace(services, confirmer_for=lambda task: ScriptedConfirmer(CONTRADICTED))
    then(lambda: confirm_after_end(asking, row.attempt_id, task=task, run=RunContext()))
    assert "contradicted" in seen[-1][0].confirmation

    # another attempt: paused, resumed, given up
    clock.advance(1_000)
    second = services.start(task)
    then(lambda: second.attempt.call("list_directory", {}))
    then(second.close)
    assert seen[-1][0].outcome == "unfinished"
    again = services.resume(seen[-1][0].attempt_id)
    assert compared_rows(services)[0].outcome == "open in another window or process"
    then(lambda: again.attempt.give_up(GiveUpCode.TOO_HARD, ""))
    again.close()
    compared_rows(services)

    # changes by synchronising: an attempt from another machine, its continuation, and a renamed branch
    other = build_services(tmp_path / "other", clock=clock)
    away = other.start(build_task(other.locations.tasks), enrolment=Enrolment(participant="p07"))
    journal = away.journal.path

    def adopt() -> None:
        services.attempts.adopt(journal.parent.name, journal.read_bytes())

    away.attempt.call("list_directory", {})
    then(adopt)
    away.attempt.call("list_directory", {})
    then(adopt)
    away.close()
    name = journal.parent.name
    then(lambda: (services.locations.attempts / name).rename(services.locations.attempts / f"{name}~there"))
    assert any("branch of there" in found.outcome for found in seen[-1])

    # damage, by the journal and by its head
    place = services.locations.attempts / row.attempt_id
    whole = (place / JOURNAL).read_bytes()
    then(lambda: (place / JOURNAL).write_bytes(whole[:-20]))
    then(lambda: (place / JOURNAL).write_bytes(whole))
    head = head_path(place)
    then(lambda: head.write_bytes(head.read_bytes().replace(b'"seq": ', b'"seq":9')))

    # erasure
    then(lambda: shutil.rmtree(place))
    index = services.locations.lists / "attempts.sqlite"
    assert row.attempt_id.encode() not in index.read_bytes()


def test_a_journal_of_the_same_size_and_second_shows_at_once(services: Services) -> None:
    opened = services.start(build_task(services.locations.tasks))
    opened.close()
    path = opened.journal.path
    before, times = compared_rows(services), path.stat()
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"role":"', b'"role":!', 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (times.st_size, times.st_mtime_ns)
    (row,) = compared_rows(services)
    assert [row] != before
    assert row.result is AttemptResult.NOT_SOLVED


def test_rows_come_from_the_index_unless_another_file_changes_them(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, clock = build_task(services.locations.tasks), services.clock
    assert isinstance(clock, FakeClock)
    reviews = ReviewStore(services.locations.reviews, clock)
    names = []
    for _ in range(3):
        clock.advance(1_000)
        opened = services.start(task)
        if len(names) < 2:
            opened.attempt.call("submit_attempt", {"func_code": REPAIR})
        opened.close()
        names.append(opened.journal.path.parent.name)
    reject_pass(services.attempts, reviews, RejectPass(attempt=names[0], why="x"))
    rows = compared_rows(services)
    asked: list[str] = []
    whole = AttemptStore._outlined

    def outlined(store: AttemptStore, name: str, *others: Any, **more: Any) -> Any:
        asked.append(name)
        return whole(store, name, *others, **more)

    monkeypatch.setattr(AttemptStore, "_outlined", outlined)
    assert list(fresh(services, index=True).listed()) == rows
    assert asked == names[:1], "that one was ruled on; the others passed or are unfinished"
    opened = services.resume(names[2])
    asked.clear()
    assert next(fresh(services, index=True).listed()).outcome.startswith("open in")
    assert asked == names[2:]
    opened.close()


def test_the_newest_rows_need_no_older_journals(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    task, clock = build_task(services.locations.tasks), services.clock
    assert isinstance(clock, FakeClock)
    for _ in range(4):
        clock.advance(1_000)
        services.start(task).close()
    read: list[str] = []
    from gistpoint.sessions import attempts

    whole = attempts._summary
    monkeypatch.setattr(attempts, "_summary", lambda folder: (read.append(folder.name), whole(folder))[1])
    rows = fresh(services, index=True).listed()
    newest = next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert read == [newest.attempt_id]
    assert len(list(fresh(services, index=True).listed())) == 4
    assert len(read) == 4, "what was read for the newest row is kept"
    list(fresh(services, index=True).listed())
    assert len(read) == 4


def test_a_copied_journal_is_the_same_attempt(services: Services) -> None:
    task, clock = build_task(services.locations.tasks), services.clock
    assert isinstance(clock, FakeClock)
    names = []
    for _ in range(2):
        clock.advance(1_000)
        opened = services.start(task)
        opened.attempt.call("list_directory", {})
        opened.close()
        names.append(opened.journal.path.parent.name)
    root = services.locations.attempts
    shutil.copytree(root / names[0], root / f"{names[0]}-copy")
    shutil.copytree(root / names[0], root / "an earlier part")
    earlier = root / "an earlier part" / JOURNAL
    earlier.write_bytes(b"".join(earlier.read_bytes().splitlines(keepends=True)[:-1]))
    for _ in range(2):
        store = fresh(services, index=True)
        assert [row.attempt_id for row in compared_rows(services)] == names[::-1]
        for listed in (store.listed, store.outlines, store.summaries):
            assert len(list(listed())) == 2  # type: ignore[operator]
            assert store.copies == {f"{names[0]}-copy": names[0], "an earlier part": names[0]}

    # The copy was continued: two journals that differ are two attempts.
    services.resume(f"{names[0]}-copy").close()
    shutil.rmtree(root / "an earlier part")
    assert {row.attempt_id for row in compared_rows(services)} == {*names, f"{names[0]}-copy"}

    # Of copies without the original, one counts.
    shutil.rmtree(root / names[0])
    shutil.copytree(root / f"{names[0]}-copy", root / "another copy")
    assert sorted(row.own_id for row in compared_rows(services)) == names


def test_rows_of_erased_attempts_go_without_reading_all_keys(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, clock = build_task(services.locations.tasks), services.clock
    assert isinstance(clock, FakeClock)
    names = []
    for _ in range(5):
        clock.advance(1_000)
        opened = services.start(task)
        opened.close()
        names.append(opened.journal.path.parent.name)
    assert len(list(fresh(services, index=True).listed())) == 5
    index = RowIndex(services.locations.lists / "attempts.sqlite")
    with monkeypatch.context() as patched:
        patched.setattr(RowIndex, "all_keys", lambda _: pytest.fail("all keys were read"))
        assert len(list(fresh(services, index=True).listed())) == 5
        shutil.rmtree(services.locations.attempts / names[2])
        assert len(list(fresh(services, index=True).listed())) == 4
        (services.locations.attempts / names[1] / JOURNAL).unlink()  # the folder stays
        assert len(list(fresh(services, index=True).listed())) == 3
    assert index.all_keys() == {names[0], *names[3:]}
    for name in (names[0], names[4]):  # these rows are outside of the range that is read
        shutil.rmtree(services.locations.attempts / name)
    assert len(list(fresh(services, index=True).listed())) == 1
    assert index.all_keys() == {names[3]}
