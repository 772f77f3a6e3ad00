"""The static setting: one request with the trace's files, one submission, and tasks that are too long."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_attempts import ByTurn, gist_at_work, repair_at_work
from gist_tasks import ENTRYPOINT, FAITHFUL, FILES
from scripted_endpoint import reply

from gistpoint.core.agents import static
from gistpoint.core.agents.loop import TerminationReason, WorkEnd
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.agents.static import StaticRefusedError, file_in, require_fitting, static_tokens
from gistpoint.core.chat import ChatFailure, ChatProblem
from gistpoint.core.kinds.gist.state import gist_of

STATIC = AgentSettings(setting="static")
ANSWER = f"Here it is.\n\n```python\n{FAITHFUL}```\nDone."


@pytest.mark.parametrize(
    ("said", "file"),
    [
        ("```python\na = 1\n```", "a = 1\n"),
        ("Text.\n\n```\na = 1\n```\n\nOr better:\n\n```py\nb = 2\n```\nBye.", "b = 2\n"),
        ("~~~\na = 1\n```\nb\n~~~", "a = 1\n```\nb\n"),
        ("````\ntext = '''\n```\n'''\n````\n", "text = '''\n```\n'''\n"),
        ("a = 1\n", "a = 1\n"),
        ("```python\na = 1\n```\n```\ncut", "a = 1\n"),
        ("```python\na = 1", ""),
        ("I can't.", ""),
        ("```\n```", ""),
        ("", ""),
        ("\ud800", ""),
    ],
)
def test_the_file_is_the_last_block_or_the_whole_text_if_it_is_python(said: str, file: str) -> None:
    assert file_in(said) == file


def test_one_request_holds_the_files_of_the_trace_and_one_hand_in_follows(tmp_path: Path) -> None:
    work, model = gist_at_work(tmp_path, budgets=static.BUDGETS), ByTurn([reply(content=ANSWER)])
    assert work.go(model, STATIC) == WorkEnd(TerminationReason.ENDED)
    (messages,) = model.asked
    (message,) = messages
    assert (message.role, model.offered) == ("user", [[]])
    assert ENTRYPOINT in message.content
    places = [
        message.content.index(f"{path}\n\n```\n{FILES[path]}")
        for path in ("tests/test_prices.py", "shop/prices.py")
    ]
    assert places == sorted(places)
    assert "README" not in message.content
    assert work.ended == ("solved", "")
    calls = [(call.tool, call.automatic, call.turn) for call in work.state.calls]
    assert calls == [("write_gist", "static", 1), ("submit_gist", "static", 1)]
    assert work.state.turns[0].tools == ()


@pytest.mark.parametrize("said", ["I can't.", ""])
def test_a_reply_without_a_file_hands_in_nothing(tmp_path: Path, said: str) -> None:
    work = gist_at_work(tmp_path, budgets=static.BUDGETS)
    work.go(ByTurn([reply(content=said)]), STATIC)
    assert work.ended == ("final_wrong", "")
    assert [call.tool for call in work.state.calls] == ["submit_gist"]
    assert gist_of(work.state).text == ""


def test_tasks_that_do_not_fit_are_refused_with_the_figure(tmp_path: Path) -> None:
    work, model = gist_at_work(tmp_path), ByTurn([reply(content=ANSWER)])
    tokens = static_tokens(work.task)
    require_fitting(work.task, AgentSettings(setting="static", context_tokens=tokens))
    short = AgentSettings(setting="static", context_tokens=tokens - 1)
    with pytest.raises(StaticRefusedError, match=f"too long.*about {tokens} tokens"):
        work.go(model, short)
    assert not model.asked
    repair = repair_at_work(tmp_path / "repair")
    with pytest.raises(StaticRefusedError, match="is not a gist"):
        repair.go(model, STATIC)


def test_an_endpoint_that_finds_it_too_long_ends_with_an_empty_gist(tmp_path: Path) -> None:
    work = gist_at_work(tmp_path, budgets=static.BUDGETS)
    work.go(ByTurn([ChatFailure(ChatProblem.CONTEXT_FULL, "Too long.")]), STATIC)
    assert work.ended == ("context_exhausted", "")


def test_a_gist_that_could_not_be_judged_halts_and_is_handed_in_again(tmp_path: Path) -> None:
    work = gist_at_work(tmp_path, budgets=static.BUDGETS, fails=True)
    left = work.go(ByTurn([reply(content=ANSWER)]), STATIC)
    assert (left.reason, left.problem, work.ended) == (TerminationReason.HALTED, "infrastructure", ("", ""))
    work.judge.runner.fails = False  # type: ignore[attr-defined]
    again, model = work.cut(len(work.memory.events)), ByTurn([reply(content=ANSWER)])
    assert again.go(model, STATIC).reason is TerminationReason.ENDED
    assert (again.ended, model.asked) == (("solved", ""), [])


def test_a_journal_cut_anywhere_is_worked_to_the_same_end(tmp_path: Path) -> None:
    straight = gist_at_work(tmp_path, budgets=static.BUDGETS)
    straight.go(ByTurn([reply(content=ANSWER)]), STATIC)
    wanted = [(call.tool, call.text) for call in straight.state.calls]
    for events in range(2, len(straight.memory.events) + 1):
        again, model = straight.cut(events), ByTurn([reply(content=ANSWER)])
        assert again.go(model, STATIC).reason is TerminationReason.ENDED
        assert (again.ended, [(call.tool, call.text) for call in again.state.calls]) == (
            ("solved", ""),
            wanted,
        )
        assert len(model.asked) == 1 - straight.types[:events].count("model_turn")
