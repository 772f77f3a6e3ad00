"""Shared parts of the studies of gists: libraries from sdists, drawn entrypoints, and tasks with judges."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.entrypoints.runs import EntrypointRunner
from gistpoint.core.kinds.gist.answer import ReferenceGist
from gistpoint.core.kinds.gist.drawing import candidates
from gistpoint.core.kinds.gist.intake import Examination, NoGistError, write_gist_task
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.references import ReferenceMaker
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.environments.resolver import UvResolver
from gistpoint.sandbox.environments.sources import Fetcher
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner
from gistpoint.sandbox.ladder import choose


@dataclass(frozen=True)
class Library:
    """An sdist, its suite's extra requirements, the date up to which releases count, and pytest options."""

    source: str
    extra: tuple[str, ...] = ()
    exclude_newer: str | None = None
    pytest_args: tuple[str, ...] = ()


LIBRARIES = {
    "flask": Library("flask==3.1.3", ("asgiref", "python-dotenv"), "2026-02-25"),
    "requests": Library(
        "requests==2.32.5", ("pytest-httpbin==2.1.0", "pytest-mock", "httpbin~=0.10.0", "trustme")
    ),
    "seaborn": Library("seaborn==0.13.2", (), "2025-06-01"),
    "pylint": Library("pylint==3.3.7", ("gitpython", "pytest-timeout", "typing-extensions"), "2025-06-01"),
    "boltons": Library("boltons==26.2.0"),
    "toolz": Library("toolz==1.2.0"),
    "sqlparse": Library("sqlparse==0.5.3"),
    "tomlkit": Library("tomlkit==0.13.3", ("pyyaml",)),
}


@dataclass
class Lab:
    """A runner of gists with its cache and scratch folders."""

    folder: Path

    def __post_init__(self) -> None:
        self.environments = EnvironmentStore(self.folder / "cache")
        self.backend = choose(None, consented=False)
        self.runner: EntrypointRunner = GistRunner(self.backend, self.environments)

    def repository(self, library: Library) -> Repository:
        """Fetch a library, pin its suite's requirements, and return both as a repository."""
        scratch = Path(tempfile.mkdtemp(dir=self.folder))
        source, folder = Fetcher().fetch(library.source, scratch / "source")
        environment = UvResolver(self.environments, self.backend).resolve(
            folder,
            extra_requirements=library.extra,
            exclude_newer=library.exclude_newer,
            pytest_args=library.pytest_args,
        )
        write_tree(folder, scratch / "tree.tar")
        return Repository(source, SourceTree.open(scratch / "tree.tar"), environment)

    def tasks(
        self, library: Library, count: int, seed: int, *, known: Mapping[str, bool] | None = None
    ) -> Iterator[GistJudge | tuple[str, NoGistError]]:
        """Make tasks of drawn entrypoints until there are `count`; yield their judges.

        An entrypoint that is refused is yielded with the error instead. `known` maps entrypoints examined
        earlier to whether they became tasks; these count, but are not yielded again.
        """
        repository = self.repository(library)
        examination = Examination(repository, self.runner)
        known = known or {}
        made = sum(known.values())
        for candidate in candidates(examination, count, seed):
            if made == count:
                return
            if candidate.entrypoint.text in known:
                continue
            try:
                answer = examination.examine(candidate.entrypoint)
            except NoGistError as refusal:
                yield candidate.entrypoint.text, refusal
                continue
            made += 1
            task = write_gist_task(repository, candidate.entrypoint, answer, self.folder / "tasks")
            yield GistJudge(task, answer, self.runner)


def made_reference(judge: GistJudge, budget_s: float) -> tuple[ReferenceGist, int]:
    """Return the reference gist of a task, and the number of runs that it took."""
    maker = ReferenceMaker(judge, time.monotonic, budget_s)
    return maker.make(), maker.queries
