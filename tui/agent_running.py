"""What a run of an agent needs, put together: for the command line, and for programs that carry out runs themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.agents.settings import AgentSettings, Price
from gistpoint.core.attempts.identity import Role
from gistpoint.core.errors import EndpointError
from gistpoint.core.kinds.gist.model import is_gist
from gistpoint.sessions.agentruns.bounds import BoundedEntrypoints, BoundedRunner, Slots
from gistpoint.sessions.agentruns.runner import AgentPorts
from gistpoint.sessions.agentruns.store import RunSettings
from gistpoint.tui.services import Services, is_our_demo

if TYPE_CHECKING:
    from gistpoint.core.ports import ChatModel
    from gistpoint.core.tasks.model import Task
    from gistpoint.sandbox.endpoints.settings import EndpointSettings

SEARCHER = "builtin:searcher"
_BUILT_IN = "builtin:"


@dataclass(frozen=True, slots=True)
class Solver:
    """A model by name: behind an endpoint, or built in."""

    name: str
    endpoint: EndpointSettings | None = None

    @property
    def host(self) -> str:
        """The endpoint's host and port; empty for one that is built in."""
        return "" if self.endpoint is None else self.endpoint.place

    @property
    def price(self) -> Price | None:
        """The price that the user's settings name."""
        prices = None if self.endpoint is None else self.endpoint.prices
        return None if prices is None else Price(prices.prompt, prices.completion)


def solver_named(config: Path, environment: Mapping[str, str], model: str = "", base_url: str = "") -> Solver:
    """Return the solver of this name, or the one that environment and `config.toml` name.

    Raises `EndpointError` and `SettingsError`; no message holds a value of the user's.
    """
    from gistpoint.sandbox.endpoints.settings import URL_NAME, endpoint_settings

    if model.startswith(_BUILT_IN):
        if model != SEARCHER:
            raise EndpointError("There is no built-in solver of this name.", hint=f"There is {SEARCHER}.")
        return Solver(model)
    given = {**environment, URL_NAME: base_url} if base_url else environment
    endpoint = endpoint_settings(config, given, model or None)
    return Solver(endpoint.model, endpoint)


def agent_ports(services: Services, solver: Solver, settings: RunSettings, *, tests_at_once: int) -> AgentPorts:
    """Return the ports of a run; the attempts share `tests_at_once` places for test runs and one gate to the host.

    Raises `EndpointError` if the package of chat endpoints is missing.
    """
    slots = Slots(tests_at_once)
    bounded = replace(
        services,
        runner_for=lambda task: BoundedRunner(services.runner_for(task), slots),
        entrypoints_for=lambda task: BoundedEntrypoints(services.entrypoints_for(task), slots),
    )

    def as_given(task: Task) -> Task:
        if settings.gist is None or not is_gist(task):
            return task
        return replace(bounded, gist_settings={task.id: settings.gist}).as_given(task)

    def role(task: Task, wanted: Role) -> Role:
        return Role.DEMO if wanted is Role.BASELINE and is_our_demo(task, services.locations) else wanted

    return AgentPorts(
        attempts=services.attempts,
        clock=services.clock,
        task=services.tasks.find,
        judge=bounded.judge_for,
        model=_Models(solver).with_sampling,
        as_given=as_given,
        role=role,
    )


class _Models:
    """Makes the model of a solver, behind one gate."""

    def __init__(self, solver: Solver) -> None:
        from gistpoint.sandbox.endpoints.throttle import Throttle

        self._solver = solver
        self._throttle = Throttle()
        self.with_sampling(AgentSettings())  # so that a missing package is told before anything is begun

    def with_sampling(self, settings: AgentSettings) -> ChatModel:
        """Return the model with the sampling and the price of these settings."""
        endpoint = self._solver.endpoint
        if endpoint is None:
            from gistpoint.core.agents.searcher import Searcher

            return Searcher()
        from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
        from gistpoint.sandbox.endpoints.retrying import RetryingModel
        from gistpoint.sandbox.endpoints.settings import Prices
        from gistpoint.sandbox.endpoints.throttle import ThrottledModel

        price = settings.price
        prices = None if price is None else Prices(price.input, price.output)
        model = OpenAICompatibleModel(replace(endpoint, sampling=settings.sampling, prices=prices))
        return RetryingModel(ThrottledModel(model, self._throttle.gate(endpoint.place)))
