"""Methods and pre-registration: their templates contain no numbers, all of which are facts of the study."""

from __future__ import annotations

from typing import Any

import pytest
from study_rows import World, attempt_row, declared, study_data

from gistpoint.core.analysis.findings import Number
from gistpoint.core.analysis.primary import primary
from gistpoint.core.analysis.survival import curves
from gistpoint.core.study.confirmatory import LIMITS_OF_TIMES
from gistpoint.core.study.declaration import (
    Condition,
    DeclaredSolver,
    Design,
    Moment,
    Participants,
    PrimaryOutcome,
    Protocol,
    Questionnaire,
    Study,
    StudyTask,
    Training,
)
from gistpoint.core.study.facts import (
    methods_template,
    methods_text,
    prereg_template,
    preregistration,
    preregistration_markdown,
    study_facts,
)
from gistpoint.core.study.operations import StudyOperation
from gistpoint.core.study.prose import bare

OPEN = "TO BE FILLED IN"


@pytest.mark.parametrize("template", [methods_template(), prereg_template()], ids=["methods", "prereg"])
def test_no_digit_is_typed_into_a_template(template: str) -> None:
    assert [character for character in bare(template) if character.isdigit()] == []


def test_every_number_of_the_methods_is_a_fact() -> None:
    """If each fact is replaced by a word that no template has, no number is left."""
    facts = study_facts(World(model_rate=0.5).data(1, study=declared(**_FULL)))
    words = dict.fromkeys(facts, "FACT")
    assert all(
        "FACT" in p.text or not any(c.isdigit() for c in p.text.replace("P01", ""))
        for p in methods_text(words)
    )


_FULL = {
    "title": "Railway",
    "protocol": Protocol(
        question="How?", hypotheses=("Faster.",), power="Enough.", preregistration="https://osf.io/x"
    ),
    "design": Design(tasks_per_person=4, quota={"remove": 2}),
    "condition": (Condition(id="alone", tool_uses=16), Condition(id="assisted")),
    "training": Training(tasks=("t9",)),
    "participants": Participants(
        population="Engineers", criteria=("Python",), recruitment="Mail", screening="before"
    ),
    "questionnaire": (Questionnaire(id="before", at=Moment.BEFORE),),
    "solver": (DeclaredSolver(name="a/model", runs=("runs/*",), condition="alone"),),
}


def test_methods_say_what_was_done() -> None:
    data = study_data(
        [
            attempt_row("P1", confirmation="not asked"),
            attempt_row("P2", solved=False, exclusion="exposed", counted=False),
            attempt_row("P3", solved=False, by_tests=True, confirmation="contradicted"),
            attempt_row(solver="a/model"),
        ],
        study=declared(**_FULL),
        operations=[
            StudyOperation(
                "o1", "organiser@aaaaaa", 5, "study", "opened", {"protocol": "abc", "exclude_on": ["fast"]}
            ),
            StudyOperation(
                "o2",
                "organiser@aaaaaa",
                9,
                "study",
                "amended",
                {"protocol": "def", "why": "a typo", "exclude_on": []},
            ),
        ],
    )
    text = "\n".join(passage.text for passage in methods_text(study_facts(data)))
    counted = "counted: 2, of which solved: 1; solved by the tests alone, as papers count: 2; excluded: 1."
    assert f"Attempts by people: 3; {counted}" in text
    assert "Passes by the tests alone, contradicted: 1" in text
    assert "Passes by the tests alone, not asked: 1" in text
    assert "Excluded, exposed: 1" in text
    assert "Flags that excluded when the study was opened: fast." in text
    assert "Amendment 1: a typo; flags that exclude since then: none" in text
    assert "The protocol's hash is def." in text
    assert "a model, condition alone: attempts 1 on 1 tasks" in text
    assert "Condition alone (people and models): tool uses 16" in text
    assert "SIMULATED" not in text


