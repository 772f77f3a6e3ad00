"""The simulation of a kind of task: calls that read code, right and wrong submissions, and scripted runs.

Everything but the clock and the runs is real: calls are answered from the task's own tree, and texts are
scored by the kind's own rules. The defaults serve a kind whose answer has `expected` parts and whose suite
judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any, Protocol

from gistpoint.core.code.index import DefinitionKind, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.draws import uniform
from gistpoint.core.outcomes import BackendRecord, Outcome, RunStatus, SuiteReport, TestResult
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tools.browsing import BROWSING
from gistpoint.core.tools.declaration import ArgumentKind, named
from gistpoint.core.trees import SourceTree

if TYPE_CHECKING:
    from gistpoint.core.attempts.harness import TaskJudge
    from gistpoint.core.ports import RunRequest
    from gistpoint.core.tasks.budgets import Budgets
    from gistpoint.core.tasks.model import Answer, Baseline, Task
    from gistpoint.core.tools.declaration import Tool

BACKEND = BackendRecord("simulated", "1", isolated=True)
"""The backend recorded for simulated runs; they count as isolated, because nothing is executed."""


class SimulatedTime:
    """A clock that moves only when it is advanced; a `core.ports.TimeSource`."""

    def __init__(self, utc_ms: int, boot: str) -> None:
        self._utc_ms = utc_ms
        self._mono_ms = 0
        self._boot = boot

    def utc_ms(self) -> int:
        """Return the milliseconds since the epoch."""
        return self._utc_ms

    def mono_ms(self) -> int:
        """Return the milliseconds since the clock was made."""
        return self._mono_ms

    def boot_id(self) -> str:
        """Return the name of the simulated machine."""
        return self._boot

    def advance(self, milliseconds: int) -> None:
        """Move the clock forward."""
        self._utc_ms += milliseconds
        self._mono_ms += milliseconds


@dataclass
class ScriptedRunner:
    """A runner that reports suite runs without running anything; `right` determines their outcome."""

    task: Task
    suite: Baseline
    clock: SimulatedTime | None = None
    right: bool = False
    near: float = 0.0
    """The share of the failing tests that a wrong submission repairs."""

    backend = BACKEND

    def next(self, clock: SimulatedTime, *, right: bool, near: float = 0.0) -> None:
        """Set the outcome of the next submission, and the clock that its run advances."""
        self.clock = clock
        self.right = right
        self.near = near

    def runner_for(self, task: Task, /) -> ScriptedRunner:
        """Return the runner itself, as a runner of suites."""
        return self

    def entrypoints_for(self, task: Task, /) -> Any:
        """Return the runner itself, for kinds that run single commands."""
        return self

    def run(self, request: RunRequest, *, run: RunContext = UNATTENDED) -> SuiteReport:
        """Return a finished run of the suite; unless `right`, at least one failing test still fails."""
        failing = sorted(self.suite.failing)
        left = 0 if self.right else max(1, ceil((1 - self.near) * len(failing)))
        lost = set(failing[len(failing) - left :])
        results = {}
        for id in sorted(self.suite.collected):
            if id in lost:
                results[id] = TestResult(id, Outcome.FAILED, 0.0, "AssertionError: a simulated failure")
            else:
                results[id] = TestResult(id, Outcome.PASSED if id in self.suite.passed else Outcome.SKIPPED)
        return SuiteReport(
            RunStatus.FINISHED, results, seconds=self.took(self.task.suite.seconds), backend=BACKEND
        )

    def took(self, seconds: float) -> float:
        """Advance the clock by the duration of a run, and return that duration in seconds."""
        if self.clock is not None:
            self.clock.advance(round(seconds * 1000))
        return seconds


class Simulable(Protocol):
    """The part of `TaskKind` that a scene needs."""

    def tools_of(self, task: Task, budgets: Budgets, /) -> tuple[Tool, ...]:
        """Return the tools with which an attempt begins."""
        ...

    def expected(self, task: Task, answer: Answer, /) -> tuple[Any, ...]:
        """Return the parts that a solver has to write."""
        ...

    def judge(self, task: Task, answer: Answer, runners: Any, /) -> Any:
        """Return the judge of a task."""
        ...


@dataclass(frozen=True)
class Scene:
    """A task for simulated solvers: exploratory calls, right and wrong submissions, and the task's judge."""

    kind: Simulable
    task: Task
    answer: Answer

    @property
    def searched(self) -> bool:
        """Whether solvers have to find what is to be changed; by default, the brief names it."""
        return False

    @property
    def suite(self) -> Baseline:
        """The baseline of the suite; by default, the answer's baseline."""
        return self.answer.baselines[0]

    @cached_property
    def runner(self) -> ScriptedRunner:
        """The runner that replaces the sandbox."""
        return ScriptedRunner(self.task, self.suite)

    @cached_property
    def judge(self) -> TaskJudge:
        """The kind's own judge, with scripted runs."""
        judge: TaskJudge = self.kind.judge(self.task, self.answer, self.runner)
        return judge

    @cached_property
    def right(self) -> tuple[tuple[str, str], ...]:
        """The names and code that solve the task.

        Empty if the answer has none, so that the task can't be simulated.
        """
        return tuple((part.name, part.right) for part in self.kind.expected(self.task, self.answer))

    @cached_property
    def tree(self) -> SourceTree:
        """The tree that solvers see."""
        return SourceTree.open(self.task.tree_path)

    @cached_property
    def functions(self) -> tuple[tuple[str, str], ...]:
        """The functions with unique names, as pairs of path and qualname; test functions come last."""
        found = list[tuple[str, str]]()
        for path in sorted(self.tree.files(".py"), key=lambda path: (self.is_test(path), path)):
            found += [(path, name) for name in _functions_in(path, self.tree.read(path))]
        return tuple(found)

    def is_test(self, path: str) -> bool:
        """Return whether a file belongs to the tests."""
        return is_protected(path, frozenset(self.task.suite.test_files))

    @cached_property
    def _wrong_texts(self) -> dict[tuple[bool, int], tuple[str, str]]:
        return {}

    def wrong(self, number: int, *, finds: bool) -> tuple[str, str]:
        """Return the name and text of a failing submission, which differs from earlier ones.

        With `finds`, the submission at least targets the part to be changed.
        """
        if (finds, number) not in self._wrong_texts:
            self._wrong_texts[finds, number] = self._wrong(number, finds=finds)
        return self._wrong_texts[finds, number]

    def _wrong(self, number: int, *, finds: bool) -> tuple[str, str]:
        name, text = self.right[0]
        return name, f"{text}\nattempted = {number}\n"

    def submission(self, name: str, text: str) -> tuple[Tool, dict[str, str]]:
        """Return the tool that submits, with its arguments."""
        tool = next(tool for tool in self.kind.tools_of(self.task, self.task.budgets) if tool.submits)
        path, _, qualname = name.partition("::")
        parts = {ArgumentKind.CODE: text, ArgumentKind.FUNCTION: qualname, ArgumentKind.FILE: path}
        return tool, {argument.name: parts[argument.kind] for argument in tool.arguments}

    def handing_in(self, name: str, text: str) -> tuple[tuple[str, dict[str, str]], ...]:
        """Return the calls by which a model submits code: the name of each tool, with its arguments."""
        tool, arguments = self.submission(name, text)
        return ((tool.name, arguments),)

    def look(self, number: int, looks: int, *about: object, finds: bool) -> tuple[str, dict[str, str]]:
        """Return exploratory call `number`, counted from 0, of `looks`: the tool's name and its arguments.

        With `finds`, the solver finds the part to be changed; `about` makes the choice reproducible.
        """
        if number == 0:
            return _LIST, {"path": ""}
        targets = [tuple(name.partition("::")[::2]) for name, _ in self.right if "::" in name]
        # A solver who finds the part to be changed reads it from the third look on, or at the last one.
        place = max(0, number - 2)
        is_found = finds and number >= min(2, looks - 1)
        if is_found and 0 < len(targets) > number - 2:
            path, name = targets[place]
            return _READ_FUNCTION, {"function_name": name, "file_path": path}
        return self._look_elsewhere(number, targets, *about)

    def _look_elsewhere(
        self, number: int, targets: Sequence[tuple[str, ...]], *about: object
    ) -> tuple[str, dict[str, str]]:
        """Return a call that looks at a random function, but not at targets that have to be found."""
        others = [known for known in self.functions if known not in targets or not self.searched]
        if not others:
            return _LIST, {"path": ""}
        path, name = others[int(uniform(*about, "look", number) * len(others))]
        # Of ten calls, two search, one lists functions, one reads a file, and the others read a function.
        tool = int(uniform(*about, "tool", number) * 10)
        holds_target = path in [target[0] for target in targets]
        if tool < 2:
            return _SEARCH, {"pattern": name.rpartition(".")[2]}
        if tool < 3:
            return _LIST_FUNCTIONS, {"file_path": path}
        if tool < 4 and not holds_target:
            return _READ_FILE, {"file_path": path}
        return _READ_FUNCTION, {"function_name": name, "file_path": path}


_LIST, _LIST_FUNCTIONS, _READ_FILE, _READ_FUNCTION, _SEARCH = (
    named(BROWSING, name).name
    for name in ("list_directory", "list_file_functions", "read_file", "read_function", "search_code")
)


@lru_cache(maxsize=4096)
def _functions_in(path: str, source: bytes) -> tuple[str, ...]:
    """Return the unique names of functions in a file; empty if it does not parse.

    They are cached, because tasks share most files.
    """
    try:
        index = index_source(path, source)
    except CodeError:
        return ()
    found = [(d.ref.qualname.partition("#")[0], d.kind) for d in index.definitions]
    counts = Counter(name for name, _ in found)
    functions = [name for name, kind in found if kind is not DefinitionKind.CLASS]
    return tuple(name for name in functions if counts[name] == 1)
