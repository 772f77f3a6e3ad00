"""The sandbox as generation's harness, local processes that judge candidates, and ruff as linter."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from multiprocessing.connection import Connection, wait
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gistpoint.core.confirmation.model import Confirmer
from gistpoint.core.corruption.appearance import GlanceScorer
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.campaign import Workers
from gistpoint.core.generation.context import close_contexts
from gistpoint.core.generation.earlier import EarlierFiles
from gistpoint.core.generation.intake import Intake
from gistpoint.core.generation.library import SourceLibrary
from gistpoint.core.generation.settings import SourceSpec
from gistpoint.core.locations import Locations
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.tasks.repository import MAX_SUITE_SECONDS, Repository
from gistpoint.core.trees import SourceTree
from gistpoint.core.unfinished import scratch_folder
from gistpoint.sandbox.candidates.prober import SuiteProber
from gistpoint.sandbox.candidates.recording import SLOWER, SuiteTestMapper
from gistpoint.sandbox.confirmation import confirmer_on
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.host_programs import run_host_program
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.testruns import SuiteRunner

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class SandboxHarness:
    """An implementation of `gistpoint.core.generation.context.FetchingHarness` on one backend.

    `fetch`, `runner`, `mapper`, `confirmer` and `prober` raise `SandboxUnavailableError` if there is no such
    backend, or if it does not work.
    """

    backend: str
    """The name of the backend, which `choose` accepts."""
    consented: bool
    """Whether the user has agreed to run code without isolation."""
    cache: Path

    @classmethod
    def on(cls, backend: BackendRecord) -> SandboxHarness:
        """Return the harness for a backend that has already been chosen, with the user's cache."""
        return cls(backend.name, not backend.isolated, Locations.of_user().cache)

    def key(self, spec: SourceSpec, scratch: Path) -> str:
        """Return the key of a source (see `key_of`). Raises `SourceError` if it can't be fetched."""
        from gistpoint.sandbox.environments.sources import key_of

        return key_of(spec, scratch)

    def fetch(
        self,
        spec: SourceSpec,
        scratch: Path,
        run: RunContext,
        look: Callable[[SourceTree], None] | None = None,
    ) -> Repository:
        """Fetch a source below `scratch`, pin its suite's requirements, and return the repository.

        `look` is called with the files before that, and may raise an error to skip the pinning. Raises
        `SourceError` if the source can't be fetched, `EnvironmentBuildError` if its requirements can't be
        pinned, and `CancelledError` if stopped.
        """
        from gistpoint.sandbox.environments.sources import fetch_repository

        return fetch_repository(
            spec,
            scratch,
            self.cache,
            isolation=BackendRecord(self.backend, isolated=not self.consented),
            on_line=lambda text: run.progress(RunProgress(step=text)),
            on_detail=lambda text: run.progress(RunProgress(text)),
            on_tree=look,
            cancel=run.cancel,
        )

    def earlier_files(
        self, spec: SourceSpec, paths: Collection[str], scratch: Path, run: RunContext
    ) -> EarlierFiles:
        """Return the earlier versions of the files with these paths.

        Raises `SourceError` if the source has no history, or if that can't be fetched, and `CancelledError`
        if stopped.
        """
        from gistpoint.sandbox.environments.histories import collect_history

        return collect_history(
            spec.source,
            paths,
            scratch,
            on_line=lambda text: run.progress(RunProgress(step=text)),
            cancel=run.cancel,
        )

    def runner(self) -> SuiteRunner:
        """Return the runner of whole suites."""
        return SuiteRunner(choose(self.backend, consented=self.consented), EnvironmentStore(self.cache))

    def mapper(self, max_suite_seconds: float = MAX_SUITE_SECONDS) -> SuiteTestMapper:
        """Return the mapper that records which tests enter which functions."""
        backend, store = choose(self.backend, consented=self.consented), EnvironmentStore(self.cache)
        return SuiteTestMapper(backend, store, timeout_s=SLOWER * max_suite_seconds)

    def confirmer(self) -> Confirmer | None:
        """Return the maker of tasks' controls, or None if confirmation is switched off.

        The maker does not look for inputs beyond the tests, which is left to the confirmation of a pass.
        """
        return confirmer_on(choose(self.backend, consented=self.consented), EnvironmentStore(self.cache))

    def scorer(self, intake: Intake) -> GlanceScorer:
        """Return the scorer that predicts how noticeable a corruption of this library is at a glance."""
        return GlanceScorer(intake.repository.tree, frozenset(intake.test_files), RuffLinter())

    def model(self, name: str) -> ChatModel:
        """Return the chat model with this name.

        Each process reads the key from its own environment or config file. Raises `EndpointError` for an
        incomplete or invalid endpoint, and `SettingsError` for a malformed config file.
        """
        import os

        from gistpoint.sandbox.endpoints.models import chat_model_at
        from gistpoint.sandbox.endpoints.retrying import RetryingModel
        from gistpoint.sandbox.endpoints.settings import endpoint_settings

        settings = endpoint_settings(Locations.of_user().config, os.environ, name)
        return RetryingModel(chat_model_at(settings))

    def reader(self, name: str) -> ChatModel:
        """Return the blind reader with this name, at its own endpoint if the config file has one.

        Raises `EndpointError` and `SettingsError` like `model`.
        """
        import os

        from gistpoint.sandbox.endpoints.models import chat_model_at
        from gistpoint.sandbox.endpoints.retrying import RetryingModel
        from gistpoint.sandbox.endpoints.settings import reader_settings

        settings = reader_settings(Locations.of_user().config, os.environ, name)
        return RetryingModel(chat_model_at(settings))

    def prober(self, library: SourceLibrary) -> SuiteProber:
        """Return the prober of this library's candidates; it stays warm after the first candidate."""
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


