"""What running gists needs from outside: a protocol that `sandbox/` implements."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken
    from gistpoint.core.gist.entrypoint_tests import TestGuard
    from gistpoint.core.gist.entrypoints import Entrypoint
    from gistpoint.core.gist.fakes import Watched
    from gistpoint.core.gist.runs import CommandOutput, GistTrial, OriginalRun
    from gistpoint.core.outcomes import BackendRecord
    from gistpoint.core.ports import EnvironmentPins
    from gistpoint.core.trees import SourceTree


class EntrypointRunner(Protocol):
    """Runs the command of a gist task: on the original, on a gist alone, and what a solver types.

    Every run is one of its own, without network, and never raises for what the code under test does: the status of
    its result tells. `CancelledError` is raised where a run was stopped on request, `InfrastructureError` where the
    isolation failed.
    """

    @property
    def backend(self) -> BackendRecord:
        """The isolation it has."""
        ...

    def tests(
        self, tree: SourceTree, environment: EnvironmentPins, *, timeout_s: float, cancel: CancelToken | None = None
    ) -> tuple[str, ...]:
        """Return the ids of all tests that the suite collects, in its order. Raises `InfrastructureError`."""
        ...

    def run_original(
        self,
        tree: SourceTree,
        environment: EnvironmentPins,
        entrypoint: Entrypoint,
        *,
        timeout_s: float,
        trace: bool = False,
        elsewhere: bool = False,
        hash_seed: int = 0,
        cancel: CancelToken | None = None,
    ) -> OriginalRun:
        """Run the command in the repository's tree, its packages importable.

        `elsewhere` copies the file of the entrypoint alone, under another name, into an empty folder, with the
        packages importable from another place and the fixtures of its `conftest.py` files at hand.
        """
        ...

    def run_gist(
        self,
        text: str,
        environment: EnvironmentPins,
        entrypoint: Entrypoint,
        *,
        owned: Collection[str],
        timeout_s: float,
        forbidden: Collection[str] = (),
        measure_lines: bool = True,
        hash_seed: int = 0,
        guard: TestGuard | None = None,
        watched: Watched | None = None,
        cancel: CancelToken | None = None,
    ) -> GistTrial:
        """Run a gist alone in an empty folder; modules of the top-level names `owned` can't be imported.

        `forbidden` are folders of the host that hold the codebase, for isolation that can't keep them out of sight.
        A run in which something else than the test that `guard` describes is tested is not believed. What `watched`
        names is looked at in the run, and told with its isolation.
        """
        ...

    def run_command(
        self,
        command: str,
        environment: EnvironmentPins,
        *,
        execution: bool,
        timeout_s: float,
        tree: SourceTree | None = None,
        files: Mapping[str, str] | None = None,
        cancel: CancelToken | None = None,
    ) -> CommandOutput:
        """Run a shell command in `tree`, or in an empty folder, with `files` written beside what is there.

        Without `execution` only commands that read are run: no interpreter and no pytest.
        """
        ...
