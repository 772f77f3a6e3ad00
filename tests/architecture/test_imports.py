"""The dependency rule, checked by the linter."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import networkx
from project_files import ROOT, module_name, source_files


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports at the top of modules form no cycle, so any module can be loaded first."""
    modules = {module_name(path) for path in source_files()}
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    for path in source_files():
        for statement in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ImportFrom):
                base = statement.module or ""
                named = {f"{base}.{item.name}" for item in statement.names} & modules
                graph.add_edges_from((module_name(path), target) for target in named or {base} & modules)
    assert [
        sorted(circle) for circle in networkx.strongly_connected_components(graph) if len(circle) > 1
    ] == []


def test_import_linter_finds_every_contract_kept() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run(
        [str(program), "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_core_starts_no_process_and_opens_no_connection() -> None:
    for path in source_files("core"):
        for line in (ROOT / path).read_text(encoding="utf-8").splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"]):
                assert words[1].partition(".")[0] not in {
                    "subprocess",
                    "socket",
                    "urllib",
                    "http",
                    "asyncio",
                    "curses",
                }, path
