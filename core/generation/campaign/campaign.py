"""The campaign: candidates are decided ahead by workers and accepted strictly in their order.

So the tasks are the same whatever the number of workers; what was decided and not needed stays in the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from gistpoint.core.cancel import CancelToken
from gistpoint.core.generation.campaign.candidates import LOCATED, Candidate
from gistpoint.core.generation.campaign.controls import sample
from gistpoint.core.generation.campaign.counts import Counts
from gistpoint.core.generation.campaign.jobs import Place, control, decide
from gistpoint.core.generation.campaign.verdicts import Reason, StateFile, Verdict

MOST_SHARED = 1
"""Functions that two groups may have in common."""
SUBTLE = 0.8
"""Subtlety below which a corruption waits: more than this the first place in a localisation can't have."""


@dataclass
class Selection:
    """The verdicts so far in their order, each as it counts now.

    A corruption that is not subtle enough waits until there is no other candidate. Of the corruptions in a set, more
    than half shall not be among the first that a spectrum-based localisation names: one that is among them waits until
    enough others came. Places that are left then go to those that wait, the most subtle first.
    """

    count: int
    """Tasks that are wanted."""
    verdicts: list[Verdict] = field(default_factory=list)
    _waiting: dict[int, Verdict] = field(default_factory=dict)
    _groups: list[frozenset[str]] = field(default_factory=list)
    _hidden: int = 0
    _located: int = 0

    @property
    def full(self) -> bool:
        """Whether as many are kept as are wanted."""
        return len(self._groups) == self.count

    def take(self, verdict: Verdict) -> Iterator[Verdict]:
        """Count a verdict, and yield those that become tasks now."""
        self.verdicts.append(verdict)
        if verdict.kept is None:
            return
        self._waiting[len(self.verdicts) - 1] = verdict
        self._leave_out(len(self.verdicts) - 1, Reason.LOCATED if _subtlety(verdict) >= SUBTLE else Reason.NOT_SUBTLE)
        yield from self._accept_waiting(at_last=False)

    def fill(self) -> Iterator[Verdict]:
        """Yield of those that waited as many as are still wanted: there is no other candidate."""
        yield from self._accept_waiting(at_last=True)

    def _accept_waiting(self, *, at_last: bool) -> Iterator[Verdict]:
        accepted = True
        while accepted and not self.full:
            accepted = False
            for place, verdict in self._in_turn(at_last=at_last):
                names = frozenset(verdict.names)
                hidden, located = _located(verdict)
                if any(len(names & group) > MOST_SHARED for group in self._groups):
                    del self._waiting[place]
                    self._leave_out(place, Reason.OVERLAPS)
                elif at_last or not located or self._located + located < self._hidden + hidden:
                    del self._waiting[place]
                    self.verdicts[place] = verdict
                    self._groups.append(names)
                    self._hidden, self._located = self._hidden + hidden, self._located + located
                    accepted = True
                    yield verdict
                    break

    def _in_turn(self, *, at_last: bool) -> list[tuple[int, Verdict]]:
        """Return those that wait and may be accepted, with their places, in the order to try them."""
        if at_last:
            return sorted(self._waiting.items(), key=lambda item: -_subtlety(item[1]))
        return [item for item in self._waiting.items() if _subtlety(item[1]) >= SUBTLE]

    def _leave_out(self, place: int, reason: Reason) -> None:
        self.verdicts[place] = replace(self.verdicts[place], reason=reason, kept=None)


def _located(verdict: Verdict) -> tuple[int, int]:
    """Return how many corruptions are hard to locate, and how many are not; none where nothing is known of it."""
    assert verdict.kept is not None
    ranks = [part["evidence"]["rank"] for part in verdict.kept.provenance.get("parts", ())]
    hidden = sum(rank is not None and rank > LOCATED for rank in ranks)
    return hidden, len(ranks) - hidden


def _subtlety(verdict: Verdict) -> float:
    """Return the subtlety of the least subtle corruption; 1 where nothing is known of it."""
    assert verdict.kept is not None
    parts = verdict.kept.provenance.get("parts", ())
    return min((part["subtlety"]["value"] for part in parts if "subtlety" in part), default=1.0)


_AHEAD = 2
"""Candidates given out per worker before the first is decided."""
_POLL_S = 0.2


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
    selection = Selection(count)
    for verdict in _in_order(place, candidates, crew, state, cancel):
        for accepted in selection.take(verdict):
            accept(accepted)
        if on_verdict is not None:
            on_verdict(Counts(selection.verdicts))
        if selection.full:
            break
    for accepted in selection.fill():
        accept(accepted)
    return Counts(selection.verdicts)


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
