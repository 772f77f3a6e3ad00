"""What lists show of tasks comes from the index while nothing has changed, and is never out of date."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from builders import build_task

from gistpoint.core.kinds.folder import target_names
from gistpoint.core.kinds.titles import answer_title, author_title
from gistpoint.core.tasks.documents import ANSWER_FILE, TASK_FILE
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions import task_documents, tasks
from gistpoint.sessions.task_documents import ListedTask
from gistpoint.sessions.tasks import BrokenTask, TaskStore, listed_task


@pytest.fixture
def task(tmp_path: Path) -> Task:
    made = build_task(tmp_path / "tasks", Mode.DISCOVERY)
    return replace(made, folder=made.folder.rename(made.folder.with_name(made.id)))


def store(task: Task) -> TaskStore:
    """Return the store as a new process would create it."""
    return TaskStore(task.folder.parent, index=task.folder.parents[1] / "tasks.sqlite")


def listed(task: Task) -> ListedTask | None:
    """Return a task as one list shows it, and keep what was read for the next list."""
    opened = store(task)
    found = opened.listed_one(task.id)
    opened.keep_listed()
    return found


def test_the_second_list_reads_no_file(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = listed_task(task)
    assert (expected.id, expected.title, expected.shown_mode) == (task.id, author_title(task), "discovery")
    assert listed(task) == expected
    with monkeypatch.context() as patched:
        patched.setattr(task_documents, "read_document", lambda path: pytest.fail(f"{path} was read"))
        assert listed(task) == expected
        assert [found.id for found in store(task).tasks() if isinstance(found, Task)] == [task.id]
        assert list(store(task).listed()) == [expected]
        patched.setattr(tasks, "listed_task", lambda task: pytest.fail("a title was made again"))
        assert [found.id for found in store(task).tasks() if isinstance(found, Task)] == [task.id]
    monkeypatch.setattr(task_documents, "_CODE", b"another version ")
    assert listed(task) == expected


def test_a_changed_file_shows_at_once(task: Task) -> None:
    assert listed(task) is not None
    file = task.folder / TASK_FILE
    text, times = file.read_text(), file.stat()
    file.write_text(text.replace('name = "shop"', 'name = "ship"'))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    found = listed(task)
    assert found is not None
    assert found.title.startswith("ship · ")
    file.write_text(text.replace("tool_uses", "tool_user"))
    assert listed(task) is None
    file.write_text(text)
    assert listed(task) is not None


def test_a_task_without_its_tree_or_its_folder_is_not_listed(task: Task) -> None:
    assert listed(task) is not None
    task.tree_path.rename(task.folder / "away")
    assert listed(task) is None
    (task.folder / "away").rename(task.tree_path)
    assert listed(task) is not None
    task.folder.rename(task.folder.with_name("renamed"))
    found = listed(task)
    assert found is not None
    assert found.id == task.id


def test_a_file_without_a_member_is_refused_by_every_list(task: Task) -> None:
    file = task.folder / TASK_FILE
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith("tool_semantics")))
    problems = []
    for _ in range(2):
        (broken,) = store(task).tasks()
        assert isinstance(broken, BrokenTask)
        problems.append(broken.problem)
    assert problems[0] == problems[1]
    assert "tool_semantics" in problems[0]


def test_titles_that_name_functions_follow_both_files(task: Task) -> None:
    def title() -> str:
        opened = store(task)
        list(opened.listed())
        return opened.answer_titles([task.id, "unknown"])[task.id]

    assert title() == answer_title(task, target_names(task)) == title()
    answer = task.folder / ANSWER_FILE
    (function,) = {name.partition("::")[2] for name in target_names(task)}
    whole = answer.read_text()
    answer.write_text(whole.replace(f'"qualname": "{function}"', '"qualname": "renamed"'))
    assert answer.read_text() != whole
    assert "renamed" in title()
    file = task.folder / TASK_FILE
    file.write_text(file.read_text().replace('name = "shop"', 'name = "ship"'))
    assert title().startswith("ship · renamed")
    answer.unlink()
    assert title() == author_title(replace(task, source=replace(task.source, name="ship")))
    index = task.folder.parents[1] / "tasks.sqlite"
    shutil.rmtree(task.folder)
    assert list(store(task).listed()) == []
    assert b"ship" not in index.read_bytes(), "nothing stays of a task that was removed"
