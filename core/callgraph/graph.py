"""The call graph: functions, calls with the evidence for them, and a drawing of a neighbourhood."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from gistpoint.core.errors import UserError
from gistpoint.core.text import visible_line

if TYPE_CHECKING:
    import networkx


MODULE = "<module>"


class CallEvidence(StrEnum):
    """The evidence for a call."""

    DIRECT = "direct"  # a name or attribute of the function itself
    METHOD = "method"  # a method of a receiver whose class was inferred
    CONSTRUCTOR = "constructor"  # a class was called: its `__init__`, `__new__` or `__post_init__`
    SUPER = "super"  # through `super()`
    PROPERTY = "property"  # an attribute that is computed when it is read, written or deleted
    DECORATOR = "decorator"  # a decorator applied to a definition
    PROTOCOL = "protocol"  # an operator, a loop, a with block or a built-in that calls a special method
    FLOW = "flow"  # the function came through a parameter, a container, a return value or another name
    OVERRIDE = "override"  # a subclass's override of a method called on its base class
    NAME = "name"  # the receiver is unknown; the only method of that name in the sources
    OBSERVED = "observed"  # seen while the code ran


#: The share of edges with this evidence, between functions that ran, that a run confirmed. Measured by
#: `tests/studies/callgraph_accuracy.py` on the suites of six libraries; rounded, and lowered for guesses by
#: name, of which there are few.
SURENESS: Mapping[CallEvidence, float] = {
    CallEvidence.DIRECT: 0.95,
    CallEvidence.METHOD: 0.93,
    CallEvidence.CONSTRUCTOR: 0.9,
    CallEvidence.SUPER: 0.98,
    CallEvidence.PROPERTY: 0.9,
    CallEvidence.DECORATOR: 0.98,
    CallEvidence.PROTOCOL: 0.8,
    CallEvidence.FLOW: 0.7,
    CallEvidence.OVERRIDE: 0.7,
    CallEvidence.NAME: 0.85,
    CallEvidence.OBSERVED: 1.0,
}


@dataclass(frozen=True, slots=True)
class FunctionNode:
    """A function, method, property or lambda, or the module code outside of all functions.

    `id` is `path::qualname`. Lines count from 1; `first_line` is that of the first decorator, if there is
    one, and `def_line` that of the `def` itself.
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
        """Whether this is the module code outside of all functions."""
        return self.qualname == MODULE


@dataclass(frozen=True, slots=True)
class CallEdge:
    """A call from `caller` to `callee` (ids) with its evidence; `count` is how often a run made it."""

    caller: str
    callee: str
    found: tuple[CallEvidence, ...]
    count: int = 0

    @property
    def sureness(self) -> float:
        """The confidence in the call, from 0 to 1: the greatest over its evidence."""
        return max(SURENESS[found] for found in self.found)

    @property
    def observed(self) -> bool:
        """Whether a run made this call."""
        return CallEvidence.OBSERVED in self.found


