"""A third kind of task, defined only here: "make this assertion true by editing one file".

The fixture `assertion_kind` provides it with one entry point, as an installed package would.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from builders import write_files
from shelves import declare

from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.attempts.events import SubmissionMade, SubmissionRun, SubmissionScored
from gistpoint.core.attempts.harness import CallOutcome, ForcedOutcome, Log, TaskHarness
from gistpoint.core.attempts.state import AttemptCall, AttemptState, NoKindState
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds import registry
from gistpoint.core.kinds.commandline import code_arguments
from gistpoint.core.kinds.folder import read_task, write_task
from gistpoint.core.kinds.kind import ExpectedText, OneRequest, Runners, StartText, TaskKind
from gistpoint.core.kinds.measures import Analysis, Measure, MeasuredAttempt, MeasureType
from gistpoint.core.kinds.registry import all_tools
from gistpoint.core.kinds.simulation import Scene
from gistpoint.core.outcomes import FREE, BackendRecord, SuiteReport
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import Runner, RunRequest
from gistpoint.core.running import RunContext
from gistpoint.core.study.data import StudyData
from gistpoint.core.tasks.budgets import Budgets, Remaining
from gistpoint.core.tasks.fields import Fields
from gistpoint.core.tasks.identity import hash_of_ids, task_id
from gistpoint.core.tasks.leaks import CheckFinding
from gistpoint.core.tasks.model import Answer, Baseline, Brief, Source, Suite, Task
from gistpoint.core.tools.browsing import BROWSING
from gistpoint.core.tools.declaration import (
    Activity,
    Argument,
    ArgumentKind,
    BoundCall,
    Group,
    RefusalError,
    Replacement,
    Tool,
    ToolContext,
    ToolOutput,
    declarations_sha256,
)
from gistpoint.core.trees import SourceTree

FILES = {"shop/prices.py": "def total(price):\n    return price\n", "README.md": "A shop.\n"}
RIGHT = "def total(price):\n    return price + 1\n"


@dataclass(frozen=True)
class Statement:
    """This kind's part of a task: the assertion, and the file that may be edited."""

    text: str
    file: str


def statement_of(task: Task) -> Statement:
    assert isinstance(task.of_kind, Statement)
    return task.of_kind


