"""`gistpoint code`: the functions of a library with their metrics, and one function's neighbourhood."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gistpoint.core.callgraph import CallGraph, build_call_graph, draw_neighbourhood, read_folder
from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.errors import UserError
from gistpoint.core.metrics.table import Cell, filter_rows, measure_functions, rows_to_csv, sort_rows
from gistpoint.tui.commands.command import DONE, Handler
from gistpoint.tui.commands.output import ProgressLine, print_json, print_table, print_text

SHOWN = ("function", "line", "code_lines", "cyclomatic", "degree", "harmonic_out", "pagerank", "betweenness")


def code_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint code`."""
    parser.add_argument("source", help="name==version, a folder, or git+URL@commit")
    parser.add_argument("--sort", default="harmonic_out", metavar="COLUMN", help="default: harmonic_out")
    parser.add_argument("--ascending", action="store_true", help="the smallest first")
    parser.add_argument(
        "--where", action="append", default=[], metavar="CONDITION", help="such as 'degree>=4', or words of the name"
    )
    parser.add_argument("--most", type=int, default=40, metavar="N", help="rows to show (default: 40)")
    parser.add_argument("--tests", action="store_true", help="take the tests' own code as well")
    parser.add_argument("--csv", action="store_true", help="all rows and columns as CSV")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--around", metavar="FUNCTION", help="draw the callers and callees of one function")
    parser.add_argument("--depth", type=int, default=1, metavar="N", help="of the drawing (default: 1)")
    return code


def code(options: argparse.Namespace) -> int:
    """Print the table, as CSV or JSON on request, or one function's callers and callees."""
    with ProgressLine() as progress, tempfile.TemporaryDirectory(prefix="gistpoint-code-") as scratch:
        files = _files(options, Path(scratch), progress)
        progress.line(f"{len(files)} files")
        graph = build_call_graph(files)
        if options.around:
            print_text(draw_neighbourhood(graph, _named(graph, options.around), depth=options.depth))
            return DONE
        rows = sort_rows(
            filter_rows(measure_functions(graph, files), options.where), options.sort, descending=not options.ascending
        )
    if options.csv:
        print(rows_to_csv(rows), end="")
    elif options.json:
        listed = [{column: row.cell(column) for column in SHOWN} for row in rows]
        print_json("gistpoint.code/1", {"functions": listed, "edges": len(graph.edges)})
    else:
        print_table(SHOWN, [[_spelled(row.cell(column)) for column in SHOWN] for row in rows[: options.most]])
        if len(rows) > options.most:
            print(f"... {len(rows) - options.most} more; --most N shows more, --csv all")
    return DONE


def _files(options: argparse.Namespace, scratch: Path, progress: ProgressLine) -> Mapping[str, bytes]:
    from gistpoint.sandbox.environments.sources import Fetcher

    progress.line(f"reading {options.source}")
    _, folder = Fetcher().fetch(options.source, scratch)
    files = read_folder(folder)
    return files if options.tests else {path: source for path, source in files.items() if not is_test_path(path)}


def _named(graph: CallGraph, name: str) -> str:
    found = [id for id in graph.nodes if id == name or id.endswith((f"::{name}", f".{name}"))]
    if name in found:
        return name
    if len(found) == 1:
        return found[0]
    listed = f": {', '.join(found[:10])}" if found else ""
    raise UserError(f"{name} names {len(found)} functions{listed}.", hint="Name one as path::qualname.")


def _spelled(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
