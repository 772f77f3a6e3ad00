"""`gistpoint code`: the functions of a library with their metrics, and one function's neighbourhood."""

from __future__ import annotations

import argparse
import shlex
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from gistpoint.core.callgraph import CallEdge, CallGraph, build_call_graph, draw_neighbourhood, read_folder
from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.errors import UserError
from gistpoint.core.generation.library import SourceLibrary, find_learned
from gistpoint.core.locations import Locations
from gistpoint.core.metrics.conditions import filter_rows, read_condition
from gistpoint.core.metrics.table import FunctionMetrics, measure_functions, rows_to_csv, sort_rows
from gistpoint.core.text import plural
from gistpoint.tui.commands.arguments import natural, settled_source
from gistpoint.tui.commands.choosing import CONDITION_HELP
from gistpoint.tui.commands.command import DONE, Handler
from gistpoint.tui.commands.output import print_json, print_table, print_text, spelled
from gistpoint.tui.commands.progress import LongWork, long_work

SHOWN = ("function", "line", "code_lines", "cyclomatic", "degree", "harmonic_out", "pagerank", "betweenness")


def code_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint code`."""
    parser.description = (
        "Lists functions with their metrics. Calls that were observed while the suite ran are joined if the library "
        "was learned, which `gistpoint task generate` does first of all."
    )
    parser.add_argument("source", metavar="SOURCE", help="name==version, a folder, or git+URL@commit")
    parser.add_argument("--sort", default="harmonic_out", metavar="COLUMN", help="default: harmonic_out")
    parser.add_argument("--ascending", action="store_true", help="the smallest first")
    parser.add_argument("--where", action="append", default=[], metavar="CONDITION", help=CONDITION_HELP)
    parser.add_argument("--most", type=natural, default=40, metavar="N", help="rows to show (default: 40)")
    parser.add_argument("--tests", action="store_true", help="take the tests' own code as well")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="all rows and columns as CSV")
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--names", action="store_true", help="the functions alone, a line each: a file for --functions")
    form.add_argument("--around", metavar="FUNCTION", help="draw the callers and callees of one function")
    parser.add_argument("--depth", type=natural, default=1, metavar="N", help="of the drawing (default: 1)")
    return code


def code(options: argparse.Namespace) -> int:
    """Print the table, as CSV or JSON on request, or one function's callers and callees."""
    for condition in options.where:
        read_condition(condition)  # a mistake is told before anything is fetched
    options.source = settled_source(options, options.source)
    with (
        long_work(options, kept="Nothing was printed.") as work,
        tempfile.TemporaryDirectory(prefix="gistpoint-code-") as scratch,
    ):
        graph, everything, library = _measured(options, Path(scratch), work)
    if options.around:
        print_text(draw_neighbourhood(graph, _named(graph, options.around), depth=options.depth))
        return DONE
    rows = sort_rows(filter_rows(everything, options.where), options.sort, descending=not options.ascending)
    if options.csv:
        print(rows_to_csv(rows), end="")
    elif options.json:
        print_json("gistpoint.code/1", _document(graph, rows, learned=library is not None))
    elif options.names:
        for row in rows:
            print_text(row.function)
    else:
        _print(graph, rows, options.most, library)
    return DONE


def _measured(
    options: argparse.Namespace, scratch: Path, work: LongWork
) -> tuple[CallGraph, list[FunctionMetrics], SourceLibrary | None]:
    """Return the call graph, every function with its metrics, and the library if it was learned."""
    from gistpoint.sandbox.environments.sources import Fetcher

    progress = work.progress
    progress.stage(f"reading {options.source}")
    source, folder = Fetcher(on_line=progress.detail, cancel=work.cancel).fetch(options.source, scratch)
    library = find_learned(Locations.of_user().libraries, source)
    if library is None:
        progress.stage("call graph and metrics")
        files = read_folder(folder)
        if not options.tests:
            files = {path: text for path, text in files.items() if not is_test_path(path)}
        progress.line(
            f"{plural(len(files), 'file')}, never learned: calls are those that the text shows. "
            f"`gistpoint task generate {shlex.quote(options.source)} --pytest-args ... --count 1` observes the others."
        )
        graph = build_call_graph(files)
        return graph, measure_functions(graph, files), None
    graph = library.call_graph(tests=options.tests)
    known = "" if library.observed is not None else ", by an earlier version: which of the static ones ran is not known"
    progress.line(f"learned: calls of its suite are joined{known}")
    if not options.tests:
        return graph, list(library.rows), library
    return graph, measure_functions(graph, dict(library.intake.repository.tree.read_all(".py"))), library


def _print(graph: CallGraph, rows: list[FunctionMetrics], most: int, library: SourceLibrary | None) -> None:
    observed, least = _observed_degrees(graph), "≥" if library is not None and library.observed is None else ""
    headings = SHOWN if library is None else (*SHOWN, "observed")
    table = []
    for row in rows[:most]:
        cells = [spelled(row.cell(column)) for column in SHOWN]
        table.append(cells if library is None else [*cells, f"{least}{observed[row.function]}/{row.centrality.degree}"])
    print_table(headings, table)
    if len(rows) > most:
        print(f"... {len(rows) - most} more; --most N shows more, --csv all")
    if library is not None:
        ways = Counter((edge.observed, len(edge.found) > 1) for edge in _between_functions(graph))
        total, both, only = sum(ways.values()), ways[True, True], ways[True, False]
        print(
            f"{plural(total, 'call')}: {total - both - only} static, {both} static and observed, {only} only observed."
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
    return [edge for edge in graph.edges if not (graph.nodes[edge.caller].is_module or edge.caller == edge.callee)]


def _observed_degrees(graph: CallGraph) -> Counter[str]:
    """Return how many of the calls that the degree of each function counts were observed."""
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
    raise UserError(f"{name} names {plural(len(found), 'function')}{listed}.", hint="Name one as path::qualname.")
