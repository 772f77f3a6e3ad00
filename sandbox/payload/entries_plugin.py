"""A pytest plugin that records which tests enter which code of the repository.

Runs in the target's interpreter. The `ids` of the order are the tests to run. A function is entered when its
code starts to run, in any thread; the entries of a fixture that several tests share count for all of them,
no matter which of them set it up. The records over the pipe are `collected`, `test` (when a test has ended),
and at the end `codes` (the positions of the code objects, which are numbered in this order), `entered` (the
numbers for a test), `imported` (pairs of a number and the file whose top level was running, or an empty
string), `children` (lines of `child_entries`), `opaque` (tests that started unobserved interpreters), `calls`
(rows of `calltrace`) and `finish`.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING or "." in __name__:
    from gistpoint.sandbox.payload import calltrace, child_entries
    from gistpoint.sandbox.payload.results_plugin import Registering, close_input, opened_channel, taken_order
else:
    os.environ["GISTPOINT_CALLS_ROOT"] = os.environ["GISTPOINT_ROOT"]
    import gistpoint_calls as calltrace
    import sitecustomize as child_entries
    from gistpoint_results import Registering, close_input, opened_channel, taken_order

    del os.environ["GISTPOINT_CALLS_ROOT"]

_inside, _starts, _counts = calltrace.known_inside, calltrace.starts, calltrace.counts
_CHUNK = 200
_SPAWNS = {"subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn", "os.system"}


class Watch:
    """A recorder of the entries of the running test, and separately of those in imports and collection."""

    def __init__(self) -> None:
        self.current: set[int] = set()
        self.collecting = True
        self.modules: list[str] = []
        self.imported: set[tuple[int, str]] = set()
        self.monitoring: Any = vars(sys).get("monitoring")

    def entered(self, frame: FrameType, code: CodeType) -> bool:
        """Record an entry; return whether it is a module's; `left` must then be called at its end."""
        self.current.add(id(code))
        calltrace.note(frame)
        if self.collecting or self.modules:
            self.imported.add((id(code), self.modules[-1] if self.modules else ""))
        if code.co_name == "<module>":
            self.modules.append(code.co_filename)
            return True
        return False

    def left(self) -> None:
        """Record that the innermost module has ended."""
        if self.modules:
            self.modules.pop()

    def start(self) -> None:
        """Begin to record, or begin again if a test has installed another tracer."""
        if self.monitoring is not None:
            if self.monitoring.get_tool(self.monitoring.PROFILER_ID) is None:
                self._monitor()
            return
        threading.settrace(self.trace)
        sys.settrace(self.trace)

    def stop(self) -> None:
        if self.monitoring is not None:
            self.monitoring.set_events(self.monitoring.PROFILER_ID, 0)
            self.monitoring.free_tool_id(self.monitoring.PROFILER_ID)
        else:
            threading.settrace(None)
            sys.settrace(None)

    def trace(self, frame: FrameType, _event: str, _argument: object) -> Any:
        """Record an entry, as a trace function before Python 3.12; inside code, only modules are traced."""
        code = frame.f_code
        key = id(code)
        known = _inside.get(key)
        if known is None:
            known = calltrace.is_inside(code)
        if not known:
            return None
        if key in self.current and not (self.collecting or self.modules):  # nearly always true: avoids a call
            if key in _starts:
                if frame.f_lasti > _starts[key]:
                    return None
            elif frame.f_back is not None:
                pair = (id(frame.f_back.f_code), key)
                if pair in _counts:
                    _counts[pair] += 1
                    return None
        if self.entered(frame, code):
            frame.f_trace_lines = False
            return self._until_left
        return None

    def _until_left(self, _frame: FrameType, event: str, _argument: object) -> Any:
        if event == "return":
            self.left()
        return self._until_left

    def _monitor(self) -> None:
        monitoring = self.monitoring
        tool, events = monitoring.PROFILER_ID, monitoring.events
        monitoring.use_tool_id(tool, "gistpoint")

        def started(code: CodeType, _offset: int) -> object:
            if not calltrace.is_inside(code):
                return monitoring.DISABLE
            if self.entered(sys._getframe(1), code):
                # Returns are watched only for modules, and unwinding only during a module, to save time.
                monitoring.set_local_events(tool, code, events.PY_RETURN)
                monitoring.set_events(tool, events.PY_START | events.PY_UNWIND)
            return None

        def ended(code: CodeType, *_: object) -> None:
            if self.modules and code.co_name == "<module>" and code.co_filename == self.modules[-1]:
                self.left()
                if not self.modules:
                    monitoring.set_events(tool, events.PY_START)

        monitoring.register_callback(tool, events.PY_START, started)
        monitoring.register_callback(tool, events.PY_RETURN, ended)
        monitoring.register_callback(tool, events.PY_UNWIND, ended)
        monitoring.set_events(tool, events.PY_START)


