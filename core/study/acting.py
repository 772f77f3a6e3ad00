"""Acts what a simulation has decided: simulated people and models work on real tasks, through the real engine.

Calls that look are answered from the task's own tree, and texts are typed and submitted. Two things alone are made up:
the clock, and the runs of tests and commands, whose results are as decided.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import ceil
from typing import Any

from gistpoint.core.attempts.bench import Instead, TaskJudge
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import (
    EndReason,
    GiveUpCode,
    ModelTurn,
    Pane,
    PauseReason,
    RequestedCall,
    TurnUsage,
)
from gistpoint.core.attempts.state import NoKindState
from gistpoint.core.code.index import DefinitionKind, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import with_definition
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.entrypoints.runs import GistTrial, Raised, TestRun, TestsRun
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import GistAnswer
from gistpoint.core.kinds.gist.rates import unfolded
from gistpoint.core.kinds.gist.tools import GIST_BUFFER, SUBMIT_GIST, WRITE_GIST
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.kinds.repair.bench import RepairHarness
from gistpoint.core.kinds.repair.judgement import Judgement
from gistpoint.core.kinds.repair.scoring import changed_targets, score, solved
from gistpoint.core.outcomes import BackendRecord, Outcome, RunStatus, SuiteReport, TestResult
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.simulating import AttemptCourse, ModelBehaviour, uniform
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Answer, Mode, Task
from gistpoint.core.tools.browsing import BROWSING
from gistpoint.core.tools.declaration import ArgumentKind, Tool
from gistpoint.core.trees import SourceTree

BACKEND = BackendRecord("simulated", "1", isolated=True)
"""Nothing runs at all, so nothing needs a sandbox."""
_IDLE_ASKED_MS = 120_000


class SimulatedTime:
    """A clock that stands still until somebody acts; a `core.ports.TimeSource`."""

    def __init__(self, utc_ms: int, boot: str) -> None:
        self._utc_ms, self._mono_ms, self._boot = utc_ms, 0, boot

    def utc_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self._utc_ms

    def mono_ms(self) -> int:
        """Milliseconds since the clock was made."""
        return self._mono_ms

    def boot_id(self) -> str:
        """The name of the machine that is simulated."""
        return self._boot

    def advance(self, milliseconds: int) -> None:
        """Let time pass."""
        self._utc_ms += milliseconds
        self._mono_ms += milliseconds


@dataclass
class ScriptedRunner:
    """Reports runs of suites and of gists without running anything: `right` says how the next ones end."""

    task: Task
    answer: Answer
    clock: SimulatedTime | None = None
    right: bool = False
    near: float = 0.0
    """The share of the failing tests that a run which is not right repairs."""
    _text: str | None = None

    backend = BACKEND

    def next(self, clock: SimulatedTime, *, right: bool, near: float = 0.0) -> None:
        """Decide how the next submission is judged."""
        self.clock, self.right, self.near, self._text = clock, right, near, None

    def runner_for(self, task: Task, /) -> ScriptedRunner:
        """Return itself, as a runner of suites."""
        return self

    def entrypoints_for(self, task: Task, /) -> ScriptedRunner:
        """Return itself, as a runner of gists."""
        return self

    def run(self, request: RunRequest, *, run: RunContext = UNATTENDED) -> SuiteReport:
        """Report a run of the suite."""
        baseline = self.answer.baselines[0]
        failing = sorted(baseline.failing)
        lost = set() if self.right else set(failing[len(failing) - max(1, ceil((1 - self.near) * len(failing))) :])
        results = {
            id: TestResult(id, Outcome.FAILED, 0.0, "AssertionError: a simulated failure")
            if id in lost
            else TestResult(id, Outcome.PASSED if id in baseline.passed else Outcome.SKIPPED)
            for id in sorted(baseline.collected)
        }
        return SuiteReport(RunStatus.FINISHED, results, seconds=self._took(self.task.suite.seconds), backend=BACKEND)

    def run_gist(self, text: str, *_: Any, measure_lines: bool = True, **__: Any) -> GistTrial:
        """Report a run of a gist; a text that differs from that of the first run since `next` fails."""
        if self._text is None:
            self._text = unfolded(text)
        seconds = self._took(self.task.suite.seconds)
        count = len(text.splitlines()) + 1
        lines = frozenset(
            line for line in range(1, count) if uniform("line", self.task.id, line) < 0.95 or line == count - 1
        )
        originals = _gist_of(self.answer).originals
        if self.right and unfolded(text) == self._text:
            return GistTrial(originals[0], seconds, lines if measure_lines else frozenset())
        raised = Raised("NameError", "name 'missing' is not defined")
        tests = originals[0].tests if isinstance(originals[0], TestsRun) else {"gist": TestRun(Outcome.FAILED)}
        if self.near < 0.5:
            return GistTrial(TestsRun(RunStatus.FINISHED, {}, raised), seconds)
        failed = {id: TestRun(Outcome.FAILED, raised=raised, phase="call") for id in tests}
        return GistTrial(TestsRun(RunStatus.FINISHED, failed), seconds, lines if measure_lines else frozenset())

    def _took(self, seconds: float) -> float:
        if self.clock is not None:
            self.clock.advance(round(seconds * 1000))
        return seconds


@dataclass
class ScriptedJudge:
    """Judges repairs by the runs of a `ScriptedRunner`: their score is real, and no pass is suspicious."""

    task: Task
    answer: Answer
    runner: ScriptedRunner
    _changed: dict[tuple[tuple[str, bytes | None], ...], tuple[str, ...]] = field(default_factory=dict)
    """By the files that submissions changed."""

    blank = NoKindState()
    backend = BACKEND

    def as_recorded(self, task: Task, of_kind: Mapping[str, Any], budgets: Budgets) -> Task:
        """Return the task with these budgets."""
        return replace(task, budgets=budgets)

    def bench(self, task: Task) -> RepairHarness:
        """Return the harness of a repair."""
        return RepairHarness(task, self)

    def ending_as(self, instead: Instead) -> ScriptedJudge:
        """Return itself: nothing is replayed with it."""
        return self

    def judge(
        self,
        tree: SourceTree,
        *,
        run: RunContext = UNATTENDED,
        first: tuple[str, ...] = (),
        replaced: tuple[str, ...] = (),
    ) -> Judgement:
        """Score a tree as the runner says."""
        report = self.runner.run(RunRequest(tree, self.task.environment, self.task.suite.timeout_s))
        scored = score(self.answer.baselines[0], report)
        files = tuple(sorted(tree.overlay.items()))
        if files not in self._changed:
            self._changed[files] = changed_targets(tree, self.answer.targets)
        changed = self._changed[files]
        names = [target.name for target in self.answer.targets]
        return Judgement(report, scored, solved(scored, names, changed), changed)


def _gist_of(answer: Answer) -> GistAnswer:
    if not isinstance(answer.of_kind, GistAnswer):
        raise StudyError("This is the answer of a repair, not of a gist.")
    return answer.of_kind


@dataclass(frozen=True)
class Scene:
    """A task as simulated solvers meet it: what can be looked at, what is right, and who judges."""

    task: Task
    answer: Answer

    @classmethod
    def of(cls, task: Task) -> Scene:
        """Return the scene of a task with its answer. Raises `StudyError` for a kind that can't be simulated."""
        scene = cls(task, read_answer(task))
        if not scene.right:
            raise StudyError(
                f"The task {task.short_id} can't be simulated: its answer holds no text that solves it.",
                hint="Repairs can be simulated, and gists that have a reference gist.",
            )
        return scene

    @cached_property
    def runner(self) -> ScriptedRunner:
        """What stands in for the sandbox."""
        return ScriptedRunner(self.task, self.answer)

    @cached_property
    def judge(self) -> TaskJudge:
        """Who judges repairs by scripted runs, and other tasks' own judge with such runs."""
        if self.answer.targets:
            return ScriptedJudge(self.task, self.answer, self.runner)
        judge: TaskJudge = kind_of(self.task).judge(self.task, self.answer, self.runner)
        return judge

    @cached_property
    def right(self) -> tuple[tuple[str, str], ...]:
        """The names and texts that solve the task."""
        expected = kind_of(self.task).expected(self.task, self.answer)
        if expected:
            return tuple((part.name, part.right) for part in expected)
        reference = self.answer.of_kind.reference if isinstance(self.answer.of_kind, GistAnswer) else None
        return ((GIST_BUFFER, reference.text),) if reference is not None and reference.text else ()

    @cached_property
    def tree(self) -> SourceTree:
        """The corrupted tree."""
        return SourceTree.open(self.task.tree_path)

    @cached_property
    def functions(self) -> tuple[tuple[str, str], ...]:
        """The functions that one name means, those of tests last, each as path and qualname."""
        paths = sorted(self.tree.files(".py"), key=lambda path: (self._is_test(path), path))
        return tuple((path, name) for path in paths for name in _functions_in(path, self.tree.read(path)))

    def _is_test(self, path: str) -> bool:
        return is_protected(path, frozenset(self.task.suite.test_files))

    @cached_property
    def _vain(self) -> dict[tuple[bool, int], tuple[str, str]]:
        return {}

    def wrong(self, course: AttemptCourse, number: int) -> tuple[str, str]:
        """Return the name and text of a submission that fails, which differs from the others."""
        if (course.finds, number) not in self._vain:
            self._vain[course.finds, number] = self._wrong(course, number)
        return self._vain[course.finds, number]

    def _wrong(self, course: AttemptCourse, number: int) -> tuple[str, str]:
        if isinstance(self.answer.of_kind, GistAnswer):
            return GIST_BUFFER, f"{self.right[0][1]}\nattempted = {number}\n"
        name, text = next((part.name, part.given) for part in kind_of(self.task).expected(self.task, self.answer))
        if not course.finds and self.task.mode == Mode.DISCOVERY:
            name, text = self._elsewhere(number) or (name, text)
        path, _, qualname = name.partition("::")
        last = text.rstrip("\n").rpartition("\n")[2]
        longer = f"{text.rstrip()}\n{last[: len(last) - len(last.lstrip())] or '    '}attempted = {number}\n"
        try:
            with_definition(self.tree, path, qualname, longer)
        except CodeError:
            return name, text
        return name, longer

    def _elsewhere(self, number: int) -> tuple[str, str] | None:
        """Return a function that is not corrupted."""
        targets = {name for name, _ in self.right}
        for path, qualname in self._shuffled(number):
            if not self._is_test(path) and f"{path}::{qualname}" not in targets and "<locals>" not in qualname:
                return f"{path}::{qualname}", index_source(path, self.tree.read(path)).get(qualname).dedented
        return None

    def _shuffled(self, number: int) -> list[tuple[str, str]]:
        return sorted(self.functions, key=lambda known: uniform(self.task.id, "elsewhere", number, *known))

    def submission(self, name: str, text: str) -> tuple[Tool, dict[str, str]]:
        """Return the tool that submits, with its arguments."""
        tool = next(tool for tool in kind_of(self.task).tools_of(self.task, self.task.budgets) if tool.submits)
        path, _, qualname = name.partition("::")
        parts = {ArgumentKind.CODE: text, ArgumentKind.FUNCTION: qualname, ArgumentKind.FILE: path}
        return tool, {argument.name: parts[argument.kind] for argument in tool.arguments}

    def look(self, course: AttemptCourse, number: int, *about: object) -> tuple[str, dict[str, str]]:
        """Return the name and the arguments of a call that looks, the `number`th of the attempt."""
        draw = uniform(*about, "look", number)
        if number == 0:
            return _LIST, {"path": ""}
        targets = [tuple(name.partition("::")[::2]) for name, _ in self.right if "::" in name]
        if targets and course.finds and number >= min(2, course.looks - 1) and number - 2 < len(targets):
            path, name = targets[max(0, number - 2)]
            return _READ_FUNCTION, {"function_name": name, "file_path": path}
        others = [known for known in self.functions if known not in targets or self.task.mode == Mode.REMOVE]
        if not others:
            return _LIST, {"path": ""}
        path, name = others[int(draw * len(others))]
        tool = int(uniform(*about, "tool", number) * 10)
        if tool < 2:
            return _SEARCH, {"pattern": name.rpartition(".")[2]}
        if tool < 3:
            return _LIST_FUNCTIONS, {"file_path": path}
        if tool < 4 and not any(path == target for target, _ in targets):
            return _READ_FILE, {"file_path": path}
        return _READ_FUNCTION, {"function_name": name, "file_path": path}


