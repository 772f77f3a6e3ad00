"""Runs a command under the tracers and the blocker: `python -I launcher.py CONFIG.json`.

Keys of the configuration: `argv` (`["pytest", ...]`, `["-m", "module", ...]` or `["file.py", ...]`), `path` (put first
on sys.path), `report` (blocker and tests append to it), `lines` (file whose lines are recorded), `trace_root` and
`trace_excluded` (trace of an original), `trace` (where lines or trace are written), `owned` and `forbidden` (blocker).
"""

from __future__ import annotations

import importlib.util
import json
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any


def _sibling(name: str) -> ModuleType:
    path = Path(__file__).resolve().with_name(name + ".py")
    spec = importlib.util.spec_from_file_location("_gistpoint_" + name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(argv: Sequence[str], report: str | None) -> int:
    if argv[0] == "pytest":
        import pytest

        plugins = [_sibling("test_reporter").TestReporter(report)] if report else []
        return int(pytest.main(list(argv[1:]), plugins=plugins))
    sys.argv = list(argv[1:] if argv[0] == "-m" else argv)
    if argv[0] == "-m":
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(argv[0], run_name="__main__")
    return 0


def main(configuration: Mapping[str, Any]) -> int:
    """Run what `configuration` asks for, and return the exit status."""
    report = configuration.get("report")
    tracer: Any = None
    if configuration.get("lines"):
        tracer = _sibling("line_tracer").LineTracer(configuration["lines"])
    elif configuration.get("trace_root"):
        excluded = configuration.get("trace_excluded", ())
        tracer = _sibling("entrypoint_tracer").EntrypointTracer(configuration["trace_root"], excluded)
    if configuration["argv"][0] == "pytest":
        _sibling("test_reporter")
    sys.path[:0] = configuration.get("path", [])
    if configuration.get("owned") or configuration.get("forbidden"):
        blocker = _sibling("import_blocker").ImportBlocker
        blocker(configuration.get("owned", ()), configuration.get("forbidden", ()), report).install()
    if tracer:
        tracer.start()
    try:
        return _run(configuration["argv"], report)
    finally:
        if tracer:
            result = tracer.stop()
            Path(configuration["trace"]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
