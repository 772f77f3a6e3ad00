"""Centrality against networkx, on graphs drawn by Hypothesis."""

import networkx
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.metrics import centrality
from gistpoint.core.metrics.centrality import measure_centrality, sums_of_distances

pairs = st.tuples(st.integers(0, 14), st.integers(0, 14))


@st.composite
def graphs(draw: st.DrawFn) -> "networkx.DiGraph[str]":
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    graph.add_nodes_from(f"f{n}" for n in range(draw(st.integers(1, 15))))
    size = len(graph)
    graph.add_edges_from((f"f{a % size}", f"f{b % size}") for a, b in draw(st.lists(pairs, max_size=45)))
    return graph


@examples(150)
@given(graphs())
def test_every_measure_is_that_of_networkx(graph: "networkx.DiGraph[str]") -> None:
    measured = measure_centrality(graph)
    plain = networkx.DiGraph(graph)
    plain.remove_edges_from(list(networkx.selfloop_edges(plain)))
    others = max(len(plain) - 1, 1)
    incoming = networkx.harmonic_centrality(plain)
    outgoing = networkx.harmonic_centrality(plain.reverse())
    between = networkx.betweenness_centrality(plain, normalized=False)
    distances = dict(networkx.all_pairs_shortest_path_length(plain))
    for name, ours in measured.items():
        assert ours.harmonic_in_raw == pytest.approx(incoming[name])
        assert ours.harmonic_in == pytest.approx(incoming[name] / others)
        assert ours.harmonic_out == pytest.approx(outgoing[name] / others)
        assert ours.betweenness == pytest.approx(between[name])
        discounted = sum(0.5**length for other, length in distances[name].items() if other != name)
        assert ours.distance_discount == pytest.approx(discounted)
        assert (ours.in_degree, ours.out_degree) == (plain.in_degree(name), plain.out_degree(name))
        assert ours.degree == ours.in_degree + ours.out_degree


@examples(100)
@given(graphs())
def test_pagerank_is_its_own_fixed_point(graph: "networkx.DiGraph[str]") -> None:
    measured = measure_centrality(graph)
    plain = networkx.DiGraph(graph)
    plain.remove_edges_from(list(networkx.selfloop_edges(plain)))
    size = len(plain)
    dangling = sum(measured[name].pagerank for name in plain if not plain.out_degree(name))
    for name in plain:
        votes = sum(
            measured[caller].pagerank / plain.out_degree(caller) for caller in plain.predecessors(name)
        )
        assert measured[name].pagerank == pytest.approx(
            0.15 / size + 0.85 * (votes + dangling / size), abs=1e-9
        )


@examples(100)
@given(graphs())
def test_eigenvector_is_null_without_a_cycle_and_networkx_otherwise(graph: "networkx.DiGraph[str]") -> None:
    measured = measure_centrality(graph)
    plain = networkx.DiGraph(graph)
    plain.remove_edges_from(list(networkx.selfloop_edges(plain)))
    if networkx.is_directed_acyclic_graph(plain):
        assert all(item.eigenvector is None for item in measured.values())
        return
    try:
        theirs = networkx.eigenvector_centrality(plain, max_iter=500, tol=1e-8)
    except networkx.PowerIterationFailedConvergence:
        assert all(item.eigenvector is None for item in measured.values())
        return
    for name, item in measured.items():
        assert item.eigenvector == pytest.approx(theirs[name], abs=1e-5)


def test_a_cycle_has_an_eigenvector() -> None:
    graph = networkx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")])
    values = {name: item.eigenvector for name, item in measure_centrality(graph).items()}
    assert values == pytest.approx(dict.fromkeys("abc", 3**-0.5), abs=1e-6)


def test_directions() -> None:
    chain = measure_centrality(networkx.DiGraph([("main", "step"), ("step", "leaf")]))
    assert chain["main"].harmonic_out == pytest.approx((1 + 1 / 2) / 2)
    assert chain["main"].harmonic_in == 0
    assert chain["leaf"].harmonic_in_raw == pytest.approx(1.5)
    assert chain["step"].betweenness == 1
    assert chain["leaf"].pagerank > chain["main"].pagerank
    assert chain["main"].distance_discount == pytest.approx(0.75)


def test_blocks_of_bits_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    callees = [[(n * 7 + k) % 50 for k in (1, 3, 11)] for n in range(50)]
    whole = sums_of_distances(callees)
    monkeypatch.setattr(centrality, "_BITS", 8)
    assert sums_of_distances(callees) == whole


def test_nothing_and_one() -> None:
    assert measure_centrality(networkx.DiGraph()) == {}
    alone: networkx.DiGraph[str] = networkx.DiGraph()
    alone.add_edge("f", "f")
    assert measure_centrality(alone)["f"].degree == 0
    assert measure_centrality(alone)["f"].harmonic_out == 0
