"""Solvers by name: models behind an endpoint, and built-in ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gistpoint.core.agents.settings import AgentSettings, TokenPrice
from gistpoint.core.chat import ChatApi
from gistpoint.core.errors import EndpointError
from gistpoint.core.ports import ChatModel

BUILT_IN: Final = "builtin:"
"""The prefix of the names of solvers that need no endpoint."""
SEARCHER: Final = "builtin:searcher"
ModelMaker = Callable[[AgentSettings], ChatModel]
"""A function that returns the model with the sampling in the settings; the loop computes replies' cost."""


@dataclass(frozen=True, slots=True)
class RequestPace:
    """The pace of requests to an endpoint, by default from the user's settings; it affects no reply."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    no_stream: bool = False
    """Whether replies are always requested whole rather than streamed."""


@dataclass(frozen=True, slots=True)
class AgentSolver:
    """A named model, which is behind an endpoint or built in."""

    name: str
    made: Callable[[RequestPace], ModelMaker]
    """Returns a function that makes models, which share the limits on requests to their host.

    Raises `EndpointError` if a package is missing.
    """
    host: str = ""
    """The endpoint's host and port; empty for a built-in solver."""
    price: TokenPrice | None = None
    """The price from the user's settings, if any."""
    api: ChatApi = "openai"
    """The API of the endpoint."""

    pace: RequestPace = RequestPace()

    def models(self) -> ModelMaker:
        """Return a function that makes models, which share the limits on requests to their host.

        Raises `EndpointError` if a package is missing.
        """
        return self.made(self.pace)

    def model(self) -> ChatModel:
        """Return a model with separate limits on requests. Raises `EndpointError` if a package is missing."""
        return self.models()(AgentSettings())


def _searcher() -> ChatModel:
    from gistpoint.core.agents.searcher import Searcher

    return Searcher()


_MODELS: Mapping[str, Callable[[], ChatModel]] = {SEARCHER: _searcher}
"""The built-in solvers by name."""


def built_in(name: str) -> AgentSolver:
    """Return the built-in solver with this name. Raises `EndpointError` if there is none."""
    if name not in _MODELS:
        raise EndpointError(
            "There is no built-in solver of this name.", hint=f"There is {', '.join(_MODELS)}."
        )
    make = _MODELS[name]
    return AgentSolver(name, lambda pace: lambda settings: make())
