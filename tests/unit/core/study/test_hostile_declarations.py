"""Any study.toml yields either a study or one sentence with the reason why not."""

from __future__ import annotations

import math
import tomllib
from datetime import date
from typing import Any

import pytest
import tomli_w
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from study_parts import DECLARATION, StudyLog, declared, study_tasks

from gistpoint.core.study.declaration import Study
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.operations import STUDY, StudyError, StudyOperation, StudyOperationKind, person
from gistpoint.core.study.questions import asked, fault_of, wording_sha256
from gistpoint.core.study.reading import parse_study, protocol_sha256
from gistpoint.core.study.soundness import faults_with_tasks
from gistpoint.core.study.steps import (
    AttemptStep,
    FinishStep,
    LocalJournal,
    ReadyStep,
    RefusalReason,
    RefusedStep,
    Situation,
    Step,
    next_step,
)

FULL: dict[str, Any] = tomllib.loads(
    DECLARATION.replace(
        "tasks_per_person = 2", "tasks_per_person = 2\nquota = {remove = 1, hard = 1}"
    ).replace(
        'id = "alone"',
        'id = "alone"\nwords = "By yourself"\ntool_uses = 8\ntools = ["read_file"]\ncomforts_off = ["paste"]\n'
        'execution = true\nchat = {model = "m"}\nassistance = "chat"',
    )
    + """
[protocol]
hypotheses = ["More"]
primary_contrast = ["alone", "m"]
[[tag]]
id = "hard"
tasks = ["0000"]
[training]
tasks = ["0000"]
[participants]
strata = ["junior"]
screening = "before"
pay = {base = "10"}
[quality]
exclude_on = ["fast"]
flag_idle_share = 0.5
[[questionnaire]]
id = "before"
at = "before"
use = ["sources-1", "tlx-1"]
[[questionnaire.item]]
id = "editor"
text = "Which?"
kind = "choice"
options = ["a", "b"]
screen_out = ["b"]
[[questionnaire.item]]
id = "age"
text = "How old?"
kind = "number"
min = 0
max = 99.5
[[solver]]
name = "m"
runs = ["runs/*"]
condition = "alone"
cutoff = "2025-06"
[report]
hard = ["degree"]
[checklist]
"1.9" = "exempted"
"""
)
HOSTILE = st.one_of(
    st.sampled_from(["", "file:", "file:../x", "file:consent.md", "{source}", "[b]x[/b]", "a" * 5000]),
    st.sampled_from(["\x1b]0;x\x07", "\u202e", "\x00", "\u2028", "\U000e0041"]),
    st.sampled_from([0, -1, 2**31, 2**63, 2**70, -(2**70), True, 1.5, math.nan, math.inf, -0.0]),
    st.sampled_from([[], {}, [[]], [{}], {"x": 1}, [1, "a"], {"": ""}, date(2025, 6, 1), ["a", "a"]]),
    st.text(max_size=20),
)


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(found for key, item in inner for found in _places(item, (*place, key)))]


PLACES = _places(FULL)[1:]


def _changed(value: Any, place: tuple[Any, ...], new: Any, *, rename: bool) -> Any:
    if not place:
        return new
    key, rest = place[0], place[1:]
    if isinstance(value, dict):
        if rename and not rest:
            return {(f"{name}_" if name == key else name): item for name, item in value.items()}
        return {
            name: _changed(item, rest, new, rename=rename) if name == key else item
            for name, item in value.items()
        }
    return [_changed(item, rest, new, rename=rename) if n == key else item for n, item in enumerate(value)]


def _read(values: Any) -> Study | StudyError:
    def text_of(name: str) -> str:
        if name != "consent.md" and name != "rules.md":
            raise StudyError("It is not there.")
        return "Yes?"

    try:
        return parse_study(tomli_w.dumps(values), text_of)
    except StudyError as error:
        told = error
    assert "study.toml" in str(told)
    assert str(told).isprintable(), str(told)
    assert len(str(told)) < 3000
    return told


def test_the_declaration_that_is_changed_is_sound() -> None:
    assert isinstance(_read(FULL), Study)
    assert len(PLACES) > 70


