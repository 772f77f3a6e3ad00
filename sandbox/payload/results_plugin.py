"""A pytest plugin that reports a run over a pipe, with one JSON object per line.

Runs in the target's interpreter, with pytest 8 and 9. `begin` reads the order of the run from standard input,
which then no longer contains it, before anything of the repository is imported. The records, each with a
sequence number `n`, are `begin` (before that import), `start` (of pytest's session), `collect_error`, `items`
(ids in chunks), `collected`, `run` (a test begins), `test` (a test has ended: what it raised, as seen before
any other plugin, and what was reported), `stray` (a report that is not about the running test), `note` (a
message of a `kind` from other payload files on this channel) and `finish`. If the order has a `key`, each
line begins with a tag of 32 hexadecimal digits and a space; the tag depends on the line and on all lines
before it.
"""

from __future__ import annotations

import ast
import builtins
import fcntl
import importlib.util
import json
import json.encoder
import os
import resource
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from hashlib import blake2b
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from _pytest._code import source as _source
from _pytest.assertion.rewrite import rewrite_asserts
from _pytest.unittest import UnitTestCase

_CHUNK = 40
_TEXT = 4000
_TRIES = 50
_HIGH = 200
_SPARE = 8


def _bounded(text: str) -> str:
    if len(text) <= _TEXT:
        return text
    return text[: _TEXT // 4] + "\n[...]\n" + text[-_TEXT * 3 // 4 :]


def taken_order() -> dict[str, Any]:
    """Read the order from standard input (a line with its length, then that many bytes), and return it.

    Raises `EOFError` if the input ends within the order, and `ValueError` if the length is missing.
    """
    length = b""
    while not length.endswith(b"\n"):
        # Byte by byte, because a buffered reader would also take bytes that follow the order.
        length += os.read(0, 1) or b"\n"
    parts, missing = [], int(length or 0)
    while missing:
        part = os.read(0, missing)
        if not part:
            raise EOFError("the order of the run ends early")
        parts.append(part)
        missing -= len(part)
    order: dict[str, Any] = json.loads(b"".join(parts))
    return order


def close_input() -> None:
    """Replace standard input with an empty one, so that no later reader finds data there or waits for it."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def moved_up(fd: int) -> int:
    """Return a copy of a descriptor with a high number below the limit of open files, closed on exec.

    Programs that the tests start then neither inherit it nor collide with it.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    high = _HIGH if limit == resource.RLIM_INFINITY else max(0, min(_HIGH, limit - _SPARE))
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, high)


def opened_channel(fd: int, key: str = "") -> Callable[..., None]:
    """Return a function that writes a record to the pipe `fd`; in a fork of this process it does nothing.

    The function keeps private copies of the functions that it needs, so that nothing that the tested code
    replaces in other modules affects it. The key of a record is deleted once the record is written.
    """
    high = moved_up(fd)
    os.close(fd)
    getpid, write, digest, lock, own = os.getpid, os.write, blake2b, threading.Lock(), os.getpid()
    encode = _private(json.encoder).JSONEncoder().encode
    number, chain = 0, bytes.fromhex(key)

    def put(event: str, **fields: Any) -> None:
        nonlocal number, chain
        if getpid() != own:
            return  # a fork of the tested code that continued into pytest
        with lock:
            number += 1
            line = encode({"e": event, "n": number, **fields}).encode()
            if chain:
                # Code that reads this memory later finds the next record's key, and can't forge earlier ones.
                tag = digest(line, key=chain, digest_size=16, person=b"record").hexdigest()
                chain = digest(line, key=chain, digest_size=32, person=b"next").digest()
                line = tag.encode() + b" " + line
            line += b"\n"
            while line:
                line = line[write(high, line) :]

    return put


def _private(module: ModuleType) -> Any:
    """Return a copy of a standard module that is not in `sys.modules` and has its own builtins."""
    return _loaded(module.__spec__)


def _loaded(spec: ModuleSpec | None) -> Any:
    """Return a module that is not in `sys.modules`, and uses builtins as they are now."""
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module)["__builtins__"] = dict(vars(builtins))
    spec.loader.exec_module(module)
    return module


def watch_of(order: Mapping[str, Any], root: str) -> Any:
    """Start and return a watch over a run, which has its own builtins and its own functions of paths."""
    path = _private(os.path)
    path.os = SimpleNamespace(**vars(os))
    return _control_file("run_watch.py").started(order, root, path)