class Entries:
    """A plugin that collects and sends the records of one run; `out` is the file for child processes."""

    def __init__(self, ids: Iterable[str], root: str, fd: int, out: str) -> None:
        self.put = opened_channel(fd)
        self.ids = frozenset(ids)
        self.root = os.path.realpath(root) + os.sep
        self.out = out
        self.watch = Watch()
        self.of_tests: dict[str, set[int]] = {}
        self.of_fixtures: dict[Any, set[int]] = {}
        self.users: dict[str, set[Any]] = {}
        self.finalised: list[Any] = []
        self.test = ""
        self.spawning: set[str] = set()
        self.caches: list[Callable[[], object]] = []
        with open(out, "w", encoding="utf-8"):
            os.environ.update({child_entries.OUT: out, child_entries.ROOT: self.root})
        os.register_at_fork(after_in_child=self.follow_fork)
        sys.addaudithook(self.audit)
        self.watch.start()

    def follow_fork(self) -> None:
        """Report a forked process's entries through the file for child processes."""
        if self.watch.monitoring is not None:
            self.watch.stop()
        child_entries.follow(self.out, self.root)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _SPAWNS and self.test and _starts_python(event, arguments):
            self.spawning.add(self.test)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        yield
        items[:] = [item for item in items if item.nodeid in self.ids]
        # Searched for only once, after collection has imported the modules, because the search visits all
        # objects.
        self.caches = [cache.cache_clear for cache in gc.get_objects() if _caches_tree_code(cache)]
        self.put("collected", count=len(items))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        watch, began = self.watch, time.perf_counter()
        for clear in self.caches:  # a test would not enter code whose result an earlier test cached
            clear()
        self.test, watch.current, watch.collecting = item.nodeid, set(), False
        watch.modules.clear()
        watch.start()
        done = yield
        self.of_tests.setdefault(item.nodeid, set()).update(watch.current)
        info = getattr(item, "_fixtureinfo", None)
        named = info.name2fixturedefs if info is not None else {}
        self.users.setdefault(item.nodeid, set()).update(
            fixture for found in named.values() for fixture in found
        )
        self.put("test", id=item.nodeid, seconds=round(time.perf_counter() - began, 4))
        self.test = ""
        return done

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        outer, self.watch.current = self.watch.current, set()
        try:
            return (yield)
        finally:
            inner, self.watch.current = self.watch.current, outer
            outer |= inner
            self.of_fixtures.setdefault(fixturedef, set()).update(inner)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """Count the entries of a shared fixture's teardown for all tests that use it."""
        self.finalised.clear()
        outer, self.watch.current = self.watch.current, set()
        try:
            return (yield)
        finally:
            inner, self.watch.current = self.watch.current, outer
            outer |= inner
            for fixture in self.finalised:
                self.of_fixtures.setdefault(fixture, set()).update(inner)

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        if fixturedef.scope != "function":
            self.finalised.append(fixturedef)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.watch.stop()
        for test, fixtures in self.users.items():
            for fixture in fixtures & self.of_fixtures.keys():
                self.of_tests[test] |= self.of_fixtures[fixture]
        entered = set().union(*self.of_tests.values(), (code for code, _ in self.watch.imported))
        number = {code: place for place, code in enumerate(sorted(entered))}
        self.send("codes", [calltrace.place_of(code) for code in number])
        for test, codes in self.of_tests.items():
            self.put("entered", id=test, codes=sorted(number[code] for code in codes))
        imported = {(number[code], self.relative(file)) for code, file in self.watch.imported}
        self.send("imported", sorted(imported))
        with open(self.out, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        self.send("children", rows)
        self.send("opaque", sorted(self.spawning - {row[0] for row in rows}))
        self.send("calls", calltrace.rows())
        self.put("finish", exit=int(exitstatus))

    def relative(self, file: str) -> str:
        path = os.path.realpath(file) if file else ""
        return path[len(self.root) :] if path.startswith(self.root) else path

    def send(self, event: str, rows: list[Any]) -> None:
        for start in range(0, len(rows), _CHUNK):
            self.put(event, rows=rows[start : start + _CHUNK])


def _caches_tree_code(found: object) -> bool:
    if type(found) is not functools._lru_cache_wrapper:
        return False
    code = getattr(getattr(found, "__wrapped__", None), "__code__", None)
    return isinstance(code, CodeType) and calltrace.is_inside(code)


def _starts_python(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether a started program may be a Python interpreter, judged by its name or its first line.

    A shell counts too, because it may start one.
    """
    words: Any = [*arguments[:2]][-1]
    first = words if isinstance(words, (str, bytes, os.PathLike)) else next(iter(words), "")
    name = os.fsdecode(os.fspath(first))
    if (
        event == "os.system"
        or "python" in name
        or name == sys.executable
        or os.path.basename(name) in ("sh", "bash")
    ):
        return True
    try:
        with open(name, "rb") as file:
            return b"python" in file.readline(200)
    except (OSError, ValueError):
        return "python" in str(words)


def begin() -> Registering:
    """Read the order, open the pipe, and return a plugin that registers the recording plugin."""
    order = taken_order()
    close_input()
    recording = Entries(
        order["ids"],
        os.environ.pop("GISTPOINT_ROOT"),
        int(os.environ.pop("GISTPOINT_RESULTS")),
        os.path.join(os.environ["TMPDIR"], "entries-" + os.urandom(6).hex()),
    )
    return Registering(recording)
