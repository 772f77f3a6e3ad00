"""The context of generation: the objects that its steps use, and how each process of a pool opens them.

It is the only value passed to the steps of a campaign (decision 61).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.confirmation.model import Confirmer
from gistpoint.core.corruption.blind import GlanceScore
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.by_model import ModelTerms
from gistpoint.core.generation.earlier import (
    EarlierBodies,
    EarlierFiles,
    EarlierVersions,
    read_earlier_files,
)
from gistpoint.core.generation.intake import Intake
from gistpoint.core.generation.library import SourceLibrary, read_library
from gistpoint.core.generation.progress import TrialBoard
from gistpoint.core.generation.settings import CampaignSettings, FaultSource, SourceSpec
from gistpoint.core.generation.submissions import read_submissions
from gistpoint.core.ports import ChatModel, Prober, Runner, TestMapper
from gistpoint.core.running import UNATTENDED, OnCount, RunContext
from gistpoint.core.tasks.model import Target
from gistpoint.core.tasks.repository import MAX_SUITE_SECONDS, Repository
from gistpoint.core.trees import SourceTree


class CorruptionScorer(Protocol):
    """Predicts how visible corruptions are to a reader."""

    def scores(
        self,
        targets: Sequence[Target],
        families: Sequence[Sequence[str]] = (),
        on_reading: OnCount = lambda done, total: None,
    ) -> list[GlanceScore]:
        """Return the scores of one function's corruptions, from their code and known families.

        `on_reading` is called with the numbers of corruptions read and in total; its errors are passed on.
        """
        ...


class Harness(Protocol):
    """Creates the runners of code; it is picklable, because each worker process creates its own runners."""

    def runner(self) -> Runner:
        """Return a runner of whole suites."""
        ...

    def mapper(self, max_suite_seconds: float = MAX_SUITE_SECONDS) -> TestMapper:
        """Return a recorder of the functions that tests enter.

        A recorded run may take several times as long as `max_suite_seconds`, the limit of the suite.
        """
        ...

    def confirmer(self) -> Confirmer | None:
        """Return the confirmer, which decides whether passes can be confirmed; None if switched off."""
        ...

    def scorer(self, intake: Intake) -> CorruptionScorer:
        """Return the scorer that predicts whether corruptions of this library are seen at a glance."""
        ...

    def model(self, name: str) -> ChatModel:
        """Return the chat model with that name.

        Raises `EndpointError` if this machine has no endpoint for it.
        """
        ...

    def reader(self, name: str) -> ChatModel:
        """Return the blind reader with that name, which may have its own endpoint.

        Raises `EndpointError` if this machine has no endpoint for it.
        """
        ...

    def prober(self, library: SourceLibrary) -> Prober:
        """Return a prober for candidates of this library; the caller closes it."""
        ...


class FetchingHarness(Harness, Protocol):
    """A harness that also fetches repositories."""

    def earlier_files(
        self, spec: SourceSpec, paths: Collection[str], scratch: Path, run: RunContext
    ) -> EarlierFiles:
        """Return the earlier versions of the files with these paths.

        Raises `SourceError` if the source has no history, or it can't be fetched.
        """
        ...

    def key(self, spec: SourceSpec, scratch: Path) -> str:
        """Return a name for the content that `fetch` would fetch, equal for equal content.

        Raises `SourceError` if there is no such source.
        """
        ...

    def fetch(
        self,
        spec: SourceSpec,
        scratch: Path,
        run: RunContext,
        look: Callable[[SourceTree], None] | None = None,
    ) -> Repository:
        """Fetch a source below `scratch`, pin the requirements of its suite, and return the repository.

        `look` is called with the files first, and may raise. Raises `SourceError` if the source can't be
        fetched, and `EnvironmentBuildError` if its environment can't be built.
        """
        ...


@dataclass(frozen=True)
class Context:
    """The objects that the steps of generation use, for one library.

    It is pickled as its folder, harness, settings and terms; a process opens the rest on first use.
    """

    folder: Path
    """The folder that stores everything known about the library."""
    harness: Harness
    settings: CampaignSettings
    run: RunContext = field(default=UNATTENDED, compare=False)
    learned: SourceLibrary | None = field(default=None, compare=False)
    """The library, if it is already in memory."""
    terms: ModelTerms = field(default_factory=ModelTerms)
    """The common settings of conversations with the model."""

    @cached_property
    def runner(self) -> Runner:
        """The runner of whole suites."""
        return self.harness.runner()

    @cached_property
    def library(self) -> SourceLibrary:
        """The library as it is stored. Raises `FileNotFoundError` if something is missing."""
        return self.learned or read_library(self.folder, self.runner.backend.name)

    @cached_property
    def prober(self) -> Prober:
        """The prober, which runs the tests that can see a candidate's corruption."""
        return self.harness.prober(self.library)

    @cached_property
    def confirmer(self) -> Confirmer | None:
        """The confirmer, which makes the controls of tasks; None if switched off."""
        return self.harness.confirmer()

    @cached_property
    def scorer(self) -> CorruptionScorer:
        """The scorer, which predicts whether a reader notices a corruption of the library at a glance."""
        return self.harness.scorer(self.library.intake)

    @cached_property
    def model(self) -> ChatModel | None:
        """The corrupting model; None if the settings name none.

        Raises `EndpointError` if this machine has no endpoint for it.
        """
        return self.harness.model(self.settings.model) if self.settings.model else None

    @property
    def bodies(self) -> EarlierBodies:
        """The bodies that somebody believed to be right; empty if they were not collected."""
        if self.settings.source is FaultSource.ATTEMPTS:
            # Not cached, because a cluster's worker outlives the call that collected the bodies.
            return read_submissions(self.folder, self.settings.studies)
        return self._versions

    @cached_property
    def reader(self) -> ChatModel | None:
        """The blind reader of proven corruptions; None if the settings name none.

        Raises `EndpointError` if this machine has no endpoint for it.
        """
        return self.harness.reader(self.settings.reader) if self.settings.reader else None

    @cached_property
    def _versions(self) -> EarlierVersions:
        return EarlierVersions(read_earlier_files(self.folder) or {})

    @cached_property
    def board(self) -> TrialBoard:
        """The board on which workers report their trials.

        Only one campaign with these settings runs at a time.
        """
        return TrialBoard(self.folder / "trials" / sha256_of_json(self.settings.to_json())[:16])

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Context, terms=self.terms), (self.folder, self.harness, self.settings)


