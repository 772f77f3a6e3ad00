"""The isolation of this machine as a value that travels to workers: each makes its own runner from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.generation.campaign.library import Library
from gistpoint.core.locations import Locations
from gistpoint.core.ports import ChatModel
from gistpoint.sandbox.candidates.prober import SuiteProber
from gistpoint.sandbox.candidates.recording import SuiteTestMapper
from gistpoint.sandbox.environments import EnvironmentStore
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.testruns import SuiteRunner


@dataclass(frozen=True, slots=True)
class SandboxBench:
    """Implements `gistpoint.core.generation.campaign.bench.Bench`."""

    backend: str
    """Name of the backend, as `choose` takes it."""
    consented: bool
    """Whether the user agreed to run without isolation."""
    cache: Path

    def runner(self) -> SuiteRunner:
        """Return what runs whole suites. Raises `SandboxUnavailableError`."""
        return SuiteRunner(choose(self.backend, consented=self.consented), EnvironmentStore(self.cache))

    def mapper(self) -> SuiteTestMapper:
        """Return what records which tests enter which functions."""
        return SuiteTestMapper(choose(self.backend, consented=self.consented), EnvironmentStore(self.cache))

    def model(self, name: str) -> ChatModel:
        """Return the chat model of that name; each process reads the key of its own environment or config file."""
        import os

        from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
        from gistpoint.sandbox.endpoints.retrying import RetryingModel
        from gistpoint.sandbox.endpoints.settings import endpoint_settings

        settings = endpoint_settings(Locations.of_user().config, os.environ, name)
        return RetryingModel(OpenAICompatibleModel(settings))

    def prober(self, library: Library) -> SuiteProber:
        """Return what decides candidates of this library; it is warm from the first one on."""
        intake = library.intake
        return SuiteProber(
            choose(self.backend, consented=self.consented),
            EnvironmentStore(self.cache),
            intake.repository.tree,
            intake.repository.environment,
            library.test_map,
            intake.passed,
            seconds=intake.seconds,
        )
