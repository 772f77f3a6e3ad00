"""The members of a reply that are not read: kept, journalled, and sent back to the host that sent them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_attempts import LOOK, SOLVE, AtWork, repair_at_work
from recorders import Memory
from scripted_endpoint import Answer, Endpoint, completion, endpoint

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.events import ModelTurn, OtherEvent, event_data
from gistpoint.core.attempts.state import fold
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.sandbox.endpoints import other_members
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings
from gistpoint.sessions.exports.atif import atif_text
from gistpoint.sessions.journal import JOURNAL, encode
from gistpoint.sessions.runs.opening import open_run

KEY = "sk-secret-0123456789/abc"
SIGNED = {"google": {"thought_signature": "EjQKMgEMOdbH"}}
DETAILS = [{"type": "reasoning.text", "text": "Where?", "signature": "EvgC", "index": 0}]


def model_at(url: str, **changes: Any) -> OpenAICompatibleModel:
    return OpenAICompatibleModel(EndpointSettings("m", url, ApiKey(KEY), timeout_s=60.0, **changes))


def signed(call: tuple[str, object], of_call: object = SIGNED, **message: object) -> Answer:
    """Return a completion whose call and message have other members."""
    answer = completion(None, call, **message)
    assert isinstance(answer.body, dict)
    answer.body["choices"][0]["message"]["tool_calls"][0]["extra_content"] = of_call
    return answer


def worked(folder: Path, *steps: Any) -> tuple[AtWork, Endpoint]:
    work = repair_at_work(folder)
    with endpoint(*steps) as served:
        work.go(model_at(served.url), AgentSettings(context_tokens=1_000_000))
    return work, served


def turn_of(work: AtWork) -> ModelTurn:
    return work.state.turns[0]


def sent_of(served: Endpoint, request: int = 1) -> dict[str, Any]:
    """Return the first reply in the form in which a request sends it back."""
    messages = served.requests[request]["messages"]
    found: dict[str, Any] = next(message for message in messages if message["role"] == "assistant")
    return found


def test_a_signature_is_sent_back_with_its_call_and_its_message(tmp_path: Path) -> None:
    work, served = worked(tmp_path, signed(LOOK, reasoning_details=DETAILS), signed(SOLVE))
    assert work.ended == ("solved", "")
    sent = sent_of(served)
    assert sent["reasoning_details"] == DETAILS
    assert sent["tool_calls"][0]["extra_content"] == SIGNED
    assert sent["tool_calls"][0]["function"]["name"] == LOOK[0]


def test_members_of_a_function_are_sent_back_within_it(tmp_path: Path) -> None:
    answer = completion(None, LOOK)
    assert isinstance(answer.body, dict)
    answer.body["choices"][0]["message"]["tool_calls"][0]["function"]["thought_signature"] = "abc"
    work, served = worked(tmp_path, answer, completion(None, SOLVE))
    function = sent_of(served)["tool_calls"][0]["function"]
    assert function == {"name": LOOK[0], "arguments": json.dumps(LOOK[1]), "thought_signature": "abc"}
    assert work.ended == ("solved", "")


def test_members_that_servers_only_send_or_that_are_empty_are_not_kept(tmp_path: Path) -> None:
    nothing = {"annotations": [{"url": "x"}], "audio": {"id": "a"}, "refusal": None, "function_call": None}
    empty = {"images": [], "note": "", "meta": {}, "thing": None}
    work, served = worked(tmp_path, completion(None, LOOK, **nothing, **empty), completion(None, SOLVE))
    turn = turn_of(work)
    assert not turn.extra
    assert not turn.host
    assert sent_of(served).keys() == {"role", "content", "tool_calls"}


def test_a_zero_or_false_is_a_value(tmp_path: Path) -> None:
    _, served = worked(tmp_path, completion(None, LOOK, prefix=False, weight=0), completion(None, SOLVE))
    assert sent_of(served)["prefix"] is False
    assert sent_of(served)["weight"] == 0


def test_another_host_gets_none_of_them(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    with endpoint(signed(LOOK, reasoning_details=DETAILS)) as first:
        work.go(model_at(first.url), stop=lambda: bool(work.state.turns))
        again = work.cut(len(work.memory.events))
    with endpoint(completion(None, SOLVE)) as second:
        again.go(model_at(second.url))
    assert again.ended == ("solved", "")
    text = json.dumps(second.requests)
    assert "reasoning_details" not in text
    assert "thought_signature" not in text
    assert sent_of(second, 0)["tool_calls"][0].keys() == {"id", "type", "function"}


def test_the_same_host_gets_them_after_the_process_died(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    with endpoint(signed(LOOK, reasoning_details=DETAILS), completion(None, SOLVE)) as served:
        work.go(model_at(served.url), stop=lambda: bool(work.state.turns))
        again = work.cut(len(work.memory.events))
        again.go(model_at(served.url))
    assert sent_of(served)["reasoning_details"] == DETAILS
    assert sent_of(served)["tool_calls"][0]["extra_content"] == SIGNED


@pytest.mark.parametrize(
    "value",
    [
        KEY,
        {"deep": [{"er": f"the key is {KEY}."}]},
        {KEY: "as a name"},
        json.dumps({"k": KEY}).replace("-", "\\u002d"),
        json.dumps({"k": KEY}).replace("/", "\\/"),
    ],
)
def test_a_key_is_taken_out_of_them(value: object) -> None:
    with endpoint(signed(LOOK, {"of_call": value}, of_message=value)) as served:
        reply = model_at(served.url).complete([ChatMessage("user", "Hello.")], [])
    assert isinstance(reply, ChatReply)
    kept = json.dumps([reply.message.extra, reply.message.tool_calls[0].extra])
    assert kept.count("[key]") == 2
    assert not any(part in kept for part in (KEY, "u002d", "\\\\/"))


def test_they_are_bounded_together_and_what_is_left_out_is_named_in_the_journal(tmp_path: Path) -> None:
    half = "x" * (other_members.MOST_CHARACTERS // 2)
    work, served = worked(tmp_path, signed(LOOK, half, first=half, second="small"), completion(None, SOLVE))
    turn = turn_of(work)
    # The calls come first, because a call without its signature can't be sent back.
    assert turn.tool_calls[0].extra == {"extra_content": half}
    assert turn.extra == {"second": "small"}
    assert turn.left_out == ("first",)
    assert turn.written()["left_out"] == ("first",)
    assert "first" not in sent_of(served)
    assert work.ended == ("solved", "")


def nested(depth: int) -> object:
    value: object = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(nested(40)),
        json.dumps(nested(150)),
        "NaN",
        "[1e999]",
        "-Infinity",
        "1" * 400,
        '{"a": [' + "9" * 30 + "]}",
    ],
    ids=lambda text: text[:12],
)
def test_what_a_journal_can_not_hold_is_left_out_and_named(tmp_path: Path, text: str) -> None:
    body = json.dumps(signed(LOOK, "OF_CALL", odd="ODD").body)
    body = body.replace('"ODD"', text).replace('"OF_CALL"', text)
    work, _ = worked(tmp_path, Answer(body), completion(None, SOLVE))
    turn = turn_of(work)
    assert not turn.extra
    assert not turn.tool_calls[0].extra
    assert set(turn.left_out or ()) == {"odd", "extra_content"}
    for event in work.memory.events:
        json.loads(encode(event), parse_constant=pytest.fail)
    assert work.ended == ("solved", "")


def test_a_reply_too_deep_to_be_read_is_the_endpoint_s() -> None:
    deep = "[" * 200_000 + "]" * 200_000  # Python 3.13 reads as deep as 10,000
    body = json.dumps(completion("Hm.", odd="ODD").body).replace('"ODD"', deep)
    with endpoint(Answer(body)) as served:
        failure = model_at(served.url).complete([ChatMessage("user", "Hello.")], [])
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.MALFORMED_REPLY


HOSTILE = {
    "turn": 99,
    "usage": {"prompt": -1},
    "host": "elsewhere.example",
    "finish": "stop",
    "tools": ["rm"],
    "extra": {"extra": 1},
    "type": "attempt_ended",
    "seq": 0,
    "prev": "0",
    "model": "better",
    "left_out": ["all"],
}


def test_their_names_are_not_those_of_the_event(tmp_path: Path) -> None:
    answer = completion(None, LOOK)
    assert isinstance(answer.body, dict)
    answer.body["choices"][0]["message"] |= HOSTILE
    work, served = worked(tmp_path, answer, completion(None, SOLVE))
    turn = turn_of(work)
    assert (turn.turn, turn.model, turn.usage.prompt_tokens) == (1, "scripted-1", 100)
    assert turn.host == served.url.split("/")[2]
    assert turn.extra == HOSTILE
    written = turn.written()
    assert event_data("model_turn", json.loads(json.dumps(written))) == turn
    assert work.ended == ("solved", "")


def test_their_names_can_not_replace_what_is_sent(tmp_path: Path) -> None:
    odd = {"tool_call_id": "x", "tool_calls_": [], "name": "system"}
    _, served = worked(tmp_path, completion("Hm.", LOOK, **odd), completion(None, SOLVE))
    sent = sent_of(served)
    assert (sent["role"], sent["content"], len(sent["tool_calls"])) == ("assistant", "Hm.", 1)
    assert "tool_call_id" not in sent


def test_a_turn_of_an_earlier_or_a_newer_version_folds_as_before(tmp_path: Path) -> None:
    work, _ = worked(tmp_path, completion(None, LOOK), completion(None, SOLVE))
    number = work.types.index("model_turn")
    known = work.state
    memory = Memory(work.clock, list(work.memory.events))
    memory.change(number, of_a_newer_version={"a": 1})
    assert not isinstance(memory.events[number].data, OtherEvent)
    assert fold(memory.events).turns == known.turns
    assert not known.turns[0].extra


def test_they_are_shown_in_review_and_exported(tmp_path: Path) -> None:
    work, _ = worked(tmp_path, signed(LOOK, reasoning_details=DETAILS), completion(None, SOLVE))
    folder = tmp_path / "attempt"
    folder.mkdir()
    (folder / JOURNAL).write_bytes(b"".join(encode(event) for event in work.memory.events))
    document = open_run(folder / JOURNAL)
    document.build()
    steps = [document.step(index) for index in range(document.step_count)]
    (state,) = [step.state for step in steps if "extra_of_calls" in step.state]
    assert state["extra"] == {"reasoning_details": DETAILS}
    trajectory = json.loads("".join(atif_text(document)))
    (extra,) = [
        step["extra"]["gistpoint"]["state"]
        for step in trajectory["steps"]
        if "extra_of_calls" in step["extra"]["gistpoint"].get("state", {})
    ]
    assert extra["extra"] == {"reasoning_details": DETAILS}
    assert extra["extra_of_calls"] == [{"extra_content": SIGNED}]


def test_a_host_that_requires_them_answers_every_turn(tmp_path: Path) -> None:
    """Gemini 3 refuses a history whose calls have lost their signatures."""

    def answer(request: dict[str, Any], headers: Any) -> Answer:
        calls = [call for message in request["messages"] for call in message.get("tool_calls", ())]
        if not all(call.get("extra_content") == SIGNED for call in calls):
            return Answer([{"error": {"code": 400, "message": "missing a thought_signature"}}], 400)
        return signed(SOLVE if len(calls) == 3 else LOOK)

    work, served = worked(tmp_path, answer)
    assert (work.ended, len(served.requests)) == (("solved", ""), 4)


@pytest.mark.parametrize("echoes", [False, True])
def test_a_reply_tells_whether_its_reasoning_is_sent_back(tmp_path: Path, echoes: bool) -> None:
    work = repair_at_work(tmp_path)
    with endpoint(completion(None, LOOK, reasoning_content="Where?"), completion(None, SOLVE)) as served:
        work.go(model_at(served.url, echo_reasoning=echoes))
    assert turn_of(work).written().get("echoed") == (True if echoes else None)
    assert sent_of(served).get("reasoning_content") == ("Where?" if echoes else None)


def test_a_failure_has_none(tmp_path: Path) -> None:
    with endpoint(Answer({"error": {"message": "no"}, "signature": "abc"}, 400)) as served:
        assert isinstance(model_at(served.url).complete([], []), ChatFailure)
