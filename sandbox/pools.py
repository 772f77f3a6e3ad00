"""Processes in which candidates are decided: some of this machine, or those of a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gistpoint.core.errors import InfrastructureError, UserError
from gistpoint.core.generation.campaign.campaign import Crew
from gistpoint.core.generation.campaign.jobs import close_desks
from gistpoint.core.generation.campaign.library import Library
from gistpoint.core.locations import Locations
from gistpoint.core.ports import ChatModel
from gistpoint.sandbox.candidates.prober import SuiteProber
from gistpoint.sandbox.candidates.recording import SuiteTestMapper
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.testruns import SuiteRunner

if TYPE_CHECKING:
    from collections.abc import Callable


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


_CONNECT_S = 20
_POLL_S = 0.2


@contextmanager
def local_crew(size: int) -> Iterator[Crew]:
    """Yield `size` processes of this machine; they end with the context, and when this process dies in whatever way."""
    context = multiprocessing.get_context("spawn")
    listening, telling = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(size, mp_context=context, initializer=_begin, initargs=(listening,))
    try:
        yield Crew(pool, size)
    finally:
        telling.send(None)
        pool.shutdown(wait=True, cancel_futures=True)
        telling.close()
        listening.close()


def _begin(listening: Connection) -> None:
    """Prepare a process of the pool: Ctrl-C is for the first process to hear, and without it there is nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_watch, args=(listening, parent.sentinel), daemon=True).start()
    Finalize(None, close_desks, exitpriority=10)


def _watch(listening: Connection, parent: int) -> None:
    """Stop what runs when the pool is closed; end at once when the first process is gone."""
    if parent not in wait([listening, parent]):
        close_desks()
        while not wait([parent], _POLL_S):
            close_desks()  # of jobs that were on their way
    os._exit(1)


@contextmanager
def cluster_crew(address: str) -> Iterator[Crew]:
    """Yield the workers of the Dask cluster whose scheduler is at `address`.

    Raises `UserError` where Dask is not installed, `InfrastructureError` where the cluster can't be reached or has no
    worker.
    """
    try:
        distributed = import_module("distributed")  # by name: it declares types and has few
    except ImportError as error:
        raise UserError(
            "A cluster needs Dask, which is not installed.", hint="Install it: pip install 'gistpoint[cluster]'."
        ) from error
    try:
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InfrastructureError(
            f"There is no Dask scheduler at {address}: {error}.", hint="Start one: dask scheduler; dask worker ADDRESS."
        ) from error
    try:
        cores: int = sum(client.ncores().values())
        if not cores:
            raise InfrastructureError(f"The scheduler at {address} has no worker.", hint=f"dask worker {address}")
        try:
            yield Crew(_Impure(client), cores)
        finally:
            client.run(close_desks)
    finally:
        client.close()


class _Impure:
    """Dask's executor; like any other it calls a function each time, though Dask would remember what it returned."""

    def __init__(self, client: Any) -> None:
        self._executor = client.get_executor(pure=False)

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Call `fn` in a worker."""
        future: Future[Any] = self._executor.submit(fn, *args)
        return future
