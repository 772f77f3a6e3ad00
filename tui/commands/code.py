"""`gistpoint code`: list the functions of a library with their metrics, or those around one of them."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gistpoint.core.callgraph import CallEdge, CallGraph, build_call_graph, draw_neighbourhood, read_folder
from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.errors import UserError
from gistpoint.core.generation.library import SourceLibrary, find_learned
from gistpoint.core.locations import Locations
from gistpoint.core.metrics.conditions import filter_rows, read_condition
from gistpoint.core.metrics.table import FunctionMetrics, measure_functions, rows_to_csv, sort_rows
from gistpoint.core.requests import Natural, Request
from gistpoint.core.text import plural
from gistpoint.core.unfinished import scratch_folder
from gistpoint.tui.commands.arguments import JSON, settled_source
from gistpoint.tui.commands.choosing import CONDITION_HELP
from gistpoint.tui.commands.command import DONE
from gistpoint.tui.commands.options import CALLED, CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import print_json, print_table, print_text, spelled
from gistpoint.tui.commands.progress import LongWork, long_work

SHOWN = ("function", "line", "code_lines", "cyclomatic", "degree", "harmonic_out", "pagerank", "betweenness")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFunctions(Request):
    """A request to list the functions of a library, or to draw the callers and callees of one of them."""

    source: str
    sort: str = "harmonic_out"
    ascending: bool = False
    where: tuple[str, ...] = ()
    most: Natural = 40
    tests: bool = False
    csv: bool = False
    json: bool = False
    names: bool = False
    around: str = ""
    depth: Natural = 1
    called: tuple[str, ...] = ()


def code(request: ListFunctions) -> int:
    """Print the functions of a library, or the callers and callees of a function. Return the exit code."""
    for condition in request.where:
        read_condition(condition)  # reports a mistake in a condition before anything is fetched
    source = settled_source(request.source, request.called)
    with (
        long_work(quiet=request.json, kept="Nothing was printed.") as work,
        scratch_folder("code") as scratch,
    ):
        graph, everything, library = _measured(source, Path(scratch), work, tests=request.tests)
    if request.around:
        print_text(draw_neighbourhood(graph, _named(graph, request.around), depth=request.depth))
        return DONE
    rows = sort_rows(filter_rows(everything, request.where), request.sort, descending=not request.ascending)
    if request.csv:
        print(rows_to_csv(rows), end="")
    elif request.json:
        print_json("gistpoint.code/1", _document(graph, rows, learned=library is not None))
    elif request.names:
        for row in rows:
            print_text(row.function)
    else:
        _print(graph, rows, request.most, library)
    return DONE


def _measured(
    named: str, scratch: Path, work: LongWork, *, tests: bool
) -> tuple[CallGraph, list[FunctionMetrics], SourceLibrary | None]:
    """Return the call graph, each function's metrics, and the library, or None if it was never analysed.

    Functions of tests are left out unless `tests`.
    """
    from gistpoint.sandbox.environments.sources import Fetcher

    progress = work.progress
    progress.stage(f"reading {named}")
    source, folder = Fetcher(on_line=progress.detail, cancel=work.cancel).fetch(named, scratch)
    library = find_learned(Locations.of_user().libraries, source)
    if library is None:
        progress.stage("call graph and metrics")
        files = read_folder(folder)
        if not tests:
            files = {path: text for path, text in files.items() if not is_test_path(path)}
        progress.line(
            f"{plural(len(files), 'file')}, not analysed yet: calls are those found in the source."
            f" `gistpoint task generate {shlex.quote(named)} --pytest-args ... --count 1` observes the"
            " others."
        )
        graph = build_call_graph(files)
        return graph, measure_functions(graph, files), None
    graph = library.call_graph(tests=tests)
    known = (
        ""
        if library.observed is not None
        else ", but an earlier version did this, so it is not known which of the calls in the source ran"
    )
    progress.line(f"analysed: calls of its suite are included{known}")
    if not tests:
        return graph, list(library.rows), library
    return graph, measure_functions(graph, dict(library.intake.repository.tree.read_all(".py"))), library


def _print(graph: CallGraph, rows: list[FunctionMetrics], most: int, library: SourceLibrary | None) -> None:
    observed, least = (
        _observed_degrees(graph),
        "≥" if library is not None and library.observed is None else "",
    )
    headings = SHOWN if library is None else (*SHOWN, "observed")
    table = []
    for row in rows[:most]:
        cells = [spelled(row.cell(column)) for column in SHOWN]
        table.append(
            cells if library is None else [*cells, f"{least}{observed[row.function]}/{row.centrality.degree}"]
        )
    print_table(headings, table)
    if len(rows) > most:
        print(f"... {len(rows) - most} more; --most N shows more, --csv all")
    if library is not None:
        ways = Counter((edge.observed, len(edge.found) > 1) for edge in _between_functions(graph))
        total, both, only = sum(ways.values()), ways[True, True], ways[True, False]
        print(
            f"{plural(total, 'call')}: {total - both - only} static, {both} static and observed, {only} only"
            " observed."
        )


def _document(graph: CallGraph, rows: list[FunctionMetrics], *, learned: bool) -> dict[str, Any]:
    calls = [
        {"caller": edge.caller, "callee": edge.callee, "found": list(edge.found), "count": edge.count}
        for edge in graph.edges
    ]
    return {
        "functions": [{column: row.cell(column) for column in SHOWN} for row in rows],
        "edges": len(graph.edges),
        "learned": learned,
        "calls": calls,
    }


def _between_functions(graph: CallGraph) -> list[CallEdge]:
    return [
        edge for edge in graph.edges if not (graph.nodes[edge.caller].is_module or edge.caller == edge.callee)
    ]


def _observed_degrees(graph: CallGraph) -> Counter[str]:
    """Return, for each function, how many of the calls that its degree counts were observed."""
    found: Counter[str] = Counter()
    for edge in _between_functions(graph):
        if edge.observed:
            found.update((edge.caller, edge.callee))
    return found


def _named(graph: CallGraph, name: str) -> str:
    found = [id for id in graph.nodes if id == name or id.endswith((f"::{name}", f".{name}"))]
    if name in found:
        return name
    if len(found) == 1:
        return found[0]
    listed = f": {', '.join(found[:10])}" if found else ""
    raise UserError(
        f"{name} names {plural(len(found), 'function')}{listed}.", hint="Name one as path::qualname."
    )


CODE = CliCommand(
    ListFunctions,
    code,
    OptionTable(
        {
            "source": argument("SOURCE", "name==version, a folder, or git+URL@commit"),
            "sort": option("default: {default}", metavar="COLUMN", not_with=("around",)),
            "ascending": option("sort in ascending order", not_with=("around",)),
            "where": option(CONDITION_HELP, metavar="CONDITION", not_with=("around",)),
            "most": option(
                "rows to show (default: {default})",
                metavar="N",
                not_with=("around", "csv", "json", "names"),
            ),
            "tests": option("include the code of the tests"),
            "csv": option("all rows and columns as CSV"),
            "json": JSON,
            "names": option("only the functions, one per line: a file for --functions"),
            "around": option("draw the callers and callees of one function", metavar="FUNCTION"),
            "depth": option(
                "with --around, the depth of the drawing (default: {default})",
                metavar="N",
                only_with=("around",),
            ),
            "called": CALLED,
        },
        one_of=(("csv", "json", "names", "around"),),
    ),
    about=(
        "Lists functions with their metrics. Calls that were observed while the suite ran are"
        " included if the library was learned, which `gistpoint task generate` does first."
    ),
)
