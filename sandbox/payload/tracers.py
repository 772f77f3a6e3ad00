"""Traces executed code: the lines of one file, or a codebase's calls, functions, files, depth and lines.

The tracers use `sys.monitoring` from Python 3.12 on, and `sys.settrace` in earlier versions, because coverage
and slipcover take longer to start than most gists take to run (decision 20). Start a tracer before the code
that it traces is imported. Lines are physical, 1-based, as the compiler numbers them.
"""

from __future__ import annotations

import ast
import dis
import os
import sys
import threading
from collections.abc import Callable, Container, Iterable, Mapping
from types import CodeType, FrameType
from typing import Any

_BEGINS_WITH_RESUME = "RESUME" in dis.opmap


class _Tracer:
    """The base of both tracers: their start, their end, and their common state.

    Up to Python 3.11 `see` is called with the frame of each function that begins, unless its code's id is
    `settled`.
    """

    def __init__(self, see: Callable[[FrameType], None], settled: Container[int]) -> None:
        self._see, self._settled = see, settled
        # The code of two files is equal if it says the same in the same lines, whatever their names.
        self._pending: dict[tuple[str, CodeType], set[int]] = {}
        self._tool = -1

    def start(self) -> None:
        """Begin to record, in this thread and in those that are started later.

        From Python 3.12 on, other threads that are already running are recorded too.
        """
        if sys.version_info >= (3, 12):
            monitoring = sys.monitoring
            # Tools with low numbers belong to debuggers, coverage and profilers, which a test may itself use.
            self._tool = next(tool for tool in (4, 3, 5, 2, 1, 0) if monitoring.get_tool(tool) is None)
            monitoring.use_tool_id(self._tool, type(self).__name__)
            callbacks = self._callbacks()
            for event, callback in callbacks.items():
                monitoring.register_callback(self._tool, event, callback)
            monitoring.set_events(self._tool, sum(callbacks))
            monitoring.restart_events()
        else:
            threading.settrace(self._on_call)
            sys.settrace(self._on_call)

    def _end(self) -> None:
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(self._tool, 0)
            for event in self._callbacks():
                sys.monitoring.register_callback(self._tool, event, None)
            sys.monitoring.free_tool_id(self._tool)
        else:
            threading.settrace(None)
            sys.settrace(None)

    def _callbacks(self) -> dict[int, Callable[..., Any]]:
        """Return the functions that `sys.monitoring` calls, by the number of the event."""
        raise NotImplementedError

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Handle the beginning of a function, as a trace function; return one for its lines, or None."""
        raise NotImplementedError


class LineTracer(_Tracer):
    """A tracer that records which lines of the file at `path` ran between `start` and `stop`."""

    def __init__(self, path: str, see: Callable[[FrameType], None], settled: Container[int]) -> None:
        super().__init__(see, settled)
        self.path = os.path.realpath(path)
        self.lines: set[int] = set()
        self._traced: dict[str, bool] = {}

    def pause(self) -> None:
        """Stop recording in this thread; does nothing from 3.12 on, where each line is reported only once."""
        if sys.version_info < (3, 12):
            sys.settrace(None)

    def resume(self) -> None:
        """Record again after a pause."""
        if sys.version_info < (3, 12):
            sys.settrace(self._on_call)

    def stop(self) -> list[int]:
        """Stop recording, and return the lines, sorted."""
        self._end()
        return sorted(self.lines)

    def _is_traced(self, name: str) -> bool:
        known = self._traced.get(name)
        if known is None:
            known = self._traced[name] = os.path.realpath(name) == self.path
        return known

    if sys.version_info >= (3, 12):

        def _callbacks(self) -> dict[int, Callable[..., Any]]:
            add, is_traced, disable = self.lines.add, self._is_traced, sys.monitoring.DISABLE

            def on_line(code: CodeType, line: int) -> Any:
                if is_traced(code.co_filename):
                    add(line)
                return disable

            return {sys.monitoring.events.LINE: on_line}

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if id(code) not in self._settled:
            self._see(frame)
        known = self._traced.get(code.co_filename)
        if known is None:
            known = self._is_traced(code.co_filename)
        if not known:
            return None
        key = code.co_filename, code
        pending = self._pending.get(key)
        if pending is None:
            # Each line is traced only until it has run once: a hot loop would otherwise be far slower.
            pending = self._pending[key] = _lines_of(code) - self.lines
        if not pending:
            return None
        add, discard = self.lines.add, pending.discard

        def on_line(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                line = frame.f_lineno
                add(line)
                discard(line)
                if not pending:
                    frame.f_trace_lines = False
                    return None
            return on_line

        return on_line


class EntrypointTracer(_Tracer):
    """A tracer of a command through the code below `root`, without `excluded` folders such as environments.

    `order` contains, in the order of execution, the path and number of each line at the top level of a
    module, and line 0 at the end of a module.
    """

    def __init__(
        self, root: str, excluded: Iterable[str], see: Callable[[FrameType], None], settled: Container[int]
    ) -> None:
        super().__init__(see, settled)
        self.root = os.path.realpath(root)
        self.excluded = tuple(os.path.realpath(path) + os.sep for path in excluded)
        self.calls = 0
        self.depth = 0
        self.files: dict[str, set[int]] = {}
        self.functions: dict[tuple[str, int, str], dict[str, Any]] = {}
        self.order: dict[tuple[str, int], None] = {}
        self.modules: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._names: dict[str, dict[tuple[int, str], str]] = {}
        self._threads: dict[int, list[int]] = {}

    def stop(self) -> dict[str, Any]:
        """Stop tracing, and return the trace as a JSON-compatible object, with paths relative to `root`."""
        self._end()
        return {
            "format": "gistpoint.trace",
            "version": 1,
            "calls": self.calls,
            "depth": self.depth,
            "files": list(self.files),
            "modules": self.modules,
            "functions": list(self.functions.values()),
            "lines": {path: sorted(lines) for path, lines in self.files.items()},
            "order": [list(place) for place in self.order],
        }

    def _note_module(self, path: str, names: Mapping[str, Any]) -> None:
        """Record the dotted name of a module that runs; for `__main__`, the name in its spec."""
        spec = names.get("__spec__")
        self.modules.setdefault(path, getattr(spec, "name", None) or names.get("__name__", ""))

    def _path(self, filename: str) -> str:
        known = self._paths.get(filename)
        if known is None:
            known = ""
            if filename and filename[0] != "<":
                real = os.path.realpath(filename)
                if real.startswith(self.root + os.sep) and not real.startswith(self.excluded):
                    known = os.path.relpath(real, self.root).replace(os.sep, "/")
            self._paths[filename] = known
        return known

    def _enter(self, code: CodeType, path: str) -> set[int]:
        """Count a call, and return the set of the recorded lines of its file.

        The state of a thread is its depth, and how many of its frames are modules being imported. Bodies of
        modules, classes and comprehensions do not count: interpreters differ in how they run comprehensions,
        and a task's difficulty must not depend on where it was made (decision 18).
        """
        state = self._threads.setdefault(threading.get_ident(), [0, 0])
        lines = self.files.setdefault(path, set())
        if code.co_name == "<module>":
            state[1] += 1
        if not _is_function(code):
            return lines
        state[0] += 1
        self.calls += 1
        self.depth = max(self.depth, state[0])
        key = (path, code.co_firstlineno, getattr(code, "co_qualname", None) or self._qualname(code))
        entry = self.functions.get(key)
        if entry is None:
            entry = {"path": path, "qualname": key[2], "line": key[1], "calls": 0, "run": False}
            self.functions[key] = entry
        entry["calls"] += 1
        if not state[1]:
            entry["run"] = True
        return lines

    def _qualname(self, code: CodeType) -> str:
        """Return the qualified name of a function by its position in the file, for Python before 3.11.

        The result is its plain name if the file can't be parsed or does not contain it.
        """
        names = self._names.get(code.co_filename)
        if names is None:
            try:
                with open(code.co_filename, "rb") as file:
                    names = _names_in(ast.parse(file.read()))
            except (OSError, SyntaxError, ValueError):
                names = {}
            self._names[code.co_filename] = names
        return names.get((code.co_firstlineno, code.co_name), code.co_name)

    def _leave(self, code: CodeType, path: str) -> None:
        state = self._threads.get(threading.get_ident())
        if code.co_name == "<module>":
            self.order.setdefault((path, 0), None)
            if state and state[1]:
                state[1] -= 1
        elif state and state[0] and _is_function(code):
            state[0] -= 1

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if id(code) not in self._settled:
            self._see(frame)
        path = self._paths.get(code.co_filename)
        if path is None:
            path = self._path(code.co_filename)
        if not path:
            return None
        # A generator calls its tracer each time it is resumed, which is not a new call. From Python 3.11 on,
        # the first RESUME has the argument 0.
        resumed = code.co_flags & 0x2A0 and frame.f_lasti >= 0
        resumed = resumed and (not _BEGINS_WITH_RESUME or code.co_code[frame.f_lasti + 1] != 0)
        lines = self.files[path] if resumed else self._enter(code, path)
        key = code.co_filename, code
        pending = self._pending.get(key)
        if pending is None:
            pending = self._pending[key] = _lines_of(code)
        if code.co_name == "<module>" and path not in self.modules:
            self._note_module(path, frame.f_globals)
        module, order, leave = code.co_name == "<module>", self.order, self._leave
        if not pending:
            frame.f_trace_lines = False

        def on_event(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                line = frame.f_lineno
                lines.add(line)
                pending.discard(line)
                if module:
                    order.setdefault((path, line), None)
                if not pending:
                    frame.f_trace_lines = False
            elif event == "return" and not resumed:
                leave(code, path)
            return on_event

        return on_event

    if sys.version_info >= (3, 12):

        def _callbacks(self) -> dict[int, Callable[..., Any]]:
            monitoring = sys.monitoring

            def on_start(code: CodeType, offset: int) -> Any:
                path = self._path(code.co_filename)
                if not path:
                    return monitoring.DISABLE
                if code.co_name == "<module>" and path not in self.modules:
                    self._note_module(path, sys._getframe(1).f_globals)
                self._enter(code, path)
                return None

            def on_return(code: CodeType, offset: int, value: Any) -> Any:
                path = self._path(code.co_filename)
                if not path:
                    return monitoring.DISABLE
                self._leave(code, path)
                return None

            def on_unwind(code: CodeType, offset: int, error: BaseException) -> None:
                path = self._path(code.co_filename)
                if path:
                    self._leave(code, path)

            def on_line(code: CodeType, line: int) -> Any:
                path = self._path(code.co_filename)
                if path:
                    self.files.setdefault(path, set()).add(line)
                    if code.co_name == "<module>":
                        self.order.setdefault((path, line), None)
                return monitoring.DISABLE

            events = monitoring.events
            return {
                events.PY_START: on_start,
                events.PY_RETURN: on_return,
                events.PY_UNWIND: on_unwind,
                events.LINE: on_line,
            }


def _lines_of(code: CodeType) -> set[int]:
    return {line for _, line in dis.findlinestarts(code) if line}


def _names_in(node: ast.AST, prefix: str = "") -> dict[tuple[int, str], str]:
    """Return the qualified names of the functions below a node, by first line (with decorators) and name."""
    found: dict[tuple[int, str], str] = {}
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            name = getattr(child, "name", "<lambda>")
            first = min([child.lineno, *(one.lineno for one in getattr(child, "decorator_list", ()))])
            found.setdefault((first, name), prefix + name)
            inner = f"{prefix}{name}.<locals>."
        elif isinstance(child, ast.ClassDef):
            inner = f"{prefix}{child.name}."
        for key, qualname in _names_in(child, inner).items():
            found.setdefault(key, qualname)
    return found


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & 0x2) and (code.co_name[:1] != "<" or code.co_name == "<lambda>")
