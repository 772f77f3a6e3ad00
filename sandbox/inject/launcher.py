"""Runs a command under tracers, guards and the blocker: `python launcher.py ORDER`, ORDER being a JSON object.

Its keys: `argv` (`["pytest", ...]`, `["-m", "module", ...]` or `["file.py", ...]`), `path` (put first on sys.path),
`lines` (file whose lines are recorded), `trace_root` and `trace_excluded` (trace of an original), `owned` and
`forbidden` (blocker), `written`, `given`, `own` and `suspected` (see `code_watch`), `modules` (see `stand_ins`), `file`
and `guard` (see `test_observer`) and `plugin` (the file of the results plugin, for tests, which takes its own order
from standard input). The descriptor in GISTPOINT_RESULTS takes the records: for tests as `note`s of the results plugin,
for programs one JSON object a line with its `kind`, `end` being the last.
"""

from __future__ import annotations

import importlib.util
import json
import os
import runpy
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

_PART = 100_000
_MESSAGE = 4000


def _module(path: Path) -> ModuleType:
    """Load a file of ours without a name in sys.modules."""
    spec = importlib.util.spec_from_file_location("_" + os.urandom(8).hex(), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _sibling(name: str) -> ModuleType:
    return _module(Path(__file__).resolve().with_name(name + ".py"))


class Notes:
    """Records on their way out; those told before `open` wait."""

    def __init__(self) -> None:
        self._waiting: list[dict[str, Any]] = []
        self._put: Callable[..., None] | None = None

    def open(self, put: Callable[..., None]) -> None:
        """Hand what waits to `put`, and everything that follows."""
        self._put = put
        for fields in self._waiting:
            put(**fields)
        self._waiting.clear()

    def tell(self, kind: str, **fields: Any) -> None:
        """Tell one record."""
        if self._put is None:
            self._waiting.append({"kind": kind, **fields})
        else:
            self._put(kind=kind, **fields)

    def event(self, kind: str, name: str) -> None:
        """Tell of something that a guard saw."""
        self.tell("event", what=kind, name=name[:_MESSAGE])

    def large(self, kind: str, value: object) -> None:
        """Tell a value of any size, in parts."""
        text = json.dumps(value)
        for start in range(0, len(text), _PART):
            self.tell(kind, part=text[start : start + _PART])

    def close(self) -> None:
        """Tell nothing more."""
        self._put = lambda **fields: None


class Measures:
    """The tracers, guards and watches that an order asks for."""

    def __init__(self, order: Mapping[str, Any], notes: Notes) -> None:
        self._order, self._notes = order, notes
        folders = (order.get(name, ()) for name in ("written", "given", "own", "suspected"))
        self._watch: Any = _sibling("code_watch").CodeWatch(*folders, _sibling("comparison_probe").equals_anything)
        seeing = self._watch.see, self._watch.settled
        self._lines: Any = None
        if order.get("lines"):
            self._lines = _sibling("line_tracer").LineTracer(order["lines"], *seeing)
        self._trace: Any = None
        if order.get("trace_root"):
            tracer = _sibling("entrypoint_tracer").EntrypointTracer
            self._trace = tracer(order["trace_root"], order.get("trace_excluded", ()), *seeing)
        self._stand_ins: Any = _sibling("stand_ins").StandIns(order.get("modules", ()), order.get("owned", ()))

    def guard(self) -> None:
        """Install what refuses and watches."""
        if self._order.get("owned") or self._order.get("forbidden"):
            blocker = _sibling("import_blocker").ImportBlocker
            blocker(self._order.get("owned", ()), self._order.get("forbidden", ()), self._notes.event).install()
        _sibling("network_guard").NetworkGuard(self._notes.event).install()
        self._watch.install()

    def start_trace(self) -> None:
        """Begin to trace: what is imported before the tests are collected belongs to it."""
        if self._trace is not None:
            self._trace.start()

    def start_lines(self) -> None:
        """Begin to record lines."""
        if self._lines is not None:
            self._lines.start()

    def watch_lines(self, on: bool) -> None:
        """Go on recording lines, or leave out what follows."""
        if self._lines is not None:
            (self._lines.resume if on else self._lines.pause)()

    def look(self, namespace: Mapping[str, object], itself: object) -> None:
        """Look at what stands in for modules of the codebase."""
        if self._order.get("owned"):
            self._stand_ins.look(namespace, itself)

    def finish(self) -> None:
        """Stop measuring, and tell what was found."""
        program = self._watch.program
        if program is not None and self._order["argv"][0] != "pytest":
            self.look(vars(program), program)
        self._watch.finish()
        for kind, tracer in (("lines", self._lines), ("trace", self._trace)):
            if tracer is not None:
                self._notes.large(kind, tracer.stop())
        self._notes.large("modules", sorted(self._watch.modules)[:_MESSAGE])
        for kind in ("functions", "made", "made_elsewhere", "processes", "equals"):
            self._notes.large(kind, sorted(getattr(self._watch, kind)))
        self._notes.large("stand_ins", list(self._stand_ins.found.items()))


def _run_tests(order: Mapping[str, Any]) -> int:
    notes = Notes()
    registering = _module(Path(order["plugin"])).begin()
    measures = Measures(order, notes)
    import pytest

    observer = _sibling("test_observer").TestObserver

    def begin() -> None:
        notes.open(lambda **fields: registering.plugin.put("note", **fields))
        measures.start_lines()

    def finish() -> None:
        measures.finish()
        notes.close()

    guard, owned = order.get("guard") or {}, order.get("owned", ())
    observed = observer(
        notes.tell, begin, finish, measures.watch_lines, measures.look, order.get("file", ""), guard, owned
    )
    sys.path[:0] = order.get("path", [])
    measures.guard()
    measures.start_trace()
    return int(pytest.main(list(order["argv"][1:]), plugins=[registering, observed]))


def _run_program(order: Mapping[str, Any]) -> int:
    notes = Notes()
    notes.open(_writer(int(os.environ.pop("GISTPOINT_RESULTS"))))
    measures = Measures(order, notes)
    argv = order["argv"]
    sys.path[:0] = order.get("path", [])
    sys.argv = list(argv[1:] if argv[0] == "-m" else argv)
    measures.guard()
    measures.start_trace()
    measures.start_lines()
    raised = None
    try:
        if argv[0] == "-m":
            runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(os.path.abspath(argv[0]), run_name="__main__")
    except SystemExit:
        raise
    except BaseException as error:
        kind = type(error)
        raised = [f"{kind.__module__}.{kind.__qualname__}", str(error)[:_MESSAGE]]
        raise
    finally:
        measures.finish()
        notes.tell("end", raised=raised)
        notes.close()
    return 0


def _writer(descriptor: int) -> Callable[..., None]:
    os.set_inheritable(descriptor, False)
    lock, owner = threading.Lock(), os.getpid()
    getpid, write, dumps = os.getpid, os.write, json.dumps

    def put(**fields: Any) -> None:
        if getpid() != owner:
            return  # a fork of the program that came to its end here
        with lock:
            line = dumps(fields).encode() + b"\n"
            while line:
                line = line[write(descriptor, line) :]

    return put


def main(order: Mapping[str, Any]) -> int:
    """Run what `order` asks for, and return the exit status."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    return _run_tests(order) if order["argv"][0] == "pytest" else _run_program(order)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
