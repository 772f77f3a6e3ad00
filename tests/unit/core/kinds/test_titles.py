"""Titles by audience: an author sees the library; a solver in an attempt that counts sees no source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from builders import build_task
from gist_tasks import build_gist_task

from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.attempts.identity import MODEL, Enrolment, Role
from gistpoint.core.demo.tasks import demo_tasks, unpack_demo
from gistpoint.core.kinds.folder import content_sha256, target_names
from gistpoint.core.kinds.titles import (
    Circumstances,
    answer_title,
    author_title,
    searched_words,
    solver_title,
    tasks_called,
    title_in_attempt,
)
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.tasks.names import word_name


@dataclass(frozen=True)
class Seen:
    """A task's titles for its author, its solver, and those who know its answer."""

    author: str
    solver: str
    known: str


def seen(task: Task) -> Seen:
    known = answer_title(task, target_names(task))
    return Seen(author_title(task), solver_title(task).replace(word_name(task.id), "NAME"), known)


def test_each_audience_has_its_title(tmp_path: Path) -> None:
    removed, found = build_task(tmp_path / "a"), build_task(tmp_path / "b", Mode.DISCOVERY)
    gist = build_gist_task(tmp_path / "c")
    assert seen(removed) == Seen("shop · discount removed", "Repair NAME · 5 fail", "shop · discount removed")
    fails = len(found.brief.failing)
    assert seen(found) == Seen(
        f"shop · find one, {fails} fail", f"Repair NAME · {fails} fail", "shop · discount corrupted"
    )
    assert seen(gist) == Seen("shop · gist of test_total", "Gist NAME", "shop · gist of test_total")


def test_several_functions_are_counted_where_the_brief_counts_them(tmp_path: Path) -> None:
    task = replace(build_task(tmp_path, Mode.DISCOVERY), several=True)
    fails = f"{len(task.brief.failing)} fail"
    assert author_title(task) == f"shop · find several, {fails}"
    counted = replace(task, brief=replace(task.brief, targets=3))
    assert author_title(counted) == f"shop · find 3, {fails}"
    functions = ("a.py::one", "b.py::C.two", "b.py::three")
    assert answer_title(counted, functions) == "shop · one and 2 more corrupted"
    single = replace(task, brief=replace(task.brief, failing=task.brief.failing[:1]))
    assert author_title(single) == "shop · find several, 1 fails"


def test_the_demos_tasks_have_titles_of_their_own(tmp_path: Path) -> None:
    found = {demo.name: seen(task) for demo, task in unpack_demo(tmp_path)}
    assert found == {demo.name: Seen(demo.title, demo.title, demo.title) for demo in demo_tasks()}


@pytest.mark.parametrize(
    ("attempt", "hides"),
    [
        (Enrolment(), True),
        (Enrolment(role=Role.TRAINING, study="s"), True),
        (Enrolment(actor=MODEL, role=Role.QA), True),
        (AttemptStarted(role="baseline", participant="p1"), True),
        (Enrolment(role=Role.QA), False),
        (Enrolment(role=Role.AUTHOR), False),
        (AttemptStarted(role="demo"), False),
    ],
)
def test_an_attempt_that_counts_shows_nothing_of_the_source(
    attempt: Circumstances, hides: bool, tmp_path: Path
) -> None:
    task = build_task(tmp_path, Mode.DISCOVERY, library="Zanzibar")
    title = title_in_attempt(task, attempt)
    assert title == (solver_title(task) if hides else author_title(task))
    assert ("Zanzibar" in title) is not hides


def test_a_participant_of_a_study_never_sees_the_titles_of_the_demo(tmp_path: Path) -> None:
    for demo, task in unpack_demo(tmp_path):
        for attempt in (
            Enrolment(study="s"),
            Enrolment(role=Role.TRAINING, study="s"),
            AttemptStarted(study="s"),
        ):
            title = title_in_attempt(task, attempt)
            assert demo.title not in title
            assert word_name(task.id) in title


HOSTILE = f"\x1b[31m{'long' * 200}\u202e\n"


@pytest.mark.parametrize("mode", [Mode.REMOVE, Mode.DISCOVERY])
def test_hostile_names_are_bounded_and_visible(mode: Mode, tmp_path: Path) -> None:
    task = build_task(tmp_path, mode)
    source, brief = replace(task.source, name=HOSTILE), replace(task.brief, target=f"a.py::{HOSTILE}")
    task = replace(task, source=source, brief=brief)
    for title in (author_title(task), answer_title(task, (f"a.py::{HOSTILE}",)), solver_title(task)):
        assert title.isprintable()
        assert len(title) <= 110
    assert tasks_called(author_title(task), [task]) == tasks_called(solver_title(task), [task]) == [task]


def test_titles_leave_the_task_as_it_is(tmp_path: Path) -> None:
    task = build_task(tmp_path, Mode.DISCOVERY)
    before = {path: path.read_bytes() for path in task.folder.rglob("*") if path.is_file()}
    content = content_sha256(task)
    assert seen(task)
    assert searched_words(task).endswith(f"{word_name(task.id)} {task.id}")
    assert {path: path.read_bytes() for path in task.folder.rglob("*") if path.is_file()} == before
    assert content_sha256(task) == content