_POLL_S = 0.2
_GRACE_S = 5.0
"""The seconds within which a job has to end after the pool is closed."""


@contextmanager
def local_workers(size: int) -> Iterator[Workers]:
    """Yield a pool of `size` processes on this machine, which end with the context.

    They also end if this process dies, even if it is killed.
    """
    # Spawned, not forked, because a fork would copy the locks that threads of this process hold.
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(size, mp_context=context, initializer=_begin, initargs=(receiving,))
    try:
        yield Workers(pool, size)
    finally:
        # The message precedes the wait, because a job would otherwise run to its end.
        sending.send(None)
        pool.shutdown(wait=True, cancel_futures=True)
        sending.close()
        receiving.close()


def _begin(receiving: Connection) -> None:
    """Prepare a process of the pool, which ignores Ctrl+C and ends with the pool or with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    # A pool that is killed sends no message to its processes; the parent's sentinel shows that it is gone.
    threading.Thread(target=_watch, args=(receiving, parent.sentinel), daemon=True).start()
    Finalize(None, close_contexts, exitpriority=10)


def _watch(receiving: Connection, parent: int) -> None:
    """Stop all work when the pool is closed, and end soon after, or immediately if the parent is gone."""
    if parent not in wait([receiving, parent]):
        ends = time.monotonic() + _GRACE_S
        close_contexts()
        while not wait([parent], _POLL_S) and time.monotonic() < ends:
            close_contexts()  # of unfinished jobs
    # Not sys.exit, which would end only this thread, while the process would continue its job.
    os._exit(1)


# Ruff as the linter of corruptions reads only the code, from its standard input: with settings of the
# repository or the user, the same change could have different findings on two machines.


RULES = "F,B,SIM,PL,RET,RUF,E7,C4,PERF,PIE,FURB,FLY,UP,TRY,RSE,ASYNC,DTZ"
_NOT_OF_A_FUNCTION = "F401,F811,F821,F822,PLR09,PLR2004,PLC0415,PLW0603,RUF001,RUF002,RUF003,RUF100,TRY003"
"""Rules on a module's names, on sizes, strings and taste, whose findings do not depend on a change."""
_CHECK = (
    *("check", "--isolated", "--no-cache", "--quiet", "--ignore-noqa", "--exit-zero"),
    *("--output-format", "json", "--target-version", "py311"),
    *("--select", RULES, "--ignore", _NOT_OF_A_FUNCTION, "-"),
)
_TIMEOUT_S = 60


class RuffLinter:
    """An implementation of `gistpoint.core.ports.Linter` with ruff."""

    def findings(self, texts: Sequence[str]) -> list[Counter[str]]:
        """Return how often each rule is broken in each definition; one call of ruff reads them all.

        Raises `InfrastructureError` if ruff can't be run.
        """
        joined = "\n\n\n".join(texts) + "\n"
        # Starting ruff takes longer than checking, so the definitions are joined; the number of a
        # finding's line shows which definition it is in.
        starts = [0, *accumulate(text.count("\n") + 3 for text in texts)]
        found: list[Counter[str]] = [Counter() for _ in texts]
        for item in _findings(joined):
            if item.code is not None:
                found[bisect_right(starts, item.location.row - 1, hi=len(texts)) - 1][item.code] += 1
        return found


class _Place(msgspec.Struct):
    row: int


class _Finding(msgspec.Struct):
    code: str | None
    """The rule's code; None for a syntax error."""
    location: _Place


def _findings(text: str) -> list[_Finding]:
    import ruff

    command = [os.fsdecode(ruff.find_ruff_bin()), *_CHECK]
    try:
        with scratch_folder("lint") as neutral:
            done = run_host_program(
                command,
                timeout_s=_TIMEOUT_S,
                environment={"NO_COLOR": "1", "PATH": os.defpath},
                given=text.encode("utf-8", "replace"),
                folder=Path(neutral),
            )
        return msgspec.json.decode(done.stdout, type=decodable(list[_Finding]))
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise InfrastructureError(
            f"ruff could not read the corruptions of a function: {type(error).__name__}.",
            hint="Check that `ruff check` runs in gistpoint's own environment.",
        ) from error
