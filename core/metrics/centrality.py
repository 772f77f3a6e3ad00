"""Centralities of functions on the call graph.

Distances run along calls, from caller to callee. igraph computes betweenness and PageRank (in C, 75 times as
fast as networkx on 5,000 functions). Sums over distances come from one search over all functions, with
integers as bit sets, which is faster than igraph and yields all three sums in two passes. Tests compare each
measure with networkx.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx

DISCOUNT = 0.5
DAMPING = 0.85

_BITS = 1 << 14
_MOST_ROUNDS = 500
_IMPORTING = threading.Lock()


@dataclass(frozen=True, slots=True)
class Centrality:
    """The centralities of one function f among n, with d(u, v) the length of the shortest path of calls.

    - `harmonic_out`: 1/(n-1) * sum of 1/d(f, g) over functions g reachable from f (the Breakpoint paper's
      appendix C, the default);
    - `harmonic_in_raw`: sum of 1/d(g, f) over functions that reach f (the paper's section 3.5);
      `harmonic_in`: the same over n-1;
    - `distance_discount`: sum of 0.5 ** d(f, g);
    - `pagerank`: damping 0.85, callers vote for callees, and functions without calls vote for all alike;
    - `betweenness`: the sum over pairs of the share of their shortest paths through f, not normalised;
    - `in_degree` and `out_degree`: the numbers of other functions that call f, and that f calls; `degree`:
      their sum;
    - `eigenvector`: by callers; None if the graph has no cycle, or if the iteration does not converge.
    """

    harmonic_out: float
    harmonic_in: float
    harmonic_in_raw: float
    distance_discount: float
    pagerank: float
    betweenness: float
    in_degree: int
    out_degree: int
    degree: int
    eigenvector: float | None


def measure_centrality(graph: networkx.DiGraph[str]) -> dict[str, Centrality]:
    """Return the centralities of every node of `graph`, by the node's name; recursive calls do not count."""
    names = list(graph)
    number = {name: place for place, name in enumerate(names)}
    pairs = sorted((number[caller], number[callee]) for caller, callee in graph.edges if caller != callee)
    callees: list[list[int]] = [[] for _ in names]
    callers: list[list[int]] = [[] for _ in names]
    for caller, callee in pairs:
        callees[caller].append(callee)
        callers[callee].append(caller)
    out, discount = sums_of_distances(callees)
    into, _ = sums_of_distances(callers)
    pagerank, betweenness = _ranked(len(names), pairs)
    eigenvector = _eigenvector(callees)
    scale = 1 / (len(names) - 1) if len(names) > 1 else 0.0
    return {
        name: Centrality(
            harmonic_out=out[place] * scale,
            harmonic_in=into[place] * scale,
            harmonic_in_raw=into[place],
            distance_discount=discount[place],
            pagerank=pagerank[place],
            betweenness=betweenness[place],
            in_degree=len(callers[place]),
            out_degree=len(callees[place]),
            degree=len(callers[place]) + len(callees[place]),
            eigenvector=eigenvector[place] if eigenvector is not None else None,
        )
        for place, name in enumerate(names)
    }


def sums_of_distances(callees: Sequence[Sequence[int]]) -> tuple[list[float], list[float]]:
    """Return, for each node, the sums of 1/d and of 0.5 ** d over the nodes that it reaches.

    The nodes at distance k + 1 from u are those at distance k from its callees that are not nearer. Bits
    represent the nodes reached, one block at a time.
    """
    size = len(callees)
    harmonic, discounted = [0.0] * size, [0.0] * size
    counts: list[dict[int, int]] = [{} for _ in range(size)]
    for start in range(0, size, _BITS):
        _reach(callees, start, min(start + _BITS, size), counts)
    for node, reached in enumerate(counts):
        for distance in sorted(reached):
            harmonic[node] += reached[distance] / distance
            discounted[node] += reached[distance] * DISCOUNT**distance
    return harmonic, discounted


def _reach(callees: Sequence[Sequence[int]], start: int, end: int, counts: list[dict[int, int]]) -> None:
    """Add to `counts`, by node and distance, the number of nodes from `start` to `end` at that distance."""
    frontier: dict[int, int] = {node: 1 << (node - start) for node in range(start, end)}
    seen = dict(frontier)
    callers: dict[int, list[int]] = {}
    for caller, targets in enumerate(callees):
        for callee in targets:
            callers.setdefault(callee, []).append(caller)
    distance = 0
    while frontier:
        distance += 1
        arrived: dict[int, int] = {}
        for node, bits in frontier.items():
            for caller in callers.get(node, ()):
                arrived[caller] = arrived.get(caller, 0) | bits
        frontier = {}
        for node, bits in arrived.items():
            known = seen.get(node, 0)
            new = bits & ~known
            if new:
                seen[node] = known | new
                frontier[node] = new
                # The count may already include nodes of earlier blocks.
                counts[node][distance] = counts[node].get(distance, 0) + new.bit_count()


def _ranked(size: int, pairs: list[tuple[int, int]]) -> tuple[list[float], list[float]]:
    if not size:
        return [], []
    graph = _igraph().Graph(n=size, edges=pairs, directed=True)
    return list(graph.pagerank(damping=DAMPING)), list(graph.betweenness(directed=True))


def _igraph() -> Any:
    """Import and return igraph, which is slow to load and needed only here.

    If matplotlib is installed, igraph loads all of it in order to draw graphs, which takes longer than
    everything else here. So igraph is imported as if matplotlib were missing.
    """
    missing: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    with _IMPORTING:
        if "matplotlib" not in sys.modules:
            missing["matplotlib"] = None
        try:
            import igraph
        finally:
            if missing["matplotlib"] is None:
                del missing["matplotlib"]
    return igraph


def _eigenvector(callees: Sequence[Sequence[int]]) -> list[float] | None:
    """Return the left eigenvector by power iteration on A + I from equal values, as networkx does.

    None if there is no cycle, or if the iteration does not converge.
    """
    size = len(callees)
    # Without a cycle, the values converge to 0, except where the longest chains of calls end.
    if not _has_cycle(callees):
        return None
    current = [1.0 / size**0.5] * size
    for _ in range(_MOST_ROUNDS):
        following = list(current)
        for caller, targets in enumerate(callees):
            value = current[caller]
            for callee in targets:
                following[callee] += value
        length = sum(value * value for value in following) ** 0.5
        following = [value / length for value in following]
        if sum(abs(new - old) for new, old in zip(following, current, strict=True)) < size * 1e-8:
            return following
        current = following
    return None


def _has_cycle(callees: Sequence[Sequence[int]]) -> bool:
    waiting = [0] * len(callees)
    for targets in callees:
        for callee in targets:
            waiting[callee] += 1
    ready = [node for node, count in enumerate(waiting) if not count]
    done = 0
    while ready:
        node = ready.pop()
        done += 1
        for callee in callees[node]:
            waiting[callee] -= 1
            if not waiting[callee]:
                ready.append(callee)
    return done < len(callees)
