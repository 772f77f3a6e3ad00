"""The checklist has the expected items, and no answer exceeds its evidence."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from study_rows import attempt_row, declared, study_data

from gistpoint.core.study.checklist import ChecklistAnswer, answers, checklist
from gistpoint.core.study.checklist_evidence import Estimated
from gistpoint.core.study.checklist_rules import RULES
from gistpoint.core.study.declaration import Participants, Pay, Protocol, Quality, Texts, Training
from gistpoint.core.study.facts import power_facts, study_facts
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.operations import PowerRecorded, StudyOperation
from gistpoint.core.study.rows import AttemptRow, FlagRow
from gistpoint.core.tasks.rules import Face, rules_text

NOTHING = Estimated()


def answered(
    *rows: AttemptRow,
    operations: tuple[StudyOperation, ...] = (),
    estimated: Estimated = NOTHING,
    **declaration: Any,
) -> dict[str, ChecklistAnswer]:
    data = study_data(rows, study=declared(**declaration), operations=operations)
    return {answer.item.number: answer for answer in answers(data, study_facts(data), estimated)}


def operation(kind: str, utc_ms: int, subject: str = "study", **data: Any) -> StudyOperation:
    return StudyOperation(f"{kind}-{utc_ms}-0000", "organiser@aaaaaa", utc_ms, subject, kind, data)


def test_it_has_the_71_items_46_of_them_from_the_log() -> None:
    items = checklist()
    assert len(items) == len({item.number for item in items}) == 71
    assert Counter(item.source for item in items) == {"log": 46, "declared": 25}
    assert Counter(item.number[0] for item in items) == {"0": 10, "1": 12, "2": 18, "3": 13, "4": 8, "5": 10}
    assert {item.rule for item in items if item.rule} == set(RULES)
    assert all(item.rule for item in items if item.source == "log")


@pytest.mark.parametrize("ended", ["solved", "gave_up", "infrastructure"])
@pytest.mark.parametrize("training", [1, 3])
def test_training_changes_no_number_of_the_checklist_or_the_methods(training: int, ended: str) -> None:
    """Training tasks are no items of the evaluation, and attempts at them are not excluded from it."""
    names = [f"training{n}" for n in range(training)]
    rows = [attempt_row("P1", f"t{n}", mode="remove") for n in range(4)]
    exclusion = "infrastructure" if ended == "infrastructure" else "role_training"
    trained = [
        attempt_row(
            "P1", name, role="training", counted=False, exclusion=exclusion, end=ended, source="other",
            mode="discovery", flags=(FlagRow(flag="fast"),),
        )
        for name in names
    ]  # fmt: skip
    alone, trained_first = (
        study_data(of, study=declared(training=Training(tasks=tuple(names)))) for of in (rows, rows + trained)
    )
    numbers = [
        {key: value for key, value in study_facts(data).items() if not key.startswith("design/")}
        for data in (alone, trained_first)
    ]
    assert numbers[1].pop("attempts/training") == training
    assert numbers[0].pop("attempts/training") == 0
    assert numbers[0] == numbers[1]
    items = [
        {answer.item.number: answer.answer for answer in answers(data, study_facts(data), NOTHING)}
        for data in (alone, trained_first)
    ]
    assert {number for number, answer in items[0].items() if answer != items[1][number]} == {TRAINED}


TRAINED = "2.6"
"""The item on training, which alone may differ."""


def test_an_empty_study_claims_nothing() -> None:
    found = answered()
    assert {number for number, answer in found.items() if answer.answer.startswith("Yes")} == {"3.2"}
    assert found["2.1"].open
    assert found["1.9"].open
    assert found["1.1"].answer == "0"


def test_what_models_alone_can_have_does_not_apply_without_models() -> None:
    found = answered(attempt_row("P1"))
    assert {found[number].answer for number in ("0.9", "3.3", "3.4", "3.5", "4.1", "4.3")} == {"N/A"}


@pytest.mark.parametrize(
    ("people", "models", "expected"),
    [("b1", "b1", "Yes"), ("b1", "b2", "No"), ("b1", "", "No"), ("", "", "No")],
)
def test_the_same_instructions_are_a_matter_of_hashes(people: str, models: str, expected: str) -> None:
    assert answered(*_alike(3, people, models), texts=TEXTS)["3.4"].answer == expected


def _alike(tasks: int, people: str = "b", models: str = "b", system: str = "agent-2") -> list[AttemptRow]:
    names = [f"t{number}" for number in range(tasks)]
    key = f"16/4 | setting default, system {system}, api chat"
    return [
        *(attempt_row("P1", name, brief_sha256=people, tools_sha256="t") for name in names),
        *(
            attempt_row(solver="m", task=name, brief_sha256=models, tools_sha256="t", condition_key=key)
            for name in names
        ),
    ]


TEXTS = Texts(consent="Yes?", consent_items=("yes",), rules=rules_text(Face.PERSON))


def test_same_instructions_need_every_task_and_the_same_rules() -> None:
    one = answered(*_alike(1), texts=TEXTS)
    assert (one["3.4"].answer, one["1.7"].answer) == ("Partial", "Partial")
    assert "models attempted 1 of people's 1 task" in one["3.4"].evidence
    whole = answered(*_alike(3), texts=TEXTS)
    assert (whole["3.4"].answer, whole["1.7"].answer) == ("Yes", "Yes")
    more = answered(*_alike(3), attempt_row("P1", "t9", brief_sha256="b"), texts=TEXTS)
    assert (more["3.4"].answer, more["1.7"].answer) == ("Partial", "Partial")
    assert "models attempted 3 of people's 4 tasks" in more["1.7"].evidence
    own = answered(*_alike(3))
    assert own["3.4"].answer == "Partial"
    assert "people read the study's own rules, which no model got" in own["3.4"].evidence
    other = answered(*_alike(3, system="agent-1"), texts=TEXTS)
    assert other["3.4"].answer == "Partial"
    assert "models got other system prompts than agent-2: agent-1" in other["3.4"].evidence


def test_instructions_that_are_the_same_for_some_tasks_are_partly_the_same() -> None:
    rows = [
        attempt_row("P1", "t1", brief_sha256="b1"),
        attempt_row(solver="m", task="t1", brief_sha256="b1"),
        attempt_row("P1", "t2", brief_sha256="b2"),
        attempt_row(solver="m", task="t2", brief_sha256="b3"),
    ]
    assert answered(*rows)["3.4"].answer == "Partial"


def test_a_preregistration_counts_only_if_the_study_was_opened_before_the_first_attempt() -> None:
    protocol = Protocol(preregistration="https://osf.io/x")
    opened = operation("opened", 100, protocol="abc")
    begun = {when: operation("begun", when, "person:P1", assignment="a", attempt="b") for when in (50, 150)}
    assert answered(protocol=protocol)["1.10"].answer == "Partial"
    assert answered(protocol=protocol, operations=(opened, begun[50]))["1.10"].answer == "Partial"
    late = answered(protocol=protocol, operations=(opened, begun[150]))["1.10"]
    assert late.answer == "Yes"
    assert "opened-1" in late.evidence
    assert answered(operations=(opened,))["1.10"].open


@pytest.mark.parametrize(
    ("times", "last"), [((50,), 50), ((50, 60), 60), ((50, 60, 150), 60), ((150, 160), 160)]
)
def test_the_power_of_the_checklist_is_that_of_the_preregistration(times: tuple[int, ...], last: int) -> None:
    """Of several analyses, the last one before the opening counts."""
    made = tuple(
        operation("power", time, what="a rate", figures=[{"people": time, "half_width": 0.15}])
        for time in times
    )
    opened = operation("opened", 100, protocol="abc")
    found = answered(operations=(*made, opened))
    assert found["1.8.1"].answer == f"a rate: people {last}, half width 0.15"
    assert found["1.8"].answer == ("Yes" if last < 100 else "Partial")
    if last < 100:
        before = Ledger([one for one in made if one.utc_ms < 100]).study.last(PowerRecorded)
        facts = power_facts(before)
        assert str(facts["power/figures/1"]) in found["1.8.1"].answer


def test_power_in_words_is_half_an_answer_and_figures_before_opening_a_whole_one() -> None:
    power, opened = (
        operation("power", 50, what="a rate", figures=[{"people": 12, "half_width": 0.15, "power": None}]),
        operation("opened", 100, protocol="abc"),
    )
    assert answered(protocol=Protocol(power="Enough."))["1.8"].answer == "Partial"
    assert answered(operations=(power, opened))["1.8"].answer == "Yes"
    assert answered(operations=(power, opened))["1.8.1"].answer == "a rate: people 12, half width 0.15"
    assert answered(operations=(operation("power", 150, figures=[]), opened))["1.8"].answer == "Partial"


def test_tests_and_intervals_are_those_of_the_report() -> None:
    rows = (attempt_row("P1"), attempt_row(solver="m"))
    without = answered(*rows)
    both = answered(
        *rows, estimated=Estimated(frozenset({"bp-2", "versus"}), frozenset({"bp-2", "versus"}), "bp-2")
    )
    assert (without["4.1"].answer, without["4.2"].answer) == ("No", "No")
    assert (both["4.1"].answer, both["4.2"].answer) == ("Yes", "Yes")
    other = answered(*rows, estimated=Estimated(frozenset({"versus"}), frozenset({"versus"}), "bp-2"))
    assert other["4.2"].answer == "Partial"


def test_robustness_is_never_claimed() -> None:
    row = attempt_row("P1", counted=False, exclusion="exposed")
    assert answered(row, estimated=Estimated(frozenset({"sensitivity"})))["4.6"].answer == "Partial"
    assert answered(row)["4.6"].open


def test_a_person_answers_what_the_program_can_not() -> None:
    found = answered(
        checklist={"1.9": "exempted, board X", "1.6": "Yes: a pilot", "1.1": "a hundred"},
        participants=Participants(pay=Pay(base="20 an hour", equal=True)),
    )
    assert found["1.9"].answer == "exempted, board X"
    assert found["1.6"].answer == "Yes: a pilot"
    assert "there is no record of it" in found["1.6"].evidence
    assert found["1.1"].answer == "0"
    assert "The authors add: a hundred" in found["1.1"].evidence
    assert (found["2.7"].answer, found["2.7.1"].answer, found["2.7.3"].answer) == ("Yes", "20 an hour", "Yes")
    assert found["2.7.2"].open


def test_exclusions_are_counted_by_rule() -> None:
    rows = (attempt_row("P1"), attempt_row("P2", counted=False, exclusion="exposed"))
    found = answered(*rows, quality=Quality(exclude_on=("exposed",)))
    assert (found["3.2.2"].answer, found["3.2.2"].evidence) == ("1 of 2", "by rule: exposed 1")
