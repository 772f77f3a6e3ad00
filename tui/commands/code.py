"""`gistpoint code`: the functions of a library with their metrics, and one function's neighbourhood."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gistpoint.core.callgraph.builder import build_call_graph, read_folder
from gistpoint.core.callgraph.graph import CallGraph, draw_neighbourhood
from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.errors import UserError
from gistpoint.core.metrics.table import Cell, filter_rows, measure_functions, rows_to_csv, sort_rows
from gistpoint.tui.cli import DONE
from gistpoint.tui.commands.output import ProgressLine, print_json, print_table, print_text

SHOWN = ("function", "line", "code_lines", "cyclomatic", "degree", "harmonic_out", "pagerank", "betweenness")


def code(options: argparse.Namespace) -> int:
    """Print the table, as CSV or JSON where asked, or one function's callers and callees."""
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
