"""Begins a run of a model on tasks: its settings, jobs and ports, and the first request to the model."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET

from gistpoint import __version__
from gistpoint.core.agents.conversation import conversation
from gistpoint.core.agents.settings import AgentSettings, CallForm, SystemPrompt, TokenPrice, limited
from gistpoint.core.agents.solvers import AgentSolver, ModelMaker, RequestPace
from gistpoint.core.agents.static import StaticRefusedError, static_messages
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import EventData, JournalEvent
from gistpoint.core.attempts.identity import MODEL, Enrolment, Role
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.chat import ChatApi, Sampling
from gistpoint.core.demo.tasks import demo_task, unpack_demo
from gistpoint.core.errors import EndpointError, UserError
from gistpoint.core.estimates import tokens_in
from gistpoint.core.kinds.registry import kind_of, kind_with_settings
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.requests import LOCAL, Count, Natural, Positive, Request, Share
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.sessions.agentruns.bounds import BoundedEntrypoints, BoundedRunner, Slots, bounded_confirmer
from gistpoint.sessions.agentruns.jobs import AgentJob
from gistpoint.sessions.agentruns.runner import AgentPorts
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore, RunSettings, job_of
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.confirming import confirm_after_end
from gistpoint.sessions.services import Services, is_our_demo, read_gist_settings
from gistpoint.sessions.tasks import TaskSet, read_set

if TYPE_CHECKING:
    from gistpoint.core.agents.scaffolds import Scaffold, ScaffoldIdentity
    from gistpoint.core.chat import ChatMessage
    from gistpoint.core.ports import ChatModel, TimeSource
    from gistpoint.core.tasks.model import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentModel(Request):
    """The part of a request for a run that chooses the model and its sampling."""

    model: str = ""
    base_url: str = ""
    api: ChatApi | None = None
    """The server's API; None for the API in the user's settings."""
    temperature: float | None = None
    top_p: Share | None = None
    seed: Natural | None = None
    effort: str | None = None
    thinking_tokens: Count | None = None
    max_output_tokens: Count | None = None
    context: Count = 128_000
    scaffold: str = ""
    """The name of the scaffold that works with the model; empty for gistpoint's own loop."""

    @property
    def samples(self) -> bool:
        """Whether the user has set the sampling or the length of replies."""
        given = (self.temperature, self.top_p, self.seed, self.effort, self.thinking_tokens)
        return any(value is not None for value in (*given, self.max_output_tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCondition(Request):
    """The part of a request for a run that contains the common settings of its attempts, except the model."""

    setting: Literal["tools", "static"] = "tools"
    budgets: Budgets | None = None
    """The budgets of repairs; None for each task's own."""
    tools: str = "all"
    """The tools for gists: the name of one of the `profiles` of their kind."""
    gist_settings: Annotated[str | None, LOCAL] = None
    """The path of a file with settings for gists."""
    attempt_tokens: Count | None = None
    calls: CallForm = "native"
    system: SystemPrompt = "agent-2"
    repeats: Count = 1
    role: str = Role.BASELINE.value


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginAgentRun(Request):
    """A request to begin a run of a model on tasks."""

    tasks: Annotated[tuple[str, ...], LOCAL] = ()
    demo: bool = False
    """Whether `tasks` are names of the demo's tasks; if it is empty, all of the demo's tasks are used."""
    name: str | None = None
    model: AgentModel = AgentModel()
    condition: AgentCondition = AgentCondition()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPace(Request):
    """The part of a request for a run that limits simultaneous work and cost, and names the cluster."""

    at_once: Count | None = None
    tests_at_once: Count | None = None
    """The number of simultaneous test runs; None for one per core."""
    cluster: Annotated[str | None, LOCAL] = None
    max_cost: Positive | None = None
    """The limit on the cost in US dollars."""
    requests_per_minute: Count | None = None
    """The maximum number of requests to the endpoint in any minute; None for the user's settings."""
    tokens_per_minute: Count | None = None
    """The maximum number of tokens, sent and received, in any minute; None for the user's settings."""
    no_stream: bool = False
    """Whether to request whole replies even if the server can stream them."""

    @property
    def requests(self) -> RequestPace:
        """The limits and the form of requests. Raises `UserError` if they are set together with a cluster."""
        pace = RequestPace(self.requests_per_minute, self.tokens_per_minute, self.no_stream)
        if self.cluster and pace != RequestPace():
            raise UserError(
                "Requests to the endpoint are not limited or changed across the workers of a cluster.",
                hint="Set requests_per_minute, tokens_per_minute or no_stream in [llm] on each worker.",
            )
        return pace

    @property
    def tests(self) -> int:
        """The number of simultaneous test runs on this machine."""
        return self.tests_at_once or len(os.sched_getaffinity(0))

    def require_here(self, settings: RunSettings) -> None:
        """Raise `UserError` if a scaffold is to work on a cluster."""
        if self.cluster is not None and settings.scaffold is not None:
            raise UserError("A scaffold runs only on this machine.", hint="Leave --cluster out.")

    def require_price(self, settings: RunSettings) -> None:
        """Raise `UserError` if the cost is limited but can't be computed."""
        if self.max_cost is not None and settings.agent.price is None and settings.host:
            raise UserError(
                "A cost can't be limited without a price.",
                hint="Give --price IN/OUT, in US dollars per million tokens.",
            )


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run before it begins: its tasks, its settings and its jobs."""

    solver: AgentSolver
    settings: RunSettings
    scaffold: Scaffold | None
    tasks: Sequence[Task]
    jobs: Sequence[AgentJob]
    name: str


def plan_run(
    services: Services,
    request: BeginAgentRun,
    price: TokenPrice | None,
    tell: Callable[[str], None],
    *,
    costs_limited: bool = False,
) -> PlannedRun:
    """Return the requested run; `price` takes precedence over the price in the user's settings.

    If its cost is limited, so is the length of its replies, by default as `limited` describes.

    `tell` is called with the reason for each named task that is left out. Raises `UserError` if no task is
    named, or if a task, the settings or the model can't be used.
    """
    tasks = _tasks(services, request)
    for problem in tasks.problems:
        tell(problem)
    scaffold, solver = _chosen(services, request)
    solver = replace(solver, price=price or solver.price)
    settings = _settings(request, solver, scaffold, costs_limited=costs_limited)
    jobs = [
        job_of(task.id, settings, repeat)
        for task in tasks.tasks
        for repeat in range(1, request.condition.repeats + 1)
    ]
    return PlannedRun(solver, settings, scaffold, tasks.tasks, jobs, request.name or _default_name(settings))


def _chosen(services: Services, request: BeginAgentRun) -> tuple[Scaffold | None, AgentSolver]:
    """Return the requested scaffold, None if none is requested, and the model.

    Raises `UserError` for settings that a scaffold would ignore.
    """
    model = request.model
    if not model.scaffold:
        return None, services.solver(model.model, model.base_url, model.api)
    if request.condition.setting == "static":
        raise UserError("A scaffold needs tools.", hint="Leave --setting static out.")
    if model.api:
        raise UserError("A scaffold connects to its model in its own way.", hint="Leave --api out.")
    if request.condition.calls == "text":
        raise UserError("A scaffold has its own form of calls.", hint="Leave --calls out.")
    seated = services.scaffold(model.scaffold, model.model, model.base_url)
    if seated.scaffold.identity.relayed and model.samples:
        raise UserError(
            f"{model.scaffold} sends its requests itself, so their sampling can't be chosen here.",
            hint="Leave these options out.",
        )
    return seated.scaffold, seated.solver


def _tasks(services: Services, request: BeginAgentRun) -> TaskSet:
    if request.demo:
        place = services.locations.demo
        named = [demo_task(name, place) for name in request.tasks]
        return TaskSet("demo", tuple(named or (task for _, task in unpack_demo(place))))
    if not request.tasks:
        raise UserError(
            "No task was given.", hint="Name tasks or sets (`gistpoint task list`), or give --demo."
        )
    return read_set(request.tasks, services.tasks, distinct=True)


def _require_text_calls(condition: AgentCondition, solver: AgentSolver) -> None:
    """Raise `UserError` if calls as text are requested for a run that does not support them."""
    if condition.calls != "text":
        return
    if condition.setting == "static":
        raise UserError(
            "The static setting makes no calls, so calls can't be written as text.", hint="Leave out --calls."
        )
    if condition.system == "agent-1":
        raise UserError(
            "The prompt agent-1 has no form for calls as text.", hint="Use --system agent-2 or none."
        )
    if not solver.host:
        raise UserError(
            "A built-in solver writes no text, so it can't write calls as text.", hint="Leave out --calls."
        )


def _settings(
    request: BeginAgentRun, solver: AgentSolver, scaffold: Scaffold | None, *, costs_limited: bool
) -> RunSettings:
    model, condition, budgets = request.model, request.condition, request.condition.budgets
    if model.seed is not None and solver.api == "anthropic":
        raise UserError("Anthropic's API has no seed.", hint="Leave out --seed.")
    _require_text_calls(condition, solver)
    sampling = Sampling(
        temperature=model.temperature,
        top_p=model.top_p,
        seed=model.seed,
        max_output_tokens=model.max_output_tokens,
        reasoning_effort=model.effort,
        thinking_tokens=model.thinking_tokens,
    )
    is_relayed = scaffold is not None and scaffold.identity.relayed
    # Requests to Anthropic's API always have a limit, and a scaffold's own program makes its own decisions.
    if costs_limited and solver.host and solver.api != "anthropic" and not is_relayed:
        sampling = limited(sampling, model.context)
        if model.max_output_tokens is None:
            _require_room(sampling, model.context)
    agent = AgentSettings(
        setting=condition.setting,
        system=condition.system if scaffold is None else "none",
        context_tokens=model.context,
        attempt_tokens=condition.attempt_tokens,
        sampling=sampling,
        price=solver.price,
        api=solver.api,
        calls="text" if condition.calls == "text" else UNSET,
    )
    given = read_gist_settings(condition.gist_settings) if condition.gist_settings else None
    return RunSettings(
        model=solver.name,
        host=solver.host,
        agent=agent,
        role=condition.role,
        tool_uses=None if budgets is None else budgets.tool_uses,
        submissions=None if budgets is None else budgets.submissions,
        gist=kind_with_settings().in_profile(condition.tools, given),
        scaffold=None if scaffold is None else scaffold.identity,
    )


def _require_room(sampling: Sampling, context: int) -> None:
    """Raise `UserError` if a reply of the default maximum length would fill more than half of the context."""
    longest = sampling.max_output_tokens or 0
    if 2 * longest > context:
        raise UserError(
            f"With --max-cost, replies may have up to {longest} tokens, which is more than half of a"
            f" context of {context}.",
            hint="Give --max-output-tokens, fewer --thinking-tokens, or a larger --context.",
        )


def _default_name(settings: RunSettings) -> str:
    """Return a name that depends only on the settings: the same request continues the same run."""
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", settings.model).strip("-._") or "model"
    framework = "" if settings.scaffold is None else f"{settings.framework}-"
    return f"{framework}{words[:60]}-{settings.digest[:8]}"


def begin_run(services: Services, plan: PlannedRun, pace: AgentPace) -> tuple[AgentRun, AgentPorts]:
    """Return the new or existing run with the jobs of a plan, and the ports to carry it out.

    Raises `UserError` if the cost is limited but can't be computed, or if a cluster can't do this work,
    `EndpointError` if the package of chat endpoints is not installed, and `AgentRunError` if the name is
    invalid, or if the run has different settings, can't be read or is in use by another process.
    """
    pace.require_price(plan.settings)
    pace.require_here(plan.settings)
    solver = replace(plan.solver, pace=pace.requests)
    ports = agent_ports(services, solver, plan.settings, tests_at_once=pace.tests, scaffold=plan.scaffold)
    now = services.clock.utc_ms()
    found = AgentRunStore(services.locations.runs).open_or_create(plan.name, plan.settings, now, __version__)
    with found.held():
        found.add(plan.jobs, now)
    return found, ports


def resume_run(services: Services, name: str, base_url: str, pace: AgentPace) -> tuple[AgentRun, AgentPorts]:
    """Return an existing run and the ports to continue it.

    Raises `AgentRunError` if there is no such run or it can't be read, `EndpointError` if the package of chat
    endpoints is missing, and `UserError` if the run was begun with another scaffold or with a model on
    another server, if its cost is limited but can't be computed, or if a cluster can't do this work.
    """
    found = AgentRunStore(services.locations.runs).open(name)
    settings = found.settings
    pace.require_here(settings)
    scaffold: Scaffold | None = None
    if settings.scaffold is None:
        solver = services.solver(settings.model, base_url, settings.agent.chat_api)
    else:
        seated = services.scaffold(settings.scaffold.name, settings.model, base_url)
        scaffold, solver = seated.scaffold, seated.solver
        _require_same(found.name, settings.scaffold, scaffold.identity)
    if solver.host != settings.host:
        raise UserError(
            f"The run {found.name} was started with a model on another server: {settings.host or 'none'}.",
            hint=(
                "Give that server with --base-url, or start another run: a model with the same name"
                " on another server may be a different one."
            ),
        )
    pace.require_price(settings)
    solver = replace(solver, pace=pace.requests)
    return found, agent_ports(services, solver, settings, tests_at_once=pace.tests, scaffold=scaffold)


def ports_without_model(services: Services, settings: RunSettings) -> AgentPorts:
    """Return the ports of a run for work without a model; requests to a model raise `EndpointError`."""
    return _ports(services, settings, _no_model)


def _require_same(run: str, begun: ScaffoldIdentity, now: ScaffoldIdentity) -> None:
    """Raise `UserError` if the scaffold is not the one with which a run was started."""
    if begun != now:
        raise UserError(
            f"The run {run} was started with {begun.name} {begun.version}; here is {now.name} {now.version}"
            f"{'' if begun.version != now.version else ' with other settings'}.",
            hint="Install that version, or start another run: another version may have other results.",
        )


def agent_ports(
    services: Services,
    solver: AgentSolver,
    settings: RunSettings,
    *,
    tests_at_once: int,
    scaffold: Scaffold | None = None,
) -> AgentPorts:
    """Return the ports of a run, with `tests_at_once` slots for test runs and one gate for all requests.

    Raises `EndpointError` if the package of chat endpoints is not installed.
    """
    slots = Slots(tests_at_once)
    bounded = replace(
        services,
        runner_for=lambda task: BoundedRunner(services.runner_for(task), slots),
        entrypoints_for=lambda task: BoundedEntrypoints(services.entrypoints_for(task), slots),
        confirmer_for=lambda task: bounded_confirmer(services.confirmer_for(task), slots),
    )
    return replace(_ports(bounded, settings, solver.models()), scaffold=scaffold)


def _ports(services: Services, settings: RunSettings, model: ModelMaker) -> AgentPorts:

    def as_given(task: Task) -> Task:
        if settings.gist is None or not kind_of(task).takes_settings:
            return task
        return replace(services, gist_settings={task.id: settings.gist}).as_given(task)

    def role(task: Task, requested: Role) -> Role:
        return (
            Role.DEMO if requested is Role.BASELINE and is_our_demo(task, services.locations) else requested
        )

    def confirm(attempts: AttemptStore, task: Task, attempt_id: str, run: RunContext) -> None:
        confirm_after_end(services, attempt_id, attempts=attempts, task=task, run=run)

    return AgentPorts(
        attempts=services.attempts,
        clock=services.clock,
        task=services.tasks.find,
        judge=services.judge_for,
        model=model,
        as_given=as_given,
        role=role,
        confirm=confirm,
    )


@dataclass(frozen=True, slots=True)
class FirstRequest:
    """The first request to a model."""

    messages: Sequence[ChatMessage]
    tools: Sequence[Mapping[str, Any]]
    """The declarations of the tools."""

    @property
    def sha256(self) -> str:
        """The SHA-256 hash of the messages and declarations."""
        return sha256_of_json([[[message.role, message.content] for message in self.messages], [*self.tools]])

    @property
    def tokens(self) -> int:
        """An upper estimate of the number of tokens."""
        written = len(json.dumps([*self.tools])) if self.tools else 0
        return tokens_in(written + sum(len(message.content) for message in self.messages))


def first_request(services: Services, task: Task, settings: RunSettings) -> FirstRequest:
    """Return the first request for a task, from an attempt that is not stored and runs no code.

    Raises `StaticRefusedError` if the task does not fit the static setting.
    """
    idle: Any = _NoRunner()
    without = replace(services, runner_for=lambda task: idle, entrypoints_for=lambda task: idle)
    ports = _ports(without, settings, _no_model)
    task = ports.as_given(task)
    judge = ports.judge(task)
    attempt = Attempt(task, judge, _UnstoredRecorder(services.clock), services.clock)
    role = ports.role(task, Role(settings.role))
    attempt.start(Enrolment(MODEL, role), budgets=settings.budgets(task, judge))
    if settings.agent.setting == "static":
        return FirstRequest(static_messages(attempt, settings.agent), ())
    messages = conversation(attempt.state, settings.agent, attempt.tools, attempt.offered())
    declared = () if settings.agent.calls_as_text else attempt.offered()
    return FirstRequest(messages, [tool.json_schema() for tool in declared])


def _no_model(settings: AgentSettings) -> ChatModel:
    raise EndpointError("No model was chosen.")


def first_requests(
    services: Services, plan: PlannedRun, tell: Callable[[str], None]
) -> dict[str, FirstRequest]:
    """Return the first request for each task of a plan, by task id.

    `tell` is called with the reason for each task without one. Raises `UserError` if no task has one.
    """
    found: dict[str, FirstRequest] = {}
    for task in plan.tasks:
        try:
            found[task.id] = first_request(services, task, plan.settings)
        except StaticRefusedError as error:
            tell(str(error))
    if not found:
        raise UserError(
            "There are no tasks left.", hint="The static setting is for gists that fit the context."
        )
    return found


class _NoRunner:
    """A stand-in for the runner in an attempt that runs nothing."""

    backend = BackendRecord("none")


@dataclass
class _UnstoredRecorder:
    """Numbers events without storing them."""

    clock: TimeSource
    seq: int = 0

    def append(self, data: EventData) -> JournalEvent:
        """Return the event with its number and times."""
        self.seq += 1
        return JournalEvent(self.seq, data.type, self.clock.utc_ms(), self.clock.mono_ms(), data)
