"""Chats are sequences that the API of OpenAI accepts, and lose neither messages nor text."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from recorded_runs import make_all

from gistpoint.sessions.exports.chat import chat_text
from gistpoint.sessions.exports.chat_sequence import Adaptation, ChatSequence
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.rendering import UNANSWERED
from gistpoint.tui.cli import main


def faults(messages: list[dict[str, Any]]) -> list[str]:
    """Return the violations of the API's rules."""
    found, open_calls = list[str](), set[str]()
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                found.append(f"{number}: a result without its call")
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            found.append(f"{number}: a message before {len(open_calls)} results")
        ids = [call["id"] for call in message.get("tool_calls", ())]
        if len(set(ids)) < len(ids) or not all(0 < len(id) <= 40 for id in ids):
            found.append(f"{number}: ids")
        open_calls = set(ids)
    return found + ["calls without results"] * bool(open_calls)


def call(id: str, name: str = "bash") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def assistant(*ids: str, content: str = "a") -> dict[str, Any]:
    calls = {"tool_calls": [call(id) for id in ids]} if ids else {}
    return {"role": "assistant", "content": content, **calls}


def result(id: str, content: str = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def said(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


IDS = st.sampled_from(["", "a", "b", "c", "x" * 41])
CONTENTS = st.integers(0, 10**6).map(str)
MESSAGES = st.one_of(
    st.builds(lambda ids, content: assistant(*ids, content=content), st.lists(IDS, max_size=3), CONTENTS),
    st.builds(result, IDS, CONTENTS),
    st.builds(said, st.sampled_from(["user", "system"]), CONTENTS),
)


@given(st.lists(MESSAGES, max_size=12))
@examples(300)
def test_any_messages_become_a_sequence_that_is_accepted(messages: list[dict[str, Any]]) -> None:
    written = list(ChatSequence().ordered(messages))
    assert faults(written) == []
    kept = [message["content"] for message in written if message["content"] != UNANSWERED]
    assert Counter(kept) == Counter(message["content"] for message in messages)
    assert [one["content"] for one in written if one["role"] == "assistant"] == [
        one["content"] for one in messages if one["role"] == "assistant"
    ]


def test_what_is_accepted_stays_as_it_is() -> None:
    messages = [said("user", "do"), assistant("a", "b"), result("b"), result("a"), assistant()]
    sequence = ChatSequence()
    assert list(sequence.ordered(messages)) == messages
    assert sequence.words == ""


@pytest.mark.parametrize("id", ["call-1", "call-2", "call-3"])
def test_a_new_id_is_none_of_the_others(id: str) -> None:
    long = "x" * 50
    for called in ([id, long], [long, id]):
        results = [result(long, "of long"), result(id, "of short")]
        written = list(ChatSequence().ordered([assistant(*called), *results]))
        assert faults(written) == []
        ids = [call["id"] for call in written[0]["tool_calls"]]
        of = dict(zip(called, ids, strict=True))
        contents = {one["tool_call_id"]: one["content"] for one in written[1:]}
        assert contents == {of[long]: "of long", of[id]: "of short"}


@pytest.mark.parametrize(
    ("given", "content"),
    [
        (["a", "a", "b"], {"a": "1", "b": "3", "user": "2"}),
        (["?", "a", "b"], {"a": "2", "b": "3", "user": "1"}),
        (["?", "a"], {"a": "2", "b": "1"}),
        (["", ""], {"a": "1", "b": "2"}),
    ],
)
def test_a_result_belongs_to_the_call_that_it_names(given: list[str], content: dict[str, str]) -> None:
    results = [result(id, str(number)) for number, id in enumerate(given, start=1)]
    written = list(ChatSequence().ordered([assistant("a", "b"), *results]))[1:]
    assert {one.get("tool_call_id", one["role"]): one["content"] for one in written} == content


def test_each_change_is_counted_and_named() -> None:
    sequence = ChatSequence()
    written = list(
        sequence.ordered(
            [
                result("early", "1"),
                assistant("a", "a", ""),
                said("user", "wait"),
                result("a", "2"),
                result("?", "3"),
                {"role": "assistant", "content": "", "tool_calls": [call("d", "sandbox.exec")]},
            ]
        )
    )
    assert written == [
        said("user", "1"),
        {"role": "assistant", "content": "a", "tool_calls": [call("a"), call("call-1"), call("call-2")]},
        result("a", "2"),
        result("call-1", "3"),
        result("call-2", UNANSWERED),
        said("user", "wait"),
        {"role": "assistant", "content": "", "tool_calls": [call("d", "sandbox.exec")]},
        result("d", UNANSWERED),
    ]
    assert sequence.adapted == {
        Adaptation.UNCALLED: 1,
        Adaptation.RENAMED: 3,
        Adaptation.MOVED: 1,
        Adaptation.NO_RESULT: 2,
    }
    assert sequence.words == (
        "1 message moved behind the results of calls; 2 calls with the result '(no result was recorded)'; "
        "1 result written as a message from the user, because no call is open; "
        "3 ids with another id, because theirs is missing, used twice, unknown or too long; "
        "1 name of tools kept that the API refuses: 'sandbox.exec'"
    )


def chats(path: Path) -> list[list[dict[str, Any]]]:
    """Return the messages of each run in a file or folder."""
    listed = [one.name for one in list_runs([path]) if one.header is not None]
    return [json.loads("".join(chat_text(open_run(name))))["messages"] for name in listed]


def test_the_chat_of_every_format_is_accepted(tmp_path: Path) -> None:
    make_all(tmp_path)
    found = chats(tmp_path)
    assert len(found) > 50
    assert [faults(messages) for messages in found] == [[] for _ in found]


def test_convert_reports_what_it_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run"
    path.write_text(
        json.dumps({"messages": [said("user", "do"), assistant("a", content="")]}), encoding="utf-8"
    )
    assert main(["convert", str(path), "--to", "chat", "-o", str(tmp_path / "chat.json")]) == 0
    assert "To fit the rules of chat APIs: 1 call with the result" in capsys.readouterr().err
