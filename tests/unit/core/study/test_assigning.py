from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from examples import share
from studies.assignment import (
    everybody_stays,
    plan_into,
    random_design,
    reference_design,
    some_leave,
    two_machines,
)
from study_parts import StudyLog, declared, study_tasks

from gistpoint.core.study.assigning import (
    assignment_id,
    distinct_orders,
    exposed_tasks,
    key,
    live_assignments,
    plan_tasks,
    planned_data,
)
from gistpoint.core.study.declaration import StudyTask
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.operations import person

TWO = '[[condition]]\nid = "alone"\n[[condition]]\nid = "assisted"'


def test_keys_are_of_the_parts_and_where_they_begin() -> None:
    assert key("a", "bc") != key("ab", "c")
    assert key(1) == key("1")
    assert len(assignment_id("railway", "P07", "f" * 64, "alone", 1)) == 12


def test_orders_of_a_multiset_are_told_once() -> None:
    found = list(distinct_orders(["b", "a", "a", "b"]))
    assert len(found) == len(set(found)) == 6
    assert list(distinct_orders([])) == [()]


def test_people_tasks_conditions_and_positions_are_balanced() -> None:
    found = [everybody_stays(seed=seed) for seed in range(6)]
    assert {spread.task for spread in found} == {(5, 5)}
    assert Counter(spread.task_in_condition for spread in found).most_common(1)[0][0] == (2, 3)
    assert all(spread.condition_at_position in ((10, 10), (9, 11)) for spread in found)


def test_balance_survives_people_who_leave_and_machines_that_do_not_see_each_other() -> None:
    assert some_leave().task == (4, 5)
    assert two_machines().task == (4, 6)


def test_random_designs_keep_their_quotas_and_repeat_nothing() -> None:
    for seed in range(share(60)):
        outcome = random_design(seed, most_people=12)
        assert (outcome.twice, outcome.short, outcome.quotas_missed) == (0, 0, 0), (seed, outcome)
        assert outcome.uneven <= 1, (seed, outcome)
        assert outcome.conditions_uneven <= 1, (seed, outcome)


def test_a_choice_that_would_leave_a_quota_unkept_is_passed_over() -> None:
    for seed in range(40):
        study = declared(
            "[design.quota]\nremove = 2\ndiscovery = 2",
            changes={
                "seed = 20261121": f"seed = {seed}",
                "tasks_per_person = 2": "tasks_per_person = 4\nper_source = 2",
            },
        )
        libraries = ["a", "a", "a", "b", "b"]
        tasks = {
            f"{mode}{n}": StudyTask(id=f"{mode}{n}", mode=mode, source=source, targets=(f"{mode}{n}",))
            for mode, sources in {"remove": libraries, "discovery": ["a", "a"]}.items()
            for n, source in enumerate(sources)
        }
        log = StudyLog(study, tasks)
        log.enrol("P01")
        found = Counter(tasks[one.task].mode for one in plan_tasks(study, tasks, log.ledger, "P01"))
        assert found == {"remove": 2, "discovery": 2}, seed


def test_a_plan_depends_on_the_log_alone_and_is_derived_again() -> None:
    study, tasks = reference_design()
    log = StudyLog(study, tasks)
    plans = {}
    for n in range(8):
        code = f"P{n}"
        log.enrol(code)
        before = list(log.operations)
        plans[code] = (before, plan_into(log, code))
    for code, (before, given) in plans.items():
        shuffled = [*before, *before[::2]]
        Random(code).shuffle(shuffled)
        assert list(plan_tasks(study, dict(reversed(tasks.items())), Ledger(shuffled), code)) == given
        stored = log.ledger.person(code).assignments
        assert [(one.id, one.task, one.condition, one.position) for one in stored] == [
            (one.id, one.task, one.condition, one.position) for one in given
        ]


def test_the_data_of_a_plan_are_what_the_ledger_reads() -> None:
    study, tasks = reference_design()
    log = StudyLog(study, tasks)
    log.enrol("P01")
    given = plan_tasks(study, tasks, log.ledger, "P01")
    data = planned_data(given, basis={"0a": 3}, protocol="f" * 64)
    log.by("P01", "planned", slot=data.slot, basis=data.basis, assignments=data.assignments)
    assert [one.id for one in log.ledger.person("P01").assignments] == [one.id for one in given]


