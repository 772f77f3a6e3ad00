from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from studies.assignment import plan_into, reference_design
from study_parts import StudyLog, declared, study_tasks

from gistpoint.core.study.assigning import plan_tasks
from gistpoint.core.study.ledger import Ledger, person_sha256
from gistpoint.core.study.operations import ERASED, STUDY, StudyOperation, attempt, person
from gistpoint.core.study.steps import PlanStep, Situation, next_step

CODES, ASSIGNMENTS, ATTEMPTS = ("P1", "P2"), ("a1", "a2", "a3"), ("t1", "t2")
IDS, TIMES = st.sampled_from([f"{n:032x}" for n in range(40)]), st.integers(1, 6)


def _operation(subjects: Sequence[str], **kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[StudyOperation]:
    one_of = st.one_of([st.tuples(st.just(kind), data) for kind, data in kinds.items()])
    return st.builds(
        lambda op, writer, utc_ms, subject, known: StudyOperation(
            op, writer, utc_ms, subject, known[0], known[1]
        ),
        IDS,
        st.sampled_from(["P1@111111", "P1@222222", "P2@111111", "organiser@000000"]),
        TIMES,
        st.sampled_from(subjects),
        one_of,
    )


DELETION = st.fixed_dictionaries({"target": IDS})
PEOPLES = _operation(
    [person(code) for code in CODES],
    enrolled=st.fixed_dictionaries({"stratum": st.sampled_from(["", "junior"])}),
    consented=st.fixed_dictionaries({"text_sha256": st.sampled_from(["0", "1"])}),
    declined=st.just({}),
    answers=st.fixed_dictionaries(
        {"questionnaire": st.just("before"), "values": st.dictionaries(st.just("x"), st.integers(1, 3))}
    ),
    planned=st.fixed_dictionaries(
        {
            "slot": st.integers(1, 2),
            "assignments": st.lists(
                st.tuples(st.sampled_from(ASSIGNMENTS), st.just("t"), st.just("alone"), st.integers(1, 3)),
                max_size=2,
            )
            | st.just("torn"),
        }
    ),
    begun=st.fixed_dictionaries(
        {"assignment": st.sampled_from(ASSIGNMENTS), "attempt": st.sampled_from(ATTEMPTS)}
    ),
    finished=st.fixed_dictionaries(
        {"assignment": st.sampled_from(ASSIGNMENTS), "attempt": st.sampled_from(ATTEMPTS)}
    ),
    returned=st.fixed_dictionaries({"assignment": st.sampled_from(ASSIGNMENTS)}),
    sitting=st.fixed_dictionaries({"state": st.sampled_from(["began", "ended"])}),
    withdrawn=st.fixed_dictionaries({"data": st.sampled_from(["keep", "erase"])}),
    delete=DELETION,
)
ORGANISERS = st.one_of(
    _operation(
        [STUDY],
        opened=st.fixed_dictionaries({"protocol": st.sampled_from(["p", "q"])}),
        amended=st.fixed_dictionaries({"protocol": st.sampled_from(["r", "s"])}),
        closed=st.just({}),
        delete=DELETION,
    ),
    _operation(
        [attempt(one) for one in ATTEMPTS],
        excluded=st.fixed_dictionaries({"reason": st.sampled_from(["x", "y"])}),
        included=st.just({}),
        corrected=st.just({"spans": [[0, 5, "idle"]]}) | st.just({"spans": "torn"}),
        delete=DELETION,
    ),
    _operation([ERASED], erased=st.just({"person_sha256": person_sha256("P2")})),
)


def told(ledger: Ledger) -> Any:
    """Return all contents of a ledger, to compare two."""
    people = {
        code: (
            *(
                one.stratum,
                one.declined,
                one.consent,
                one.withdrawn,
                one.assignments,
                one.begun,
                one.finished,
            ),
            *(one.returned, one.answers("before"), one.sitting, one.machines),
        )
        for code, one in ledger.people.items()
    }
    notes = {one: ledger.notes(one) for one in ATTEMPTS}
    return (
        ledger.protocol,
        ledger.closed,
        ledger.amended_ms,
        ledger.opened,
        dict(ledger.erased),
        people,
        notes,
    )


@examples(400)
@given(st.lists(PEOPLES | ORGANISERS, max_size=30), st.randoms(use_true_random=False), st.data())
def test_the_fold_depends_on_the_set_of_operations_alone(
    operations: list[StudyOperation], random: Random, data: st.DataObject
) -> None:
    expected = told(Ledger(operations))
    again = [*operations, *operations[: len(operations) // 2]]
    random.shuffle(again)
    assert told(Ledger(again)) == expected
    here = data.draw(st.lists(st.booleans(), min_size=len(operations), max_size=len(operations)))
    one = [operation for operation, mine in zip(operations, here, strict=True) if mine]
    other = [operation for operation, mine in zip(operations, here, strict=True) if not mine]
    assert told(Ledger([*Ledger(other).operations, *Ledger(one).operations])) == expected


@examples(100)
@given(st.lists(PEOPLES | ORGANISERS, max_size=30))
def test_the_next_step_is_the_same_after_any_reordering_and_never_a_crash(
    operations: list[StudyOperation],
) -> None:
    study, tasks = declared(), study_tasks(4)
    log = StudyLog(study, tasks)
    log.open()
    situation = Situation(log.now_ms, "111111")
    kept = [one for one in operations if one.subject != STUDY]
    ledgers = [Ledger([*log.operations, *some]) for some in (kept, kept[::-1])]
    for code in CODES:
        first, second = (next_step(study, tasks, ledger, code, situation) for ledger in ledgers)
        assert first == second


def test_a_plan_is_whole_or_absent() -> None:
    study, tasks = reference_design()
    log = StudyLog(study, tasks)
    log.open()
    log.enrol("P1")
    log.consent("P1")
    log.by("P1", "planned", slot=1)
    log.by("P1", "planned", slot=1, assignments=[["id", "task", "alone"]])
    ledger = log.ledger
    assert ledger.person("P1").assignments == ()
    step = next_step(study, tasks, ledger, "P1", Situation(log.now_ms, "111111"))
    assert isinstance(step, PlanStep)
    plan_into(log, "P1")
    assert [one.id for one in log.ledger.person("P1").assignments] == [one.id for one in step.assignments]


def test_of_two_plans_that_two_machines_made_the_earlier_holds_everywhere() -> None:
    study, tasks = reference_design()
    log = StudyLog(study, tasks)
    for code in ("P1", "P2"):
        log.enrol(code)
    shared = list(log.operations)
    first = plan_into(log, "P1", Ledger(shared), "111111")
    plan_into(log, "P2", Ledger(shared), "222222")
    plan_into(log, "P1", Ledger([*shared, log.operations[-1]]), "222222")
    plans = log.operations[len(shared) :]
    for order in (plans, plans[::-1]):
        found = Ledger([*order, *shared]).person("P1")
        assert [one.id for one in found.assignments] == [one.id for one in first]
        assert found.machines == ("P1@111111", "P1@222222")


def test_operations_of_one_id_that_differ_fold_alike_in_any_order() -> None:
    one = StudyOperation("0" * 32, "organiser@000000", 5, person("P1"), "enrolled", {"stratum": "junior"})
    other = msgspec.structs.replace(one, data={"stratum": "senior"})
    assert Ledger([one, other]).person("P1").stratum == Ledger([other, one]).person("P1").stratum


def test_consent_can_not_be_deleted_and_an_erasure_wins_over_every_copy() -> None:
    log = StudyLog(declared(), study_tasks(4))
    log.enrol("P1")
    log.consent("P1")
    consent = next(one for one in log.operations if one.kind == "consented")
    log.record(person("P1"), "delete", target=consent.op)
    assert log.ledger.person("P1").consent is not None
    log.record(ERASED, "erased", person_sha256=person_sha256("P1"))
    log.by("P1", "answers", questionnaire="before")
    assert "P1" not in log.ledger.people
    assert log.ledger.is_erased("P1")


def test_two_machines_and_forty_people_fold_to_one_ledger_and_every_plan_is_derived_again() -> None:
    study, tasks = reference_design()
    log, random = StudyLog(study, tasks), Random(7)
    log.open()
    shared = len(log.operations)
    seen: dict[str, list[StudyOperation]] = {}
    for n in range(40):
        code, machine = f"P{n:02}", random.choice(["111111", "222222"])
        if random.random() < 0.2:
            shared = len(log.operations)
        log.by(code, "enrolled", machine=machine)
        own = [one for one in log.operations[shared:] if one.reviewer.endswith(machine)]
        seen[code] = [*log.operations[:shared], *own]
        first = plan_into(log, code, Ledger(seen[code]), machine)[0]
        log.by(code, "begun", machine=machine, assignment=first.id, attempt=f"{code}-1")
        log.by(
            code, "withdrawn" if n % 7 == 0 else "finished", machine=machine, data="keep", assignment=first.id
        )
    expected = told(log.ledger)
    for _ in range(5):
        merged = [*log.operations, *random.sample(log.operations, 20)]
        random.shuffle(merged)
        ledger = Ledger(merged)
        assert told(ledger) == expected
    for code, read in seen.items():
        again = plan_tasks(study, tasks, Ledger(random.sample(read, len(read))), code)
        stored = ledger.person(code).assignments
        assert [(one.id, one.position) for one in again] == [(one.id, one.position) for one in stored]
        assert len({one.task for one in stored}) == 6
