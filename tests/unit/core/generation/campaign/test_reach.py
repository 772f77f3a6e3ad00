"""Distances on the call graph, checked against networkx."""

from __future__ import annotations

import random
from itertools import pairwise

import networkx
import pytest

from gistpoint.core.generation.library import Reach


@pytest.mark.parametrize("seed", range(5))
def test_steps_and_paths_are_the_shortest(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"f{n}" for n in range(30)]
    edges = {(chance.choice(names), chance.choice(names)) for _ in range(45)}
    graph = networkx.DiGraph(edges)
    either = graph.to_undirected()
    backwards, free = Reach(edges, directed=True), Reach(edges, directed=False)
    for name in graph:
        assert backwards.steps(name) == networkx.single_source_shortest_path_length(graph.reverse(), name)
        assert free.steps(name) == networkx.single_source_shortest_path_length(either, name)
        assert free.steps(name, 2) == networkx.single_source_shortest_path_length(either, name, cutoff=2)
        for other in graph:
            path = free.path(name, other)
            if other not in free.steps(name):
                assert path == ()
                continue
            assert (path[0], path[-1]) == (name, other)
            assert len(path) == free.steps(name)[other] + 1
            assert all(either.has_edge(one, two) for one, two in pairwise(path))
