"""The assistant's context is the code shown to the person; its limits hold, and audits rebuild contexts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from builders import CHECKS, REPAIR, build_task
from fakes import FakeClock, FakeRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from small_trees import tree_of

from gistpoint.core.assist.context import (
    MOST_CHARACTERS,
    context_of,
    template_text,
    templates,
    wrong_contexts,
)
from gistpoint.core.assist.exchange import CANCELLED, Assistant
from gistpoint.core.assist.making_help import leaked_line, make_help
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, Usage
from gistpoint.core.errors import AttemptError, CancelledError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.study.declaration import ChatSettings
from gistpoint.core.tasks.model import Answer, Failure, Mode, Target
from gistpoint.sessions.journal import JOURNAL, JournalWriter, read_journal

NAME = "shop/prices.py::discount"
CANARIES = {f"shop/part_{n}.py": f"SECRET_{n} = 'canary {n}'\n" for n in range(4)}


def begin(folder: Path, extra: dict[str, str] | None = None) -> tuple[Attempt, FakeClock, JournalWriter]:
    clock = FakeClock()
    task = build_task(folder, Mode.REMOVE, extra_files=extra)
    journal = JournalWriter(folder / "attempt", clock)
    attempt = Attempt(
        task, RepairJudge(task, read_answer(task), FakeRunner(CHECKS)), journal, clock, version="1"
    )
    attempt.start(Enrolment(participant="P01", assistance="chat"), attempt_id="attempt")
    return attempt, clock, journal


def answered(text: str, tokens: int = 10) -> ChatReply:
    return ChatReply(ChatMessage("assistant", text), "stop", Usage(tokens, 0), "m-1")


class Model:
    """A model that answers from a list and records the requests."""

    name = "m"

    def __init__(self, *script: ChatReply | ChatFailure | Exception) -> None:
        self.script, self.sent = list(script), list[tuple[ChatMessage, ...]]()

    def complete(self, messages: object, tools: object, **given: object) -> ChatReply | ChatFailure:
        assert tools == ()
        assert isinstance(messages, tuple)
        self.sent.append(messages)
        said = self.script.pop(0)
        if isinstance(said, Exception):
            raise said
        return said


def test_the_model_gets_the_brief_the_answers_the_editor_and_the_conversation(tmp_path: Path) -> None:
    attempt, _, _ = begin(tmp_path)
    model = Model(answered("Look at the sign."), ChatFailure(ChatProblem.TIMED_OUT, "late"), answered("Yes."))
    assistant = Assistant(attempt, model, ChatSettings(model="m", messages=4, tokens=100))
    attempt.call("read_file", {"file_path": "shop/prices.py"})
    attempt.edit(NAME, REPAIR)
    first = assistant.ask("What is wrong?", NAME)
    assert (first.reply, first.problem, first.tokens) == ("Look at the sign.", "", 10)
    assert assistant.ask("And now?").problem == "timed_out"
    assistant.ask("Sure?")
    assistant.inserted(1, NAME, 30)
    system, context, *rest = model.sent[-1]
    assert system == ChatMessage("system", template_text("assist-1"))
    assert attempt.state.header.brief in context.content
    assert "> read_file shop/prices.py\n" in context.content
    assert "def discount" in context.content
    assert "# In the editor" not in context.content  # the editor was empty at the last question
    assert REPAIR in model.sent[0][1].content
    assert [message.content for message in rest] == ["What is wrong?", "Look at the sign.", "Sure?"]
    assert assistant.left.messages == 1
    assert assistant.left.tokens == 80
    assert attempt.state.remaining.tool_uses == 15  # the call costs one, the assistant none


@pytest.mark.parametrize("said", [{"refusal": "No."}, {"finish": "content_filter"}])
def test_a_refused_question_says_so(tmp_path: Path, said: dict[str, str]) -> None:
    attempt, _, _ = begin(tmp_path)
    assistant = Assistant(attempt, Model(replace(answered(""), **said)), ChatSettings(model="m", messages=4))
    assert assistant.ask("What is wrong?").problem == "refused"


def test_limits_are_kept_and_each_question_counts(tmp_path: Path) -> None:
    attempt, _, _ = begin(tmp_path)
    model = Model(answered("a", 60), CancelledError("stopped"), answered("b", 60))
    assistant = Assistant(attempt, model, ChatSettings(model="m", messages=5, tokens=100))
    assistant.ask("1")
    assert assistant.ask("2").problem == CANCELLED
    assistant.ask("3")
    with pytest.raises(AttemptError, match="tokens of the assistant are used up"):
        assistant.ask("4")
    few = Assistant(attempt, Model(), ChatSettings(model="m", messages=3))
    with pytest.raises(AttemptError, match="messages of the assistant are used up"):
        few.ask("4")
    for nothing in ("  ", "x" * 20_001):
        with pytest.raises(AttemptError, match="1 to 20000 characters"):
            assistant.ask(nothing)
    assert len(attempt.state.exchanges) == 3


def test_old_answers_are_named_when_there_is_no_room(tmp_path: Path) -> None:
    attempt, _, _ = begin(tmp_path, {f"shop/long_{n}.py": f"# {n}\n" + "x = 1\n" * 4_000 for n in range(3)})
    for n in range(3):
        attempt.call("read_file", {"file_path": f"shop/long_{n}.py"})
    context = context_of(attempt.state, "assist-1", "?")
    assert context.calls == 2
    assert context.left_out == ("call-1",)
    assert (
        "Left out, because there is no room for their answers:\n> read_file shop/long_0.py"
        in context.messages[1].content
    )
    assert len(context.messages[1].content) < MOST_CHARACTERS + 5_000


CALLS = st.one_of(
    st.sampled_from([*CANARIES]).map(lambda path: ("read_file", {"file_path": path})),
    st.sampled_from(["", "shop"]).map(lambda path: ("list_directory", {"path": path})),
    st.sampled_from(["def total", "percent", "nothing"]).map(
        lambda pattern: ("search_code", {"pattern": pattern})
    ),
)


@settings(max_examples=25, deadline=None)
@given(calls=st.lists(CALLS, max_size=8))
def test_what_was_not_shown_is_never_sent(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[str, dict[str, str]]]
) -> None:
    attempt, _, journal = begin(tmp_path_factory.mktemp("assist"), CANARIES)
    shown = set()
    for tool, arguments in calls:
        attempt.call(tool, arguments)
        shown |= {path for path in CANARIES if arguments.get("file_path") == path}
        sent = "".join(message.content for message in context_of(attempt.state, "assist-1", "?").messages)
        for number, path in enumerate(CANARIES):
            assert (f"canary {number}" in sent) == (path in shown)
    journal.close()


def test_an_audit_builds_each_context_again(tmp_path: Path) -> None:
    attempt, clock, journal = begin(tmp_path)
    assistant = Assistant(attempt, Model(answered("a"), answered("b")), ChatSettings(model="m"))
    attempt.call("list_directory", {})
    assistant.ask("one")
    attempt.edit(NAME, REPAIR)
    clock.advance(1_000)
    assistant.ask("two", NAME)
    journal.close()
    events = read_journal(tmp_path / "attempt" / JOURNAL).events
    assert wrong_contexts(events) == []
    call = next(n for n, event in enumerate(events) if event.type == "tool_result")
    assert wrong_contexts([*events[:call], *events[call + 1 :]]) == [1, 2]


def test_templates_are_named() -> None:
    assert templates() == ["assist-1"]
    with pytest.raises(AttemptError, match="Did you mean 'assist-1'"):
        template_text("asist-1")


@pytest.mark.parametrize("id", ["README.rst::README.rst", "shop/prices.py::shop.prices.discount"])
def test_a_failing_doctest_makes_no_help_and_leaves_the_other_tests(id: str, tmp_path: Path) -> None:
    task = build_task(tmp_path)
    brief = replace(task.brief, failing=(Failure(id),))
    found = make_help(replace(task, brief=brief), read_answer(task), cast(Any, None), lambda: 0.0)
    assert found.text == ""
    assert found.reason.startswith(id)


def test_a_line_of_the_corrupted_tree_is_no_leak_in_any_encoding(tmp_path: Path) -> None:
    code = "# coding: latin-1\ndef f():\n    größe = 1\n    return größe\n"
    tree = tree_of({"shop.py": code.encode("latin-1")}, tmp_path)
    target = Target("shop.py", "f", "def f():\n    größe = 1\n    return größe + 1", "")
    answer = Answer((target,), ())
    assert leaked_line("größe = 1", tree, answer) == ""
    assert leaked_line("return größe + 1", tree, answer) == "return größe + 1"
