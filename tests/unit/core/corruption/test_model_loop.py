"""The loop ends with a reason whatever a model does, keeps the right submission, and records every round."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_endpoint import ScriptedModel, reply
from small_trees import tree_of

from gistpoint.core.chat import ChatFailure, ChatProblem, ChatReply, Usage
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.corruption.blind import GlanceScore
from gistpoint.core.corruption.corruptions import clue_of
from gistpoint.core.corruption.model import MOST_EMPTY_REPLIES, ModelLoop, unread
from gistpoint.core.corruption.prompt import render_template, template_sha256, template_text
from gistpoint.core.corruption.rounds import (
    Appearance,
    End,
    Keep,
    LoopResult,
    LoopSettings,
    ModelTrial,
    Reader,
    SubmissionVerdict,
)
from gistpoint.core.errors import CancelledError
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tasks.model import Failure, Target, ToolLimits
from gistpoint.core.tools.declaration import ToolContext

MODULE = '''"""Prices."""
import functools


@functools.cache
def discount(price, percent=10):
    """Return the price with a percentage taken off."""
    # whole cents
    return price - price * percent // 100
'''
FIRST = "def discount(price, percent=10):\n"
DOC = '    """Return the price with a percentage taken off."""\n    # whole cents\n'
GOOD = f"{FIRST}{DOC}    return price - price * percent // 101\n"
BETTER = f"{FIRST}{DOC}    return price - (price * percent + 1) // 100\n"
WEAK = f"{FIRST}{DOC}    return price - price * percent // 100 + 0\n"
OTHERS = [GOOD.replace("101", f"10{n}") for n in range(2, 5)]
FAILING = {
    **{f"// 10{n}": (4, 0.4) for n in range(2, 5)},
    "// 101": (4, 0.4),
    "+ 1)": (3, 0.9),
    "+ 0": (1, 0.95),
}


def tried(target: Target) -> ModelTrial:
    failing, subtlety = next(value for mark, value in FAILING.items() if mark in target.corrupted)
    failures = (Failure("tests/test_shop.py::test_total", "E   assert 1 == 2"),)
    return ModelTrial(
        SubmissionVerdict.ACCEPTED, failing, 40, failing, 0, failures=failures, subtlety=subtlety
    )


def submit(code: object) -> tuple[str, object]:
    return "submit_attempt", {"func_code": code}


def loop_of(
    tmp_path: Path,
    *script: ChatReply | ChatFailure,
    settings: LoopSettings | None = None,
    try_out: Callable[[Target], ModelTrial] = tried,
    cancel: CancelToken = NEVER,
    read: Reader = unread,
) -> tuple[LoopResult, ScriptedModel]:
    tree = tree_of(
        {"shop/prices.py": MODULE, "tests/test_shop.py": "def test_total():\n    assert True\n"}, tmp_path
    )
    model = ScriptedModel(script)
    function = FunctionRef("shop/prices.py", "discount")
    context = ToolContext(tree, ToolLimits(), str(function), frozenset({"tests/test_shop.py"}))
    loop = ModelLoop(
        model, context, function, "the prompt", clue_of, tried if try_out is None else try_out,
        settings or LoopSettings(), cancel=cancel, read=read,
    )  # fmt: skip
    return loop.run(), model


def answers(model: ScriptedModel, request: int) -> list[str]:
    return [message.content for message in model.asked[request] if message.role == "tool"]


def test_five_rounds_of_feedback_then_the_final_one_and_the_most_subtle_is_kept(tmp_path: Path) -> None:
    browse = ("read_function", {"function_name": "discount", "file_path": "shop/prices.py"})
    script = [reply(browse), reply(submit(GOOD)), reply(submit(BETTER)), reply(submit(WEAK))]
    result, model = loop_of(tmp_path, *script, *(reply(submit(code)) for code in OTHERS), reply(submit(GOOD)))
    assert result.end is End.FINAL_SUBMISSION
    assert [item.verdict for item in result.rounds] == [
        SubmissionVerdict.ACCEPTED,
        SubmissionVerdict.ACCEPTED,
        SubmissionVerdict.TOO_FEW_FAILING,
        *[SubmissionVerdict.ACCEPTED] * 3,
    ]
    assert (result.tool_calls, result.requests, result.usage) == (7, 7, Usage(700, 70))
    assert result.kept is not None
    assert result.kept.number == 2
    assert result.kept.target is not None
    assert result.kept.target.corrupted.startswith("@functools.cache\ndef discount")
    told = answers(model, 3)
    assert "@functools.cache" in told[0]
    assert "4 of 40 tests fail. 4 of them fail by an assertion." in told[1]
    assert "within the aim of 2 to 15" in told[1]
    assert "tests/test_shop.py::test_total" in told[1]
    assert "[28 tool calls and 4 rounds of test feedback left" in told[1]
    assert "At least 2 must fail, so this does not count" in answers(model, 4)[3]
    assert "no more test feedback: the next submission is the final one" in answers(model, 6)[-1]
    for message in answers(model, 6):
        assert "perfect" not in message


def test_final_keeps_the_last_one_and_nothing_where_that_one_fails(tmp_path: Path) -> None:
    settings = LoopSettings(feedback_rounds=1, keep=Keep.FINAL)
    result, _ = loop_of(tmp_path, reply(submit(BETTER)), reply(submit(GOOD)), settings=settings)
    assert result.kept is not None
    assert result.kept.number == 2
    result, _ = loop_of(tmp_path, reply(submit(BETTER)), reply(submit(WEAK)), settings=settings)
    assert result.kept is None
    assert replace(result, settings=LoopSettings()).kept is not None


def test_a_text_sent_again_is_told_so_with_its_result_and_ends_it_after_three(tmp_path: Path) -> None:
    ran: list[str] = []

    def once(target: Target) -> ModelTrial:
        ran.append(target.corrupted)
        return tried(target)

    clue = GOOD.replace("# whole cents", "# BUG here")
    script = [
        reply(submit(code)) for code in (GOOD, clue, GOOD + "\n", "nonsense(", "nonsense(", clue, BETTER)
    ]
    result, model = loop_of(tmp_path, *script, try_out=once)
    assert result.end is End.SENT_AGAIN
    assert (len(ran), result.requests) == (1, 6)
    assert [item.again for item in result.rounds] == [None, None, 1, None, 4, 2]
    assert result.kept is not None
    told = answers(model, 5)
    assert "This is submission 1 again, word for word; nothing was run. 4 of 40 tests fail." in told[2]
    assert "within the aim" in told[2]
    assert "After 2 more texts" in told[2]
    assert "4 rounds of test feedback left" in told[2]
    assert "submission 4 again" in told[4]
    assert "It was refused" in told[4]
    assert [item.as_json().get("again") for item in result.rounds] == [None, None, 1, None, 4, 2]


def test_the_final_submission_may_be_one_that_was_tried(tmp_path: Path) -> None:
    settings = LoopSettings(feedback_rounds=2, keep=Keep.FINAL)
    result, _ = loop_of(
        tmp_path, *(reply(submit(code)) for code in (BETTER, WEAK, BETTER)), settings=settings
    )
    assert result.end is End.FINAL_SUBMISSION
    assert result.kept is not None
    assert (result.kept.number, result.kept.again) == (3, 1)


def test_what_a_reader_sees_is_told_refuses_nothing_and_decides_which_is_kept(tmp_path: Path) -> None:
    def read(target: Target) -> Appearance:
        if "+ 1)" in target.corrupted:
            return Appearance(("it shows at a glance (branches end alike)",), GlanceScore(0.9, {}), seen=True)
        return Appearance((), GlanceScore(0.2, {}))

    result, model = loop_of(
        tmp_path, reply(submit(BETTER)), reply(submit(GOOD)), reply(content="Done."), read=read
    )  # fmt: skip
    first, second = answers(model, 2)
    assert "3 of 40 tests fail" in first
    assert "put at 90 %" in first
    assert "it shows at a glance (branches end alike)" in first
    assert "put at 20 %" in second
    assert "may be kept all the same" not in second
    assert result.kept is not None
    assert result.kept.number == 2
    assert result.as_json()["rounds"][0]["rules"] == ["it shows at a glance (branches end alike)"]
    alone, _ = loop_of(tmp_path, reply(submit(BETTER)), reply(content="Done."), read=read)
    assert alone.kept is not None


def test_one_within_the_aim_is_kept_rather_than_a_loud_one(tmp_path: Path) -> None:
    def loud(target: Target) -> ModelTrial:
        failing, subtlety = (30, 0.9) if "+ 1)" in target.corrupted else (4, 0.4)
        return ModelTrial(SubmissionVerdict.ACCEPTED, failing, 40, failing, 0, subtlety=subtlety)

    result, _ = loop_of(
        tmp_path, reply(submit(BETTER)), reply(submit(GOOD)), reply(content="Done."), try_out=loud
    )  # fmt: skip
    assert result.kept is not None
    assert result.kept.number == 2


def test_all_tests_failing_is_called_too_loud(tmp_path: Path) -> None:
    result, model = loop_of(
        tmp_path, reply(submit(GOOD)), reply(submit(BETTER)),
        settings=LoopSettings(feedback_rounds=1), try_out=lambda target: ModelTrial(SubmissionVerdict.ACCEPTED, 40, 40),
    )  # fmt: skip
    assert "more than the aim of 2 to 15 failing tests" in answers(model, 1)[0]
    assert result.kept is not None


@pytest.mark.parametrize(
    ("code", "verdict", "said"),
    [
        ("", SubmissionVerdict.NO_DEFINITION, "empty"),
        ("def discount(price, percent=10:\n  pass", SubmissionVerdict.NO_DEFINITION, "line 1"),
        (GOOD + "\n\ndef more():\n    pass\n", SubmissionVerdict.NO_DEFINITION, "not one definition"),
        ("import os\n" + GOOD, SubmissionVerdict.NO_DEFINITION, "not one definition"),
        ("```python\n" + GOOD + "```", SubmissionVerdict.NO_DEFINITION, "Markdown"),
        (GOOD.replace("discount", "rebate"), SubmissionVerdict.NO_DEFINITION, "not discount"),
        ("class discount:\n    pass", SubmissionVerdict.NO_DEFINITION, "class"),
        ("@property\n" + GOOD, SubmissionVerdict.NO_DEFINITION, "decorators"),
        (GOOD.replace("// 101", "// 100"), SubmissionVerdict.UNCHANGED, "behaves as it did"),
        (GOOD.replace("percent=10", "percent=11"), SubmissionVerdict.CLUE, "definition was changed"),
        (GOOD.replace("# whole cents", "# BUG here"), SubmissionVerdict.CLUE, "comment '# BUG here' is new"),
        (GOOD.replace("// 101", "// 101  # changed"), SubmissionVerdict.CLUE, "is new"),
        (GOOD.replace("taken off", "taken away"), SubmissionVerdict.CLUE, "docstring was changed"),
        (GOOD.replace("    return", "    print('here')\n    return"), SubmissionVerdict.CLUE, "'here' is new"),
        ("def discount(price, percent=10):\n    return '\ud800'\n", SubmissionVerdict.NO_DEFINITION, "surrogate"),
        ("x" * 1_000_001, SubmissionVerdict.NO_DEFINITION, "at most"),
    ],
)  # fmt: skip
def test_code_that_is_no_corruption_is_refused_before_any_test(
    tmp_path: Path, code: str, verdict: SubmissionVerdict, said: str
) -> None:
    def never(target: Target) -> ModelTrial:
        raise AssertionError("tests were run")

    settings = LoopSettings(tool_calls=1)
    result, _ = loop_of(tmp_path, reply(submit(code)), settings=settings, try_out=never)
    (only,) = result.rounds
    assert only.verdict is verdict
    assert said in only.detail
    assert result.end is End.TOOL_CALLS
    assert result.kept is None


def test_refused_code_costs_a_tool_call_and_no_feedback(tmp_path: Path) -> None:
    _, model = loop_of(tmp_path, reply(submit("nonsense(")), reply(submit(GOOD)), reply(content="Done."))
    assert answers(model, 1)[0].startswith("Refused before any test ran: ")
    assert "[29 tool calls and 5 rounds of test feedback left" in answers(model, 1)[0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("submit_attempt", "{not json"), "are not JSON"),
        (("submit_attempt", "[" * 100_000), "are not JSON"),
        (("submit_attempt", "[1, 2]"), "must be one JSON object"),
        (("submit_attempt", {}), "needs the argument 'func_code'"),
        (("submit_attempt", {"func_code": 3}), "must be a string"),
        (("submit_attempt", {"func_code": GOOD, "x": 1}), "has no argument 'x'"),
        (("run_shell", {"command": "ls"}), "there is no tool 'run_shell'"),
        (("", {}), "there is no tool ''"),
        (("read_file", {"file_path": "../secret"}), "leads upwards"),
        (("replace_function", {"func_code": GOOD}), "there is no tool 'replace_function'"),
    ],
)
def test_malformed_calls_are_answered_and_the_loop_goes_on(
    tmp_path: Path, call: tuple[str, object], said: str
) -> None:
    result, model = loop_of(tmp_path, reply(call), reply(submit(GOOD)), reply(content="Done."))
    assert said in answers(model, 1)[0]
    assert result.end is End.STOPPED_BY_MODEL
    assert result.kept is not None
    sent_back = model.asked[1][1].tool_calls[0]
    json.loads(sent_back.arguments)
    assert sent_back.name


def test_every_call_of_a_reply_is_answered_under_its_own_id(tmp_path: Path) -> None:
    listing = ("list_directory", {"path": ""})
    settings = LoopSettings(tool_calls=2)
    first = reply(listing, listing, submit(GOOD), ids=["same", "same", ""])
    result, model = loop_of(tmp_path, first, settings=settings)
    assert (result.end, result.tool_calls, result.rounds) == (End.TOOL_CALLS, 2, ())
    assert len(model.asked) == 1
    _, model = loop_of(tmp_path, first, reply(content="Done."), settings=LoopSettings(tool_calls=9))
    asked = model.asked[1][1].tool_calls
    assert len({call.id for call in asked}) == 3
    assert [message.tool_call_id for message in model.asked[1] if message.role == "tool"] == [
        c.id for c in asked
    ]


def test_calls_of_two_replies_with_one_id_are_told_apart(tmp_path: Path) -> None:
    look = reply(("list_directory", {}), ids=["same"])
    _, model = loop_of(tmp_path, look, look, look, settings=LoopSettings(tool_calls=3))
    ids = [call.id for message in model.asked[-1] for call in message.tool_calls]
    assert ids == ["same", "call00002"]
    assert [message.tool_call_id for message in model.asked[-1] if message.role == "tool"] == ids


def test_at_the_last_call_without_a_submission_only_submitting_is_offered(tmp_path: Path) -> None:
    listing = ("list_directory", {"path": ""})
    _, model = loop_of(tmp_path, reply(listing), reply(submit(GOOD)), settings=LoopSettings(tool_calls=2))
    assert len(model.offered[0]) == 6
    assert model.offered[1] == ["submit_attempt"]


def test_a_model_that_never_calls_a_tool_is_reminded_and_then_left(tmp_path: Path) -> None:
    result, model = loop_of(tmp_path, reply(content="I would change the sign."))
    assert result.end is End.NO_TOOL_CALL
    assert len(model.asked) == MOST_EMPTY_REPLIES
    assert "called no tool" in model.asked[1][-1].content


def test_truncated_replies(tmp_path: Path) -> None:
    result, model = loop_of(tmp_path, reply(content="Let me", finish="length"))
    assert result.end is End.TRUNCATED
    assert "cut off" in model.asked[1][-1].content
    cut = reply(("submit_attempt", '{"func_code": "def disc'), finish="length")
    result, _ = loop_of(tmp_path, cut, reply(submit(GOOD)), reply(content="Done."))
    assert result.kept is not None


@pytest.mark.parametrize("first", [reply(refusal="I can't help with that."), reply(finish="content_filter")])
def test_refusals_end_it(tmp_path: Path, first: ChatReply) -> None:
    result, model = loop_of(tmp_path, first)
    assert result.end is End.REFUSED
    assert len(model.asked) == 2
    assert result.detail


def test_other_members_of_a_reply_stay_with_it(tmp_path: Path) -> None:
    signed = {"reasoning_details": [{"signature": "abc"}]}
    talks = reply(content="Let me think.")
    calls = reply(submit(GOOD))
    script = [
        replace(said, message=replace(said.message, extra=signed, host="h")) for said in (talks, calls, talks)
    ]
    _, model = loop_of(tmp_path, *script)
    said = [message for message in model.asked[-1] if message.role == "assistant"]
    assert [(message.extra, message.host) for message in said] == [(signed, "h")] * 2


def test_the_words_of_a_filter_are_not_the_model_s(tmp_path: Path) -> None:
    filtered = reply(refusal="The response was filtered.", finish="content_filter")
    result, model = loop_of(tmp_path, filtered)
    assert (result.end, result.detail) == (End.REFUSED, "The response was filtered.")
    assert [message.role for message in model.asked[-1]] == ["user", "user"]


@pytest.mark.parametrize("problem", list(ChatProblem))
def test_what_an_endpoint_does_ends_it_with_its_reason_and_keeps_what_was_accepted(
    tmp_path: Path, problem: ChatProblem
) -> None:
    failure = ChatFailure(problem, "The endpoint is gone.", usage=Usage(7, 0), retried=(problem, problem))
    result, _ = loop_of(tmp_path, reply(submit(GOOD)), failure)
    assert result.end.value == problem.value
    assert result.detail == "The endpoint is gone."
    assert result.kept is not None
    assert result.retried == {problem.value: 2}
    assert result.usage == Usage(107, 10)


@pytest.mark.parametrize(
    ("settings", "usage", "end", "requests"),
    [
        (LoopSettings(max_tokens=350), Usage(100, 10), End.TOKEN_CAP, 3),
        (LoopSettings(max_tokens=100), Usage(100, 10), End.TOKEN_CAP, 1),
        (LoopSettings(max_cost_usd=0.5), Usage(100, 10, cost_usd=0.2), End.COST_CAP, 2),
        (LoopSettings(max_cost_usd=0.5), Usage(100, 10), End.COST_UNKNOWN, 1),
    ],
)
def test_caps_hold(tmp_path: Path, settings: LoopSettings, usage: Usage, end: End, requests: int) -> None:
    browse = reply(("list_directory", {"path": ""}), usage=usage)
    result, model = loop_of(tmp_path, browse, settings=settings)
    assert (result.end, len(model.asked)) == (end, requests)
    if settings.max_tokens is not None and requests > 1:
        assert result.usage.tokens <= settings.max_tokens
    if settings.max_cost_usd is not None:
        assert (result.usage.cost_usd or 0) <= settings.max_cost_usd


def test_cancelled(tmp_path: Path) -> None:
    cancel = CancelToken()

    def stop(target: Target) -> ModelTrial:
        cancel.cancel()
        return tried(target)

    with pytest.raises(CancelledError):
        loop_of(tmp_path, reply(submit(GOOD)), try_out=stop, cancel=cancel)


def test_everything_is_recorded(tmp_path: Path) -> None:
    result, _ = loop_of(tmp_path, reply(submit("nonsense(")), reply(submit(GOOD)), reply(content="Done."))
    record = json.loads(json.dumps(result.as_json()))
    assert record["model"] == "scripted"
    assert record["answered_as"] == ["m-1"]
    assert record["template_sha256"] == template_sha256()
    assert [item["verdict"] for item in record["rounds"]] == ["no_single_definition", "accepted"]
    assert [item["code"] for item in record["rounds"]] == ["nonsense(", GOOD]
    assert record["rounds"][1]["failing"] == 4
    assert record["kept"] == 2
    assert record["usage"]["tokens"] == 330
    assert record["settings"]["keep"] == "best"


def test_the_template_is_the_papers_with_its_five_fields_filled_in_once() -> None:
    text = render_template(
        function_path="a/b.py", func_code="def f(): return '{test_examples}'", test_examples="{func_code}",
        test_budget=5, max_iterations=30,
    )  # fmt: skip
    assert text.startswith(
        "You are an expert Python programmer tasked with introducing a bug in a function located"
    )
    assert "located in a/b.py." in text
    assert text.count("def f(): return '{test_examples}'") == 1
    assert "test feedback (max 5 times)" in text
    assert "at most 30 times" in text
    assert template_text().count("{") == 5
    assert template_sha256() == "45e01303f080865b52b23c21e3c172668b629f1e9b7710a367b6dc3f92610d11"
