"""The dependency rule, checked by the linter."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from project_files import ROOT, source_files


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


def test_scripts_that_run_on_demand_import_only_what_exists() -> None:
    """Neither the tests nor the type checker read the studies, the benchmarks and the scripts of the docs."""
    missing: list[str] = []
    for path in [
        *(ROOT / "tests").glob("studies/*.py"),
        *(ROOT / "tests").glob("benchmarks/*.py"),
        *(ROOT / "docs").glob("*.py"),
    ]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.ImportFrom(module=str(module), level=0) if module.startswith("gistpoint."):
                    missing += [
                        f"{path.name}: {module}.{item.name}"
                        for item in node.names
                        if not _has(module, item.name)
                    ]
    assert missing == []


def _has(module: str, name: str) -> bool:
    if hasattr(importlib.import_module(module), name):
        return True
    return importlib.util.find_spec(f"{module}.{name}") is not None
