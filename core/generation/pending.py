"""The unfinished work that a campaign has submitted to its workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Protocol

from gistpoint.core.running import RunContext

_POLL_S = 0.2


class Executor(Protocol):
    """The part of `concurrent.futures.Executor` that a campaign needs; Dask's executor has it too."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Call `fn` in a worker, and return the future of its result."""
        ...


class Pending:
    """The work submitted to the workers; `keys` maps the future of each result to the candidate's key."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self.keys: dict[Future[Any], str] = {}

    @property
    def busy(self) -> frozenset[str]:
        """The keys of the candidates whose work is not done."""
        return frozenset(self.keys.values())

    def done(self) -> Iterator[tuple[str, Any]]:
        """Wait up to 0.2 seconds, and yield the key and the result of all work that is done.

        An error in a worker is raised if no result arrived with it. Raises `CancelledError` when stopped.
        """
        done, _ = wait(self.keys, timeout=_POLL_S, return_when=FIRST_COMPLETED)
        self._run.check()
        results = [future for future in done if future.exception() is None]
        for future in results or done:
            yield self.keys.pop(future), future.result()

    def drop(self) -> None:
        """Cancel and forget work that no worker has started."""
        self.keys = {future: key for future, key in self.keys.items() if not future.cancel()}
