"""Recording which tests run which functions: one run of the suite in isolation, watched from inside."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gistpoint.core.callgraph.graph import CodePlace, ObservedCall
from gistpoint.core.code.index import Definition, Kind, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.errors import CancelledError, RecordingError
from gistpoint.core.generation.testmap import TestMap
from gistpoint.core.ports import EnvironmentPins, RunProgress
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Invocation, Places, Stop
from gistpoint.sandbox.limits import Limits
from gistpoint.sandbox.sealing import handed_over
from gistpoint.sandbox.testruns import Environments, fill_control, invoke_pytest, tools_of
from gistpoint.sandbox.workspaces import lay_out, run_folder

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken


class Functions:
    """The functions of a tree by place: all those between whose first and last line a code object starts."""

    def __init__(self, tree: SourceTree, test_files: frozenset[str]) -> None:
        self._tree = tree
        self._test_files = test_files
        self._files: dict[str, tuple[Definition, ...]] = {}
        self._places: dict[tuple[str, int], tuple[str, ...]] = {}

    def at(self, path: str, line: int, qualname: str) -> tuple[str, ...]:
        """Return the names of the functions, outermost first; none for the top level of a module."""
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
                found = tuple(d for d in definitions if d.kind is not Kind.CLASS)
            self._files[path] = found
        return self._files[path]


@dataclass
class Records:
    """The records of one watched run, taken as they come; the keys of a record are those of the plugin."""

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
        """Take one line. Raises `ValueError` or `KeyError` for what the plugin does not write."""
        record: dict[str, Any] = json.loads(line)
        match record["e"]:
            case "collected":
                self.collected = int(record["count"])
            case "test":
                self.tests[str(record["id"])] = self.tests.get(str(record["id"]), 0.0) + float(record["seconds"])
            case "codes":
                self._codes += [(str(path), int(first), str(name)) for path, first, name in record["rows"]]
            case "entered":
                self._entered.append((str(record["id"]), [int(code) for code in record["codes"]]))
            case "imported":
                self._imported += [(int(code), str(file)) for code, file in record["rows"]]
            case "children":
                self._children += [
                    (str(test), str(path), int(at), str(name)) for test, path, at, name in record["rows"]
                ]
            case "opaque":
                self._opaque += [str(test) for test in record["rows"]]
            case "calls":
                self._calls += [
                    ObservedCall(CodePlace(a, int(b), c), CodePlace(d, int(e), f), int(count))
                    for a, b, c, d, e, f, count in record["rows"]
                ]
            case "finish":
                self.finished = True

    def calls(self) -> tuple[ObservedCall, ...]:
        """Return which code called which."""
        return tuple(self._calls)

    def test_map(self, tree: SourceTree, seconds: float) -> TestMap:
        """Return the test map of a run on `tree` that took so long."""
        test_files = frozenset(id.partition("::")[0] for id in self.tests)
        functions = Functions(tree, test_files)
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


TIMEOUT_S = 900.0
_RESULTS = 1 << 30
_FILES = {
    "gistpoint_entries.py": "entries_plugin.py",
    "gistpoint_results.py": "results_plugin.py",
    "gistpoint_calls.py": "calltrace.py",
    "sitecustomize.py": "child_entries.py",
}


class SuiteTestMapper:
    """Records test maps on one backend; implements `gistpoint.core.ports.TestMapper`."""

    def __init__(
        self,
        backend: Backend,
        environments: Environments,
        limits: Limits | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._backend = backend
        self._environments = environments
        self._limits = replace(limits or Limits(), results=_RESULTS)
        self._timeout_s = timeout_s

    def record(
        self,
        tree: SourceTree,
        environment: EnvironmentPins,
        ids: Collection[str],
        *,
        on_progress: Callable[[RunProgress], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> tuple[TestMap, tuple[ObservedCall, ...]]:
        """Run the tests `ids`, in the order of the suite, and return what they entered and called.

        Raises `RecordingError`, `CancelledError`, and `EnvironmentBuildError` where there is no environment to run in.
        """
        tell = on_progress or (lambda progress: None)
        tell(RunProgress("preparing"))
        built = self._environments.get(environment, self._backend, cancel=cancel)
        records = Records()

        def on_line(line: bytes) -> None:
            before = len(records.tests)
            records.feed(line)
            if len(records.tests) != before:
                tell(RunProgress("running", len(records.tests), records.collected))

        with run_folder() as base, handed_over({"ids": sorted(ids)}) as order:
            lay_out(tree, base / "tree")
            program = fill_control(base / "control", environment, _FILES)

            def invocation(places: Places) -> Invocation:
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
            tell(RunProgress("collecting"))
            ended = self._backend.run(command, on_line=on_line, cancel=cancel)
        _require_finished(records, ended)
        tell(RunProgress("finished", len(records.tests), records.collected))
        return records.test_map(tree, round(ended.seconds, 3)), records.calls()


def _require_finished(records: Records, ended: Ended) -> None:
    if ended.stop is Stop.CANCELLED:
        raise CancelledError("Stopped at your request.")
    if not records.finished:
        last = next(reversed(records.tests), "")
        raise RecordingError(
            f"The watched run of the suite did not come to its end: {ended.stop} behind {len(records.tests)} of "
            f"{records.collected} tests{', the last one ' + last if last else ''}. {ended.reason}".strip(),
            hint=ended.output[-2000:],
        )
