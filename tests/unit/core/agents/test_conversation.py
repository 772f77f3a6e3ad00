"""A model's context is folded from the journal, with hostile replies sanitised and a person's work."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from agent_attempts import LOOK, SOLVE, ByTurn, repair_at_work
from hypothesis import given
from hypothesis import strategies as st
from scripted_endpoint import Answer, completion, endpoint, reply

from gistpoint.core.agents.conversation import conversation
from gistpoint.core.agents.loop import TerminationReason, WorkEnd
from gistpoint.core.agents.settings import AgentSettings, prompt_hashes, prompt_text
from gistpoint.core.attempts.state import fold
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.chat import ChatMessage, Sampling, ToolRequest, sound_requests
from gistpoint.core.kinds.registry import all_kinds
from gistpoint.core.running import CancelToken
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.retrying import Backoff, RetryingModel
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings
from gistpoint.sessions.journal import JOURNAL, JournalWriter, read_journal

SETTINGS = AgentSettings()


def at(url: str, **changes: Any) -> RetryingModel:
    def sleep(seconds: float, cancel: CancelToken) -> None:
        with cancel.waiting():
            pass

    model = OpenAICompatibleModel(
        EndpointSettings("m", url, ApiKey("sk-0123456789"), **{"timeout_s": 60.0, **changes})
    )
    return RetryingModel(model, Backoff(), sleep)


# Settings


def test_every_prompt_is_named_with_its_hash() -> None:
    assert SETTINGS.prompts == prompt_hashes()
    of_kinds = {name: text for kind in all_kinds() for name, text in kind.prompts.items()}
    assert list(of_kinds) == ["gist-static-1", "gist-static-2"]
    texts = {name: of_kinds.get(name) or prompt_text(name) for name in SETTINGS.prompts}
    assert all(hash == sha256_of_text(texts[name]) for name, hash in SETTINGS.prompts.items())
    assert len(prompt_text("agent-2").split()) <= 160


def test_settings_that_differ_have_another_digest() -> None:
    others = [
        AgentSettings(system="none"),
        AgentSettings(setting="static"),
        AgentSettings(context_tokens=8_000),
        AgentSettings(attempt_tokens=1),
        AgentSettings(sampling=Sampling(seed=1)),
        AgentSettings(sampling=Sampling(temperature=0.0)),
    ]
    assert len({SETTINGS.digest(), *(other.digest() for other in others)}) == 7
    assert AgentSettings().digest() == SETTINGS.digest()


# Replies that a history may not contain literally

HOSTILE = {
    "arguments as an object": completion(None, ("read_file", {})),
    "arguments that are no JSON": completion("", ("read_file", "{'file_path': 1")),
    "a name with spaces": completion("x", ("read file; rm -rf /", {}), ("", {})),
    "half a surrogate pair": completion(
        "\ud800", ("read_file", '{"file_path": "\\ud800"}'), ("\udc00", "\udfff")
    ),
    "no content": completion(None, LOOK),
    "a hundred calls": completion("", *[("read_file", {"file_path": f"{n}.py"}) for n in range(100)]),
    "constants that are not JSON": completion("", ("read_file", '{"file_path": NaN}')),
    "deep": completion("", ("read_file", "[" * 50_000)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_next_request_is_sound_whatever_the_reply_was(name: str, tmp_path: Path) -> None:
    first = HOSTILE[name]
    if name == "arguments as an object":
        first = Answer(json.loads(json.dumps(first.body).replace('"{}"', '{"file_path": 3}')))
    work = repair_at_work(tmp_path, budgets=Budgets(300, 4))
    solve = completion("", SOLVE, usage={"prompt_tokens": 9_000, "completion_tokens": 5})
    with endpoint(first, solve) as served:
        assert work.go(at(served.url)) == WorkEnd(TerminationReason.ENDED)
        assert work.ended == ("solved", "")
        sent = served.requests[1]["messages"]
    (echoed,) = [message for message in sent if message["role"] == "assistant"]
    ids = [call["id"] for call in echoed["tool_calls"]]
    assert len(set(ids)) == len(ids)
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == ids
    for call in echoed["tool_calls"]:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"])
        assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert all(isinstance(message["content"], str) for message in sent)


def test_ids_that_repeat_are_told_apart(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    first = reply(LOOK, ("list_directory", {}), LOOK, ids=["same", "same", ""])
    model = ByTurn([first, reply(LOOK, LOOK, ids=["same", "other"]), reply(SOLVE)])
    work.go(model)
    ids = [call.id for message in model.asked[2] for call in message.tool_calls]
    assert ids == ["same", "call00002", "call00003", "call00004", "other"]
    assert [message.tool_call_id for message in model.asked[2] if message.role == "tool"] == ids
    assert model.asked[1][4].content == work.state.calls[1].text
    assert model.asked[2][: len(model.asked[1])] == model.asked[1]


# Endpoints that fail


def test_a_server_that_dies_every_fifth_request_is_asked_again(tmp_path: Path) -> None:
    look, solve = completion("", LOOK, usage={}), completion("", SOLVE, usage={})
    faults = (
        Answer("", 500),
        Answer("<html>", 200),
        Answer({"choices": []}),
        Answer({"choices": ["x" * 900]}, cut=50),
    )
    work = repair_at_work(tmp_path)
    steps = [step for fault in faults for step in (*[look] * 2, fault)]
    with endpoint(*steps, Answer("", 429, {"Retry-After": "7"}), solve) as served:
        assert work.go(at(served.url)).reason is TerminationReason.ENDED
    assert (work.ended, len(work.state.calls), work.state.spent.retried) == (("solved", ""), 9, 5)
    assert work.types.count("pause") == work.types.count("resume") == 5
    assert work.state.spent.usage.estimated


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (Answer("", 500), "server_error"),
        (Answer("", 429), "rate_limited"),
        (Answer("", 429, {"Retry-After": "7200"}), "rate_limited"),
        (Answer("<html>busy</html>"), "malformed_reply"),
        (Answer({"choices": ["x" * 900]}, cut=50), "no_connection"),
        (Answer({"error": {"message": "no"}}, 401), "not_authorised"),
        (Answer({"error": {"message": "no"}}, 404), "unknown_model"),
        (Answer({"error": {"message": "tools are unknown here"}}, 400), "request_rejected"),
    ],
)
def test_a_server_that_stays_broken_halts_and_is_never_the_solver_s_fault(
    fault: Answer, problem: str, tmp_path: Path
) -> None:
    work = repair_at_work(tmp_path)
    with endpoint(fault) as served:
        left = work.go(at(served.url))
        assert len(served.requests) <= 5
    assert (left.reason, left.problem, work.ended) == (TerminationReason.HALTED, problem, ("", ""))
    assert "sk-0123456789" not in repr(left) + repr(work.memory.events)
    assert work.state.remaining.tool_uses == 16


# A person in between


def test_a_model_is_told_what_a_person_did(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    work.go(ByTurn([reply(LOOK, LOOK)]), stop=lambda: len(work.state.calls) == 1)
    work.attempt.hand_over("person", by="p7")
    work.attempt.call("list_directory", {"path": "shop"})
    work.attempt.hand_over("model", by="p7", note="Look at {{calls}}.")
    model = ByTurn([reply(LOOK), reply(SOLVE)])
    assert work.go(model).reason is TerminationReason.ENDED
    assert work.state.mixed
    first, second, told = model.asked[0][3:6]
    assert (first.content, second.content) == (work.state.calls[0].text, "This call was not carried out.")
    listed = work.state.calls[1]
    assert told.role == "user"
    assert f'list_directory {{"path": "shop"}}\n{listed.text}' in told.content
    assert told.content.endswith("The person's note: Look at {{calls}}.")


def test_a_conversation_is_the_same_from_a_journal_on_the_disk(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    work.go(ByTurn([reply(LOOK, ("read_file", '{"file_path": "\ud800"}'), content="\ud800é"), reply(SOLVE)]))
    writer = JournalWriter(tmp_path / "journal", work.clock)
    for event in work.memory.events:
        writer.append(event.data)
    writer.close()
    events = read_journal(tmp_path / "journal" / JOURNAL).events
    assert conversation(fold(events), SETTINGS) == conversation(work.state, SETTINGS)
    assert conversation(work.state, SETTINGS)[0] == ChatMessage("system", prompt_text("agent-2"))


@pytest.mark.timeout(60)
@given(
    st.lists(st.lists(st.sampled_from(["", "x", "call_2", "call_3", *(f"call0000{n}" for n in range(1, 7))])))
)
def test_no_two_calls_of_a_conversation_are_echoed_with_one_id(replies: list[list[str]]) -> None:
    echoed: list[str] = []
    for reply_ids in replies:
        echoes = sound_requests(tuple(ToolRequest(id, "look", "{}") for id in reply_ids), echoed)
        for asked, echo in zip(reply_ids, echoes, strict=True):
            is_usable = asked not in ("", *echoed)
            assert re.fullmatch(re.escape(asked) if is_usable else "[a-z0-9]{9}", echo.id)
            assert echo.id not in echoed
            echoed.append(echo.id)


def test_the_words_of_a_filter_are_not_repeated_as_the_model_s(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    filtered = Answer({"error": {"message": "It was filtered.", "code": "content_filter"}}, 400)
    with endpoint(filtered) as served:
        work.go(at(served.url))
    assert work.ended == ("gave_up", "declined")
    assert len(served.requests) == 2
    assert "filtered" not in json.dumps(served.requests)
    assert [turn.refusal for turn in work.state.turns] == ["It was filtered."] * 2


def test_a_call_that_the_server_could_not_read_is_charged_and_answered(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    text = '<function=read_file>{"file_path": "shop/prices.py"</function>'
    unread = {"error": {"message": "Failed.", "code": "tool_use_failed", "failed_generation": text}}
    with endpoint(Answer(unread, 400), completion(None, SOLVE)) as served:
        assert work.go(at(served.url)).reason is TerminationReason.ENDED
    assert work.ended == ("solved", "")
    assert work.state.spent.malformed == 1
    first, _ = work.state.calls
    assert (first.tool, first.malformed) == ("read_file", "not_json")
    assert work.state.remaining.tool_uses == repair_at_work(tmp_path / "2").state.remaining.tool_uses - 2
    answer = served.requests[1]["messages"][-1]
    assert (answer["role"], answer["content"]) == ("tool", first.text)
    assert "are not JSON" in answer["content"]


def test_json_that_a_server_could_not_read_as_a_call_is_never_carried_out(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    name, arguments = SOLVE
    bodies = [
        Answer({"error": {"code": "tool_use_failed", "failed_generation": json.dumps(value)}}, 400)
        for value in (arguments, {"name": name, "arguments": arguments}, {"name": name, **arguments}, [name])
    ]
    with endpoint(*bodies, completion("I give up.")) as served:
        work.go(at(served.url))
    assert work.ended == ("gave_up", "no_tool_call")
    assert not work.state.submissions
    assert work.state.spent.malformed == 4