def test_nobody_gets_what_they_have_seen_or_a_library_they_know() -> None:
    study = declared(
        '[[questionnaire]]\nid = "before"\nat = "before"\nuse = ["sources-1"]',
        f'[training]\ntasks = ["{1:064x}"]',
        changes={"tasks_per_person = 2": "tasks_per_person = 9\nper_source = 0"},
    )
    tasks = study_tasks(12)
    log = StudyLog(study, tasks)
    log.enrol("P01")
    log.by("P01", "answers", questionnaire="before", values={"source.library-1": 4, "source.library-2": 3})
    log.record(person("P01"), "exposed", task=f"{2:064x}", how="a pilot")
    given = plan_tasks(study, tasks, log.ledger, "P01")
    known = {task.id for task in tasks.values() if task.source == "library-1"}
    assert {one.task for one in given} == set(tasks) - known - {f"{1:064x}", f"{2:064x}"}
    log.record(person("P01"), "exposed", source="library-2", how="wrote it")
    assert all(tasks[one.task].source == "library-0" for one in plan_tasks(study, tasks, log.ledger, "P01"))


def test_a_function_is_given_once_also_where_it_was_seen_in_another_task() -> None:
    study = declared(changes={"tasks_per_person = 2": "tasks_per_person = 4\nper_source = 0"})
    tasks = {
        f"{mode}-{n}": StudyTask(id=f"{mode}-{n}", mode=mode, source="library", targets=(f"part.py::f{n}",))
        for n in range(3)
        for mode in ("remove", "discovery")
    }
    log = StudyLog(study, tasks)
    log.enrol("P01")
    assert len({one.task[-1] for one in plan_tasks(study, tasks, log.ledger, "P01")}) == 3
    log.record(person("P01"), "exposed", task="remove-1", how="a pilot")
    assert {one.task[-1] for one in plan_tasks(study, tasks, log.ledger, "P01")} == {"0", "2"}


def test_what_is_returned_or_left_is_free_and_what_was_begun_stays_seen() -> None:
    study, tasks = reference_design()
    log = StudyLog(study, tasks)
    for code in ("P01", "P02", "P03"):
        log.enrol(code)
    first, second = plan_into(log, "P01"), plan_into(log, "P02")
    assert len(list(live_assignments(log.ledger))) == 12
    log.by("P01", "begun", assignment=first[0].id, attempt="a")
    log.record(person("P01"), "returned", assignment=first[0].id, why="broken")
    assert first[0].task in exposed_tasks(log.ledger.person("P01"), tasks)
    log.by("P02", "begun", assignment=second[0].id, attempt="b")
    log.by("P02", "withdrawn", data="keep")
    live = [one.id for one in live_assignments(log.ledger)]
    assert live == [one.id for one in first[1:]] + [second[0].id]
    log.by("P02", "withdrawn", data="erase")
    assert [one.id for one in live_assignments(log.ledger)] == [one.id for one in first[1:]]


def test_between_people_conditions_are_balanced_in_each_stratum() -> None:
    study = declared(
        '[participants]\nstrata = ["junior", "senior"]',
        changes={
            "tasks_per_person = 2": 'tasks_per_person = 2\nconditions = "between"',
            '[[condition]]\nid = "alone"': TWO,
        },
    )
    log = StudyLog(study, study_tasks(12))
    found: Counter[tuple[str, str]] = Counter()
    for n in range(12):
        stratum = ("junior", "junior", "senior")[n % 3]
        log.enrol(f"P{n:02}", stratum)
        (condition,) = {one.condition for one in plan_into(log, f"P{n:02}")}
        found[stratum, condition] += 1
    assert set(found.values()) == {4, 2}
    assert found["junior", "alone"] == found["junior", "assisted"] == 4


def test_models_only_conditions_are_given_to_nobody() -> None:
    study = declared('[[condition]]\nid = "static"\npeople = false')
    log = StudyLog(study, study_tasks(6))
    log.enrol("P01")
    assert {one.condition for one in plan_into(log, "P01")} == {"alone"}


@pytest.mark.parametrize("number", [0, 1])
def test_fewer_tasks_than_asked_for_are_given_whole(number: int) -> None:
    log = StudyLog(declared(), study_tasks(number))
    log.enrol("P01")
    assert [one.position for one in plan_into(log, "P01")] == list(range(1, number + 1))


def test_many_tasks_of_a_mode_are_distributed_too() -> None:
    study = declared(
        changes={
            "tasks_per_person = 2": "tasks_per_person = 11\nper_source = 0",
            '[[condition]]\nid = "alone"': TWO,
        }
    )
    log = StudyLog(study, study_tasks(12, modes=("remove",)))
    log.enrol("P01")
    assert sorted(Counter(one.condition for one in plan_into(log, "P01")).values()) == [5, 6]
