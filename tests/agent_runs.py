"""Runs of agents on tiny tasks, with models that reply from a script and suites that run in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders import CHECKS, REPAIR, build_task
from fakes import FakeClock, FakeRunner
from scripted_endpoint import ScriptedModel, reply

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatReply
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.ports import ChatModel, Runner
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.agentruns.figures import FiguresOfRun, figures_of
from gistpoint.sessions.agentruns.runner import AgentPorts, AgentRunner
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore, RunSettings, job_of
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.tasks import TaskStore

LOOK = ("list_directory", {})
WRONG = ("submit_attempt", {"func_code": REPAIR.replace("100", "99")})
RIGHT = ("submit_attempt", {"func_code": REPAIR})
SOLVES = (reply(LOOK, content="First I look."), reply(RIGHT))
TALKS = (reply(content="I think that it is fine."),)


@dataclass
class Home:
    """A home with tasks, attempts and runs."""

    folder: Path
    script: Sequence[ChatReply | ChatFailure] = SOLVES
    runner: Runner = field(default_factory=lambda: FakeRunner(CHECKS))
    model_of: Callable[[AgentSettings], ChatModel] | None = None
    settings: RunSettings = field(
        default_factory=lambda: RunSettings(model="m-1", host="", agent=AgentSettings())
    )
    asked: list[ScriptedModel] = field(default_factory=list)
    """The models created so far, one for each attempt."""

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.tasks = TaskStore(self.folder / "tasks")
        self.attempts = AttemptStore(self.folder / "attempts", self.clock, "test")
        self.runs = AgentRunStore(self.folder / "runs")

    def task(self, number: int = 1, mode: Mode = Mode.REMOVE) -> Task:
        """Make and return a task; tasks with other numbers have other ids."""
        return build_task(self.folder / "tasks", mode=mode, extra_files={"notes.txt": f"{number}\n"})

    def model(self, settings: AgentSettings) -> ChatModel:
        """Return a new model that replies from the beginning of the script, or that `model_of` makes."""
        if self.model_of is not None:
            return self.model_of(settings)
        self.asked.append(ScriptedModel(self.script))
        return self.asked[-1]

    def run(self, *tasks: Task, repeats: int = 1, name: str = "r") -> AgentRun:
        """Return a run with these tasks queued."""
        found = self.runs.open_or_create(name, self.settings, self.clock.utc_ms(), "test")
        jobs = [job_of(task.id, self.settings, repeat) for task in tasks for repeat in range(1, repeats + 1)]
        found.add(jobs, self.clock.utc_ms())
        return found

    def judge(self, task_id: str) -> RepairJudge:
        """Return the judge of a task."""
        task = self.tasks.find(task_id)
        return RepairJudge(task, read_answer(task), self.runner)

    @property
    def ports(self) -> AgentPorts:
        """The services that the home's runs need."""
        return AgentPorts(
            attempts=self.attempts,
            clock=self.clock,
            task=self.tasks.find,
            judge=lambda task: RepairJudge(task, read_answer(task), self.runner),
            model=self.model,
        )

    def work(self, run: AgentRun, **options: Any) -> AgentRunner:
        """Complete a run, and return its runner."""
        runner = AgentRunner(run, self.ports, **options)
        runner.work()
        return runner

    def figures(self, run: AgentRun) -> FiguresOfRun:
        """Return the figures of a run."""
        return figures_of(run, self.attempts)


@dataclass
class WaitingModel:
    """A model that signals that it was asked, and replies when released."""

    answer: ChatReply
    asked: threading.Event = field(default_factory=threading.Event)
    let: threading.Event = field(default_factory=threading.Event)
    name: str = "waits"

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply:
        self.asked.set()
        while not self.let.wait(0.01):
            cancel.check()
        return self.answer
