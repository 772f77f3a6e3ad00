"""A harness with the small library, whose models are at the endpoints that the user has configured."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fake_benches import SHOP, FakeBench
from small_trees import tree_of

from gistpoint.core.generation.campaign import Workers
from gistpoint.core.generation.context import close_contexts
from gistpoint.core.generation.settings import SourceSpec
from gistpoint.core.locations import Locations
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.retrying import RetryingModel
from gistpoint.sandbox.endpoints.settings import EndpointSettings, endpoint_settings, reader_settings


def _model(settings: EndpointSettings) -> RetryingModel:
    return RetryingModel(OpenAICompatibleModel(settings), sleep=lambda seconds, cancel: None)


@dataclass(eq=False)
class EndpointBench(FakeBench):
    """A harness that creates the small library, and gets its models from the user's endpoints."""

    source: str = SHOP

    def key(self, spec: SourceSpec, scratch: Path) -> str:
        return spec.source

    def fetch(self, spec: SourceSpec, scratch: Path, run: object, look: object = None) -> Repository:
        files = {"shop.py": self.source, "tests/test_shop.py": "def test_price(): ...\n"}
        return Repository(Source("sdist", "shop", "1"), tree_of(files, scratch), EnvironmentPins())

    def model(self, name: str) -> RetryingModel:
        return _model(endpoint_settings(Locations.of_user().config, os.environ, name))

    def reader(self, name: str) -> RetryingModel:
        return _model(reader_settings(Locations.of_user().config, os.environ, name))


@contextmanager
def threads(size: int) -> Iterator[Workers]:
    try:
        with ThreadPoolExecutor(size) as pool:
            yield Workers(pool, size)
    finally:
        close_contexts()
