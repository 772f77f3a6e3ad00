"""The campaign: candidates are decided ahead by workers and accepted strictly in their order.

So the tasks are the same whatever the number of workers; what was decided and not needed stays in the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, Protocol

from gistpoint.core.cancel import CancelToken
from gistpoint.core.generation.campaign.candidates import Candidate
from gistpoint.core.generation.campaign.controls import sample
from gistpoint.core.generation.campaign.counts import Counts
from gistpoint.core.generation.campaign.desks import Place
from gistpoint.core.generation.campaign.jobs import control, decide
from gistpoint.core.generation.campaign.statefile import StateFile
from gistpoint.core.generation.campaign.verdicts import Reason, Verdict

_AHEAD = 2
"""Candidates given out per worker before the first is decided."""
_POLL_S = 0.2
MOST_SHARED = 1
"""Functions that two groups may have in common."""


class Executor(Protocol):
    """The part of `concurrent.futures.Executor` that a campaign needs; Dask's has it too."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Call `fn` in a worker."""
        ...


@dataclass(frozen=True, slots=True)
class Crew:
    """The workers, and how many there are."""

    executor: Executor
    size: int


def run_campaign(
    place: Place,
    candidates: tuple[Candidate, ...],
    count: int,
    crew: Crew,
    state: StateFile,
    *,
    accept: Callable[[Verdict], None],
    on_verdict: Callable[[Counts], None] | None = None,
    cancel: CancelToken | None = None,
) -> Counts:
    """Decide candidates in their order until `count` are kept; `accept` writes each of these as a task.

    `accept` is called for all that are kept, those of an earlier run too: it must not mind. Raises `CancelledError`,
    and whatever a worker raises; verdicts that came in before are kept.
    """
    counts = Counts()
    groups: list[frozenset[str]] = []
    for verdict in _in_order(place, candidates, crew, state, cancel):
        accepted = _unless_overlapping(verdict, groups)
        if accepted.kept is not None:
            accept(accepted)
            groups.append(frozenset(accepted.names))
        counts.add(accepted)
        if on_verdict is not None:
            on_verdict(counts)
        if counts.kept == count:
            break
    return counts


def _in_order(
    place: Place,
    candidates: tuple[Candidate, ...],
    crew: Crew,
    state: StateFile,
    cancel: CancelToken | None,
) -> Iterator[Verdict]:
    """Yield the verdicts in the order of the candidates, some of which are decided ahead."""
    waiting: dict[Future[Verdict], str] = {}
    undecided = iter([candidate for candidate in candidates if candidate.key not in state.verdicts])
    try:
        for candidate in candidates:
            while candidate.key not in state.verdicts:
                _give_out(place, undecided, waiting, crew)
                done, _ = wait(waiting, timeout=_POLL_S, return_when=FIRST_COMPLETED)
                if cancel is not None:
                    cancel.check()
                for future in done:
                    del waiting[future]
                    state.add(future.result())
            yield state.verdicts[candidate.key]
    finally:
        for future in waiting:
            future.cancel()


def _give_out(place: Place, undecided: Iterator[Candidate], waiting: dict[Future[Verdict], str], crew: Crew) -> None:
    while len(waiting) < _AHEAD * crew.size:
        candidate = next(undecided, None)
        if candidate is None:
            return
        waiting[crew.executor.submit(decide, place, candidate)] = candidate.key


def _unless_overlapping(verdict: Verdict, groups: list[frozenset[str]]) -> Verdict:
    """Return the verdict, or that it is dropped because it shares too many functions with a group accepted before."""
    names = frozenset(verdict.names)
    if verdict.kept is None or not any(len(names & group) > MOST_SHARED for group in groups):
        return verdict
    return Verdict(verdict.key, verdict.names, Reason.OVERLAPS, "", verdict.fates, verdict.cost)


def run_controls(
    place: Place,
    verdicts: tuple[Verdict, ...],
    count: int,
    crew: Crew,
    state: StateFile,
    *,
    on_comparison: Callable[[int, int], None] | None = None,
    cancel: CancelToken | None = None,
) -> list[Mapping[str, Any]]:
    """Try up to `count` specimens of the verdicts on the whole suite; return the comparisons in a stable order."""
    chosen = sample(verdicts, count, place.settings.seed)
    waiting: dict[Future[Any], str] = {}
    for verdict in chosen:
        if verdict.key not in state.controls and verdict.specimen is not None:
            waiting[crew.executor.submit(control, place, verdict.specimen)] = verdict.key
    try:
        while waiting:
            done, _ = wait(waiting, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            if cancel is not None:
                cancel.check()
            for future in done:
                state.add_control(waiting.pop(future), future.result())
            if on_comparison is not None and done:
                on_comparison(len(chosen) - len(waiting), len(chosen))
    finally:
        for future in waiting:
            future.cancel()
    return [state.controls[verdict.key] for verdict in chosen]
