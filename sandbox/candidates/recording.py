"""Records which tests run which functions, in one isolated run of the suite that is observed from inside."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

import msgspec

from gistpoint.core.callgraph import CodeLocation, ObservedCall
from gistpoint.core.code.index import Definition, DefinitionKind, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.code.testmap import TestMap
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import CancelledError, RecordingError
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.tasks.repository import MAX_SUITE_SECONDS
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Invocation, Stop
from gistpoint.sandbox.layout import MountPaths, lay_out, run_folder
from gistpoint.sandbox.limits import RunLimits
from gistpoint.sandbox.sealing import handed_over
from gistpoint.sandbox.testruns import EnvironmentSource, invoke_pytest, pytest_control, tools_of


class FunctionIndex:
    """The functions of a tree by position; code belongs to all functions that contain its first line."""

    def __init__(self, tree: SourceTree, test_files: frozenset[str]) -> None:
        self._tree = tree
        self._test_files = test_files
        self._files: dict[str, tuple[Definition, ...]] = {}
        self._places: dict[tuple[str, int], tuple[str, ...]] = {}

    def at(self, path: str, line: int, qualname: str) -> tuple[str, ...]:
        """Return the names of the functions that code belongs to, outermost first.

        The result is empty for the top level of a module, and for files that are protected or can't be
        parsed.
        """
        # Recognised by its name, because a function may also begin on line 1, where a module's code begins.
        if qualname == "<module>":
            return ()
        known = self._places.get((path, line))
        if known is None:
            found = [str(d.ref) for d in self._of_file(path) if d.start_line <= line <= d.end_line]
            known = self._places[path, line] = tuple(found)
        return known

    def _of_file(self, path: str) -> tuple[Definition, ...]:
        if path not in self._files:
            found: tuple[Definition, ...] = ()
            if self._tree.is_file(path) and not is_protected(path, self._test_files):
                try:
                    definitions = index_source(path, self._tree.read(path)).definitions
                except CodeError:
                    definitions = ()
                found = tuple(d for d in definitions if d.kind is not DefinitionKind.CLASS)
            self._files[path] = found
        return self._files[path]


class _Record(msgspec.Struct, tag_field="e", tag=lambda name: name[1:].lower()):
    """A record of `payload/entries_plugin.py`, whose docstring describes all kinds."""


class _Collected(_Record):
    count: int


class _Test(_Record):
    id: str
    seconds: float


class _Codes(_Record):
    rows: list[tuple[str, int, str]]


class _Entered(_Record):
    id: str
    codes: list[int]


class _Imported(_Record):
    rows: list[tuple[int, str]]


class _Children(_Record):
    rows: list[tuple[str, str, int, str]]


class _Opaque(_Record):
    rows: list[str]


class _Calls(_Record):
    rows: list[tuple[str, int, str, str, int, str, int]]


class _Finish(_Record):
    pass


_AnyRecord = _Collected | _Test | _Codes | _Entered | _Imported | _Children | _Opaque | _Calls | _Finish


@dataclass
class Records:
    """The records of one observed run, as they arrive."""

    collected: int = 0
    tests: dict[str, float] = field(default_factory=dict)
    finished: bool = False
    _codes: list[tuple[str, int, str]] = field(default_factory=list)
    _entered: list[tuple[str, list[int]]] = field(default_factory=list)
    _imported: list[tuple[int, str]] = field(default_factory=list)
    _children: list[tuple[str, str, int, str]] = field(default_factory=list)
    _opaque: list[str] = field(default_factory=list)
    _calls: list[ObservedCall] = field(default_factory=list)

    def feed(self, line: bytes) -> None:
        """Take one line. Raises `RecordingError` if it is not a record of the plugin."""
        try:
            record = msgspec.convert(json.loads(line), decodable(_AnyRecord))
        except (ValueError, RecursionError) as error:
            raise RecordingError(
                "A line of the watched run's result pipe is not a record.", hint=str(error)
            ) from None
        match record:
            case _Collected(count):
                self.collected = count
            case _Test(id, seconds):
                # Several tests may share an id; they are selected together, so their times are added.
                self.tests[id] = self.tests.get(id, 0.0) + seconds
            case _Codes(rows):
                self._codes += rows
            case _Entered(id, codes):
                self._entered.append((id, codes))
            case _Imported(rows):
                self._imported += rows
            case _Children(rows):
                self._children += rows
            case _Opaque(rows):
                self._opaque += rows
            case _Calls(rows):
                self._calls += [
                    ObservedCall(CodeLocation(*row[:3]), CodeLocation(*row[3:6]), row[6]) for row in rows
                ]
            case _Finish():
                self.finished = True

    def calls(self) -> tuple[ObservedCall, ...]:
        """Return the observed calls between functions."""
        return tuple(self._calls)

    def test_map(self, tree: SourceTree, seconds: float) -> TestMap:
        """Return the test map of the run, which was on `tree` and took `seconds`."""
        test_files = frozenset(id.partition("::")[0] for id in self.tests)
        functions = FunctionIndex(tree, test_files)
        of_code = [functions.at(*place) for place in self._codes]
        entered: dict[str, set[str]] = {}
        for test, codes in self._entered:
            for name in {name for code in codes for name in of_code[code]}:
                entered.setdefault(name, set()).add(test)
        for test, path, line, qualname in self._children:
            for name in functions.at(path, line, qualname) if test in self.tests else ():
                entered.setdefault(name, set()).add(test)
        importers: dict[str, set[str]] = {}
        for code, file in self._imported:
            for name in of_code[code]:
                importers.setdefault(name, set()).add(file)
        return TestMap(
            entered={name: frozenset(tests) for name, tests in sorted(entered.items())},
            at_import=frozenset(importers),
            seconds=seconds,
            tests=dict(self.tests),
            collecting=_frozen((name, files) for name, files in importers.items() if files <= test_files),
            opaque=frozenset(self._opaque),
        )


def _frozen(items: Iterable[tuple[str, set[str]]]) -> dict[str, frozenset[str]]:
    return {name: frozenset(values) for name, values in items}


SLOWER = 15
"""The multiple of the suite's time that a recorded run may take."""
TIMEOUT_S = SLOWER * MAX_SUITE_SECONDS
_RESULTS = 1 << 30
_FILES = {
    "gistpoint_entries.py": "entries_plugin.py",
    "gistpoint_results.py": "results_plugin.py",
    "gistpoint_calls.py": "calltrace.py",
    "sitecustomize.py": "child_entries.py",
}


