"""The built-in solver obeys every solver's rules, and finds easy faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_attempts import AtWork, gist_at_work, repair_at_work
from builders import CHECKS, build_task

from gistpoint.core.agents.loop import TerminationReason
from gistpoint.core.agents.searcher import NAME, Searcher, _AnsweredCall, _Search
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.trees import SourceTree

TESTS = """from shop.prices import Basket, discount


def test_total():
    assert Basket().total() == 0


def test_tenth():
    basket = Basket()
    basket.add("apple", 90)
    assert discount(basket.total(), 10) == 81


def test_half():
    assert discount(100, 50) == 50


def test_odd():
    assert discount(100, 33) == 67


def test_all():
    assert discount(100, 100) == 0
"""
FILES = {"tests/test_prices.py": TESTS}


def discovery(folder: Path, budgets: Budgets | None = None) -> AtWork:
    return repair_at_work(folder, Mode.DISCOVERY, budgets=budgets, extra_files=FILES)


def test_it_finds_a_flipped_sign(tmp_path: Path) -> None:
    work = discovery(tmp_path)
    assert work.go(Searcher()).reason is TerminationReason.ENDED
    calls = [call.tool for call in work.state.calls]
    assert calls[:3] == ["read_file", "search_code", "read_file"]
    assert calls.count("search_code") <= 2
    assert calls[-1] == "replace_function"
    assert work.ended == ("solved", "")
    assert work.state.last is not None
    assert work.state.last.replacement.name == "shop/prices.py::discount"
    assert not any(call.refused for call in work.state.calls)
    assert {turn.model for turn in work.state.turns} == {NAME}
    assert work.state.spent.usage.cost_usd == 0.0


@pytest.mark.parametrize("budgets", [Budgets(4, 1), Budgets(3, 2), Budgets(1, 1), Budgets(32, 8)], ids=str)
def test_it_keeps_to_any_budgets(tmp_path: Path, budgets: Budgets) -> None:
    work = discovery(tmp_path, budgets)
    assert work.go(Searcher()).reason is TerminationReason.ENDED
    assert work.ended[0] in ("solved", "gave_up", "submissions_exhausted", "calls_exhausted")
    assert not any(call.malformed for call in work.state.calls)


def test_a_function_that_a_failure_passes_through_is_looked_at_first(tmp_path: Path) -> None:
    raised = (
        "shop/prices.py:6: in discount\n    return price + price * percent // 100\nE   ValueError: too dear"
    )
    task = build_task(tmp_path, Mode.DISCOVERY, extra_files=FILES, failure_text=raised)
    search = _Search(
        render_brief(task),
        [_AnsweredCall("read_file", {"file_path": path}, text) for path, text in seen(task)],
    )
    suspicion = {definition.qualname: value for definition, value in search._suspicion().items()}
    assert suspicion["discount"] > 3 * suspicion["Basket.total"] > 0


def seen(task: Task) -> list[tuple[str, str]]:
    tree = SourceTree.open(task.tree_path)
    files = [(path, tree.read(path).decode()) for path in ("tests/test_prices.py", "shop/prices.py")]
    return [(path, f"{path}: 9 lines\n{text}\n[9 tool uses and 4 submissions left]") for path, text in files]


def test_it_goes_on_where_another_process_stopped(tmp_path: Path) -> None:
    straight = discovery(tmp_path)
    straight.go(Searcher())
    for events in range(2, len(straight.memory.events), 3):
        again = straight.cut(events)
        again.go(Searcher())
        assert [(c.tool, c.arguments, c.text) for c in again.state.calls] == [
            (c.tool, c.arguments, c.text) for c in straight.state.calls
        ]


@pytest.mark.parametrize("begun", [repair_at_work, gist_at_work])
def test_other_tasks_are_not_supported(tmp_path: Path, begun) -> None:  # type: ignore[no-untyped-def]
    work = begun(tmp_path)
    assert work.go(Searcher()).reason is TerminationReason.ENDED
    assert work.ended == ("gave_up", "not_supported")
    assert all(call.automatic for call in work.state.calls)  # a gist is submitted as it is


def test_a_repository_that_tells_nothing_is_given_up(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path, Mode.DISCOVERY)
    work.go(Searcher())
    assert work.ended == ("gave_up", "no_tool_call")
    assert len(CHECKS) > len(work.state.calls)