def _rewrite(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    if arguments["content"] == "":
        raise RefusalError("The file would be empty.")
    return ToolOutput("", replacement=Replacement(context.target, "", arguments["content"]))


REWRITE_FILE = Tool(
    name="rewrite_file",
    description="Write the one file that may be edited, and try the assertion.",
    arguments=(Argument("content", ArgumentKind.CODE, "The whole text of the file."),),
    group=Group.SUBMIT,
    activity=Activity.EXECUTE,
    step="submit",
    run=_rewrite,
    runs_code=True,
)


@dataclass(frozen=True)
class Tried:
    """The result of one try."""

    report: SuiteReport
    holds: bool

    @property
    def counts(self) -> bool:
        return self.report.status not in FREE

    @property
    def reason(self) -> str:
        return self.report.reason


class AssertionBench(TaskHarness):
    """A harness in which every rewritten file replaces the previous one."""

    def __init__(self, task: Task, judge: AssertionJudge) -> None:
        super().__init__(task, judge.backend)
        self.judge = judge
        self._base = self._tree = SourceTree.open(task.tree_path)

    @property
    def tree(self) -> SourceTree:
        return self._tree

    def restore(self, state: AttemptState) -> None:
        for kept in state.replacements:
            self._tree = self._base.with_files({kept.path: kept.code.encode()})

    def files(self, state: AttemptState) -> Mapping[str, bytes | None]:
        return dict(self._tree.overlay)

    def brief(self, task: Task) -> str:
        return ASSERTION.brief(task)

    def start_data(self, budgets: Budgets) -> Mapping[str, Any]:
        return {"tools_sha256": declarations_sha256(ASSERTION.tools)}

    def tools(self, state: AttemptState) -> tuple[Tool, ...]:
        return ASSERTION.tools

    def handle(self, call: AttemptCall, bound: BoundCall, log: Log, run: RunContext) -> CallOutcome:
        context = ToolContext(self._tree, self.task.limits, statement_of(self.task).file)
        output = bound.answer(context)
        new = output.replacement
        if new is None:
            return CallOutcome(output, Remaining(1, 0))
        log.append(SubmissionMade(call.call_id, replacement=new, persistent=True))
        self.restore(log.state)
        tried = self.judge.judge(self._tree, run)
        log.append(SubmissionRun(call.call_id, tried.report.status.value, tried.reason, tried.counts))
        log.append(SubmissionScored(call.call_id, float(tried.holds), tried.holds))
        text = "The assertion holds." if tried.holds else "The assertion does not hold."
        return CallOutcome(ToolOutput(text), Remaining(1, 1), tried)

    def remark(self, charged: Remaining, left: Remaining, state: AttemptState) -> list[str]:
        return [f"[{left.tool_uses} uses left]"]


@dataclass(frozen=True)
class AssertionJudge:
    """A judge that runs the assertion as a suite of one test."""

    task: Task
    runner: Runner

    @property
    def backend(self) -> BackendRecord:
        return self.runner.backend

    @property
    def blank(self) -> NoKindState:
        return NoKindState()

    def as_recorded(self, task: Task, of_kind: Mapping[str, Any], budgets: Budgets) -> Task:
        return replace(task, budgets=budgets)

    def harness(self, task: Task) -> AssertionBench:
        return AssertionBench(task, self)

    def ending_as(self, instead: ForcedOutcome) -> AssertionJudge:
        return self

    def judge(self, tree: SourceTree, run: RunContext) -> Tried:
        report = self.runner.run(RunRequest(tree, self.task.environment, 10.0), run=run)
        return Tried(report, "holds" in report.passed)


class AssertionScene(Scene):
    """The task for simulated solvers: its suite is the one assertion."""

    @property
    def suite(self) -> Baseline:
        return Baseline("simulated", "", 1, frozenset({"holds"}), frozenset({"holds"}), frozenset())


def tries(data: StudyData) -> Findings:
    """Return the kind's own analysis: the mean number of written files per attempt."""
    found = {row.attempt: row.number("tries") for row in data.rows if row.number("tries") is not None}
    return Findings({"tries": Number(fmean(found.values()), rows=len(found))}) if found else Findings()


class AssertionKind(TaskKind[AssertionJudge]):
    """The kind of task in which an assertion has to be made true by editing one file."""

    modes = ("assertion",)
    tools = (*BROWSING, REWRITE_FILE)
    measures = (
        Measure("tries", "How many texts were tried.", unit="texts"),
        Measure("last_text", "The text that was tried last.", MeasureType.TEXT),
    )
    task_measures = (
        Measure("assertion_length", "How long the assertion is.", unit="characters", metric="length"),
    )
    analyses = (Analysis("as-tries", "Texts until it holds", "", f"{__name__}:tries"),)
    prompts: Mapping[str, str] = {"assertion-1": "Make this true: {{text}}\n\n{{file}}"}

    def measured(self, attempt: MeasuredAttempt) -> Mapping[str, Any]:
        texts = [submission.replacement.code for submission in attempt.state.submissions]
        return {"tries": float(len(texts)), "last_text": texts[-1]} if texts else {}

    def metrics(self, answer: Answer) -> Mapping[str, float]:
        return {"length": float(len(str(answer.of_kind)))}

    def simulated(self, task: Task, answer: Answer) -> AssertionScene:
        return AssertionScene(self, task, answer)

    def one_request(self, task: Task, answer: Answer) -> OneRequest:
        start = self.start(task)
        return OneRequest(self.prompts["assertion-1"], {"text": statement_of(task).text, "file": start.text})

    def read(self, fields: Fields) -> Statement:
        table = fields.table("assertion")
        return Statement(table.get("text", str), table.get("file", str))

    def document(self, task: Task) -> Mapping[str, Any]:
        return {"assertion": {"text": statement_of(task).text, "file": statement_of(task).file}}

    def identity(self, task: Task) -> Mapping[str, Any]:
        return {"assertion": statement_of(task).text}

    def read_answer(self, task: Task, fields: Fields) -> Answer:
        return Answer((), (), of_kind=fields.get("solution", str))

    def answer_document(self, answer: Answer) -> Mapping[str, Any]:
        return {"solution": answer.of_kind}

    def verify(self, task: Task, answer: Answer) -> None:
        if not answer.of_kind:
            raise TaskError("answer/answer.json: the key 'solution' is empty.")

    def brief(self, task: Task) -> str:
        return f"Make this true by editing {statement_of(task).file}: {statement_of(task).text}\n"

    def start(self, task: Task) -> StartText:
        file = statement_of(task).file
        return StartText(file, SourceTree.open(task.tree_path).read(file).decode())

    def expected(self, task: Task, answer: Answer) -> tuple[ExpectedText, ...]:
        return (ExpectedText(statement_of(task).file, self.start(task).text, str(answer.of_kind)),)

    def judge(self, task: Task, answer: Answer, runners: Runners) -> AssertionJudge:
        return AssertionJudge(task, runners.runner_for(task))

    def check(self, judge: AssertionJudge, run: RunContext) -> Iterator[CheckFinding]:
        holds = judge.judge(SourceTree.open(judge.task.tree_path), run).holds
        yield CheckFinding("assertion", not holds, "it does not hold at the start")


ASSERTION = AssertionKind()


def holds(names: Mapping[str, object]) -> None:
    assert names["total"](1) == 2  # type: ignore[operator]


@pytest.fixture
def assertion_kind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Declare the kind as an installed package does, with one entry point."""
    entry = EntryPoint("assertion", f"{__name__}:ASSERTION", registry.GROUP)
    declare(monkeypatch, registry.GROUP, [entry])
    known = (registry.all_kinds, all_tools, code_arguments)
    for cached in known:
        cached.cache_clear()
    yield
    for cached in known:
        cached.cache_clear()


def assertion_task(root: Path) -> Task:
    """Write a task of the kind, and return it as read back."""
    folder = root / "task"
    tree, statement = write_files(FILES, folder), Statement("assert total(1) == 2", "shop/prices.py")
    ids, source = hash_of_ids(["holds"]), Source("sdist", "shop", "1.0")
    identity = task_id(
        mode="assertion", source_name=source.name, source_revision=source.revision, tree_sha256=tree, targets=(),
        lock=(), ids_sha256=ids, of_kind={"assertion": statement.text},
    )  # fmt: skip
    task = Task(
        identity, "assertion", source, tree, Brief("assertion-1", "", ()), Suite(1, ids, 0.1, 10.0), EnvironmentPins(),
        Budgets(6, 2), of_kind=statement, folder=folder,
    )  # fmt: skip
    write_task(task, Answer((), (), of_kind=RIGHT))
    return read_task(folder)
