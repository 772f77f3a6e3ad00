from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
from builders import REPAIR, build_services, build_task
from fakes import FakeClock

from gistpoint.core.attempts.state import AttemptResult
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.services import Services


def shown(summary: AttemptSummary) -> tuple[object, ...]:
    state = summary.state
    return (
        (
            summary.attempt_id,
            summary.task_id,
            summary.mode,
            summary.role,
            summary.started_utc_ms,
            summary.problem,
        ),
        (summary.actor, summary.participant, summary.result, summary.open, state.header.model),
        (summary.calls, state.drivers, state.mixed),
        (state.budgets, state.remaining, state.clock, state.pause, state.ending, state.of_kind.unit),
        [(s.score, s.solved, s.counts, s.status, s.suspicious) for s in state.counted_submissions],
    )


def fresh(services: Services) -> AttemptStore:
    """Return the store as the program would create it at its next start."""
    store = services.attempts
    return AttemptStore(store.root, services.clock, "test", services.locations.reviews, index=index_of(store))


def index_of(store: AttemptStore) -> Path:
    return store.root.parent / "lists" / "attempts.sqlite"


def test_outlines_say_what_whole_journals_say_and_are_read_from_the_disk_the_next_time(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    task = build_task(services.locations.tasks)
    opened = services.start(task)
    opened.attempt.call("submit_attempt", {"func_code": REPAIR.replace("100", "99")})
    opened.attempt.call("submit_attempt", {"func_code": REPAIR})
    opened.close()
    clock.advance(1_000)
    services.start(task).close()
    clock.advance(1_000)
    held = services.start(build_task(services.locations.tasks, library="other"))
    store = fresh(services)
    first = list(store.outlines())
    assert list(map(shown, first)) == list(map(shown, store.summaries()))
    assert [s.open for s in first] == [True, False, False]
    assert all(a is b for a, b in zip(first, store.outlines(), strict=True))
    with closing(sqlite3.connect(index_of(store))) as index:
        keys = {key for (key,) in index.execute("SELECT key FROM rows")}
    assert first[0].attempt_id not in keys, "it was open"
    held.attempt.call("list_directory", {})
    held.close()
    assert [s.open for s in store.outlines_of([first[0].attempt_id, "gone"])] == [False]

    solved = first[-1].attempt_id
    with closing(sqlite3.connect(index_of(store))) as index:
        (outline,) = index.execute("SELECT value FROM cells WHERE key = ?", (solved,)).fetchone()
        changed = msgspec.msgpack.decode(outline)
        changed[0] = 7
        index.execute("UPDATE cells SET value = ? WHERE key = ?", (msgspec.msgpack.encode(changed), solved))
        index.commit()
    again = {s.attempt_id: s for s in fresh(services).outlines()}
    assert again[solved].started_utc_ms == 7, "the journal was read again"
    assert again[solved].result is AttemptResult.SOLVED

    journal = store.root / solved / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:-1], lines[0]]))
    assert {s.attempt_id: s.problem for s in fresh(services).outlines()}[solved]

    shutil.rmtree(store.root / solved)
    assert solved not in [s.attempt_id for s in fresh(services).outlines()]
    assert solved.encode() not in index_of(store).read_bytes(), "nothing stays of an attempt that was removed"
    index_of(store).write_bytes(index_of(store).read_bytes()[:40])
    assert len(list(fresh(services).outlines())) == 2
