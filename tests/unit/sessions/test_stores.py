"""The stores of attempts and tasks find items by id and report damaged ones without raising."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest
from builders import CHECKS, REPAIR, build_task
from fakes import FakeClock, FakeRunner

from gistpoint.core.attempts.events import JournalEvent, OtherEvent
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.errors import AttemptError, TaskError
from gistpoint.core.kinds.archive import pack_task
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.heads import head_path
from gistpoint.sessions.journal import JOURNAL, encode, read_journal
from gistpoint.sessions.tasks import BrokenTask, TaskStore, read_set


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return build_task(tmp_path / "tasks")


@pytest.fixture
def store(tmp_path: Path) -> AttemptStore:
    return AttemptStore(tmp_path / "attempts", FakeClock(), "test")


def judge_of(task: Task) -> RepairJudge:
    return RepairJudge(task, read_answer(task), FakeRunner(CHECKS))


def test_attempt_is_begun_gone_on_with_and_found(store: AttemptStore, task: Task) -> None:
    opened = store.start(task, judge_of(task), Enrolment())
    identity = opened.attempt.state.attempt_id
    opened.attempt.call("read_file", {"file_path": "README.md"})
    with pytest.raises(AttemptError, match="open in another window or process"):
        store.resume(identity, task, judge_of(task))
    opened.close()
    assert [s.attempt_id for s in store.unfinished(task.id, Enrolment())] == [identity]
    again = store.resume(identity[:12], task, judge_of(task))
    assert again.attempt.state.remaining.tool_uses == 15
    again.attempt.call("submit_attempt", {"func_code": REPAIR})
    again.close()
    assert store.unfinished(task.id, Enrolment()) == []
    summary = store.summary(identity)
    assert (summary.problem, summary.task_id, summary.state.solved, summary.state.processes) == (
        "",
        task.id,
        True,
        2,
    )


def test_one_person_has_one_attempt_of_a_task_open_at_a_time(store: AttemptStore, task: Task) -> None:
    first = store.start(task, judge_of(task), Enrolment(participant="p1"))
    assert store.summary(first.attempt.state.attempt_id).open
    with pytest.raises(AttemptError, match="is open in another window"):
        store.start(task, judge_of(task), Enrolment(participant="p1"))
    others = [
        store.start(task, judge_of(task), enrolment)
        for enrolment in (
            Enrolment(participant="p2"),
            Enrolment(actor="replay", participant="p1"),
            Enrolment(),
        )
    ]
    assert len(list(store.summaries())) == 4
    for enrolment, unfinished in ((Enrolment(participant="p1"), first), (Enrolment(), others[2])):
        found = [summary.attempt_id for summary in store.unfinished(task.id, enrolment)]
        assert found == [unfinished.attempt.state.attempt_id]
    for opened in (first, *others):
        opened.close()
    assert not store.summary(first.attempt.state.attempt_id).open
    store.start(task, judge_of(task), Enrolment(participant="p1")).close()


def test_an_older_attempt_is_not_gone_on_with_beside_one_that_is_open(
    store: AttemptStore, task: Task
) -> None:
    older = [store.start(task, judge_of(task), Enrolment(participant=name)) for name in ("", "p2")]
    for opened in older:
        opened.close()
    mine, others = (opened.attempt.state.attempt_id for opened in older)
    newer = store.start(task, judge_of(task), Enrolment())
    before = (store.root / mine / JOURNAL).read_bytes()
    with pytest.raises(
        AttemptError, match=f"attempt {newer.attempt.state.attempt_id} is open in another window"
    ):
        store.resume(mine, task, judge_of(task))
    assert (store.root / mine / JOURNAL).read_bytes() == before
    store.resume(others, task, judge_of(task)).close()
    newer.close()
    store.resume(mine, task, judge_of(task)).close()


def test_of_many_that_start_at_one_moment_one_begins(store: AttemptStore, task: Task) -> None:
    ready, begun, refused = threading.Barrier(8), [], []

    def start() -> None:
        judge = judge_of(task)
        ready.wait()
        try:
            begun.append(store.start(task, judge, Enrolment()))
        except AttemptError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(begun), len(refused)) == (1, 7)
    assert len(list(store.summaries())) == 1
    begun[0].close()


def test_who_only_looks_does_not_keep_anybody_from_going_on(store: AttemptStore, task: Task) -> None:
    opened = store.start(task, judge_of(task), Enrolment())
    opened.close()
    identity, stop = opened.attempt.state.attempt_id, threading.Event()

    def look() -> None:
        while not stop.is_set():
            list(store.summaries())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(50):
            store.resume(identity, task, judge_of(task)).close()
    finally:
        stop.set()
        thread.join()


def test_unknown_and_ambiguous_ids_are_told(store: AttemptStore, task: Task) -> None:
    for _ in range(2):
        store.start(task, judge_of(task), Enrolment()).close()
    with pytest.raises(AttemptError, match="2 attempts have ids that begin with"):
        store.folder("0")
    for name in ("zzz", "", "../attempts", "/"):
        with pytest.raises(AttemptError, match="There is no attempt"):
            store.folder(name)


def test_damaged_journals_are_listed_with_their_problem(store: AttemptStore, task: Task) -> None:
    names = []
    for _ in range(5):
        opened = store.start(task, judge_of(task), Enrolment())
        opened.attempt.note("something")
        opened.close()
        names.append(opened.attempt.state.attempt_id)
    paths = [store.root / name / JOURNAL for name in names]
    paths[0].write_bytes(b"noise\n")
    paths[1].write_text(paths[1].read_text().replace("something", "nothing!!"))
    paths[1].write_bytes(paths[1].read_bytes() + paths[1].read_bytes().splitlines(keepends=True)[-1])
    paths[2].write_bytes(b"")
    event = {"seq": 1, "type": "tool_call", "utc_ms": 1, "mono_ms": 1, "prev": "", "data": {"nothing": 1}}
    paths[3].write_text(json.dumps(event) + "\n")
    problems = {summary.attempt_id: summary.problem for summary in store.summaries()}
    assert "Line 1 is not an event" in problems[names[0]]
    assert "breaks at line 4" in problems[names[1]]
    assert "It was cut off: it ends with event 0, but event 3 was stored." in problems[names[2]]
    assert "It was cut off" in problems[names[3]]
    assert problems[names[4]] == ""
    unfinished = store.unfinished(task.id, Enrolment())
    assert {s.attempt_id: bool(s.problem) for s in unfinished} == {names[4]: False, names[1]: True}


def test_a_journal_is_read_again_only_if_it_or_its_head_changed(store: AttemptStore, task: Task) -> None:
    opened = store.start(task, judge_of(task), Enrolment())
    opened.close()
    identity = opened.attempt.state.attempt_id
    first = store.summary(identity)
    assert first.state is store.summary(identity).state
    store.resume(identity, task, judge_of(task)).close()
    again = store.summary(identity)
    assert (again.state.events > first.state.events, again.problem) == (True, "")
    path = store.root / identity / JOURNAL
    path.write_bytes(path.read_bytes().replace(b'"seq":2', b'"seq":9'))
    assert "breaks at line 2" in store.summary(identity).problem
    head_path(store.root / identity).unlink()
    assert not store.summary(identity).witnessed


def test_a_journal_from_elsewhere_is_taken_and_marked(
    store: AttemptStore, task: Task, tmp_path: Path
) -> None:
    there = AttemptStore(tmp_path / "there", FakeClock(), "test")
    opened = there.start(task, judge_of(task), Enrolment())
    opened.close()
    identity = opened.attempt.state.attempt_id
    shutil.copytree(there.root / identity, store.root / identity)
    assert there.summary(identity).witnessed
    summary = store.summary(identity)
    assert (summary.problem, summary.kept, summary.witnessed) == ("", None, False)
    store.resume(identity, task, judge_of(task)).close()
    summary = store.summary(identity)
    assert summary.kept is not None
    assert (summary.problem, summary.kept.since, summary.witnessed) == ("", 3, False)


def test_what_can_be_read_of_a_damaged_journal_is_shown(store: AttemptStore, task: Task) -> None:
    opened = store.start(task, judge_of(task), Enrolment())
    opened.attempt.call("read_file", {"file_path": "README.md"})
    opened.attempt.note("something")
    opened.close()
    path = store.root / opened.attempt.state.attempt_id / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    for damaged in (
        [*lines[:-1], b"noise\n"],
        [*lines[:-1], lines[-1].replace(b'"text"', b'"test"'), lines[-1]],
        [
            *lines[:-1],
            lines[-1].replace(b'{"text":"something"}', b'{"call_id":"x"}').replace(b"note", b"tool_call"),
        ],
    ):
        path.write_bytes(b"".join(damaged))
        before = path.read_bytes()
        summary = store.summary(path.parent.name)
        assert summary.problem
        assert [call.tool for call in summary.state.calls] == ["read_file"]
        with pytest.raises(AttemptError, match="can be read, but not resumed"):
            store.resume(path.parent.name, task, judge_of(task))
        assert path.read_bytes() == before


def test_an_attempt_is_read_up_to_data_that_do_not_fit_and_not_gone_on_with(
    store: AttemptStore, task: Task
) -> None:
    opened = store.start(task, judge_of(task), Enrolment())
    opened.attempt.call("read_file", {"file_path": "README.md"})
    opened.close()
    path = opened.journal.path
    content = read_journal(path)
    event = JournalEvent(len(content.events) + 1, "tool_call", 1, 1, OtherEvent({"turn": 1}), content.head)
    path.write_bytes(path.read_bytes() + encode(event))
    summary = store.summary(path.parent.name)
    assert summary.problem == "The data of event 5 do not fit its type, tool_call."
    assert [call.tool for call in summary.state.calls] == ["read_file"]
    with pytest.raises(AttemptError, match="The data of event 5 do not fit"):
        store.resume(path.parent.name, task, judge_of(task))


def test_attempt_that_can_not_begin_leaves_nothing(store: AttemptStore, task: Task) -> None:
    text = (task.folder / "task.toml").read_text()
    (task.folder / "task.toml").write_text(text)
    (task.folder / "workspace" / "tree.tar").unlink()
    with pytest.raises(TaskError):
        store.start(task, judge_of(task), Enrolment())
    assert list(store.summaries()) == []
    assert [path.name for path in store.root.rglob("*") if path.is_file()] == ["starting.lock"]


def test_task_is_found_by_id_beginning_folder_and_archive(tmp_path: Path, task: Task) -> None:
    store = TaskStore(tmp_path / "tasks", tmp_path / "more")
    discovery = build_task(tmp_path / "more", Mode.DISCOVERY)
    assert store.find(task.id) == store.find(task.id[:10]) == store.find(str(task.folder)) == task
    assert store.find(discovery.id).mode is Mode.DISCOVERY
    pack_task(discovery.folder, tmp_path / "one.tar.zst")
    assert store.find(str(tmp_path / "one.tar.zst")).folder == tmp_path / "tasks" / discovery.id
    for name in ("", "zz", "../tasks", str(tmp_path)):
        with pytest.raises(TaskError, match="There is no task"):
            store.find(name)


def test_a_task_of_the_demo_is_found_by_its_name(tmp_path: Path) -> None:
    store = TaskStore(tmp_path / "tasks", demo=tmp_path / "demo")
    assert store.find("seats-together").mode is Mode.REMOVE
    assert [task.short_id for task in read_set(["dear-tickets"], store).tasks] == [
        store.find("dear-tickets").short_id
    ]
    with pytest.raises(TaskError, match="There is no task"):
        TaskStore(tmp_path / "tasks").find("seats-together")


def test_a_task_that_two_folders_hold_is_listed_once(tmp_path: Path, task: Task) -> None:
    store = TaskStore(tmp_path / "tasks", tmp_path / "more")
    discovery = build_task(tmp_path / "more", Mode.DISCOVERY)
    pack_task(discovery.folder, tmp_path / "one.tar.zst")
    added = store.find(str(tmp_path / "one.tar.zst"))
    entries = [entry for entry in store.tasks() if isinstance(entry, Task)]
    assert {entry.folder for entry in entries} == {task.folder, added.folder}
    assert len(entries) == 2


def test_broken_task_is_listed_beside_the_others(tmp_path: Path, task: Task) -> None:
    shutil.copytree(task.folder, tmp_path / "tasks" / "broken")
    (tmp_path / "tasks" / "broken" / "task.toml").write_text("format = 3")
    (tmp_path / "tasks" / "unrelated").mkdir()
    entries = list(TaskStore(tmp_path / "tasks").tasks())
    assert [type(entry) for entry in entries] == [BrokenTask, Task]
    assert "the key" in entries[0].problem  # type: ignore[union-attr]


def test_an_attempt_begins_under_the_id_that_was_promised(store: AttemptStore, task: Task) -> None:
    """A process that died before the first event leaves an empty journal, which the next one uses."""
    (store.root / "0promised").mkdir(parents=True)
    (store.root / "0promised" / JOURNAL).write_bytes(b'{"seq":1,"ty')
    opened = store.start(task, judge_of(task), Enrolment(), attempt_id="0promised")
    opened.close()
    content = read_journal(store.root / "0promised" / JOURNAL)
    assert (content.fault, content.torn, [event.seq for event in content.events]) == ("", 0, [1, 2])
    assert store.summary("0promised").state.attempt_id == "0promised"
