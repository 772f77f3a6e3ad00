"""One function's neighbourhood on the call graph, drawn as text."""

from __future__ import annotations

from collections.abc import Callable

from gistpoint.core.callgraph.graph import CallEdge, CallGraph
from gistpoint.core.text import visible_line

_MOST_SHOWN = 30


def draw_neighbourhood(graph: CallGraph, function: str, *, depth: int = 1, most: int = _MOST_SHOWN) -> str:
    """Return the callers of a function (by id), the function, and its callees, as indented lines.

    Each call says how it was found and how sure it is; a function that was drawn before ends in `↑` and is not followed
    again. At most `most` neighbours of one function are drawn, the surest first. Raises KeyError for an unknown id.
    """
    node = graph.nodes[function]
    lines = [f"callers of {_line(node.id)}"]
    lines += _tree(graph, function, depth, most, lambda name: graph.callers.get(name, ()), lambda edge: edge.caller)
    lines += ["", f"● {_line(node.id)}  ({node.kind}, lines {node.def_line}-{node.last_line})", ""]
    lines.append(f"callees of {_line(node.id)}")
    lines += _tree(graph, function, depth, most, lambda name: graph.callees.get(name, ()), lambda edge: edge.callee)
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
            lines.append(f"{indent}{'└─' if last else '├─'} {_line(other(edge))}{mark}  {_how(edge)}")
            if not again and left > 1:
                lines += below(other(edge), indent + ("   " if last else "│  "), left - 1)
        if len(edges) > most:
            lines.append(f"{indent}└─ and {len(edges) - most} more")
        return lines

    return below(root, "", depth) or ["   none"]


def _how(edge: CallEdge) -> str:
    times = f" ×{edge.count}" if edge.count else ""
    return f"[{', '.join(edge.found)}{times}, {edge.sureness:.2f}]"


def _line(text: str) -> str:
    return visible_line(text)