@examples(500)
@given(st.sampled_from(PLACES), HOSTILE, st.booleans())
def test_a_hostile_value_is_refused_in_a_sentence_or_is_harmless(
    place: tuple[Any, ...], new: Any, rename: bool
) -> None:
    study = _read(_changed(FULL, place, new, rename=rename and isinstance(place[-1], str)))
    if isinstance(study, Study):
        tasks = study_tasks(6)
        assert len(protocol_sha256(study, tasks)) == 64
        for form in study.questionnaire:
            assert len(wording_sha256(asked(form, tasks.values()))) == 64
        assert all(fault.isprintable() for fault in faults_with_tasks(study, tasks))
        log = StudyLog(study, tasks)
        log.open()
        log.enrol("P1")
        log.consent("P1")
        for _ in range(3):
            next_step(study, tasks, log.ledger, "P1", Situation(log.now_ms, "111111"))
            for form in study.questionnaire:
                log.by("P1", "answers", questionnaire=form.id, values={})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
MEMBERS = [
    "assignments",
    "assignment",
    "attempt",
    "values",
    "questionnaire",
    "slot",
    "state",
    "data",
    "items",
    "task",
]


@examples(300)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([person("P1"), person(""), STUDY, "attempt:x", "erased"]),
            st.sampled_from([kind.value for kind in StudyOperationKind]) | st.text(max_size=4),
            st.dictionaries(st.sampled_from(MEMBERS), ANYTHING, max_size=4),
        ),
        max_size=8,
    )
)
def test_no_log_makes_the_next_step_crash(lines: list[tuple[str, str, dict[str, Any]]]) -> None:
    study, tasks = declared('[[questionnaire]]\nid = "b"\nat = "before"\nuse = ["sources-1"]'), study_tasks(4)
    log = StudyLog(study, tasks)
    log.open()
    log.enrol("P1")
    log.consent("P1")
    known = [
        StudyOperation(f"{n:032x}-hostile", "P1@111111", log.now_ms + n, subject, kind or "x", data)
        for n, (subject, kind, data) in enumerate(lines)
    ]
    operations, situation = [*log.operations, *known], Situation(log.now_ms, "111111")
    step = next_step(study, tasks, Ledger(operations), "P1", situation)
    assert isinstance(step, Step)
    assert next_step(study, tasks, Ledger(operations[::-1]), "P1", situation) == step


@pytest.mark.parametrize(
    ("assignments", "is_followed"),
    [
        ([["a", "gone", "alone", 1]], False),
        ([["a", f"{1:064x}", "gone", 1]], False),
        ([["a", f"{1:064x}", "alone", 1], ["a", f"{1:064x}", "alone", 1]], True),
        ([["a", f"{1:064x}", "alone", -5], ["b", "\x1b[2J", "\u202e", 2**62]], True),
    ],
)
def test_a_hostile_plan_is_refused_or_followed(assignments: list[list[Any]], is_followed: bool) -> None:
    study, tasks = declared(), study_tasks(4)
    log = StudyLog(study, tasks)
    log.open()
    log.enrol("P1")
    log.consent("P1")
    log.by("P1", "planned", assignments=assignments)

    def kind(**journals: LocalJournal) -> type:
        step = next_step(study, tasks, log.ledger, "P1", Situation(log.now_ms, "111111", journals))
        if isinstance(step, RefusedStep):
            assert step.reason is RefusalReason.PLAN_CHANGED
        return type(step)

    assert kind() is (ReadyStep if is_followed else RefusedStep)
    log.by("P1", "begun", assignment="a", attempt="t")
    assert kind(t=LocalJournal.UNFINISHED) is (AttemptStep if is_followed else RefusedStep)
    assert kind(t=LocalJournal.ENDED) is FinishStep


def test_answers_of_any_shape_are_judged() -> None:
    form = declared('[[questionnaire]]\nid = "b"\nat = "before"\nuse = ["tlx-1", "sources-1"]').questionnaire[
        0
    ]
    for question in asked(form, study_tasks(4).values()):
        for value in ([], {}, [[]], "x", -1, math.nan, True, 10**400, object()):
            assert fault_of(question, value), (question.id, value)
