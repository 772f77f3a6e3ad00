"""Calls that a run made, as a tracer records them, and the functions of a graph that they are.

A record is lines of JSON. The first is `{"format": "gistpoint-calls", "version": 1}`; each other one is a list
`[path, line, qualname, path, line, qualname, count]`, caller first: the file relative to the root of the sources, the
first line of the code object (that of the first decorator) and its `co_qualname`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gistpoint.core.callgraph.graph import MODULE, CallGraph, FunctionNode
from gistpoint.core.errors import UserError

FORMAT = "gistpoint-calls"
VERSION = 1


class CallRecordError(UserError):
    """A record of calls can't be read."""


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A code object: its file, the line that it starts on (from 1) and its qualified name."""

    path: str
    line: int
    qualname: str


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """A call that a run made `count` times."""

    caller: CodePlace
    callee: CodePlace
    count: int


def read_calls(lines: Iterable[str]) -> Iterator[ObservedCall]:
    """Yield the calls of a record; raises `CallRecordError` where it is not one, naming the line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except ValueError as error:
            raise CallRecordError(f"Line {number} of the record of calls is not JSON: {error}.") from error
        if number == 1:
            if not isinstance(item, dict) or item.get("format") != FORMAT or item.get("version") != VERSION:
                raise CallRecordError(
                    f"The record of calls does not begin as {FORMAT} version {VERSION}.",
                    hint="Record it again with this version of gistpoint.",
                )
            continue
        match item:
            case [str(path), int(first), str(name), str(to), int(begin), str(called), int(count)]:
                yield ObservedCall(CodePlace(path, first, name), CodePlace(to, begin, called), count)
            case _:
                raise CallRecordError(f"Line {number} of the record of calls is not a call.")


def write_calls(calls: Iterable[ObservedCall]) -> Iterator[str]:
    """Yield the lines of a record of `calls`."""
    yield json.dumps({"format": FORMAT, "version": VERSION})
    for call in calls:
        ends = [end for place in (call.caller, call.callee) for end in (place.path, place.line, place.qualname)]
        yield json.dumps([*ends, call.count])


def resolve_calls(graph: CallGraph, calls: Iterable[ObservedCall]) -> Iterator[tuple[str, str, int]]:
    """Yield (caller id, callee id, count) for calls between functions of `graph`.

    Code of lambdas, comprehensions and class bodies counts as that of the function around it; a call that stays within
    one function only for that reason is left out, and so is code that the graph does not know.
    """
    places = _Places(graph)
    for call in calls:
        caller, exact = places.find(call.caller)
        callee, callee_exact = places.find(call.callee)
        if caller is None or callee is None or (caller == callee and not (exact and callee_exact)):
            continue
        yield caller, callee, call.count


class _Places:
    """Functions by file and line; among several of one name, the one whose lines hold the place."""

    def __init__(self, graph: CallGraph) -> None:
        self._named: dict[tuple[str, str], list[FunctionNode]] = {}
        for node in graph.nodes.values():
            self._named.setdefault((node.path, node.qualname.partition("#")[0]), []).append(node)

    def find(self, place: CodePlace) -> tuple[str | None, bool]:
        """Return the id of the function that the code at `place` belongs to, and whether it is that function's own."""
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


__all__ = ["CallRecordError", "CodePlace", "ObservedCall", "read_calls", "resolve_calls", "write_calls"]
