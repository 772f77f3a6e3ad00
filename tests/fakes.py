"""Fakes of the outside parts that the core and the screens use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from gistpoint.core.callgraph import ObservedCall
from gistpoint.core.code.testmap import TestMap
from gistpoint.core.errors import RecordingError
from gistpoint.core.outcomes import BackendRecord, Outcome, RunStatus, SuiteReport, TestResult
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.trees import SourceTree

Check = Callable[[Mapping[str, object]], None]


class FakeClock:
    """A clock that moves only on request."""

    def __init__(
        self, utc_ms: int = 1_790_000_000_000, mono_ms: int = 5_000_000, boot: str = "boot-1"
    ) -> None:
        self._utc, self._mono, self.boot = utc_ms, mono_ms, boot

    def utc_ms(self) -> int:
        return self._utc

    def mono_ms(self) -> int:
        return self._mono

    def boot_id(self) -> str:
        return self.boot

    def advance(self, ms: int) -> None:
        self._utc += ms
        self._mono += ms


@dataclass
class FakeRunner:
    """Runs checks in this process; each is called with the names that the tree's modules define."""

    checks: Mapping[str, Check]
    backend: BackendRecord = field(default_factory=lambda: BackendRecord("fake", "1", isolated=True))
    gate: threading.Event | None = None
    """If given, a run waits after its first test until this is set or the run is cancelled."""
    status: RunStatus = RunStatus.FINISHED
    runs: int = 0

    def run(
        self,
        request: RunRequest,
        *,
        run: RunContext = UNATTENDED,
    ) -> SuiteReport:
        self.runs += 1
        if self.status is not RunStatus.FINISHED:
            return SuiteReport(self.status, reason="As the test wants it.", backend=self.backend)
        results: dict[str, TestResult] = {}
        names = loaded(request.tree)
        total = len(self.checks)
        for done, (id, check) in enumerate(self.checks.items(), start=1):
            results[id] = _result(id, check, names)
            run.progress(RunProgress("running", done, total, results[id]))
            while self.gate is not None and not self.gate.wait(0.01):
                if run.cancel.cancelled:
                    return SuiteReport(RunStatus.CANCELLED, backend=self.backend)
        return SuiteReport(RunStatus.FINISHED, results, seconds=0.1, backend=self.backend)


@dataclass
class FakeMapper:
    """Reports that every test enters the given functions, or that the suite can't be watched."""

    functions: tuple[str, ...] = ()
    watchable: bool = True
    runs: int = 0

    def record(
        self,
        tree: SourceTree,
        environment: EnvironmentPins,
        ids: Collection[str],
        *,
        run: RunContext = UNATTENDED,
    ) -> tuple[TestMap, tuple[ObservedCall, ...]]:
        self.runs += 1
        if not self.watchable:
            raise RecordingError("The watched run of the suite did not finish.")
        return TestMap({name: frozenset(ids) for name in self.functions}), ()


def _result(id: str, check: Check, names: Mapping[str, object]) -> TestResult:
    try:
        check(names)
    except Exception as error:
        return TestResult(id, Outcome.FAILED, 0.01, f"{type(error).__name__}: {error}")
    return TestResult(id, Outcome.PASSED, 0.01)


def loaded(tree: SourceTree) -> dict[str, object]:
    """Execute all modules of the tree except tests in one namespace, and return the defined names."""
    names: dict[str, object] = {}
    for path in tree.files(".py"):
        if not path.startswith(("tests/", "test_")):
            exec(compile(tree.read(path), path, "exec"), names)
    return names
