"""Methods and pre-registration: their templates contain no numbers, all of which are facts of the study."""

from __future__ import annotations

import pytest
from study_rows import World, attempt_row, declared, study_data

from gistpoint.core.study.declaration import (
    Condition,
    DeclaredSolver,
    Design,
    Moment,
    Participants,
    Protocol,
    Questionnaire,
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
