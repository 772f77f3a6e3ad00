"""The same model through each API: equal answers, budgets and ends, and unchanged signatures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_attempts import LOOK, MISS, SOLVE, AtWork, repair_at_work, resumed
from native_endpoints import Call, model_at, replied, signatures_in
from scripted_endpoint import Answer, Endpoint, endpoint

from gistpoint.core.agents.loop import TerminationReason, WorkEnd
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.events import event_data
from gistpoint.core.chat import CHAT_APIS, ChatApi
from gistpoint.core.tasks.budgets import Budgets

LIST: Call = ("list_directory", {"path": "shop"})
SCRIPT: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("Let me look.", (LIST, LOOK, ("read_file", {"file_path": "nowhere.py"}))),
    ("", (("grep", {"pattern": "x"}), ("read_file", {"path": "README.md"}), ("list_directory", {}))),
    ("I think that it is the price.", ()),
    ("Å “quoted” try.", (MISS, LOOK)),
    ("", (("search_code", {"pattern": "å|\u2028|("}),)),
    ("", (SOLVE,)),
)


def answers(api: ChatApi) -> list[Answer]:
    return [replied(api, number, words, *calls) for number, (words, calls) in enumerate(SCRIPT)]


def by_turn(api: ChatApi) -> Any:
    """Return a step whose answer depends only on the number of replies in the request."""
    script = answers(api)
    role = "model" if api == "gemini" else "assistant"

    def step(request: dict[str, Any], headers: Any) -> Answer:
        rows = request["contents" if api == "gemini" else "messages"]
        return script[sum(row["role"] == role for row in rows)]

    return step


def attempted(api: ChatApi, folder: Path) -> tuple[AtWork, Endpoint]:
    work = repair_at_work(folder, budgets=Budgets(20, 3))
    with endpoint(by_turn(api)) as served:
        assert work.go(model_at(api, served.url), AgentSettings(api=api)) == WorkEnd(TerminationReason.ENDED)
    return work, served


def result_of(work: AtWork) -> dict[str, object]:
    state = work.state
    return {
        "ended": work.ended,
        "answers": [(c.tool, c.arguments, c.text, c.refused, c.turn, c.remaining) for c in state.calls],
        "turns": [(t.content, [(c.name, c.arguments) for c in t.tool_calls], t.finish) for t in state.turns],
        "submissions": [(s.number, s.score, s.solved) for s in state.submissions],
        "tokens": state.spent.usage,
        "types": work.types,
    }


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_the_same_replies_through_a_vendors_own_api_get_the_same_answers_and_end(
    api: ChatApi, tmp_path: Path
) -> None:
    plain, _ = attempted("openai", tmp_path / "openai")
    native, served = attempted(api, tmp_path / api)
    assert result_of(native) == result_of(plain)
    assert native.ended == ("solved", "")
    assert len(served.requests) == len(SCRIPT)


def texts_of(api: ChatApi, request: dict[str, Any]) -> list[str]:
    """Return the answers of tools in a request, in order."""
    if api == "openai":
        return [row["content"] for row in request["messages"] if row["role"] == "tool"]
    if api == "anthropic":
        blocks = [block for row in request["messages"] for block in row["content"]]
        return [block.get("content", "") for block in blocks if block["type"] == "tool_result"]
    parts = [part for row in request["contents"] for part in row["parts"]]
    return [part["functionResponse"]["response"]["output"] for part in parts if "functionResponse" in part]


def test_a_model_reads_the_same_bytes_through_each_api(tmp_path: Path) -> None:
    read = {}
    for api in CHAT_APIS:
        work, served = attempted(api, tmp_path / api)
        read[api] = texts_of(api, served.requests[-1])
        assert read[api] == [call.text for call in work.state.calls[:-1]]
    assert read["openai"] == read["anthropic"] == read["gemini"]


def contents_of(api: ChatApi, request: dict[str, Any]) -> list[Any]:
    """Return the contents of the model's own messages in a request."""
    if api == "anthropic":
        return [row["content"] for row in request["messages"] if row["role"] == "assistant"]
    return [row["parts"] for row in request["contents"] if row["role"] == "model"]


def stored(work: AtWork, events: int) -> AtWork:
    """Resume an attempt from its first events, as they are read back from a journal."""
    first = [
        replace(event, data=event_data(event.type, json.loads(json.dumps(event.data.written()))))
        for event in work.memory.events[:events]
    ]
    return resumed(work.task, work.judge, first)


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_signatures_come_back_unchanged_and_in_place_after_a_kill(api: ChatApi, tmp_path: Path) -> None:
    bodies: list[Any] = [answer.body for answer in answers(api)]
    received = [
        body["content"] if api == "anthropic" else body["candidates"][0]["content"]["parts"]
        for body in bodies
    ]
    straight = repair_at_work(tmp_path, budgets=Budgets(20, 3))
    with endpoint(by_turn(api)) as served:
        straight.go(model_at(api, served.url))
        wanted = list(served.requests)
        assert contents_of(api, wanted[-1]) == received[:-1]
        assert len(signatures_in(contents_of(api, wanted[-1]))) >= 4
        cuts = [n for n, kind in enumerate(straight.types, 1) if kind in ("model_turn", "tool_call")]
        for events in cuts[::3]:
            served.requests.clear()
            again, asked = stored(straight, events), straight.types[:events].count("model_turn")
            assert again.go(model_at(api, served.url)) == WorkEnd(TerminationReason.ENDED)
            assert result_of(again)["answers"] == result_of(straight)["answers"]
            assert served.requests == wanted[asked:], "it is sent what it would have been sent"


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_another_host_gets_no_signature(api: ChatApi, tmp_path: Path) -> None:
    straight, _ = attempted(api, tmp_path)
    turn = straight.types.index("model_turn") + 1
    again = straight.cut(turn)
    with endpoint(by_turn(api)) as other:
        assert again.go(model_at(api, other.url)) == WorkEnd(TerminationReason.ENDED)
    assert again.ended == ("solved", "")
    first = contents_of(api, other.requests[0])[0]
    assert signatures_in(first) == []
    assert "Let me look." in str(first)
    assert "read_file" in str(first)