class Results:
    """A plugin that reports one run."""

    def __init__(self, order: dict[str, Any], root: str, put: Callable[..., None], watch: Any = None) -> None:
        self.put = put
        self.watch = watch
        self.root = root.rstrip("/") + "/"
        self.real_root = os.path.realpath(root).rstrip("/") + "/"
        self.sentinels = order["sentinels"]
        self.select = order.get("select", [])
        self.deselect = frozenset(order.get("deselect", ()))
        self.first = {id: place for place, id in enumerate(order.get("first", ()))}
        self.backwards = order.get("backwards", False)
        self.files: frozenset[str] | None = None
        if self.select and not order.get("ids_in_arguments"):
            self.files = frozenset(os.path.join(root, id.partition("::")[0]) for id in self.select)
        self.index: dict[str, int | str] = {}
        self.current: str | None = None
        self.inside = False
        self.raised: list[str | None] = []
        self.reports: list[list[Any]] = []
        self.text = ""
        self.seconds = 0.0

    def relative(self, text: str) -> str:
        """Return text without the paths of the workspace, and with those of Python's folder replaced."""
        for prefix in (sys.prefix, sys.base_prefix):
            text = text.replace(prefix.rstrip("/") + "/", "<python>/")
        for root in (self.real_root, self.root):
            text = text.replace(root, "").replace(root.rstrip("/"), ".")
        return text

    def location(self, longrepr: Any) -> str | None:
        """Return `path:line` of the innermost frame in the repository, otherwise of the crash.

        Returns None if pytest did not record where the failure occurred.
        """
        crash = getattr(longrepr, "reprcrash", None)
        if crash is None:
            return None
        entries = getattr(getattr(longrepr, "reprtraceback", None), "reprentries", ())
        places = [entry.reprfileloc for entry in entries if getattr(entry, "reprfileloc", None) is not None]
        for place in reversed(places):
            if not os.path.isabs(place.path) or str(place.path).startswith((self.root, self.real_root)):
                return f"{place.path}:{place.lineno}"
        return f"{crash.path}:{crash.lineno}"

    def describe(self, report: Any) -> str:
        """Return text about a failure: location and message in the first line, then the short traceback."""
        longrepr: Any = report.longrepr
        location = self.location(longrepr)
        text = str(longrepr) if longrepr is not None else ""
        if location is not None:
            crash = str(getattr(getattr(longrepr, "reprcrash", None), "message", "")).split("\n")[0]
            text = f"{location}: {crash}\n\n{text}"
        return _bounded(self.relative(text))

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.put("start", pytest=pytest.__version__)
        self.known = _Known.from_parent(
            session, path=Path(__file__).with_name("test_" + os.urandom(8).hex() + ".py")
        )
        self.known.execute(self.sentinels)

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if (
            self.files is not None
            and collection_path.suffix == ".py"
            and str(collection_path) not in self.files
        ):
            return True
        return None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.put("collect_error", id=report.nodeid, text=self.describe(report))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        yield
        if self.deselect:
            items[:] = [item for item in items if item.nodeid not in self.deselect]
        if self.select:
            order = {id: place for place, id in enumerate(self.select)}
            items[:] = sorted((i for i in items if i.nodeid in order), key=lambda i: order[i.nodeid])
        if self.first:  # a stable sort: unnamed tests keep their order, after the named ones
            items.sort(key=lambda item: self.first.get(item.nodeid, len(self.first)))
        if self.backwards:
            items.reverse()
        ids = [item.nodeid for item in items]
        for start in range(0, len(ids), _CHUNK):
            self.put("items", ids=ids[start : start + _CHUNK])
        for id in ids:
            self.index.setdefault(id, len(self.index))
        # Last, so that they also detect what earlier tests replaced in pytest or in `assert`.
        sentinels = self.sentinel_items() if ids else []
        items.extend(sentinels)
        for item in sentinels:
            self.index[item.nodeid] = item.listchain()[2].name
        # Dropped, so that a search of the memory does not find the strings of the sentinels.
        self.select, self.first, self.sentinels = [], {}, ""
        self.put("collected", count=len(ids), sentinels=len(sentinels))

    def sentinel_items(self) -> list[pytest.Item]:
        """Return the tests whose outcomes are known beforehand, without fixtures of the repository."""
        items = list(self.known.collect())
        for item in items:
            names: list[str] = getattr(item, "fixturenames", [])
            names.clear()
        return items

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        if isinstance(self.index.get(item.nodeid), str):
            # One sentinel must visibly fail as expected. No test of the repository follows.
            item.config.option.runxfail = False

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.current, self.raised, self.reports, self.text, self.seconds = nodeid, [], [], "", 0.0
        self.put("run", i=self.index.get(nodeid, nodeid))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self.inside = True
        try:
            return (yield)
        except BaseException as error:
            self.raised.append(type(error).__name__)
            raise
        finally:
            self.inside = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, Any]:
        if self.inside:  # a subtest's own report
            return (yield)
        # The exception is read before any report is made: a plugin of the tree could rewrite the report.
        held = getattr(item, "_excinfo", None)  # where unittest's cases keep their exception
        seen = call.excinfo or (held[0] if held and call.when == "call" else None)
        if call.when == "call":
            self.raised = [self.raised[-1] if self.raised else seen.typename if seen else None]
        option, style = item.config.option, item.config.option.tbstyle
        if isinstance(self.index.get(item.nodeid), str):
            # Nobody reads a sentinel's traceback, and pytest parses whole files for each one.
            option.tbstyle = "line"
        try:
            report = yield
        finally:
            option.tbstyle = style
        if call.when == "call":
            self.reports.append(["raw", self.raised[0]])
            self.raised = []
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.nodeid != self.current:
            self.put("stray", id=report.nodeid)
            return
        # Subtests report under the id of their test, in addition to its own report.
        part = hasattr(report, "context") and type(report).__name__.lower() == "subtestreport"
        if not part:
            self.seconds += report.duration
            self.reports.append([report.when, report.outcome, hasattr(report, "wasxfail")])
        elif report.failed:
            self.reports.append(["subtest", "failed", False])
        if report.failed and len(self.text) < _TEXT:
            self.text = _bounded(
                self.text + "\n\n" + self.describe(report) if self.text else self.describe(report)
            )

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        name = self.index.get(nodeid, nodeid)
        self.put("test", i=name, reports=self.reports, text=self.text, seconds=round(self.seconds, 4))
        if self.watch is not None:
            self.watch.compare()
        self.current = None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.watch is not None:
            self.watch.compare()
            self.put("note", kind="watched", marks=sorted(self.watch.found))
        self.put("finish", exit=int(exitstatus), collected=session.testscollected)


