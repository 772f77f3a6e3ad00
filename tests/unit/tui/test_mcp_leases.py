"""A lease: sessions of single calls continue one attempt, one call at a time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import REPAIR
from fakes import FakeClock
from mcp_client import Case, connected, left, listening, over_http, text

from gistpoint.core.errors import AttemptError, CancelledError, UserError
from gistpoint.core.logs import take
from gistpoint.core.running import CancelToken, RunContext
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.leases import PILE_MS, lease_named, piles
from gistpoint.sessions.served import ServeAttempt, ServedAttempt, served_attempt

WRONG = REPAIR.replace("100", "99")
LOOK = "list_directory"


async def once(case: Case, name: str = LOOK, arguments: Any = None, lease: str = "bench-1") -> Any:
    """Make one call in a separate session with a separate server."""
    async with connected(case, lease=lease) as client:
        return await client.call_tool(name, arguments or {})


async def test_sessions_of_one_call_share_an_attempt_which_ends_once(tmp_path: Path) -> None:
    case = Case(tmp_path, budgets=Budgets(4, 2))
    await once(case, "read_brief")
    found = [await once(case) for _ in range(2)]
    assert [left(answer)["tool_uses"] for answer in found] == [3, 2]
    assert left(await once(case, "submit_attempt", {"func_code": WRONG})) == {
        "tool_uses": 1,
        "submissions": 1,
    }
    last = await once(case, "submit_attempt", {"func_code": REPAIR})
    assert not last.is_error
    for late in (await once(case), await once(case, "read_brief")):
        assert (text(late), late.is_error) == ("The attempt has ended: solved.", True)
        assert left(late) == {"tool_uses": 0, "submissions": 0}
    state = case.state()
    assert (state.solved, len(state.calls), state.processes) == (True, 4, 5)
    assert state.header.solver is not None
    assert state.header.solver["lease"] == "bench-1"


async def test_the_time_between_calls_is_away_even_within_a_session(tmp_path: Path) -> None:
    case = Case(tmp_path, budgets=Budgets(16, 4, time_limit_s=60))
    clock = case.services.clock
    assert isinstance(clock, FakeClock)
    async with connected(case, lease="long") as client:
        for _ in range(3):
            assert not (await client.call_tool(LOOK)).is_error
            clock.advance(50_000)
    ended = case.state().clock
    assert ended.away >= 100_000
    assert ended.active < 60_000


async def test_two_leases_are_two_attempts(tmp_path: Path) -> None:
    case = Case(tmp_path)
    for name in ("a", "b", "a"):
        await once(case, lease=name)
    assert sorted(len(summary.state.calls) for summary in case.summaries()) == [1, 2]


async def test_sessions_at_once_make_their_calls_one_after_another(tmp_path: Path) -> None:
    case = Case(tmp_path)
    found = await asyncio.gather(*(once(case) for _ in range(6)))
    assert sorted(left(answer)["tool_uses"] for answer in found) == list(range(10, 16))
    assert len(case.state().calls) == 6


def test_a_call_waits_for_the_holder_and_is_then_refused_at_no_cost(tmp_path: Path) -> None:
    case = Case(tmp_path)
    served = case.served(lease="bench-1")
    served.lease = replace(served.lease or lease_named(tmp_path, "x"), wait_s=0.2)
    served.call(LOOK, {}, "", {}, RunContext())
    lock = take(case.services.attempts.root.parent / "leases" / "bench-1.lock")
    assert lock is not None
    answer = served.call(LOOK, {}, "", {}, RunContext())
    assert answer.refused
    assert "cost nothing" in answer.text
    assert answer.budget["tool_uses"] == 15
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(CancelledError), served.lease.held(cancel):
        pass
    lock.release()
    assert served.call(LOOK, {}, "", {}, RunContext()).budget["tool_uses"] == 14


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"budgets": Budgets(8, 2)}, "budgets 16/4, not 8/2"),
        ({"budgets": Budgets(16, 4, time_limit_s=60)}, "budgets 16/4, not 16/4 in 60 s"),
    ],
)
def test_other_conditions_are_refused_by_name(more: dict[str, Any], said: str, tmp_path: Path) -> None:
    case = Case(tmp_path)
    case.served(lease="bench-1").call(LOOK, {}, "", {}, RunContext())
    with pytest.raises(AttemptError, match=said):
        case.served(lease="bench-1", **more)
    other = Case(tmp_path, Mode.DISCOVERY)
    with pytest.raises(AttemptError, match=rf"task {case.task.id[:12]}, not {other.task.id[:12]}"):
        other.served(lease="bench-1")
    late = case.served(lease="later")
    case.served(lease="later", budgets=Budgets(8, 2)).call(LOOK, {}, "", {}, RunContext())
    answer = late.call(LOOK, {}, "", {}, RunContext())
    assert "budgets 8/2, not 16/4" in answer.text


def test_the_command_compares_role_pseudonym_and_the_clients_tools(tmp_path: Path) -> None:
    case = Case(tmp_path)

    def asked(**more: Any) -> ServedAttempt:
        given = ServeAttempt(task=case.task.id, lease="bench-1", **more)
        return served_attempt(case.services, given, "stdio", print)

    asked().call(LOOK, {}, "", {}, RunContext())
    with pytest.raises(UserError, match="client's own tools unknown, not none_said"):
        asked(trust_client=True)
    with pytest.raises(UserError, match="--lease can't be given with --attempt"):
        asked(attempt="x")
    with pytest.raises(UserError, match="not a valid name"):
        served_attempt(case.services, ServeAttempt(task=case.task.id, lease="../x"), "stdio", print)


def test_a_process_that_died_before_the_attempt_began_leaves_one_attempt(tmp_path: Path) -> None:
    case = Case(tmp_path)
    lease = lease_named(case.services.attempts.root, "bench-1")
    with lease.held(CancelToken()):
        reserved = lease.reserve(case.services.clock.utc_ms())
    case.served(lease="bench-1").call(LOOK, {}, "", {}, RunContext())
    (summary,) = case.summaries()
    assert summary.attempt_id == reserved


async def test_over_http_sessions_of_single_calls_overlap(tmp_path: Path) -> None:
    case = Case(tmp_path)

    async def call(url: str) -> Any:
        async with over_http(url) as client:
            return await client.call_tool(LOOK)

    for _ in range(2):  # a restarted server continues the attempt
        async with listening(case.served(lease="bench-1")) as url:
            await asyncio.gather(*(call(url) for _ in range(3)))
    assert case.state().remaining.tool_uses == 10


def test_attempts_that_pile_up_are_reported_with_the_first_answer(tmp_path: Path) -> None:
    case, told = Case(tmp_path), list[str]()
    given = ServeAttempt(task=case.task.id)
    client = {"client": {"name": "calls\x1b once", "version": "1"}}

    def served() -> ServedAttempt:
        return served_attempt(case.services, given, "stdio", told.append)

    for _ in range(3):
        one = served()
        assert not one.call(LOOK, {}, "", client, RunContext()).note
        one.close()
    told.clear()
    fourth = served()
    assert "--lease" in told[0]
    assert "\x1b" not in told[0]
    first, second = (fourth.call(LOOK, {}, "", client, RunContext()) for _ in range(2))
    assert "--lease" in first.note
    assert not second.note
    fourth.close()
    store, now = case.services.attempts, case.services.clock.utc_ms()
    assert [pile.count for pile in piles(store, "mcp", 0)] == [4]
    assert not piles(store, "mcp", 0, "another")
    assert not piles(store, "mcp", now + 1)
    assert not piles(store, "chat", 0)


def test_attempts_begun_far_apart_or_with_more_calls_do_not_pile_up(tmp_path: Path) -> None:
    case = Case(tmp_path)
    clock = case.services.clock
    assert isinstance(clock, FakeClock)
    for calls in (1, 1, 4):
        one = case.served()
        for _ in range(calls):
            one.call(LOOK, {}, "", {}, RunContext())
        one.close()
    assert not piles(case.services.attempts, "mcp", 0)
    clock.advance(PILE_MS + 1)
    one = case.served()
    one.call(LOOK, {}, "", {}, RunContext())
    one.close()
    assert not piles(case.services.attempts, "mcp", 0)
