"""The static call graph of Python sources, by value propagation, and calls observed in runs.

It is independent of tasks. The public names are in this module; the modules inside are private (decision 70).
"""

from gistpoint.core.callgraph.builder import build_call_graph, read_folder, run_deep
from gistpoint.core.callgraph.graph import (
    MODULE,
    CallEdge,
    CallEvidence,
    CallGraph,
    CallRecordError,
    CodeLocation,
    FunctionNode,
    ObservedCall,
    draw_neighbourhood,
    read_calls,
    resolve_calls,
    write_calls,
)

__all__ = [
    "MODULE",
    "CallEdge",
    "CallEvidence",
    "CallGraph",
    "CallRecordError",
    "CodeLocation",
    "FunctionNode",
    "ObservedCall",
    "build_call_graph",
    "draw_neighbourhood",
    "read_calls",
    "read_folder",
    "resolve_calls",
    "run_deep",
    "write_calls",
]