class SuiteTestMapper:
    """A recorder of test maps on one backend; implements `gistpoint.core.ports.TestMapper`."""

    def __init__(
        self,
        backend: Backend,
        environments: EnvironmentSource,
        limits: RunLimits | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._backend = backend
        self._environments = environments
        self._limits = replace(limits or RunLimits(), results=_RESULTS)
        self._timeout_s = timeout_s

    def record(
        self,
        tree: SourceTree,
        environment: EnvironmentPins,
        ids: Collection[str],
        *,
        run: RunContext = UNATTENDED,
    ) -> tuple[TestMap, tuple[ObservedCall, ...]]:
        """Run the tests `ids`, in the order of the suite; return the entered functions and the calls.

        Raises `RecordingError` if the run does not finish or reports anything that is not a record,
        `EnvironmentBuildError` if there is no environment to run in, and `CancelledError` if stopped.
        """
        run.progress(RunProgress("preparing"))
        built = self._environments.get(environment, self._backend, cancel=run.cancel)
        records = Records()

        def on_line(line: bytes) -> None:
            before = len(records.tests)
            records.feed(line)
            if len(records.tests) != before:
                run.progress(RunProgress("running", len(records.tests), records.collected))

        with run_folder() as base, handed_over({"ids": sorted(ids)}) as order:
            lay_out(tree, base / "tree")
            program = pytest_control(base / "control", environment, _FILES)

            def invocation(places: MountPaths) -> Invocation:
                return invoke_pytest(places, environment, program, "gistpoint_entries.py")

            command = Command(
                tree=base / "tree",
                environment=built,
                invocation=invocation,
                timeout_s=self._timeout_s,
                folders={"control": base / "control"},
                limits=self._limits,
                shows=tools_of(environment, built),
                requests=order,
            )
            run.progress(RunProgress("collecting"))
            ended = self._backend.run(command, on_line=on_line, cancel=run.cancel)
        # A map of half a suite would look complete, and later probes would miss tests (decision 36).
        _require_finished(records, ended)
        run.progress(RunProgress("finished", len(records.tests), records.collected))
        return records.test_map(tree, round(ended.seconds, 3)), records.calls()


def _require_finished(records: Records, ended: Ended) -> None:
    if ended.stop is Stop.CANCELLED:
        raise CancelledError("Stopped at your request.")
    if not records.finished:
        last = next(reversed(records.tests), "")
        raise RecordingError(
            f"The watched run of the suite did not finish: {ended.stop} after {len(records.tests)} of"
            f" {records.collected}"
            f" tests{(', the last one ' + last if last else '')}. {ended.reason}".strip(),
            hint=ended.output[-2000:],
        )
