"""A tiny gist task, and fakes of the runner and the judge of gists."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from builders import GOOD, write_files
from fakes import FakeClock
from recorders import Memory

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import Enrolment, Role
from gistpoint.core.entrypoints.command import Entrypoint
from gistpoint.core.entrypoints.runs import (
    CommandOutput,
    GistTrial,
    Isolation,
    OriginalRun,
    Raised,
    TestRun,
    TestsRun,
)
from gistpoint.core.errors import CancelledError, InfrastructureError
from gistpoint.core.kinds.folder import read_answer, read_task, write_task
from gistpoint.core.kinds.gist.answer import GistAnswer, ReferenceGist, gist_answer
from gistpoint.core.kinds.gist.brief import gist_template
from gistpoint.core.kinds.gist.judge import GistJudging
from gistpoint.core.kinds.gist.model import GistSettings, GistTask
from gistpoint.core.kinds.gist.original_test import GistTest, splice_test
from gistpoint.core.kinds.gist.rates import Originals
from gistpoint.core.kinds.gist.score import GistJudgement, GistRun, score_gist
from gistpoint.core.kinds.gist.trace import Difficulty
from gistpoint.core.outcomes import BackendRecord, Outcome, RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import NEVER, UNATTENDED, CancelToken, RunContext, RunProgress
from gistpoint.core.tasks.brief import template_sha256
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.identity import hash_of_ids, task_id
from gistpoint.core.tasks.model import Answer, Brief, Mode, Source, Suite, Task
from gistpoint.core.trees import SourceTree

TEST = """def test_total():
    basket = Basket()
    basket.add("apple", 30, 2)
    assert basket.total(50) == 30
    print("done")