_LIST, _LIST_FUNCTIONS, _READ_FILE, _READ_FUNCTION, _SEARCH = (
    next(tool.name for tool in BROWSING if tool.name == name)
    for name in ("list_directory", "list_file_functions", "read_file", "read_function", "search_code")
)


@lru_cache(maxsize=4096)
def _functions_in(path: str, source: bytes) -> tuple[str, ...]:
    """Return the names that mean one function of a file each; most files are the same in all tasks of a library."""
    try:
        index = index_source(path, source)
    except CodeError:
        return ()
    found = [(d.ref.qualname.partition("#")[0], d.kind) for d in index.definitions]
    named = Counter(name for name, _ in found)
    return tuple(name for name, kind in found if kind is not DefinitionKind.CLASS and named[name] == 1)


@dataclass
class Performance:
    """One simulated solver at work on one attempt, which has begun."""

    attempt: Attempt
    scene: Scene
    course: AttemptCourse
    clock: SimulatedTime
    about: tuple[object, ...]
    """What its draws are for."""
    turns: int = field(default=0, init=False)

    def person(self, after_brief: Callable[[], None] = lambda: None) -> None:
        """Work as a person does; `after_brief` is called when the brief has been read."""
        attempt, course = self.attempt, self.course
        attempt.view(Pane.BRIEF)
        self._until(course.reading_s)
        after_brief()
        first = min(course.wrong_at, default=course.active_s)
        for number in range(course.looks):
            self._until(course.reading_s + (0.75 * first - course.reading_s) * (number + 1) / (course.looks + 1))
            attempt.view(Pane.CONSOLE)
            name, arguments = self.scene.look(course, number, *self.about)
            attempt.call(name, arguments)
            attempt.view(Pane.RESULT)
            if number % 3 == 1:
                attempt.use_affordance("scroll", 1 + number)
        self._rest()
        if course.finds and self.scene.task.mode == Mode.DISCOVERY:
            attempt.suspect(self.scene.right[0][0])
        attempt.view(Pane.EDITOR)
        for at, right, name, text, near in self._submissions():
            self._until(0.9 * at)
            attempt.view(Pane.EDITOR)
            attempt.edit(name, text)
            self._until(at)
            self._submit(name, text, right=right, near=near)
        self._end()

    def model(self, model: ModelBehaviour) -> None:
        """Work as a model does: one call a turn."""
        course = self.course
        self.attempt.view(Pane.MODEL)
        submissions = list(self._submissions())
        writes = len(submissions) if self.scene.right[0][0] == GIST_BUFFER else 0
        count = course.looks + len(submissions) + writes
        for number in range(course.looks):
            self._until(course.active_s * (number + 1) / (count + 1))
            self._turn(model, *self.scene.look(course, number, *self.about))
        for at, right, name, text, near in submissions:
            self._until(at)
            self.scene.runner.next(self.clock, right=right, near=near)
            if name == GIST_BUFFER:
                self._turn(model, WRITE_GIST.name, {"content": text})
                self._turn(model, SUBMIT_GIST.name, {})
                continue
            tool, arguments = self.scene.submission(name, text)
            self._turn(model, tool.name, arguments)
        self._end()

    def _submissions(self) -> Iterator[tuple[float, bool, str, str, float]]:
        """Yield the time of each submission, whether it is right, its name, its text, and what it repairs."""
        course = self.course
        for number, (at, near) in enumerate(zip(course.wrong_at, course.near, strict=True), start=1):
            yield at, False, *self.scene.wrong(course, number), near
        parts = self.scene.right if course.solved else ()
        for number, (name, text) in enumerate(parts, start=1):
            last = number == len(parts)
            yield course.active_s * (1 - 0.02 * (len(parts) - number)), last, name, text, 0.5

    def _submit(self, name: str, text: str, *, right: bool, near: float) -> None:
        if self.attempt.state.ended:
            return
        self.scene.runner.next(self.clock, right=right, near=near)
        tool, arguments = self.scene.submission(name, text)
        self.attempt.call(tool.name, arguments)

    def _turn(self, model: ModelBehaviour, tool: str, arguments: Mapping[str, str]) -> None:
        if self.attempt.state.ended:
            return
        self.turns += 1
        raw = json.dumps(arguments)
        usage = TurnUsage(prompt=model.tokens_per_turn * self.turns, completion=len(raw) // 3 + 60)
        self.attempt.model_turn(
            ModelTurn(
                turn=self.turns,
                content="A simulated turn.",
                tool_calls=(RequestedCall(f"call-{self.turns}", tool, raw),),
                finish="tool_calls",
                model=model.name,
                usage=usage,
                latency_ms=round(1000 * model.seconds_per_turn),
            )
        )
        self.attempt.call(tool, None, raw=raw, turn=self.turns)

    def _rest(self) -> None:
        """Take the break, and be away without one."""
        if self.course.pause_s:
            self.attempt.pause(PauseReason.BREAK)
            self.clock.advance(round(1000 * self.course.pause_s))
            self.attempt.resume()
        idle_ms = round(1000 * self.course.idle_s)
        if idle_ms > _IDLE_ASKED_MS:
            since = self.clock.mono_ms()
            self.clock.advance(_IDLE_ASKED_MS)
            self.attempt.ask_idle(since)
            self.clock.advance(idle_ms - _IDLE_ASKED_MS)
            self.attempt.answer_idle(away=True)

    def _until(self, seconds: float) -> None:
        """Let active time pass up to this moment of the attempt, but never up to its limit."""
        limit = self.attempt.state.budgets.time_limit_s
        wanted = round(1000 * seconds)
        if limit is not None:
            wanted = min(wanted, 1000 * limit - 1)
        self.clock.advance(max(0, wanted - self.attempt.clock().active))

    def _end(self) -> None:
        attempt, course = self.attempt, self.course
        if attempt.state.ended:
            return
        self._until(course.active_s)
        self.scene.runner.next(self.clock, right=False)
        limit = attempt.state.budgets.time_limit_s
        if course.end is EndReason.TIME_CAP and limit is not None:
            self.clock.advance(max(0, 1000 * limit - attempt.clock().active))
            attempt.heartbeat()
            attempt.finish_pending()
        else:
            attempt.give_up(course.code or GiveUpCode.TOO_HARD)
