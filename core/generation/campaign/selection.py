"""Which of the proven candidates become tasks: decided by their order alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from gistpoint.core.generation.campaign.effort import LOCATED
from gistpoint.core.generation.campaign.verdicts import Reason, Verdict

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
