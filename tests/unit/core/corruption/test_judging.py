"""A model reads functions blind: balanced versions, answers found in any reply, and a stop if it fails."""

from __future__ import annotations

from collections import Counter

import pytest
from scripted_endpoint import ScriptedModel, reply

from gistpoint.core.asking import BREAKER, JudgeEnd
from gistpoint.core.chat import ChatFailure, ChatProblem, Usage
from gistpoint.core.corruption.blind import (
    BlindAnswer,
    BlindItem,
    JudgeRequest,
    ModelAnswer,
    judge,
    judging_prompt,
    questions,
    read_answer_of,
)
from gistpoint.core.errors import CancelledError
from gistpoint.core.running import CancelToken
from gistpoint.core.tasks.model import Target

CODE = "def f(x):\n    y = x + 1\n    return y\n"
ITEMS = [
    BlindItem(f"{n:064}", "shop", Target("f.py", f"f{n}", CODE, CODE.replace("+", "-"))) for n in range(3)
]
GOOD = '{"answer": "fault", "line": 2, "words": "minus"}'
FAILED = ChatFailure(ChatProblem.SERVER_ERROR, "The endpoint is down.")


def test_each_function_comes_so_often_and_in_both_versions_alike() -> None:
    asked = list(questions(ITEMS, 3, 20))
    assert Counter(question.item.function for question in asked) == {item.function: 20 for item in ITEMS}
    versions = Counter((question.item.function, question.version) for question in asked)
    assert set(versions.values()) == {10}
    assert len({(question.item.function, question.seed) for question in asked}) == 60
    assert [q.version for q in asked] == [q.version for q in questions(ITEMS, 3, 20)]
    assert [q.version for q in asked] != [q.version for q in questions(ITEMS, 4, 20)]


def test_a_model_is_told_the_function_alone_with_its_lines_numbered() -> None:
    question = next(q for q in questions(ITEMS, 0, 2) if q.version == "corrupted")
    system, user = question.messages
    assert system.content == judging_prompt()
    assert user.content == "1 | def f(x):\n2 |     y = x - 1\n3 |     return y"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD, ModelAnswer(BlindAnswer.FAULT, 2, "minus")),
        (
            f"Hm {{a}} or {{'b': 1}}:\n```json\n{GOOD}\n```\nThat is all.",
            ModelAnswer(BlindAnswer.FAULT, 2, "minus"),
        ),
        ('{"answer": "nothing", "line": null}', ModelAnswer(BlindAnswer.NOTHING, None)),
        (
            '{"answer": "doubtful", "line": "3", "words": "if {x}"}',
            ModelAnswer(BlindAnswer.DOUBTFUL, 3, "if {x}"),
        ),
        (f'{{"answer": "nothing"}} no: {GOOD}', ModelAnswer(BlindAnswer.FAULT, 2, "minus")),
        ('{"answer": "bug", "line": 2}', None),
        ('{"answer": "fault", "line": -1}', None),
        ("", None),
        ("{" * 5_000 + "[" * 5_000, None),
    ],
)
def test_an_answer_is_found_in_whatever_stands_around_it(text: str, expected: ModelAnswer | None) -> None:
    assert read_answer_of(text)[0] == expected


def asked_of(
    model: ScriptedModel, max_cost_usd: float | None = None
) -> tuple[list[ModelAnswer], JudgeEnd, int, str]:
    kept: list[ModelAnswer] = []

    def keep(question: JudgeRequest, said: ModelAnswer, usage: Usage) -> None:
        kept.append(said)

    result = judge(questions(ITEMS, 0, 4), model, keep, max_cost_usd=max_cost_usd)
    return kept, result.end, len(model.asked), result.detail


def test_it_ends_when_nothing_comes_and_a_good_answer_restarts_the_count() -> None:
    good = reply(content=GOOD)
    kept, end, requests, _ = asked_of(ScriptedModel([good]))
    assert (len(kept), end, requests) == (12, JudgeEnd.ALL_ASKED, 12)
    bad = reply(content="I do not know.")
    kept, end, requests, detail = asked_of(ScriptedModel([bad, FAILED, good, bad, bad, FAILED]))
    assert (len(kept), end, requests) == (1, JudgeEnd.NO_ANSWERS, 3 + BREAKER)
    assert detail == "The endpoint is down."
    refused = ChatFailure(ChatProblem.NOT_AUTHORISED, "No.")
    assert asked_of(ScriptedModel([refused]))[1:3] == (JudgeEnd.ENDPOINT, 1)


def test_a_cap_holds_for_the_whole_set() -> None:
    priced = reply(content=GOOD, usage=Usage(100, 10, cost_usd=0.02))
    kept, end, requests, detail = asked_of(ScriptedModel([priced]), max_cost_usd=0.07)
    assert (len(kept), end, requests) == (3, JudgeEnd.COST_CAP, 3)
    assert "0.0600 of 0.07 dollars" in detail
    assert asked_of(ScriptedModel([reply(content=GOOD)]), max_cost_usd=9.0)[1:3] == (JudgeEnd.COST_CAP, 1)


def test_what_was_answered_before_a_stop_is_kept() -> None:
    cancel, kept = CancelToken(), list[ModelAnswer]()

    def keep(question: JudgeRequest, said: ModelAnswer, usage: Usage) -> None:
        kept.append(said)
        cancel.cancel()

    with pytest.raises(CancelledError):
        judge(questions(ITEMS, 0, 4), ScriptedModel([reply(content=GOOD)]), keep, cancel=cancel)
    assert len(kept) == 1
