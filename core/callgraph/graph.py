"""The call graph as a value: functions, the calls between them, and how each call was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx

MODULE = "<module>"


class Found(StrEnum):
    """How a call was found."""

    DIRECT = "direct"  # a name or attribute that is the function's own
    METHOD = "method"  # a method of a receiver whose class was inferred
    CONSTRUCTOR = "constructor"  # a class was called: its `__init__`, `__new__` or `__post_init__`
    SUPER = "super"  # through `super()`
    PROPERTY = "property"  # an attribute that is computed when it is read, written or deleted
    DECORATOR = "decorator"  # a decorator applied to a definition
    PROTOCOL = "protocol"  # an operator, a loop, a with block or a built-in that calls a special method
    FLOW = "flow"  # the function came through a parameter, a container, a return value or another name
    OVERRIDE = "override"  # a subclass's version of a method that was called on its base class
    NAME = "name"  # nothing known of the receiver; the only method of that name in the sources
    OBSERVED = "observed"  # seen while the code ran


#: Share of such edges, between functions that ran, which a run confirmed, as `tests/studies/callgraph_accuracy.py`
#: measures it on the suites of six libraries; rounded, and for the few guesses by name set lower than measured.
SURENESS: Mapping[Found, float] = {
    Found.DIRECT: 0.95,
    Found.METHOD: 0.93,
    Found.CONSTRUCTOR: 0.9,
    Found.SUPER: 0.98,
    Found.PROPERTY: 0.9,
    Found.DECORATOR: 0.98,
    Found.PROTOCOL: 0.8,
    Found.FLOW: 0.7,
    Found.OVERRIDE: 0.7,
    Found.NAME: 0.85,
    Found.OBSERVED: 1.0,
}


@dataclass(frozen=True, slots=True)
class FunctionNode:
    """A function, method or property, or the code of a module outside of every function.

    `id` is `path::qualname`. Lines count from 1; `first_line` is that of the first decorator, `def_line` that of
    the `def` itself.
    """

    id: str
    path: str
    qualname: str
    kind: str
    first_line: int
    def_line: int
    last_line: int

    @property
    def is_module(self) -> bool:
        """Whether this stands for the code of a module outside of every function."""
        return self.qualname == MODULE


@dataclass(frozen=True, slots=True)
class CallEdge:
    """A call from `caller` to `callee` (ids), found in one or more ways; `count` is how often a run made it."""

    caller: str
    callee: str
    found: tuple[Found, ...]
    count: int = 0

    @property
    def sureness(self) -> float:
        """How sure the call is, from 0 to 1: that of its surest way of being found."""
        return max(SURENESS[found] for found in self.found)

    @property
    def observed(self) -> bool:
        """Whether a run made this call."""
        return Found.OBSERVED in self.found


@dataclass(frozen=True)
class CallGraph:
    """Functions by id and the calls between them, both in a stable order; `skipped` maps unreadable files to why."""

    nodes: Mapping[str, FunctionNode]
    edges: tuple[CallEdge, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def callees(self) -> Mapping[str, tuple[CallEdge, ...]]:
        """Calls by caller."""
        return _grouped((edge.caller, edge) for edge in self.edges)

    @cached_property
    def callers(self) -> Mapping[str, tuple[CallEdge, ...]]:
        """Calls by callee."""
        return _grouped((edge.callee, edge) for edge in self.edges)

    def functions(self) -> Iterator[FunctionNode]:
        """Yield the nodes that are functions, leaving out the code of modules."""
        return (node for node in self.nodes.values() if not node.is_module)

    def at_least(self, sureness: float) -> CallGraph:
        """Return the graph without the calls that are less sure than that."""
        return replace(self, edges=tuple(edge for edge in self.edges if edge.sureness >= sureness))

    def with_observed(self, calls: Iterable[tuple[str, str, int]]) -> CallGraph:
        """Return the graph joined with calls that ran: (caller id, callee id, how often).

        Calls that lead to or from what is no node here are left out, and so are calls of module code.
        """
        merged = {(edge.caller, edge.callee): edge for edge in self.edges}
        for caller, callee, count in calls:
            if caller not in self.nodes or callee not in self.nodes or self.nodes[callee].is_module:
                continue
            known = merged.get((caller, callee), CallEdge(caller, callee, ()))
            found = known.found if known.observed else (*known.found, Found.OBSERVED)
            merged[caller, callee] = replace(known, found=found, count=known.count + count)
        return replace(self, edges=tuple(sorted(merged.values(), key=lambda edge: (edge.caller, edge.callee))))

    def to_networkx(self, *, modules: bool = True) -> networkx.DiGraph[str]:
        """Return a `networkx.DiGraph` with the fields of nodes and calls as attributes.

        An edge has `found` (a tuple of strings), `sureness` and `count`; `modules=False` leaves out module code.
        """
        import networkx

        graph: networkx.DiGraph[str] = networkx.DiGraph()
        for node in self.nodes.values():
            if modules or not node.is_module:
                graph.add_node(
                    node.id,
                    path=node.path,
                    qualname=node.qualname,
                    kind=node.kind,
                    first_line=node.first_line,
                    last_line=node.last_line,
                )
        for edge in self.edges:
            if edge.caller in graph and edge.callee in graph:
                found = tuple(found.value for found in edge.found)
                graph.add_edge(edge.caller, edge.callee, found=found, sureness=edge.sureness, count=edge.count)
        return graph


def _grouped(pairs: Iterable[tuple[str, CallEdge]]) -> dict[str, tuple[CallEdge, ...]]:
    groups: dict[str, list[CallEdge]] = {}
    for key, edge in pairs:
        groups.setdefault(key, []).append(edge)
    return {key: tuple(edges) for key, edges in groups.items()}