@dataclass
class _Opened:
    context: Context
    busy: threading.Lock = field(default_factory=threading.Lock)

    def close(self) -> None:
        """Stop the running decisions, and end the processes that are kept alive."""
        self.context.run.cancel.cancel()
        with self.busy:
            self.context.prober.close()


_opened: dict[int, _Opened] = {}
_guard = threading.Lock()


@contextmanager
def opened(context: Context) -> Iterator[Context]:
    """Yield this thread's own opened copy of a context, after closing a different or cancelled one.

    Raises `InfrastructureError` if this machine does not have the library.
    """
    thread = threading.get_ident()
    with _guard:
        mine = _opened.get(thread)
    if mine is None or mine.context != context or mine.context.run.cancel.cancelled:
        if mine is not None:
            mine.close()
        mine = _Opened(_open(context))
        with _guard:
            _opened[thread] = mine
    with mine.busy:
        yield mine.context


def _open(context: Context) -> Context:
    own = Context(context.folder, context.harness, context.settings, RunContext(), terms=context.terms)
    try:
        _ = own.prober
    except FileNotFoundError as error:
        raise InfrastructureError(
            f"A worker can't find {context.folder}.",
            hint="Workers of a cluster need the cache folder of this machine under the same path.",
        ) from error
    return own


def close_contexts() -> None:
    """Stop the running decisions of all threads of this process, and end the processes kept for them."""
    with _guard:
        contexts = list(_opened.values())
        _opened.clear()
    for context in contexts:
        context.close()
