"""Runs a command under tracers, guards and a watch: `python launcher.py ORDER`.

ORDER is a JSON object with the keys `argv` (`["pytest", ...]`, `["-m", "module", ...]` or `["file.py",
...]`), `name` (the program's `sys.argv[0]`, if that is not its file), `path` (put first on sys.path), `lines`
(file whose lines are recorded), `trace_root` and `trace_excluded` (trace of an original), `owned` and
`forbidden` (see `guards`), `written`, `given`, `own` and `suspected` (see `code_watch`), `modules` (see
`fakes`), `observed` (see `operands`), `file` and `guard` (see `test_observer`), `plugin` (for tests, the file
of the results plugin, which takes its own order from standard input) and `more` (a file with further members
of the order). The records go to the descriptor in GISTPOINT_RESULTS. For tests they are `note`s of the
results plugin. For programs they are JSON objects, one per line, each with a `kind`; the first is `begin`,
the last `end`.
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
    """Load a payload file as a module that is not in `sys.modules`, and return the module."""
    spec = importlib.util.spec_from_file_location("_" + os.urandom(8).hex(), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _sibling(name: str) -> ModuleType:
    return _module(Path(__file__).resolve().with_name(name + ".py"))


class Notes:
    """The outgoing records; those written before `open` is called are held back."""

    def __init__(self) -> None:
        self._waiting: list[dict[str, Any]] = []
        self._put: Callable[..., None] | None = None

    def open(self, put: Callable[..., None]) -> None:
        """Pass all records to `put` from now on, those that were held back first."""
        self._put = put
        for fields in self._waiting:
            put(**fields)
        self._waiting.clear()

    def write(self, kind: str, **fields: Any) -> None:
        """Write one record."""
        if self._put is None:
            self._waiting.append({"kind": kind, **fields})
        else:
            self._put(kind=kind, **fields)

    def event(self, kind: str, name: str) -> None:
        """Report an event that a guard detected."""
        self.write("event", what=kind, name=name[:_MESSAGE])

    def large(self, kind: str, value: object) -> None:
        """Write a value of any size, as parts of its JSON text."""
        text = json.dumps(value)
        for start in range(0, len(text), _PART):
            self.write(kind, part=text[start : start + _PART])

    def close(self) -> None:
        """Discard all further records."""
        self._put = lambda **fields: None


class Measures:
    """The tracers, guards and watches that an order requires."""

    def __init__(self, order: Mapping[str, Any], notes: Notes) -> None:
        self._order, self._notes = order, notes
        folders = (order.get(name, ()) for name in ("written", "given", "own", "suspected"))
        fakes, tracers = _sibling("fakes"), _sibling("tracers")
        self._watch: Any = _sibling("code_watch").CodeWatch(*folders, fakes.equals_anything)
        seeing = self._watch.see, self._watch.settled
        self._lines: Any = None
        if order.get("lines"):
            self._lines = tracers.LineTracer(order["lines"], *seeing)
        self._trace: Any = None
        if order.get("trace_root"):
            excluded = order.get("trace_excluded", ())
            self._trace = tracers.EntrypointTracer(order["trace_root"], excluded, *seeing)
        self._stand_ins: Any = fakes.StandIns(order.get("modules", ()), order.get("owned", ()))
        self.operands: Any = None
        if order.get("observed"):
            self.operands = _sibling("operands").Operands(
                order.get("file", ""),
                order["observed"],
                self._watch.is_environment,
                _sibling("observing_code"),
            )

    def guard(self) -> None:
        """Install the guards and the watch."""
        guards, event = _sibling("guards"), self._notes.event
        if self._order.get("owned") or self._order.get("forbidden"):
            guards.ImportBlocker(
                self._order.get("owned", ()), self._order.get("forbidden", ()), event
            ).install()
        # The guards come before the watch, so that their hooks and finders belong to the environment.
        guards.NetworkGuard(event).install()
        self._watch.install()
        if self.operands is not None:
            self._watch.allow(self.operands.prepare())

    def start_trace(self) -> None:
        """Begin to trace, if the order requires it; imports before the tests are collected are traced too."""
        if self._trace is not None:
            self._trace.start()

    def start_lines(self) -> None:
        """Begin to record lines, if the order requires it."""
        if self._lines is not None:
            self._lines.start()

    def watch_lines(self, on: bool) -> None:
        """Resume the recording of lines if `on` is true, otherwise pause it."""
        if self._lines is not None:
            (self._lines.resume if on else self._lines.pause)()

    def check_stand_ins(self, namespace: Mapping[str, object], itself: object) -> None:
        """Check for objects in place of modules, if the order names owned modules.

        `namespace` and `itself` are as for `StandIns.look`.
        """
        if self._order.get("owned"):
            self._stand_ins.check(namespace, itself)

    def finish(self) -> None:
        """Stop measuring, and report the results."""
        program = self._watch.program
        if program is not None and self._order["argv"][0] != "pytest":
            self.check_stand_ins(vars(program), program)
        self._watch.finish()
        for kind, tracer in (("lines", self._lines), ("trace", self._trace)):
            if tracer is not None:
                self._notes.large(kind, tracer.stop())
        self._notes.large("modules", sorted(self._watch.modules)[:_MESSAGE])
        for kind in ("functions", "made", "made_elsewhere", "processes", "equals"):
            self._notes.large(kind, sorted(getattr(self._watch, kind)))
        self._notes.large("stand_ins", list(self._stand_ins.found.items()))
        if self.operands is not None:
            self._notes.large("operands", self.operands.rows())
            self._notes.large("classes", self.operands.all_classes())


def _run_tests(order: Mapping[str, Any]) -> int:
    notes = Notes()
    registering = _module(Path(order["plugin"])).begin()
    measures = Measures(order, notes)
    import pytest

    observer = _sibling("test_observer").TestObserver

    def begin() -> None:
        # Only now does the plugin have its channel; earlier notes were held back.
        notes.open(lambda **fields: registering.plugin.put("note", **fields))
        measures.start_lines()

    def finish() -> None:
        measures.finish()
        notes.close()

    guard, owned = order.get("guard") or {}, order.get("owned", ())
    observed = observer(
        notes.write,
        begin,
        finish,
        measures.watch_lines,
        measures.check_stand_ins,
        order.get("file", ""),
        guard,
        owned,
    )
    observed.operands = measures.operands
    sys.path[:0] = order.get("path", [])
    measures.guard()
    measures.start_trace()
    return int(pytest.main(list(order["argv"][1:]), plugins=[registering, observed]))


def _run_program(order: Mapping[str, Any]) -> int:
    notes = Notes()
    notes.open(_writer(int(os.environ.pop("GISTPOINT_RESULTS"))))
    notes.write("begin")
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
        elif order.get("name"):
            _run_as(order["name"], os.path.abspath(argv[0]))
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
        # In a `finally`, because a program that ends with an exception reports as well.
        notes.write("end", raised=raised)
        notes.close()
    return 0


def _run_as(name: str, path: str) -> None:
    """Run a file as `runpy.run_path` does, except that `sys.argv[0]` is `name`."""
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    main = ModuleType("__main__")
    vars(main).update(__file__=path, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    sys.argv[0] = name
    exec(code, vars(main))


def _writer(descriptor: int) -> Callable[..., None]:
    os.set_inheritable(descriptor, False)
    lock, owner = threading.Lock(), os.getpid()
    getpid, write, dumps = os.getpid, os.write, json.dumps

    def put(**fields: Any) -> None:
        if getpid() != owner:
            return  # this is a fork of the program that has reached its end
        with lock:
            line = dumps(fields).encode() + b"\n"
            while line:
                line = line[write(descriptor, line) :]

    return put


def _complete_order(order: dict[str, Any]) -> dict[str, Any]:
    """Return an order with the members in its file `more`, which are too long for a command line."""
    if "more" not in order:
        return order
    with open(order["more"], encoding="utf-8") as file:
        return {**order, **json.load(file)}


def main(order: Mapping[str, Any]) -> int:
    """Run the command of `order`, and return the exit status."""
    here = os.path.dirname(os.path.abspath(__file__))
    # A gist must not find these files under its own imports.
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    return _run_tests(order) if order["argv"][0] == "pytest" else _run_program(order)


if __name__ == "__main__":
    sys.exit(main(_complete_order(json.loads(sys.argv[1]))))