def test_methods_of_a_simulated_study_say_so_first() -> None:
    passages = methods_text(study_facts(study_data([attempt_row("P1")], study=declared(simulated=True))))
    assert passages[1].text.startswith("SIMULATED.")


def _texts(study: Study) -> tuple[str, str]:
    """Return the methods and the pre-registration of a study."""
    tasks = {"t1": StudyTask(id="t1", mode="remove", source="railway")}
    methods = methods_text(study_facts(study_data([attempt_row("P1")], study=study)))
    both = methods, preregistration(study, tasks)
    return "\n".join(p.text for p in both[0]), "\n".join(p.text for p in both[1])


@pytest.mark.parametrize("outcome", PrimaryOutcome)
@pytest.mark.parametrize("persons", [1, 2, 3])
def test_what_has_too_few_persons_has_no_interval_as_the_texts_say(
    persons: int, outcome: PrimaryOutcome
) -> None:
    gists = outcome is PrimaryOutcome.FIDELITY
    measures: dict[str, Any] = {"mode": "gist", "fidelity": 1.0} if gists else {}
    rows = [
        attempt_row(
            f"P{n % persons}", f"t{n % 8}", n % 4 > 0 or gists, minutes=5 + n, attempt=f"{n}",
            condition="ab"[n // 3 % 2], **measures,
        )
        for n in range(48)
    ]  # fmt: skip
    study = declared(condition=(Condition(id="a"), Condition(id="b")), protocol=Protocol(primary=outcome))
    found = primary(study_data(rows, study=study))
    assert isinstance(found, Number)
    assert found.value is not None
    assert (found.low is None) == (persons < 3)
    for text in _texts(study):
        assert "Below 3 persons or 3 tasks there is no interval." in text
        assert "Nothing is estimated" not in text


@pytest.mark.parametrize("outcome", [PrimaryOutcome.TIME_TO_SOLVE, PrimaryOutcome.TIME_RATIO])
def test_giving_up_counts_in_times_as_the_texts_say(outcome: PrimaryOutcome) -> None:
    """In regressions like a limit at that moment, and only in curves also as a competing event."""
    study = declared(condition=(Condition(id="a"), Condition(id="b")), protocol=Protocol(primary=outcome))
    estimates = []
    for end in ("gave_up", "time_cap"):
        rows = [
            attempt_row(
                f"P{n % 6}", f"t{n % 8}", n % 4 > 0, minutes=5 + n % 17, attempt=f"{n}",
                condition="ab"[n % 3 == 0], **({} if n % 4 else {"end": end}),
            )
            for n in range(48)
        ]  # fmt: skip
        data = study_data(rows, study=study)
        curve = curves(data).numbers
        found = primary(data)
        assert isinstance(found, Number)
        estimates.append(found.value)
        a, b = curve["people, a/remove/end_a"].value, curve["people, a/remove/end_b"].value
        assert a is not None
        assert b is not None
        assert (a - b > 0.01) == (end == "gave_up")
    assert estimates[0] == estimates[1]
    for text in _texts(study):
        assert LIMITS_OF_TIMES in text
        assert "Attempts that were given up or ended at a limit are censored at their time." in text
        assert "both bounds are given" not in text


def test_a_preregistration_asks_for_what_the_declaration_leaves_open() -> None:
    tasks = {"t1": StudyTask(id="t1", mode="remove", source="railway")}
    bare_study = [passage.text for passage in preregistration(declared(), tasks)]
    full = [passage.text for passage in preregistration(declared(**_FULL), tasks)]
    assert sum(text.startswith(OPEN) for text in bare_study) == 8
    assert [text for text in full if text.startswith(OPEN)] == [
        "TO BE FILLED IN: how many people (study.toml, participants.cap; study power says what to expect).",
        "TO BE FILLED IN: the precision that the design promises (run study power).",
    ]
    assert {"Faster.", "Mode remove: tasks 1", "Enough."} <= set(full)
    assert "## Stopping rule" in preregistration_markdown(declared(), tasks)
