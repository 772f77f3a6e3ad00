"""The progress of a study and its facts share the definitions of a finished person and of a training task."""

from __future__ import annotations

import msgspec
import pytest
from study_parts import StudyLog, declared, study_tasks

from gistpoint.core.study.facts import _people_facts
from gistpoint.core.study.operations import person
from gistpoint.core.study.progress import study_progress
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import faults_with_tasks, task_named, training_tasks
from gistpoint.core.tasks.names import word_name

TASKS = study_tasks(4)
FIRST, SECOND, *_ = TASKS


def log_of_one(*ended: str, returned: str = "", withdrawn: bool = False) -> StudyLog:
    """Return the log of a person with the assignments `a` and `b`, of which some have ended."""
    log = StudyLog(declared(), TASKS)
    log.enrol("P01")
    rows = [("a", FIRST, "alone", 1), ("b", SECOND, "alone", 2)]
    log.by("P01", "planned", slot=1, basis={}, assignments=rows, protocol="")
    for name in ended:
        log.by("P01", "begun", assignment=name, attempt=f"attempt-{name}")
        log.by("P01", "finished", assignment=name, attempt=f"attempt-{name}")
    for name in returned:
        log.record(person("P01"), "returned", assignment=name)
    if withdrawn:
        log.by("P01", "withdrawn", data="keep")
    return log


@pytest.mark.parametrize(
    ("log", "done"),
    [
        (log_of_one(), 0),
        (log_of_one("a"), 0),
        (log_of_one("a", "b"), 1),
        (log_of_one("a", returned="b"), 1),
        (log_of_one(returned="ab"), 0),
        (log_of_one("a", "b", withdrawn=True), 0),
        (log_of_one("a", returned="b", withdrawn=True), 0),
    ],
)
def test_facts_and_progress_agree_on_who_is_done(log: StudyLog, done: int) -> None:
    assert study_progress(log.study, TASKS, log.ledger, ()).people.done == done
    assert _people_facts(log.ledger, [])["people/done"] == done
    assert log.ledger.person("P01").is_done is bool(done)


def test_the_first_attempt_at_a_task_decides_whether_it_has_ended() -> None:
    log = log_of_one("b")
    log.by("P01", "begun", assignment="a", attempt="first")
    log.by("P01", "begun", assignment="a", attempt="second")
    log.by("P01", "finished", assignment="a", attempt="second")
    (at_work,) = study_progress(log.study, TASKS, log.ledger, ()).at_work
    assert (at_work.ended, at_work.given, at_work.assignment) == (1, 2, "a")
    log.by("P01", "finished", assignment="a", attempt="first")
    assert log.ledger.person("P01").is_done


@pytest.mark.parametrize(
    ("name", "training"),
    [(FIRST, (FIRST,)), ("", ()), ("0" * 63, ()), ("none", ())],
    ids=["whole", "empty", "ambiguous", "unknown"],
)
def test_a_training_name_that_names_no_task_hides_none(name: str, training: tuple[str, ...]) -> None:
    study = declared(f'[training]\ntasks = ["{name}"]')
    assert training_tasks(study, TASKS) == training
    shown = [task.task for task in study_progress(study, TASKS, StudyLog(study, TASKS).ledger, ()).tasks]
    assert shown == [task for task in TASKS if task not in training]


def row(number: int, active_s: float, *, solved: bool, condition: str) -> AttemptRow:
    return AttemptRow(
        attempt=f"{condition}{number}",
        study="s",
        task=FIRST,
        condition=condition,
        end="solved" if solved else "gave_up",
        solved=solved,
        active_s=active_s,
    )


def test_the_pace_pools_conditions_and_outcomes() -> None:
    """Nobody can tell from the pooled minutes which condition is faster, or how many were solved."""
    log = StudyLog(declared(), TASKS)
    log.open()
    opened = log.ledger.opened
    assert opened is not None
    rows = [row(n, 60.0 * n, solved=n % 2 == 0, condition="ab"[n % 2]) for n in range(1, 6)]
    now = opened.utc_ms + 4 * 86_400_000
    found = study_progress(log.study, TASKS, log.ledger, rows, now)
    assert (found.pace.attempts, found.pace.per_day, found.pace.median_min) == (5, 1.25, 3.0)
    unsolved = [msgspec.structs.replace(one, solved=False, end="gave_up", condition="a") for one in rows]
    assert study_progress(log.study, TASKS, log.ledger, unsolved, now).pace == found.pace
    assert study_progress(log.study, TASKS, log.ledger, rows[:2], now).pace.median_min is None
    assert study_progress(log.study, TASKS, log.ledger, rows, opened.utc_ms + 60_000).pace.per_day is None


def test_who_has_not_begun_is_named_with_how_far_they_have_come() -> None:
    log = log_of_one()
    log.enrol("P02")
    log.enrol("P03")
    log.by("P03", "consented", text_sha256="c")
    log.enrol("P04")
    log.by("P04", "declined")
    waiting = study_progress(log.study, TASKS, log.ledger, ()).not_begun
    assert [(one.code, one.state) for one in waiting if one.code != "P01"] == [
        ("P02", "enrolled"),
        ("P03", "consented"),
    ]


def test_tasks_are_named_by_their_words_and_titles_everywhere() -> None:
    named = {
        **TASKS,
        FIRST: msgspec.structs.replace(TASKS[FIRST], names=("seats-together", "Seats, together!")),
    }
    for name in (FIRST, word_name(FIRST), word_name(FIRST).upper(), "seats-together", "seats together"):
        assert task_named(name, named) == FIRST, name
    assert task_named("seats", named) is None
    study = declared('[training]\ntasks = ["seats-together"]')
    assert training_tasks(study, named) == (FIRST,)
    (fault,) = [one for one in faults_with_tasks(study, TASKS) if "training" in one]
    assert word_name(FIRST) in fault
