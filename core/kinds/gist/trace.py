"""The trace of a command on the original, and the command's difficulty according to the trace."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.decoding import decodable
from gistpoint.core.entrypoints.command import COMMAND_FILE
from gistpoint.core.errors import TaskError
from gistpoint.core.tasks.fields import Count
from gistpoint.core.text import plural

FORMAT = "gistpoint.trace"
VERSION = 1


@dataclass(frozen=True, slots=True)
class TracedFunction:
    """One function that was called; `run` is True if a call was outside the import of modules."""

    path: str
    qualname: str
    line: int
    calls: int
    run: bool


@dataclass(frozen=True, slots=True)
class Trace:
    """The code that a command touched, in order of first use; paths are relative to the codebase."""

    calls: int
    depth: int
    files: tuple[str, ...]
    modules: Mapping[str, str]
    """Dotted module name by path."""
    functions: tuple[TracedFunction, ...]
    lines: Mapping[str, frozenset[int]]
    order: Mapping[tuple[str, int], int] = field(repr=False)
    """The rank at which each (path, line) at the top level of modules first ran.

    Line 0 is the end of a module.
    """
    module_ranks: Mapping[str, list[tuple[int, int]]] = field(repr=False)
    """The (rank, line) pairs of each path, sorted."""


@dataclass(frozen=True, slots=True)
class Difficulty:
    """The extent to which a command exercises a codebase, including its test and fixtures (Gistify, 4.2)."""

    calls: Count
    functions: Count
    files: Count
    depth: Count
    lines_covered: float
    """The share of executed lines among the codebase's non-blank lines, 0-1, without those of tests."""


class _WrittenTrace(msgspec.Struct, frozen=True):
    """A trace as the tracer writes it, without its format and version."""

    calls: int
    depth: int
    files: tuple[str, ...]
    modules: dict[str, str]
    functions: tuple[TracedFunction, ...]
    lines: dict[str, frozenset[int]]
    order: list[tuple[str, int]]


def read_trace(data: Mapping[str, Any]) -> Trace:
    """Return the trace that the tracer in the sandbox wrote.

    Raises `TaskError` for another format or version, and if the trace is malformed.
    """
    if data.get("format") != FORMAT or data.get("version") != VERSION:
        raise TaskError("This version can't read the trace.", hint="Trace the command again.")
    # Every type is checked, because the traced program can report any object in place of its trace.
    try:
        written = msgspec.convert(data, decodable(_WrittenTrace))
    except msgspec.ValidationError as error:
        raise _malformed(str(error)) from error
    ranks: dict[str, list[tuple[int, int]]] = {}
    for rank, (path, line) in enumerate(written.order):
        ranks.setdefault(path, []).append((rank, line))
    return Trace(
        calls=written.calls,
        depth=written.depth,
        files=written.files,
        modules=written.modules,
        functions=written.functions,
        lines={
            path: written.lines.get(path, frozenset())
            for path in {**dict.fromkeys(written.files), **written.lines}
        },
        order={place: rank for rank, place in enumerate(written.order)},
        module_ranks=ranks,
    )


def _malformed(fault: str) -> TaskError:
    return TaskError(f"The trace is malformed: {fault}.", hint="Trace the command again.")


def difficulty(trace: Trace, sources: Mapping[str, str], *, tests: Collection[str] = ()) -> Difficulty:
    """Return the difficulty of a trace in the codebase `sources`; the lines of `tests` don't count."""
    functions, files = counted(trace.functions, trace.files)
    paths = [path for path in trace.files if path != COMMAND_FILE and path not in tests]
    total = 0
    for path, text in sources.items():
        if path not in tests:
            total += sum(bool(line.strip()) for line in physical_lines(text))
    covered = sum(len(trace.lines[path]) for path in paths)
    share = covered / total if total else 0.0
    return Difficulty(trace.calls, functions, files, trace.depth, share)


def counted(functions: Iterable[TracedFunction], files: Iterable[str]) -> tuple[int, int]:
    """Return how many functions and files a command touches, including those of tests and imports.

    This is the only count in use; earlier versions stored a count without the functions and files of tests.
    """
    touched = {(one.path, one.line, one.qualname) for one in functions}
    return len(touched), len({path for path in files if path != COMMAND_FILE})


def shown_difficulty(difficulty: Difficulty) -> str:
    """Return a difficulty in words."""
    calls, functions = plural(difficulty.calls, "call"), plural(difficulty.functions, "function")
    files = plural(difficulty.files, "file")
    return f"{calls}, {functions}, {files}, {100 * difficulty.lines_covered:.1f}% of the lines"
