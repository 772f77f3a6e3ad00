"""What a run of an agent begins with: its ports, and the first request that its model would be sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gistpoint.core.agents.conversation import conversation
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.agents.solvers import AgentSolver, ModelMaker
from gistpoint.core.agents.static import static_messages
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import EventData, JournalEvent
from gistpoint.core.attempts.identity import MODEL, Enrolment, Role
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.errors import EndpointError
from gistpoint.core.estimates import tokens_in
from gistpoint.core.kinds.gist.model import is_gist
from gistpoint.core.outcomes import BackendRecord
from gistpoint.sessions.agentruns.bounds import BoundedEntrypoints, BoundedRunner, Slots
from gistpoint.sessions.agentruns.runner import AgentPorts
from gistpoint.sessions.agentruns.store import RunSettings
from gistpoint.sessions.services import Services, is_our_demo

if TYPE_CHECKING:
    from gistpoint.core.chat import ChatMessage
    from gistpoint.core.ports import ChatModel, TimeSource
    from gistpoint.core.tasks.model import Task


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
    return _ports(bounded, settings, solver.models())


def _ports(services: Services, settings: RunSettings, model: ModelMaker) -> AgentPorts:

    def as_given(task: Task) -> Task:
        if settings.gist is None or not is_gist(task):
            return task
        return replace(services, gist_settings={task.id: settings.gist}).as_given(task)

    def role(task: Task, wanted: Role) -> Role:
        return Role.DEMO if wanted is Role.BASELINE and is_our_demo(task, services.locations) else wanted

    return AgentPorts(
        attempts=services.attempts,
        clock=services.clock,
        task=services.tasks.find,
        judge=services.judge_for,
        model=model,
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
    without = replace(services, runner_for=lambda task: idle, entrypoints_for=lambda task: idle)
    ports = _ports(without, settings, _no_model)
    task = ports.as_given(task)
    judge = ports.judge(task)
    attempt = Attempt(task, judge, _Unkept(services.clock), services.clock)
    role = ports.role(task, Role(settings.role))
    attempt.start(Enrolment(MODEL, role), budgets=settings.budgets(task, judge))
    if settings.agent.setting == "static":
        return FirstRequest(static_messages(attempt, settings.agent), ())
    messages = conversation(attempt.state, settings.agent)
    return FirstRequest(messages, [tool.json_schema() for tool in attempt.offered()])


def _no_model(settings: AgentSettings) -> ChatModel:
    raise EndpointError("No model was chosen.")


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