class _Known(pytest.Module):
    """A module that was passed as a string, and is neither in a file nor in `sys.modules`."""

    def execute(self, text: str) -> None:
        """Execute the module before the tested code is imported, so that this code can't interfere."""
        self.obj = ModuleType(self.path.stem)
        tree = ast.parse(text)
        if self.config.getoption("assertmode") == "rewrite":
            rewrite_asserts(tree, text.encode(), str(self.path), self.config)
        exec(compile(tree, str(self.path), "exec", dont_inherit=True), vars(self.obj))

    def collect(self) -> Iterator[Any]:
        """Yield the module's tests by their own names, regardless of the repository's naming rules."""
        for name, value in vars(self.obj).items():
            if not name.startswith("test_"):
                continue
            if isinstance(value, type) and self.config.pluginmanager.has_plugin("unittest"):
                yield from UnitTestCase.from_parent(self, name=name, obj=value).collect()
            else:
                function = value("test_it").debug if isinstance(value, type) else value
                yield pytest.Function.from_parent(self, name=name, callobj=function)


class Registering:
    """A plugin that registers `plugin` while pytest is configured, under a name that can't be guessed.

    This happens after the first `conftest.py` has been loaded.
    """

    def __init__(self, plugin: object) -> None:
        self.plugin = plugin

    def pytest_configure(self, config: pytest.Config) -> None:
        setattr(_source, "ast", _undisturbed())  # noqa: B010 - a name that the module only imports
        config.pluginmanager.register(self.plugin, "results-" + os.urandom(8).hex())
        config.pluginmanager.unregister(self)


def begin() -> Registering:
    """Read the order, and open the pipe before the repository is imported; return a registering plugin."""
    order = taken_order()
    close_input()
    put = opened_channel(int(os.environ.pop("GISTPOINT_RESULTS")), order.pop("key"))
    put("begin")
    root = os.environ.pop("GISTPOINT_ROOT")
    # Started before the registration, because the watch has to see what the first conftest.py does.
    watch = watch_of(order, root) if order.get("watched") else None
    return Registering(Results(order, root, put, watch))


def _control_file(file: str) -> Any:
    """Return a module of the control folder that is not in `sys.modules`."""
    name = "_" + os.urandom(8).hex()
    return _loaded(importlib.util.spec_from_file_location(name, Path(__file__).with_name(file)))


def _undisturbed() -> ModuleType:
    """Return the `ast` with which pytest finds the lines of a failure, with a `parse` that retries.

    Python up to 3.12 counts the depth of a tree in one place for all threads: if a thread of the tested code
    dies with a traceback meanwhile, the whole session would end with `SystemError` (see
    `core/code/parsing.py`).
    """
    original = ast.parse

    def parse(*arguments: Any, **options: Any) -> Any:
        for _ in range(_TRIES):
            try:
                return original(*arguments, **options)
            except SystemError as error:
                if "recursion depth mismatch" not in str(error):
                    raise
        return original(*arguments, **options)

    shown = ModuleType("ast")
    vars(shown).update(vars(ast), parse=parse)
    return shown