@dataclass(frozen=True)
class CallGraph:
    """Functions by id and the calls between them, both in a stable order.

    `skipped` maps the paths of files that could not be analysed to the reasons.
    """

    nodes: Mapping[str, FunctionNode]
    edges: tuple[CallEdge, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def callees(self) -> Mapping[str, tuple[CallEdge, ...]]:
        """The calls by caller id."""
        return _grouped((edge.caller, edge) for edge in self.edges)

    @cached_property
    def callers(self) -> Mapping[str, tuple[CallEdge, ...]]:
        """The calls by callee id."""
        return _grouped((edge.callee, edge) for edge in self.edges)

    def functions(self) -> Iterator[FunctionNode]:
        """Yield the nodes that are functions, without module code."""
        return (node for node in self.nodes.values() if not node.is_module)

    def at_least(self, sureness: float) -> CallGraph:
        """Return the graph without calls of a lower confidence."""
        return replace(self, edges=tuple(edge for edge in self.edges if edge.sureness >= sureness))

    def with_observed(self, calls: Iterable[tuple[str, str, int]]) -> CallGraph:
        """Return the graph with observed calls added: (caller id, callee id, count).

        Calls from or to functions that are not nodes are left out, and so are calls to module code.
        """
        merged = {(edge.caller, edge.callee): edge for edge in self.edges}
        for caller, callee, count in calls:
            node = self.nodes.get(callee)
            if caller not in self.nodes or node is None:
                continue
            if node.is_module:
                continue
            known = merged.get((caller, callee), CallEdge(caller, callee, ()))
            found = known.found if known.observed else (*known.found, CallEvidence.OBSERVED)
            merged[caller, callee] = replace(known, found=found, count=known.count + count)
        return replace(
            self, edges=tuple(sorted(merged.values(), key=lambda edge: (edge.caller, edge.callee)))
        )

    def to_networkx(self, *, modules: bool = True) -> networkx.DiGraph[str]:
        """Return the graph as a `networkx.DiGraph`, whose nodes are the ids of functions.

        A node has the attributes `path`, `qualname`, `kind`, `first_line` and `last_line`; an edge has
        `found` (a tuple of strings), `sureness` and `count`. `modules=False` leaves out module code.
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
                graph.add_edge(
                    edge.caller, edge.callee, found=found, sureness=edge.sureness, count=edge.count
                )
        return graph


def _grouped(pairs: Iterable[tuple[str, CallEdge]]) -> dict[str, tuple[CallEdge, ...]]:
    groups: dict[str, list[CallEdge]] = {}
    for key, edge in pairs:
        groups.setdefault(key, []).append(edge)
    return {key: tuple(edges) for key, edges in groups.items()}


FORMAT = "gistpoint-calls"
VERSION = 1


class CallRecordError(UserError):
    """A record of calls can't be read."""


@dataclass(frozen=True, slots=True)
class CodeLocation:
    """A code object: its file, its first line (counted from 1) and its qualified name."""

    path: str
    line: int
    qualname: str


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """A call that a run made `count` times."""

    caller: CodeLocation
    callee: CodeLocation
    count: int


def read_calls(lines: Iterable[str]) -> Iterator[ObservedCall]:
    """Yield the calls of a record. Raises `CallRecordError` if its header or one of its lines is invalid."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CallRecordError(f"Line {number} of the record of calls is not JSON: {error}.") from error
        if number == 1:
            _check_header(item)
            continue
        match item:
            case [str(path), int(first), str(name), str(to), int(begin), str(called), int(count)]:
                yield ObservedCall(CodeLocation(path, first, name), CodeLocation(to, begin, called), count)
            case _:
                raise CallRecordError(f"Line {number} of the record of calls is not a call.")


def _check_header(header: object) -> None:
    match header:
        case {"format": str(name), "version": version} if (name, version) == (FORMAT, VERSION):
            return
    raise CallRecordError(
        f"The record of calls does not begin with {FORMAT} version {VERSION}.",
        hint="Record it again with this version of gistpoint.",
    )


def write_calls(calls: Iterable[ObservedCall]) -> Iterator[str]:
    """Yield the lines of a record of `calls`."""
    yield json.dumps({"format": FORMAT, "version": VERSION})
    for call in calls:
        ends = [
            end for place in (call.caller, call.callee) for end in (place.path, place.line, place.qualname)
        ]
        yield json.dumps([*ends, call.count])


def resolve_calls(graph: CallGraph, calls: Iterable[ObservedCall]) -> Iterator[tuple[str, str, int]]:
    """Yield (caller id, callee id, count) for calls between functions of `graph`.

    Code of lambdas, comprehensions and class bodies is attributed to the enclosing function; a call that
    stays within one function only because of that is left out, and so is code unknown to the graph.
    """
    places = _FunctionsByPlace(graph)
    for call in calls:
        caller, exact = places.find(call.caller)
        callee, callee_exact = places.find(call.callee)
        if caller is None or callee is None:
            continue
        is_recursive = exact and callee_exact
        if caller != callee or is_recursive:
            yield caller, callee, call.count


class _FunctionsByPlace:
    """Finds functions by file and qualified name; of several with one name, the one that contains a line."""

    def __init__(self, graph: CallGraph) -> None:
        self._named: dict[tuple[str, str], list[FunctionNode]] = {}
        for node in graph.nodes.values():
            self._named.setdefault((node.path, node.qualname.partition("#")[0]), []).append(node)

    def find(self, place: CodeLocation) -> tuple[str | None, bool]:
        """Return the id of the innermost known function around `place`, and whether `place` is its own code.

        Outside of functions, it is the id of the module code; None if the file is unknown.
        """
        parts = place.qualname.split(".")
        exact = True
        while parts:
            name = ".".join(parts)
            for node in self._named.get((place.path, name), ()):
                if node.first_line <= place.line <= node.last_line:
                    return node.id, exact
            parts.pop()
            exact = False
        module = f"{place.path}::{MODULE}"
        return (module if (place.path, MODULE) in self._named else None), place.qualname == MODULE


__all__ = ["CallRecordError", "CodeLocation", "ObservedCall", "read_calls", "resolve_calls", "write_calls"]


_MOST_SHOWN = 30


def draw_neighbourhood(graph: CallGraph, function: str, *, depth: int = 1, most: int = _MOST_SHOWN) -> str:
    """Return the callers of a function (by id), the function, and its callees, as indented lines.

    Calls are followed up to `depth` steps. Each call shows its evidence and confidence; a function that was
    drawn earlier ends in `↑` and is not followed again. At most `most` neighbours of a function are drawn,
    those with the highest confidence first. Raises `KeyError` for an unknown id.
    """
    node = graph.nodes[function]
    lines = [f"callers of {_line(node.id)}"]
    lines += _tree(
        graph, function, depth, most, lambda name: graph.callers.get(name, ()), lambda edge: edge.caller
    )
    lines += ["", f"● {_line(node.id)}  ({node.kind}, lines {node.def_line}-{node.last_line})", ""]
    lines.append(f"callees of {_line(node.id)}")
    lines += _tree(
        graph, function, depth, most, lambda name: graph.callees.get(name, ()), lambda edge: edge.callee
    )
    return "\n".join(lines) + "\n"


def _tree(
    graph: CallGraph,
    root: str,
    depth: int,
    most: int,
    neighbours: Callable[[str], tuple[CallEdge, ...]],
    other: Callable[[CallEdge], str],
) -> list[str]:
    drawn = {root}

    def below(name: str, indent: str, left: int) -> list[str]:
        edges = sorted(neighbours(name), key=lambda edge: (-edge.sureness, other(edge)))
        lines: list[str] = []
        for place, edge in enumerate(edges[:most]):
            last = place == len(edges) - 1
            again = other(edge) in drawn
            drawn.add(other(edge))
            mark = " ↑" if again else ""
            lines.append(f"{indent}{'└─' if last else '├─'} {_line(other(edge))}{mark}  {_evidence(edge)}")
            if not again and left > 1:
                lines += below(other(edge), indent + ("   " if last else "│  "), left - 1)
        if len(edges) > most:
            lines.append(f"{indent}└─ and {len(edges) - most} more")
        return lines

    return below(root, "", depth) or ["   none"]


def _evidence(edge: CallEdge) -> str:
    times = f" ×{edge.count}" if edge.count else ""
    return f"[{', '.join(edge.found)}{times}, {edge.sureness:.2f}]"


def _line(text: str) -> str:
    return visible_line(text)
