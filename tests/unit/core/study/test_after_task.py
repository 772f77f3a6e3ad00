"""Questions after a task fit its mode, and the wordings of earlier versions keep their hashes."""

from __future__ import annotations

import msgspec
from study_parts import study_tasks

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.study.bank import block
from gistpoint.core.study.declaration import Moment, Questionnaire
from gistpoint.core.study.questions import asked, wording_sha256

TASKS = study_tasks(2)
FORM = Questionnaire(id="task", at=Moment.AFTER_TASK, item=block("after-task-2").item)


def ids(mode: str) -> list[str]:
    return [question.id for question in asked(FORM, TASKS.values(), mode)]


def test_what_was_wrong_is_asked_after_repairs_alone() -> None:
    common = ["ease", "felt_minutes", "knew_code", "seen_before"]
    assert ids("gist") == [*common, "how_shortened"]
    assert ids("remove") == ids("discovery") == [*common, "how_found"]
    assert [one.id for one in block("after-task-1").item] == [*common, "how_found"]


def test_the_hash_of_a_wording_without_modes_is_that_of_earlier_versions() -> None:
    questions = block("after-task-1").item
    spelled = msgspec.to_builtins(list(questions))
    for question in spelled:
        question.pop("modes")
    assert wording_sha256(questions) == sha256_of_json(spelled)
    assert wording_sha256(block("after-task-2").item[-1:]) != wording_sha256(
        [msgspec.structs.replace(block("after-task-2").item[-1], modes=())]
    )
