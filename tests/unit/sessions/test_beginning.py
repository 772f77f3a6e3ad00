"""An agent's run is planned, started and continued without a command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import build_services, build_task

from gistpoint.core.agents.settings import TokenPrice
from gistpoint.core.agents.solvers import AgentSolver, built_in
from gistpoint.core.chat import ChatApi
from gistpoint.core.errors import EndpointError, UserError
from gistpoint.core.requests import for_worker
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.agentruns.beginning import (
    AgentCondition,
    AgentModel,
    AgentPace,
    BeginAgentRun,
    PlannedRun,
    begin_run,
    first_requests,
    plan_run,
    resume_run,
)
from gistpoint.sessions.agentruns.runner import AgentRunner
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.attempt_outcomes import AcceptPass, RejectPass, accept_pass, reject_pass
from gistpoint.sessions.services import Services

SEARCHER = "builtin:searcher"


@pytest.fixture
def services(tmp_path: Path) -> Services:
    found = build_services(tmp_path)
    build_task(found.locations.tasks)
    return replace(found, solver=lambda name, base_url, api: built_in(name))


def at(host: str, name: str = SEARCHER) -> AgentSolver:
    return replace(built_in(SEARCHER), name=name, host=host)


def planned(services: Services, **given: object) -> PlannedRun:
    condition = AgentCondition(**given)  # type: ignore[arg-type]
    wanted = BeginAgentRun(
        tasks=(str(services.locations.tasks),), model=AgentModel(model=SEARCHER, seed=3), condition=condition
    )
    return plan_run(services, wanted, None, print)


def test_a_plan_has_a_job_for_each_repeat_and_the_name_of_its_settings(services: Services) -> None:
    plan = planned(services, repeats=2, budgets=Budgets.of(8))
    assert [job.repeat for job in plan.jobs] == [1, 2]
    assert (plan.settings.tool_uses, plan.settings.submissions) == (8, 2)
    assert plan.settings.agent.sampling.seed == 3
    assert plan.name == planned(services, repeats=1, budgets=Budgets.of(8)).name
    assert plan.name != planned(services).name
    assert plan.name.startswith("builtin-searcher-")
    assert len(first_requests(services, plan, print)) == 1


def test_a_run_is_begun_once_and_done(services: Services) -> None:
    plan = planned(services)
    run, ports = begin_run(services, plan, AgentPace())
    assert begin_run(services, plan, AgentPace())[0].jobs.keys() == run.jobs.keys()
    AgentRunner(run, ports, at_once=1).work()
    assert not run.left
    assert resume_run(services, plan.name, "", AgentPace())[0].left == []
    (attempt,) = services.attempts.summaries()
    assert attempt.actor == "model"
    assert attempt.state.ended


def test_what_can_not_begin_says_why(services: Services) -> None:
    with pytest.raises(UserError, match="No task was given"):
        plan_run(services, BeginAgentRun(), None, print)
    with pytest.raises(EndpointError, match="no built-in solver"):
        plan_run(services, BeginAgentRun(demo=True, model=AgentModel(model="builtin:x")), None, print)


def test_a_bound_needs_a_price_and_a_run_stays_with_its_server(services: Services) -> None:
    elsewhere = replace(services, solver=lambda name, base_url, api: at("far.example", name))
    plan = planned(elsewhere)
    with pytest.raises(UserError, match="without a price"):
        begin_run(elsewhere, plan, AgentPace(max_cost=1.0))
    wanted = BeginAgentRun(tasks=(str(services.locations.tasks),), model=AgentModel(model=SEARCHER))
    begin_run(elsewhere, plan_run(elsewhere, wanted, TokenPrice(1, 2), print), AgentPace(max_cost=1.0))
    begin_run(elsewhere, plan, AgentPace())
    with pytest.raises(UserError, match=r"on another server: far\.example"):
        resume_run(services, plan.name, "", AgentPace())


@pytest.mark.parametrize(
    ("host", "api", "model", "limit"),
    [
        ("far.example", "openai", AgentModel(), 32_000),
        ("far.example", "gemini", AgentModel(context=20_000), 5_000),
        ("far.example", "openai", AgentModel(thinking_tokens=30_000), 38_000),
        ("far.example", "openai", AgentModel(max_output_tokens=70), 70),
        ("far.example", "anthropic", AgentModel(), None),
        ("", "openai", AgentModel(), None),
    ],
)
def test_a_bound_on_costs_bounds_the_length_of_replies(
    services: Services, host: str, api: ChatApi, model: AgentModel, limit: int | None
) -> None:
    elsewhere = replace(services, solver=lambda name, base_url, api_: replace(at(host, name), api=api))
    wanted = BeginAgentRun(tasks=(str(services.locations.tasks),), model=replace(model, model=SEARCHER))
    plans = [plan_run(elsewhere, wanted, None, print, costs_limited=limited) for limited in (True, False)]
    limits = [plan.settings.agent.sampling.max_output_tokens for plan in plans]
    assert limits == [limit, model.max_output_tokens]


def test_under_a_limit_of_costs_replies_leave_room_for_the_conversation(services: Services) -> None:
    elsewhere = replace(services, solver=lambda name, base_url, api_: at("far.example", name))

    def limit_of(model: AgentModel) -> int | None:
        wanted = BeginAgentRun(tasks=(str(services.locations.tasks),), model=replace(model, model=SEARCHER))
        return plan_run(elsewhere, wanted, None, print, costs_limited=True).settings.agent.sent_limit

    with pytest.raises(UserError, match="up to 32000 tokens, which is more than half of a context of 32000"):
        limit_of(AgentModel(thinking_tokens=24_000, context=32_000))
    assert limit_of(AgentModel(thinking_tokens=24_000, context=64_000)) == 32_000
    assert limit_of(AgentModel(max_output_tokens=20_000, context=32_000)) == 20_000


def test_a_run_stays_with_the_api_with_which_it_was_begun(services: Services) -> None:
    asked = []

    def by(name: str, base_url: str, api: ChatApi | None) -> AgentSolver:
        asked.append(api)
        return replace(at("h"), api=api or "gemini")

    found = replace(services, solver=by)
    begin_run(found, planned(found), AgentPace())
    assert planned(found).settings.agent.chat_api == "gemini"
    resume_run(found, planned(found).name, "", AgentPace())
    assert asked[-1] == "gemini"
    none_has_a_seed = replace(services, solver=lambda name, base_url, api: replace(at("h"), api="anthropic"))
    with pytest.raises(UserError, match="no seed"):
        planned(none_has_a_seed)


def test_names_on_this_machine_do_not_travel() -> None:
    wanted = BeginAgentRun(tasks=("/tasks",), condition=AgentCondition(gist_settings="/file", repeats=3))
    sent = for_worker(wanted)
    assert (sent.tasks, sent.condition.gist_settings, sent.condition.repeats) == ((), None, 3)


def test_nothing_is_settled_where_there_is_no_pass(services: Services) -> None:
    reviews = ReviewStore(services.locations.reviews, services.clock)
    (task,) = [task for task in services.tasks.tasks() if isinstance(task, Task)]
    opened = services.start(task)
    opened.close()
    id = opened.attempt.state.attempt_id
    with pytest.raises(UserError, match="needs a reason"):
        reject_pass(services.attempts, reviews, RejectPass(attempt=id, why=" "))
    for settle in (
        lambda: accept_pass(services.attempts, reviews, AcceptPass(attempt=id)),
        lambda: reject_pass(services.attempts, reviews, RejectPass(attempt=id, why="read")),
    ):
        with pytest.raises(UserError, match="has no pass to settle; its outcome is: unfinished"):
            settle()