"""
FILES = {**GOOD, "tests/test_prices.py": f"from shop.prices import Basket\n\n\n{TEST}"}
ENTRYPOINT = "pytest tests/test_prices.py::test_total"
OWNED = ("shop",)
FAITHFUL = f'''def discount(price, percent):
    """Return the price with a percentage taken off."""
    return price - price * percent // 100


class Basket:
    """Things that someone buys."""

    def __init__(self):
        self.items = []

    def add(self, name, price, count=1):
        """Put something into the basket."""
        self.items.append((name, price, count))

    def total(self, percent=0):
        """Return what all of it costs, with a discount."""
        return discount(sum(price * count for _, price, count in self.items), percent)


{TEST}'''
WRONG = FAITHFUL.replace("price - price", "price + price")
IMPORTING = f"from shop.prices import Basket\n\n\n{TEST}"
TRACE: Mapping[str, Any] = {
    "format": "gistpoint.trace",
    "version": 1,
    "calls": 5,
    "depth": 3,
    "files": ["tests/test_prices.py", "shop/prices.py"],
    "modules": {"tests/test_prices.py": "test_prices", "shop/prices.py": "shop.prices"},
    "functions": [
        {"path": "tests/test_prices.py", "qualname": "test_total", "line": 4, "calls": 1, "run": True},
        {"path": "shop/prices.py", "qualname": "Basket.__init__", "line": 12, "calls": 1, "run": True},
        {"path": "shop/prices.py", "qualname": "discount", "line": 4, "calls": 1, "run": True},
    ],
    "lines": {"tests/test_prices.py": [1, 4, 5], "shop/prices.py": [4, 6, 12]},
    "order": [["shop/prices.py", 4], ["shop/prices.py", 0]],
}
ORIGINAL = TestsRun(
    RunStatus.FINISHED, {"tests/test_prices.py::test_total": TestRun(Outcome.PASSED, "done\n")}
)


def build_gist_task(
    root: Path,
    settings: GistSettings | None = None,
    *,
    budgets: Budgets | None = None,
    files: Mapping[str, str] | None = None,
    demo: bool = False,
    environment: EnvironmentPins | None = None,
    library: str = "shop",
) -> Task:
    """Write a gist task for a test of the shop, and read it back."""
    settings = settings or GistSettings(OWNED)
    folder = root / f"gist-{len(list(root.glob('*')) if root.is_dir() else [])}"
    tree_sha256 = write_files(files or FILES, folder)
    template = gist_template(settings)
    ids, environment = hash_of_ids(ORIGINAL.tests), environment or EnvironmentPins()
    source = Source("sdist", library, "1.0")
    identity = task_id(
        mode=Mode.GIST,
        source_name=source.name,
        source_revision=source.revision,
        tree_sha256=tree_sha256,
        targets=(),
        lock=(),
        ids_sha256=ids,
        of_kind={"entrypoint": ENTRYPOINT},
        image=environment.image,
    )
    task = Task(
        id=identity,
        mode=Mode.GIST,
        source=source,
        tree_sha256=tree_sha256,
        brief=Brief(template, template_sha256(template), (), test=TEST if settings.give_test else ""),
        suite=Suite(1, ids, 0.1, 30.0, test_files=("tests/test_prices.py",)),
        environment=environment,
        budgets=budgets or Budgets.of_steps(),
        of_kind=GistTask(ENTRYPOINT, settings),
        demo=demo,
        folder=folder,
    )
    answer = GistAnswer(
        originals=(ORIGINAL, ORIGINAL, ORIGINAL),
        owned=OWNED,
        modules=("shop.prices",),
        trace=TRACE,
        difficulty=Difficulty(5, 2, 1, 3, 0.5),
        test=GistTest("test_total", FILES["tests/test_prices.py"]),
        seconds=0.1,
        reference=ReferenceGist(FAITHFUL, True, 100.0, 98.5, "executed", "", 1.5),
    )
    write_task(task, Answer((), (), of_kind=answer))
    return read_task(folder)


@dataclass
class FakeEntrypoints:
    """Runs gists in this process, and counts all their lines as run; commands do nothing."""

    backend: BackendRecord = field(default_factory=lambda: BackendRecord("fake", "1", isolated=True))
    runs: int = 0
    fails: bool = False
    """Whether the harness fails."""
    gate: threading.Event | None = None
    """If given, a run waits until this is set or the run is cancelled."""

    def tests(
        self, tree: SourceTree, environment: EnvironmentPins, *, timeout_s: float, cancel: CancelToken = NEVER
    ) -> tuple[str, ...]:
        return tuple(ORIGINAL.tests)

    def run_original(
        self,
        tree: SourceTree,
        environment: EnvironmentPins,
        entrypoint: Entrypoint,
        *,
        timeout_s: float,
        trace: bool = False,
        elsewhere: bool = False,
        hash_seed: int = 0,
        cancel: CancelToken = NEVER,
    ) -> OriginalRun:
        self._wait(cancel)
        return OriginalRun(ORIGINAL, 0.1, trace=TRACE if trace else None)

    def run_gist(
        self,
        text: str,
        environment: EnvironmentPins,
        entrypoint: Entrypoint,
        *,
        owned: Collection[str],
        timeout_s: float,
        forbidden: Collection[str] = (),
        measure_lines: bool = True,
        hash_seed: int = 0,
        cancel: CancelToken = NEVER,
        **_: Any,
    ) -> GistTrial:
        self._wait(cancel)
        refused = tuple(name for name in owned if f"from {name}" in text or f"import {name}" in text)
        if refused:
            raised = Raised("ImportError", f"{refused[0]} can't be imported")
            return GistTrial(TestsRun(RunStatus.FINISHED, {}, raised, Isolation(refused)), 0.1)
        run = _run(text, entrypoint)
        lines = frozenset(range(1, len(text.splitlines()) + 1)) if measure_lines else frozenset()
        return GistTrial(run, 0.1, lines)

    def run_command(
        self,
        command: str,
        environment: EnvironmentPins,
        *,
        execution: bool,
        timeout_s: float,
        tree: SourceTree | None = None,
        files: Mapping[str, str] | None = None,
        cancel: CancelToken = NEVER,
    ) -> CommandOutput:
        self._wait(cancel)
        if not execution and command.startswith(("python", "pytest")):
            return CommandOutput("", None, 0.0, refused="Execution is off: there is no interpreter.")
        sizes = ", ".join(f"{name} of {len(text)}" for name, text in (files or {}).items())
        return CommandOutput(f"ran {command} beside {sizes}\n", 0, 0.1)

    def _wait(self, cancel: CancelToken) -> None:
        self.runs += 1
        if self.fails:
            raise InfrastructureError("The sandbox is gone.")
        while self.gate is not None and not self.gate.wait(0.01):
            if cancel.cancelled:
                raise CancelledError("It was stopped.")


def _run(text: str, entrypoint: Entrypoint) -> TestsRun:
    names: dict[str, Any] = {"__name__": "test_gist"}
    try:
        exec(compile(text, "test_gist.py", "exec"), names)
    except Exception as error:
        return TestsRun(RunStatus.FINISHED, {}, Raised(type(error).__name__, str(error)))
    test: Callable[[], None] | None = names.get(entrypoint.qualname)
    if test is None:
        return TestsRun(RunStatus.FINISHED)
    printed, id = io.StringIO(), f"test_gist.py::{entrypoint.qualname}"
    try:
        with contextlib.redirect_stdout(printed):
            test()
    except Exception as error:
        failed = TestRun(
            Outcome.FAILED, printed.getvalue(), "", Raised(type(error).__name__, str(error)), "call"
        )
        return TestsRun(RunStatus.FINISHED, {id: failed})
    return TestsRun(RunStatus.FINISHED, {id: TestRun(Outcome.PASSED, printed.getvalue())})


@dataclass(frozen=True)
class FakeGistJudge(GistJudging):
    """Scores a single run of the fake runner with the real formulas."""

    def judge(
        self,
        gist: str,
        *,
        run: RunContext = UNATTENDED,
        thorough: bool = True,
    ) -> GistJudgement:
        run.progress(RunProgress("running the gist", 0, 1))
        test = self.answer.test
        assert test is not None
        originals = Originals({path: text for path, text in FILES.items() if path.endswith(".py")})
        try:
            spliced = splice_test(gist, test.source, test.qualname, OWNED)
        except SyntaxError:
            spliced = None
        if not gist.strip() or spliced is None:
            return GistJudgement(score_gist(gist, None, originals, OWNED, test))
        trial = self.runner.run_gist(
            spliced.text,
            self.task.environment,
            Entrypoint("test", "tests/test_prices.py", test.qualname),  # type: ignore[arg-type]
            owned=OWNED,
            timeout_s=300.0,
            cancel=run.cancel,
        )
        made = GistRun(spliced.text, trial.run, self.answer.originals, trial.executed)
        return GistJudgement(score_gist(gist, made, originals, OWNED, test), spliced, trial)


@dataclass
class GistCase:
    """A gist task with an attempt in progress."""

    task: Task
    runner: FakeEntrypoints
    clock: FakeClock
    memory: Memory
    attempt: Attempt

    @property
    def steps(self) -> int:
        return self.attempt.state.remaining.tool_uses

    @property
    def ended(self) -> str:
        ending = self.attempt.state.ending
        return ending.reason if ending else ""

    def call(self, tool: str, **arguments: str) -> str:
        return self.attempt.call(tool, arguments).text

    def resumed(self, *, dies_at: int = 0) -> GistCase:
        clock = FakeClock(self.clock.utc_ms() + 60_000, 77, "boot-2")
        memory = Memory(clock, list(self.memory.events), dies_at)
        attempt = Attempt(self.task, self.attempt.judge, memory, clock, events=memory.events)
        attempt.resume_process()
        return GistCase(self.task, self.runner, clock, memory, attempt)


def gist_case(
    folder: Path,
    settings: GistSettings | None = None,
    *,
    budgets: Budgets | None = None,
    role: Role = Role.BASELINE,
    dies_at: int = 0,
) -> GistCase:
    """Start an attempt at the tiny gist task."""
    task = build_gist_task(folder, settings, budgets=budgets)
    runner, clock = FakeEntrypoints(), FakeClock()
    memory = Memory(clock, dies_at=dies_at)
    judge = FakeGistJudge(task, gist_answer(read_answer(task)), runner)
    attempt = Attempt(task, judge, memory, clock)
    attempt.start(replace(Enrolment(), role=role))
    return GistCase(task, runner, clock, memory, attempt)
