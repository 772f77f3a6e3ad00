"""What a run of an agent needs, put together: for the command line, and for programs that carry out runs themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gistpoint.core.agents.conversation import conversation
from gistpoint.core.agents.settings import AgentSettings, TokenPrice
from gistpoint.core.agents.static import static_messages
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import EventData, JournalEvent
from gistpoint.core.attempts.identity import MODEL, Enrolment, Role
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.errors import EndpointError
from gistpoint.core.estimates import tokens_in
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.outcomes import BackendRecord
from gistpoint.sessions.agentruns.bounds import BoundedEntrypoints, BoundedRunner, Slots
from gistpoint.sessions.agentruns.runner import AgentPorts
from gistpoint.sessions.agentruns.store import RunSettings
from gistpoint.tui.services import Services, is_our_demo

if TYPE_CHECKING:
    from gistpoint.core.chat import ChatMessage
    from gistpoint.core.ports import ChatModel, TimeSource
    from gistpoint.core.tasks.model import Task
    from gistpoint.sandbox.endpoints.settings import EndpointSettings

SEARCHER = "builtin:searcher"
_BUILT_IN = "builtin:"


@dataclass(frozen=True, slots=True)
class AgentSolver:
    """A model by name: behind an endpoint, or built in."""

    name: str
    endpoint: EndpointSettings | None = None

    @property
    def host(self) -> str:
        """The endpoint's host and port; empty for one that is built in."""
        return "" if self.endpoint is None else self.endpoint.place

    @property
    def price(self) -> TokenPrice | None:
        """The price that the user's settings name."""
        prices = None if self.endpoint is None else self.endpoint.prices
        return None if prices is None else TokenPrice(prices.prompt, prices.completion)


def solver_named(config: Path, environment: Mapping[str, str], model: str = "", base_url: str = "") -> AgentSolver:
    """Return the solver of this name, or the one that environment and `config.toml` name.

    Raises `EndpointError` and `SettingsError`; no message holds a value of the user's.
    """
    from gistpoint.sandbox.endpoints.settings import URL_NAME, endpoint_settings

    if model.startswith(_BUILT_IN):
        if model != SEARCHER:
            raise EndpointError("There is no built-in solver of this name.", hint=f"There is {SEARCHER}.")
        return AgentSolver(model)
    given = {**environment, URL_NAME: base_url} if base_url else environment
    endpoint = endpoint_settings(config, given, model or None)
    return AgentSolver(endpoint.model, endpoint)


def agent_ports(services: Services, solver: AgentSolver, settings: RunSettings, *, tests_at_once: int) -> AgentPorts:
    """Return the ports of a run; the attempts share `tests_at_once` places for test runs and one gate to the host.

    Raises `EndpointError` if the package of chat endpoints is missing.
    """
    slots = Slots(tests_at_once)
    bounded = replace(
        services,
        runner_for=lambda task: BoundedRunner(services.runner_for(task), slots),
        entrypoints_for=lambda task: BoundedEntrypoints(services.entrypoints_for(task), slots),
    )
    return replace(_ports(bounded, settings), model=_Models(solver).with_sampling)


def _ports(services: Services, settings: RunSettings) -> AgentPorts:
    """Return the ports of a run without a model."""

    def as_given(task: Task) -> Task:
        if settings.gist is None or not kind_of(task).takes_settings:
            return task
        return replace(services, gist_settings={task.id: settings.gist}).as_given(task)

    def role(task: Task, wanted: Role) -> Role:
        return Role.DEMO if wanted is Role.BASELINE and is_our_demo(task, services.locations) else wanted

    def no_model(settings: AgentSettings) -> ChatModel:
        raise EndpointError("No model was chosen.")

    return AgentPorts(
        attempts=services.attempts,
        clock=services.clock,
        task=services.tasks.find,
        judge=services.judge_for,
        model=no_model,
        as_given=as_given,
        role=role,
    )


@dataclass(frozen=True, slots=True)
class FirstRequest:
    """What a model would be sent first."""

    messages: Sequence[ChatMessage]
    tools: Sequence[Mapping[str, Any]]
    """Their declarations."""

    @property
    def sha256(self) -> str:
        """The hash of messages and declarations."""
        return sha256_of_json([[[message.role, message.content] for message in self.messages], [*self.tools]])

    @property
    def tokens(self) -> int:
        """An upper estimate of its tokens."""
        written = len(json.dumps([*self.tools])) if self.tools else 0
        return tokens_in(written + sum(len(message.content) for message in self.messages))


def first_request(services: Services, task: Task, settings: RunSettings) -> FirstRequest:
    """Return the first request of an attempt that is not kept, and that can run no code."""
    idle: Any = _NoRunner()
    ports = _ports(replace(services, runner_for=lambda task: idle, entrypoints_for=lambda task: idle), settings)
    task = ports.as_given(task)
    judge = ports.judge(task)
    attempt = Attempt(task, judge, _Unkept(services.clock), services.clock)
    role = ports.role(task, Role(settings.role))
    attempt.start(Enrolment(MODEL, role), budgets=settings.budgets(task, judge))
    if settings.agent.setting == "static":
        return FirstRequest(static_messages(attempt, settings.agent), ())
    messages = conversation(attempt.state, settings.agent)
    return FirstRequest(messages, [tool.json_schema() for tool in attempt.offered()])


class _NoRunner:
    """Stands for a runner where nothing is run."""

    backend = BackendRecord("none")


@dataclass
class _Unkept:
    """Gives events their numbers and keeps none."""

    clock: TimeSource
    seq: int = 0

    def append(self, data: EventData) -> JournalEvent:
        """Return the event."""
        self.seq += 1
        return JournalEvent(self.seq, data.type, self.clock.utc_ms(), self.clock.mono_ms(), data)


def solving_model(solver: AgentSolver) -> ChatModel:
    """Return the model of a solver, behind a gate of its own. Raises `EndpointError` if a package is missing."""
    return _Models(solver).with_sampling(AgentSettings())


class _Models:
    """Makes the model of a solver, behind one gate."""

    def __init__(self, solver: AgentSolver) -> None:
        from gistpoint.sandbox.endpoints.throttle import Throttle

        self._solver = solver
        self._throttle = Throttle()
        self.with_sampling(AgentSettings())  # so that a missing package is told before anything is begun

    def with_sampling(self, settings: AgentSettings) -> ChatModel:
        """Return the model with the sampling of these settings; what its replies cost is for the loop to say."""
        endpoint = self._solver.endpoint
        if endpoint is None:
            from gistpoint.core.agents.searcher import Searcher

            return Searcher()
        from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
        from gistpoint.sandbox.endpoints.retrying import RetryingModel
        from gistpoint.sandbox.endpoints.throttle import ThrottledModel

        model = OpenAICompatibleModel(replace(endpoint, sampling=settings.sampling, prices=None))
        return RetryingModel(ThrottledModel(model, self._throttle.gate(endpoint.place)))
