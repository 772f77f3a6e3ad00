"""Where a campaign's code runs: how a worker gets what runs suites, in whatever process it finds itself."""

from __future__ import annotations

from typing import Protocol

from gistpoint.core.generation.campaign.library import Library
from gistpoint.core.ports import ChatModel, Prober, Runner, TestMapper


class Bench(Protocol):
    """Makes runners; a value that can be pickled, so that each worker makes its own in its own process."""

    def runner(self) -> Runner:
        """Return what runs whole suites."""
        ...

    def mapper(self) -> TestMapper:
        """Return what records which tests enter which functions."""
        ...

    def model(self, name: str) -> ChatModel:
        """Return the chat model of that name. Raises `EndpointError` where its endpoint is not configured here."""
        ...

    def prober(self, library: Library) -> Prober:
        """Return what decides candidates of this library; the caller closes it."""
        ...
