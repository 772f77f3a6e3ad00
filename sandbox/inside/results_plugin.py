"""pytest plugin that reports a run over a pipe, one JSON object a line; runs in the target's interpreter.

Serves pytest 8 and 9. `GISTPOINT_RUN` names the control file and is taken out of the environment at once. Records, each
with a sequence number `n`: `start`, `collect_error`, `items` (ids in chunks), `collected`, `run` (a test begins),
`test` (it ended: what it raised, as seen before any other plugin, and what was reported), `stray`, `note` (something
that other files of ours tell on this channel, of a `kind`), `finish`.
"""

from __future__ import annotations

import ast
import fcntl
import json
import os
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from _pytest._code import source as _source

_CHUNK = 40
_TEXT = 4000
_TRIES = 50


def _bounded(text: str) -> str:
    if len(text) <= _TEXT:
        return text
    return text[: _TEXT // 4] + "\n[...]\n" + text[-_TEXT * 3 // 4 :]


class Channel:
    """Writes records to the pipe, from this process alone."""

    def __init__(self, fd: int) -> None:
        # A high number that is closed on exec: programs that the tests start neither inherit nor stumble over it.
        self.fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
        os.close(fd)
        self.pid = os.getpid()
        self.number = 0
        self.lock = threading.Lock()
        self.getpid, self.write, self.dumps = os.getpid, os.write, json.dumps

    def put(self, event: str, **fields: Any) -> None:
        if self.getpid() != self.pid:
            return  # a fork of the tested code that went on into pytest
        with self.lock:
            self.number += 1
            line = self.dumps({"e": event, "n": self.number, **fields}).encode() + b"\n"
            while line:
                line = line[self.write(self.fd, line) :]


class Results:
    """One run's reporting."""

    def __init__(self, control: dict[str, Any], fd: int) -> None:
        self.channel = Channel(fd)
        self.root = control["root"].rstrip("/") + "/"
        self.real_root = os.path.realpath(control["root"]).rstrip("/") + "/"
        self.sentinels = control["sentinels"]
        self.select = control["select"]
        self.deselect = frozenset(control["deselect"])
        self.first = {id: place for place, id in enumerate(control["first"])}
        self.backwards = control["backwards"]
        self.files: frozenset[str] | None = None
        if self.select and not control["ids_in_arguments"]:
            self.files = frozenset(os.path.join(control["root"], id.partition("::")[0]) for id in self.select)
        self.index: dict[str, int | str] = {}
        self.current: str | None = None
        self.inside = False
        self.raised: list[str | None] = []
        self.reports: list[list[Any]] = []
        self.text = ""
        self.seconds = 0.0

    def relative(self, text: str) -> str:
        """Drop the workspace's own path from a text, and where Python lies on this machine."""
        for prefix in (sys.prefix, sys.base_prefix):
            text = text.replace(prefix.rstrip("/") + "/", "<python>/")
        for root in (self.real_root, self.root):
            text = text.replace(root, "").replace(root.rstrip("/"), ".")
        return text

    def location(self, longrepr: Any) -> str | None:
        """Return `path:line` of the innermost frame in the repository, else of the innermost one."""
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
        """Word a failure: where and what in the first line, then the short traceback."""
        longrepr: Any = report.longrepr
        location = self.location(longrepr)
        text = str(longrepr) if longrepr is not None else ""
        if location is not None:
            crash = str(getattr(getattr(longrepr, "reprcrash", None), "message", "")).split("\n")[0]
            text = f"{location}: {crash}\n\n{text}"
        return _bounded(self.relative(text))

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.channel.put("start", pytest=pytest.__version__)

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if self.files is not None and collection_path.suffix == ".py" and str(collection_path) not in self.files:
            return True
        return None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.channel.put("collect_error", id=report.nodeid, text=self.describe(report))

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
        if self.first:  # a stable sort: what is not named keeps its order behind what is
            items.sort(key=lambda item: self.first.get(item.nodeid, len(self.first)))
        if self.backwards:
            items.reverse()
        ids = [item.nodeid for item in items]
        for start in range(0, len(ids), _CHUNK):
            self.channel.put("items", ids=ids[start : start + _CHUNK])
        for id in ids:
            self.index.setdefault(id, len(self.index))
        sentinels = self.sentinel_items(session) if ids else []
        items.extend(sentinels)
        for item in sentinels:
            self.index[item.nodeid] = item.name
        self.channel.put("collected", count=len(ids), sentinels=len(sentinels))

    def sentinel_items(self, session: pytest.Session) -> list[Any]:
        """Collect the tests whose outcome is known beforehand; no fixture of the repository reaches them."""
        module = pytest.Module.from_parent(session, path=Path(self.sentinels))
        items = list(session.genitems(module))
        for item in items:
            names: list[str] = getattr(item, "fixturenames", [])
            names.clear()
        return items

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.current, self.raised, self.reports, self.text, self.seconds = nodeid, [], [], "", 0.0
        self.channel.put("run", i=self.index.get(nodeid, nodeid))

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
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        if self.inside:  # a subtest's own report
            return (yield)
        held = getattr(item, "_excinfo", None)  # where unittest's cases keep what they raised
        seen = call.excinfo or (held[0] if held and call.when == "call" else None)
        if call.when == "call":
            self.raised = [self.raised[-1] if self.raised else seen.typename if seen else None]
        report = yield
        if call.when == "call":
            self.reports.append(["raw", self.raised[0]])
            self.raised = []
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.nodeid != self.current:
            self.channel.put("stray", id=report.nodeid)
            return
        part = hasattr(report, "context") and type(report).__name__.lower() == "subtestreport"
        if not part:
            self.seconds += report.duration
            self.reports.append([report.when, report.outcome, hasattr(report, "wasxfail")])
        elif report.failed:
            self.reports.append(["subtest", "failed", False])
        if report.failed and len(self.text) < _TEXT:
            self.text = _bounded(self.text + "\n\n" + self.describe(report) if self.text else self.describe(report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        name = self.index.get(nodeid, nodeid)
        self.channel.put("test", i=name, reports=self.reports, text=self.text, seconds=round(self.seconds, 4))
        self.current = None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self.channel.put("finish", exit=int(exitstatus), collected=session.testscollected)


def _opened() -> Results | None:
    """Read the control file and take the pipe while nothing of the repository has been imported yet."""
    path = os.environ.pop("GISTPOINT_RUN", "")
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        control = json.load(file)
    control["root"] = os.environ.pop("GISTPOINT_ROOT")
    control["sentinels"] = os.path.join(os.path.dirname(path), control["sentinels"])
    return Results(control, int(os.environ.pop("GISTPOINT_RESULTS")))


def _undisturbed() -> ModuleType:
    """Return the `ast` by which pytest finds the lines of a failure, with a `parse` that is begun again.

    Python up to 3.12 counts the depth of a tree in one place for all threads: one of the tested code that dies with a
    traceback meanwhile would end the whole session with `SystemError` (see `core/code/parsing.py`).
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


setattr(_source, "ast", _undisturbed())  # noqa: B010 - a name that the module only imports
results = _opened()


def pytest_configure(config: pytest.Config) -> None:
    """Register under a name that nothing can guess."""
    if results is not None:
        config.pluginmanager.register(results, "results-" + os.urandom(8).hex())
