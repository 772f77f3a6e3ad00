"""A model that writes its calls as text has the tools, answers, budgets and ends of one that calls natively."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from agent_attempts import LOOK, MISS, SOLVE, AtWork, ByTurn, gist_at_work, repair_at_work
from gist_tasks import FAITHFUL
from scripted_endpoint import reply

from gistpoint.core.agents.conversation import conversation
from gistpoint.core.agents.loop import TerminationReason, WorkEnd
from gistpoint.core.agents.settings import AgentSettings, prompt_hashes, prompt_text
from gistpoint.core.agents.text_calls import written_call
from gistpoint.core.attempts.state import fold
from gistpoint.core.chat import ChatMessage, ChatReply, Usage
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tools.dialects import text_tool
from gistpoint.sessions.journal import JournalWriter, read_journal
from gistpoint.sessions.runs.opening import open_run
from gistpoint.tui.screens.agents.attempt import turn_words

TEXT = AgentSettings(calls="text")
LIST = ("list_directory", {})
UNREADABLE = ("read_file", '{"file_path": "a.py"')
REPAIR_CALLS = [LOOK, ("look_up", {}), ("read_file", {"path": "x"}), ("read_file", "[]"), MISS, LIST, SOLVE]
GIST_CALLS = [LIST, ("write_gist", {"content": FAITHFUL}), ("write_gist", {}), ("submit_gist", {})]


def in_text(said: ChatReply) -> ChatReply:
    """Return a reply with its calls written into its text."""
    calls = [written_call(call.name, call.arguments) for call in said.message.tool_calls]
    content = "\n\n".join(filter(None, [said.message.content, *calls]))
    finish = "stop" if said.finish == "tool_calls" else said.finish
    return replace(said, message=ChatMessage("assistant", content), finish=finish)


def one_by_one(calls: Sequence[tuple[str, object]]) -> list[ChatReply]:
    return [reply(call, content=f"Reply {number}.") for number, call in enumerate(calls)]


def made(work: AtWork) -> list[tuple[object, ...]]:
    return [(c.tool, c.malformed, c.text, c.refused, c.turn, c.remaining) for c in work.state.calls]


def replies(work: AtWork) -> list[tuple[object, ...]]:
    return [(turn.turn, turn.content, turn.tool_calls, turn.unmade) for turn in work.state.turns]


# The same as native calls


@pytest.mark.parametrize(
    ("begun", "calls"), [(repair_at_work, REPAIR_CALLS), (gist_at_work, GIST_CALLS)], ids=["repair", "gist"]
)
def test_the_same_calls_have_the_same_answers_and_costs(tmp_path: Path, begun: object, calls: object) -> None:
    assert callable(begun)
    assert isinstance(calls, list)
    native, text = begun(tmp_path / "native"), begun(tmp_path / "text")
    asked = ByTurn([in_text(said) for said in one_by_one(calls)])
    assert native.go(ByTurn(one_by_one(calls))) == text.go(asked, TEXT) == WorkEnd(TerminationReason.ENDED)
    assert made(text) == made(native)
    assert (text.ended, text.state.remaining) == (native.ended, native.state.remaining)
    assert text.state.spent.malformed == native.state.spent.malformed
    for number, call in enumerate(text.state.calls[:-1], start=1):
        answer = asked.asked[number][-1]
        assert answer.role == "user"
        assert answer.content == f"Answer to `{call.tool}`:\n\n{call.text}"


def test_a_call_that_can_not_be_read_costs_what_a_malformed_one_costs(tmp_path: Path) -> None:
    native, text = repair_at_work(tmp_path / "native"), repair_at_work(tmp_path / "text")
    native.go(ByTurn([reply(UNREADABLE), reply(SOLVE)]))
    text.go(ByTurn([in_text(reply(UNREADABLE)), in_text(reply(SOLVE))]), TEXT)
    assert made(text) == made(native)
    assert text.state.calls[0].malformed == "not_json"


def test_the_prompt_has_the_rules_the_form_and_the_declared_tools(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    model = ByTurn([in_text(reply(SOLVE))])
    work.go(model, TEXT)
    system, brief = model.asked[0]
    assert brief == ChatMessage("user", render_brief(work.task))
    assert system.content.startswith(prompt_text("agent-text-2"))
    assert all(text_tool(tool) in system.content for tool in work.attempt.tools)
    assert model.offered == [[]], "no tool is declared natively"


def test_the_form_is_explained_even_without_a_system_prompt(tmp_path: Path) -> None:
    model = ByTurn([in_text(reply(SOLVE))])
    repair_at_work(tmp_path).go(model, AgentSettings(calls="text", system="none"))
    assert [message.role for message in model.asked[0]] == ["system", "user"]
    assert model.asked[0][0].content.startswith("HOW TO CALL A TOOL")


def test_the_tools_that_are_left_are_named(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path, budgets=Budgets(3, 1))
    model = ByTurn([in_text(reply(call)) for call in (LOOK, LOOK, SOLVE)])
    work.go(model, TEXT)
    assert [turn.written().get("tools") for turn in work.state.turns] == [None, None, ("submit_attempt",)]
    last = model.asked[2][-1].content
    assert last == (
        f"Answer to `read_file`:\n\n{work.state.calls[1].text}\n\nThese tools can be called now: submit_attempt."
    )
    assert conversation(work.state, TEXT, work.attempt.tools)[: len(model.asked[2])] == model.asked[2]


# Replies


def test_the_reply_is_kept_as_written_with_the_calls_that_were_read(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    several = in_text(reply(LOOK, SOLVE, LIST, content="First I look."))
    model = ByTurn([several, in_text(reply(SOLVE))])
    work.go(model, TEXT)
    turn = work.state.turns[0]
    assert turn.content == several.message.content
    assert [call.name for call in turn.tool_calls] == ["read_file"]
    assert [call.name for call in turn.unmade or ()] == ["submit_attempt", "list_directory"]
    assert [call.tool for call in work.state.calls] == ["read_file", "submit_attempt"]
    assert work.state.remaining.tool_uses == 14, "a call that is not carried out costs nothing"
    said, answer = model.asked[1][2:]
    assert said == ChatMessage("assistant", several.message.content)
    assert answer.content == (
        "Your reply contains more than one call. Only the first was carried out: write one call in a reply."
        f"\n\nAnswer to `read_file`:\n\n{work.state.calls[0].text}"
    )


def test_review_shows_the_call_and_names_those_that_were_not_made(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    several = in_text(reply(LOOK, LIST, content="First I look."))
    work.go(ByTurn([several, in_text(reply(SOLVE))]), TEXT)
    writer = JournalWriter(tmp_path / "journal", work.clock)
    for event in work.memory.events:
        writer.append(event.data)
    writer.close()
    events = read_journal(writer.path).events
    assert conversation(fold(events), TEXT) == conversation(work.state, TEXT)
    steps = list(open_run(writer.path).steps())
    said = next(step for step in steps if "not_made" in step.state)
    assert (said.state["calls"], said.state["not_made"]) == (["read_file"], ["list_directory"])
    assert [call.tool for step in steps for call in step.calls] == ["read_file", "submit_attempt"]
    assert "(1 more in the text, not carried out)" in turn_words(work.state.turns[0])


def test_a_reply_without_a_call_is_answered_with_the_form(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    model = ByTurn([reply(content=f"I call {json.dumps(LOOK)}.")])
    work.go(model, TEXT)
    assert work.ended == ("gave_up", "no_tool_call")
    assert len(model.asked) == 3
    assert model.asked[1][-1] == ChatMessage("user", prompt_text("text-no-call-2"))


def test_a_reply_that_is_cut_off_in_its_call_is_no_call(tmp_path: Path) -> None:
    said = in_text(reply(LOOK))
    cut = replace(said, message=ChatMessage("assistant", said.message.content[:-9]), finish="length")
    model = ByTurn([cut, in_text(reply(SOLVE))])
    work = repair_at_work(tmp_path)
    work.go(model, TEXT)
    assert model.asked[1][-1].content == prompt_text("cut-off-2")
    assert [call.tool for call in work.state.calls] == ["submit_attempt"]


def test_calls_that_the_endpoint_took_out_of_the_text_are_carried_out_too(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    model = ByTurn([reply(LOOK, LIST), in_text(reply(SOLVE))])
    work.go(model, TEXT)
    assert [call.tool for call in work.state.calls] == ["read_file", "submit_attempt"]
    said = model.asked[1][2]
    assert said == ChatMessage("assistant", written_call("read_file", json.dumps(LOOK[1])))


def test_native_calls_stay_native(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    work.go(ByTurn([in_text(reply(SOLVE))]))
    assert work.ended == ("gave_up", "no_tool_call")


# Settings


def test_calls_as_text_are_another_condition_and_the_default_is_the_old_one() -> None:
    assert AgentSettings().digest() == "7facc591ba5b9fa9ab9ed2b3a17cc92a2a932c020f20a2ba8d5cfeb057ab0af9"
    assert TEXT.digest() != AgentSettings().digest()
    assert "calls" not in msgspec.to_builtins(AgentSettings())
    assert msgspec.json.decode(msgspec.json.encode(TEXT), type=AgentSettings) == TEXT
    assert TEXT.prompts == prompt_hashes(as_text=True)
    assert {"agent-text-2", "text-calls-2", "text-answer-2"} <= TEXT.prompts.keys()


@pytest.mark.parametrize("others", [{"setting": "static"}, {"system": "agent-1"}])
def test_what_has_no_calls_as_text_is_refused(others: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="calls as text"):
        AgentSettings(calls="text", **others)  # type: ignore[arg-type]


# Processes that die

SCRIPT = [
    in_text(said)
    for said in (
        reply(LOOK, ("read_file", "{'"), content="First."),
        reply(content="I wonder."),
        reply(UNREADABLE),
        reply(MISS, LIST, content="Try."),
        reply(content="Half a sen", finish="length"),
        reply(LOOK),
        reply(SOLVE, LOOK, content="That's it.", usage=Usage(500, 10)),
    )
]
GIST_SCRIPT = [in_text(said) for said in (*one_by_one(GIST_CALLS[:2]), reply(content="Done."))]


@pytest.mark.parametrize(
    ("begun", "script"), [(repair_at_work, SCRIPT), (gist_at_work, GIST_SCRIPT)], ids=["repair", "gist"]
)
def test_a_journal_cut_anywhere_is_worked_to_the_same_end(
    tmp_path: Path, begun: object, script: Sequence[ChatReply]
) -> None:
    assert callable(begun)
    straight, model = begun(tmp_path), ByTurn(script)
    straight.go(model, TEXT)
    assert straight.state.ended
    for events in range(2, len(straight.memory.events) + 1):
        asked_before = straight.types[:events].count("model_turn")
        again, second = straight.cut(events), ByTurn(script)
        assert again.go(second, TEXT) == WorkEnd(TerminationReason.ENDED)
        assert (made(again), again.ended) == (made(straight), straight.ended), events
        assert replies(again) == replies(straight)
        assert second.asked == model.asked[asked_before:]
        assert fold(again.memory.events).spent == straight.state.spent
